"""OpenAI's Chat Completions of a reasoning model (gpt-5)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agents.provider import Refused, Seen, Step, Turn, event
from agents.schemas import check_name, check_schema, check_strict

__all__ = ["ChatApi"]

_FIELDS = {
    "model",
    "messages",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_completion_tokens",
    "n",
    "store",
    "reasoning_effort",
    "verbosity",
    "response_format",
    "metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "service_tier",
    "seed",
    "prediction",
    "modalities",
    "audio",
    "prompt_cache_retention",
    "web_search_options",
    "logit_bias",
    "temperature",
    "top_p",
}
_ROLES = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls", "refusal", "audio"},
    "tool": {"role", "content", "tool_call_id"},
}
_LONGEST_ID = 40


class ChatApi:
    """See the module."""

    def read(self, body: Any, headers: Mapping[str, str], path: str) -> Seen:
        if path.split("?")[0] != "/v1/chat/completions":
            raise Refused(f"{path}: Not Found")
        if headers.get("authorization") != "Bearer provider-key":
            raise Refused("Incorrect API key provided")
        self._check_options(body)
        functions = [
            tool["function"] for tool in body.get("tools", ()) if tool["type"] == "function"
        ]
        tools = {}
        for function in functions:
            name = function["name"]
            check_name(name, "[a-zA-Z0-9_-]{1,64}")
            if extra := set(function) - {"name", "description", "parameters", "strict"}:
                raise Refused(f"Unknown parameter: tools.function.{min(extra)}")
            check_schema(name, function.get("parameters", {"type": "object"}))
            if function.get("strict"):
                check_strict(name, function["parameters"])
            tools[name] = function.get("parameters")
        turns: list[Turn] = []
        for index, message in enumerate(body["messages"]):
            turns.append(self._read_message(index, message))
        return Seen(turns, tools, [body.get("tools"), *body["messages"]])

    def _check_options(self, body: Any) -> None:
        if extra := set(body) - _FIELDS:
            raise Refused(f"Unknown or unsupported parameter: '{min(extra)}' with this model.")
        if body.get("temperature", 1) != 1 or body.get("top_p", 1) != 1:
            raise Refused("Unsupported value: 'temperature'. Only the default (1) is supported.")
        if body.get("tools") == [] or len(body.get("tools", ())) > 128:
            raise Refused("Invalid 'tools': empty array or too many")
        if {"tool_choice", "parallel_tool_calls"} & set(body) and "tools" not in body:
            raise Refused("'tool_choice' is only allowed when 'tools' are specified.")
        if "stream_options" in body and not body.get("stream"):
            raise Refused("The 'stream_options' parameter is only allowed when 'stream' is enabled")
        efforts = ("none", "minimal", "low", "medium", "high", "xhigh")
        if body.get("reasoning_effort", "low") not in efforts:
            raise Refused(f"Invalid value: reasoning_effort {body['reasoning_effort']!r}")
        if len(body.get("metadata") or ()) > 16 or any(
            len(str(text)) > 512 for text in (body.get("metadata") or {}).values()
        ):
            raise Refused("Invalid 'metadata'")
        if len(body.get("prompt_cache_key") or "") > 64:
            raise Refused("Invalid 'prompt_cache_key': string too long")

    def _read_message(self, index: int, message: Any) -> Turn:
        role, where = message["role"], f"messages[{index}]"
        if extra := set(message) - _ROLES[role]:
            raise Refused(f"Unrecognized request argument: {where}.{min(extra)}")
        turn = Turn({"assistant": "model", "tool": "user", "developer": "system"}.get(role, role))
        content = message.get("content")
        if content is None and not (role == "assistant" and message.get("tool_calls")):
            raise Refused(f"Invalid value for 'content': {where} expected a string, got null")
        if content == []:
            raise Refused(f"Invalid '{where}.content': empty array")
        for part in content if isinstance(content, list) else ():
            if part["type"] == "image_url" and role == "user":
                turn.images += 1
            elif part["type"] not in ("text", "refusal"):
                raise Refused(f"{where}: {part['type']} is not supported in a {role} message")
            elif role != "tool":
                turn.text += part.get("text", "")
        if isinstance(content, str) and role != "tool":
            turn.text = content
        for call in message.get("tool_calls") or ():
            if set(call) != {"id", "type", "function"} or len(call["id"]) > _LONGEST_ID:
                raise Refused(f"{where}.tool_calls: {call}"[:200])
            json.loads(call["function"]["arguments"])
            turn.calls.append(call["id"])
        if message.get("tool_calls") == []:
            raise Refused(f"Invalid '{where}.tool_calls': empty array")
        if role == "tool":
            turn.results.append(message["tool_call_id"])
        return turn

    def write(self, step: Step, number: int, body: Any) -> Iterator[bytes]:
        def chunk(delta: Any, reason: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            return event({**head, "choices": [choice], "usage": None})

        head = {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": body["model"],
        }
        yield chunk({"role": "assistant", "content": ""})
        if step.text:
            yield chunk({"content": step.text})
        for place, call in enumerate(step.calls):
            text = json.dumps(call.arguments)
            function = {"name": call.name, "arguments": ""}
            start = {"index": place, "id": f"call_{number}_{place}", "type": "function"}
            yield chunk({"tool_calls": [{**start, "function": function}]})
            for part in (text[: len(text) // 2], text[len(text) // 2 :]):
                yield chunk({"tool_calls": [{"index": place, "function": {"arguments": part}}]})
        yield chunk({}, "tool_calls" if step.calls else "stop")
        usage = {"prompt_tokens": 9, "completion_tokens": 20, "total_tokens": 29}
        if (body.get("stream_options") or {}).get("include_usage"):
            yield event({**head, "choices": [], "usage": usage})
        yield event("[DONE]")

    def error(self, words: str) -> Any:
        return {
            "error": {
                "message": words,
                "type": "invalid_request_error",
                "param": None,
                "code": None,
            }
        }

    def count(self, path: str, size: int) -> Any:
        return None
