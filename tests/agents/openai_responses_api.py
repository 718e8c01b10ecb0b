"""OpenAI's Responses API of a reasoning model (gpt-5), for clients that keep the conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.provider import Refused, Seen, Step, Turn, event, sign
from agents.schemas import check_name, check_schema, check_strict

__all__ = ["ResponsesApi"]

_FIELDS = {
    "model",
    "input",
    "instructions",
    "stream",
    "stream_options",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "max_output_tokens",
    "store",
    "reasoning",
    "text",
    "include",
    "metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "service_tier",
    "truncation",
    "previous_response_id",
    "conversation",
    "background",
    "max_tool_calls",
    "prompt",
    "top_logprobs",
    "client_metadata",
    "context_management",
    "temperature",
    "top_p",
}
_ITEMS: Mapping[str, set[str]] = {
    "message": {"type", "role", "content", "id", "status", "phase"},
    "reasoning": {"type", "id", "summary", "content", "encrypted_content", "status"},
    "function_call": {"type", "id", "call_id", "name", "arguments", "status", "namespace"},
    "function_call_output": {"type", "id", "call_id", "output", "status"},
    "custom_tool_call": {"type", "id", "call_id", "name", "input", "status"},
    "custom_tool_call_output": {"type", "id", "call_id", "output", "status"},
    "additional_tools": {"type", "id", "role", "tools"},
}
_LONGEST = 64


class ResponsesApi:
    """See the module."""

    def read(self, body: Any, headers: Mapping[str, str], path: str) -> Seen:
        if path.split("?")[0] != "/v1/responses":
            raise Refused(f"{path}: Not Found")
        if headers.get("authorization") != "Bearer provider-key":
            raise Refused("Incorrect API key provided")
        self._check_options(body)
        tools: dict[str, Any] = {}
        self._read_tools(body.get("tools", ()), tools)
        items = body["input"]
        if isinstance(items, str):
            items = [{"type": "message", "role": "user", "content": items}]
        turns = [self._read_item(index, item, tools) for index, item in enumerate(items)]
        self._check_reasoning(items)
        # Calls and their reasoning are items of one turn.
        joined: list[Turn] = []
        for turn in turns:
            if joined and turn.role == "model" == joined[-1].role:
                joined[-1].calls += turn.calls
                joined[-1].text += turn.text
            else:
                joined.append(turn)
        ids = [item["id"] for item in items if item.get("id")]
        if len(ids) != len(set(ids)):
            raise Refused("Duplicate item found with id")
        return Seen(joined, tools, [body.get("tools"), body.get("instructions"), *items])

    def _check_options(self, body: Any) -> None:
        if extra := set(body) - _FIELDS:
            raise Refused(
                f"Unsupported parameter: '{min(extra)}' is not supported with this model."
            )
        if body.get("temperature", 1) != 1 or body.get("top_p", 1) != 1:
            raise Refused("Unsupported parameter: 'temperature' is not supported with this model.")
        if "previous_response_id" in body or body.get("store") is not False:
            raise Refused("the conversation would be stored, which nobody asked for")
        if body.get("max_output_tokens", 16) < 16:
            raise Refused("Invalid 'max_output_tokens': integer below minimum value")
        if len(body.get("prompt_cache_key") or "") > _LONGEST:
            raise Refused("Invalid 'prompt_cache_key': string too long")
        known = {"effort", "summary", "generate_summary", "context", "mode"}
        if extra := set(body.get("reasoning") or ()) - known:
            raise Refused(f"Unknown parameter: 'reasoning.{min(extra)}'")
        if extra := set(body.get("text") or ()) - {"format", "verbosity"}:
            raise Refused(f"Unknown parameter: 'text.{min(extra)}'")
        if set(body.get("include") or ()) - {"reasoning.encrypted_content"}:
            raise Refused(f"include: {body['include']}")
        if "tool_choice" in body and not (body.get("tools") or body["tool_choice"] == "auto"):
            raise Refused("Tool choice must be specified with 'tools'")

    def _read_tools(self, given: Any, tools: dict[str, Any], group: str = "") -> None:
        for tool in given:
            kind = tool["type"]
            if kind == "namespace":
                self._read_tools(tool["tools"], tools, f"{tool['name']}.")
            elif kind == "function":
                extra = set(tool) - {
                    "type",
                    "name",
                    "description",
                    "parameters",
                    "strict",
                    "defer_loading",
                }
                if extra:
                    raise Refused(f"Unknown parameter: 'tools.{min(extra)}'")
                check_name(tool["name"], "[a-zA-Z0-9_-]{1,64}")
                check_schema(tool["name"], tool["parameters"])
                # A schema is strict here unless it says that it is not.
                if tool.get("strict") is not False:
                    check_strict(tool["name"], tool["parameters"])
                tools[group + tool["name"]] = tool["parameters"]
            elif kind not in ("custom", "web_search", "tool_search", "image_generation"):
                raise Refused(f"Invalid value: tools.type {kind!r}")

    def _read_item(self, index: int, item: Any, tools: dict[str, Any]) -> Turn:
        kind, where = item.get("type", "message"), f"input[{index}]"
        if kind not in _ITEMS:
            raise Refused(f"Invalid value: {where}.type {kind!r}")
        if extra := set(item) - _ITEMS[kind]:
            raise Refused(f"Unknown parameter: '{where}.{min(extra)}'")
        for name in ("id", "call_id"):
            if len(item.get(name) or "") > _LONGEST:
                raise Refused(f"Invalid '{where}.{name}': string too long")
        if kind == "additional_tools":
            self._read_tools(item["tools"], tools)
            return Turn("system")
        if kind == "message":
            return self._read_message(where, item)
        if kind == "reasoning":
            return Turn("model")
        if kind == "function_call":
            json.loads(item["arguments"])
            if item.get("id") and not item["id"].startswith("fc_"):
                raise Refused(f"Invalid '{where}.id': {item['id']!r} should begin with 'fc_'")
        if kind.endswith("call"):
            return Turn("model", calls=[item["call_id"]])
        turn = Turn("user", results=[item["call_id"]])
        if not isinstance(item["output"], str | list):
            raise Refused(f"Invalid type for '{where}.output'")
        for part in item["output"] if isinstance(item["output"], list) else ():
            if part["type"] not in ("input_text", "input_image", "input_file"):
                raise Refused(f"Invalid value: '{where}.output.type': {part['type']!r}")
            turn.images += part["type"] == "input_image"
        return turn

    def _read_message(self, where: str, item: Any) -> Turn:
        role = {"assistant": "model", "developer": "system"}.get(item["role"], item["role"])
        turn = Turn(role)
        if isinstance(item["content"], str):
            turn.text = item["content"]
            return turn
        wanted = ("output_text", "refusal") if role == "model" else ("input_text", "input_image")
        for part in item["content"]:
            if part["type"] not in (*wanted, "input_file"):
                raise Refused(f"Invalid value: '{where}.content.type': {part['type']!r}")
            turn.text += part.get("text", "")
            turn.images += part["type"] == "input_image"
        return turn

    def _check_reasoning(self, items: list[Any]) -> None:
        """A reasoning item stands, unaltered, before what it led to, and what had one has it."""
        for index, item in enumerate(items):
            if item.get("type") == "reasoning":
                if item.get("encrypted_content") != sign("responses", item["id"]):
                    raise Refused("The encrypted content could not be verified.")
                after = items[index + 1] if index + 1 < len(items) else {}
                if after.get("type") not in ("function_call", "custom_tool_call") and (
                    after.get("role") != "assistant"
                ):
                    raise Refused(
                        f"Item '{item['id']}' of type 'reasoning' was provided without its required following item."
                    )
            elif found := re.match(r"(?:fc|msg)_(\d+)_0$", item.get("id") or ""):
                before = items[index - 1] if index else {}
                if before.get("id") != f"rs_{found[1]}":
                    raise Refused(
                        f"Item '{item['id']}' was provided without its required 'reasoning' item."
                    )

    def write(self, step: Step, number: int, body: Any) -> Iterator[bytes]:
        items: list[Any] = [
            {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [{"type": "summary_text", "text": f"Thought {number}."}],
                "encrypted_content": sign("responses", f"rs_{number}"),
            }
        ]
        if step.text:
            part = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
            items.append(
                {
                    "type": "message",
                    "id": f"msg_{number}_0",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        said = len(items) - 1
        for place, call in enumerate(step.calls):
            group, _, name = call.name.rpartition(".")
            items.append(
                {
                    "type": "function_call",
                    "id": f"fc_{number}_{place + said}",
                    "call_id": f"call_{number}_{place}",
                    "name": name,
                    **({"namespace": group} if group else {}),
                    "arguments": json.dumps(call.arguments),
                    "status": "completed",
                }
            )
        response: Any = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1700000000,
            "model": body["model"],
            "status": "in_progress",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "temperature": 1.0,
            "top_p": 1.0,
            "usage": None,
        }
        sequence = iter(range(10_000))

        def tell(kind: str, **fields: Any) -> bytes:
            return event({"type": kind, "sequence_number": next(sequence), **fields}, kind)

        yield tell("response.created", response=response)
        for index, item in enumerate(items):
            at = {"output_index": index, "item_id": item["id"]}
            empty = {
                **item,
                **({"content": [], "status": "in_progress"} if "content" in item else {}),
            }
            if "arguments" in item:
                empty |= {"arguments": "", "status": "in_progress"}
            if "summary" in item:
                empty |= {"summary": []}
            yield tell("response.output_item.added", output_index=index, item=empty)
            yield from self._write_item(item, at, tell)
            yield tell("response.output_item.done", output_index=index, item=item)
        usage = {
            "input_tokens": 9,
            "output_tokens": 20,
            "total_tokens": 29,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 5},
        }
        done = {**response, "status": "completed", "output": items, "usage": usage}
        yield tell("response.completed", response=done)

    def _write_item(self, item: Any, at: Any, tell: Any) -> Iterator[bytes]:
        if item["type"] == "reasoning":
            [part] = item["summary"]
            at = {**at, "summary_index": 0}
            yield tell("response.reasoning_summary_part.added", **at, part={**part, "text": ""})
            yield tell("response.reasoning_summary_text.delta", **at, delta=part["text"])
            yield tell("response.reasoning_summary_text.done", **at, text=part["text"])
            yield tell("response.reasoning_summary_part.done", **at, part=part)
        elif item["type"] == "message":
            [part] = item["content"]
            at = {**at, "content_index": 0}
            yield tell("response.content_part.added", **at, part={**part, "text": ""})
            yield tell("response.output_text.delta", **at, delta=part["text"], logprobs=[])
            yield tell("response.output_text.done", **at, text=part["text"], logprobs=[])
            yield tell("response.content_part.done", **at, part=part)
        else:
            text = item["arguments"]
            for part in (text[: len(text) // 2], text[len(text) // 2 :]):
                yield tell("response.function_call_arguments.delta", **at, delta=part)
            yield tell("response.function_call_arguments.done", **at, arguments=text)

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
        if "/input_tokens" in path:
            return {"object": "response.input_tokens", "input_tokens": size // 4}
        return None
