"""A conversation as people see it: answers of one turn that follow each other are one message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.codec.json_values import if_list, if_object
from dragoman.history.flat import STEP
from dragoman.message import MarkPart, Message, Role, TextPart, ToolCallPart
from dragoman.wires.ai_sdk_messages.own import OURS

__all__ = ["shown", "without_own_metadata"]


def shown(messages: Iterable[Message]) -> list[Message]:
    """The messages, of which those of the model's that stand beside each other in one turn are one. Between a call and a text a step begins."""
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        if last is None or not _is_one(last, message):
            found.append(message)
            continue
        is_step = bool(
            last.content
            and isinstance(last.content[-1], ToolCallPart)
            and message.content
            and isinstance(message.content[0], TextPart)
        )
        content = (*last.content, *((MarkPart(STEP),) if is_step else ()), *message.content)
        metadata = {**last.own_metadata, **message.own_metadata}
        found[-1] = last.replace(
            content=content, metadata=metadata, finish_reason=message.finish_reason
        )
    return found


def _is_one(last: Message, message: Message) -> bool:
    both_model = last.role is Role.MODEL and message.role is Role.MODEL
    return both_model and last.turn is not None and last.turn == message.turn


def without_own_metadata(message: dict[str, Any]) -> dict[str, Any]:
    """A UI message without what dragoman notes in it for itself: in its metadata, or, in ai 4, behind its annotations."""
    kept = dict(message)
    if OURS in if_object(message.get("metadata")):
        kept["metadata"] = {key: value for key, value in message["metadata"].items() if key != OURS}
        if not kept["metadata"]:
            del kept["metadata"]
    annotations = if_list(message.get("annotations"))
    if annotations and if_object(annotations[-1]).keys() == {OURS}:
        kept["annotations"] = annotations[:-1]
        if not kept["annotations"]:
            del kept["annotations"]
    return kept
