"""What a server of the Responses API answers beside responses: lists of models, numbers of tokens, the items of a request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.message import Message, Role
from dragoman.wires.chat.serving import dump_model, dump_models
from dragoman.wires.openai_responses.messages import dump_messages

__all__ = ["dump_input_items", "dump_model", "dump_models", "dump_token_count"]


def dump_token_count(count: int) -> dict[str, Any]:
    """The answer to a request to count tokens."""
    return {"object": "response.input_tokens", "input_tokens": count}


def dump_input_items(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The input of a request as the items that are listed of it, oldest first; each has an id."""
    spoken = [message for message in messages if message.role is not Role.SYSTEM]
    items = dump_messages(spoken).get("input", [])
    return [_listed(item, place) for place, item in enumerate(items)]


def _listed(item: dict[str, Any], place: int) -> dict[str, Any]:
    kind = item.get("type", "message")
    listed = {"type": kind, "id": f"{_PREFIXES.get(kind, 'item')}_{place}", **item}
    if kind != "message":
        return {**listed, "status": item.get("status", "completed")}
    if isinstance(text := item.get("content"), str):
        by_model: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
        listed["content"] = [by_model if item.get("role") == "assistant" else {"type": "input_text", "text": text}]
    return {**listed, "status": item.get("status", "completed")}


_PREFIXES = {"message": "msg", "function_call": "fc", "function_call_output": "fco", "reasoning": "rs"}
