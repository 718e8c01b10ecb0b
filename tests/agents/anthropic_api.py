"""Anthropic's Messages API of a model that thinks adaptively (claude-opus-4-8)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.provider import Refused, Seen, Step, Turn, event, sign
from agents.schemas import check_name, check_schema, check_strict

__all__ = ["AnthropicApi"]

_FIELDS = {
    "model",
    "messages",
    "max_tokens",
    "system",
    "tools",
    "tool_choice",
    "stream",
    "metadata",
    "stop_sequences",
    "thinking",
    "service_tier",
    "temperature",
    "top_p",
    "top_k",
    "cache_control",
    "container",
    "inference_geo",
    "output_config",
}
_BETA_FIELDS = {"context_management": "context-management-2025-06-27"}
"""Field → the beta header without which it is refused."""
_BETA_KINDS = dict.fromkeys(
    ("tool_addition", "tool_removal"), "mid-conversation-tool-changes-2026-07-01"
)
_KINDS = {
    "text",
    "image",
    "document",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "tool_search_tool_result",
    "search_result",
}


def _without_marks(content: Any) -> Any:
    if isinstance(content, dict):
        return {
            name: _without_marks(part) for name, part in content.items() if name != "cache_control"
        }
    return [_without_marks(part) for part in content] if isinstance(content, list) else content


def _as_blocks(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise Refused("content: Input should be a valid string or list")
    return content


class AnthropicApi:
    """See the module."""

    def __init__(self) -> None:
        self._betas = ""

    def read(self, body: Any, headers: Mapping[str, str], path: str) -> Seen:
        if not path.split("?")[0].endswith("/v1/messages"):
            raise Refused(f"{path}: Not Found")
        if headers.get("x-api-key") != "provider-key" or "anthropic-version" not in headers:
            raise Refused("invalid x-api-key")
        self._check_options(body, headers)
        tools = {tool["name"]: tool for tool in body.get("tools", ()) if "input_schema" in tool}
        for name, tool in tools.items():
            check_name(name, "[a-zA-Z0-9_-]{1,128}")
            check_schema(name, tool["input_schema"])
            if {"oneOf", "anyOf", "allOf"} & set(tool["input_schema"]):
                raise Refused(f"tools.{name}: input_schema does not support oneOf at the top level")
            if tool.get("strict"):
                check_strict(name, tool["input_schema"])
        if len(tools) != sum("input_schema" in tool for tool in body.get("tools", ())):
            raise Refused("tools: Tool names must be unique.")
        turns = [
            self._read_message(index, message) for index, message in enumerate(body["messages"])
        ]
        self._check_order(body, turns)
        pieces = [
            _without_marks(body.get("tools")),
            _without_marks(_as_blocks(body.get("system", ""))),
        ]
        for message in body["messages"]:
            pieces += [
                [message["role"], _without_marks(block)] for block in _as_blocks(message["content"])
            ]
        return Seen(turns, tools, pieces)

    def _check_options(self, body: Any, headers: Mapping[str, str]) -> None:
        betas = self._betas = headers.get("anthropic-beta", "")
        known = _FIELDS | {name for name, beta in _BETA_FIELDS.items() if beta in betas}
        if extra := set(body) - known:
            raise Refused(f"{min(extra)}: Extra inputs are not permitted")
        if not isinstance(body.get("max_tokens"), int) or not 0 < body["max_tokens"] <= 128_000:
            raise Refused("max_tokens: Field required")
        text = json.dumps(body)
        if text.count('"cache_control": {') > 4:
            raise Refused("A maximum of 4 blocks with cache_control may be provided.")
        thinking = body.get("thinking") or {}
        if thinking.get("type") == "enabled":
            raise Refused('"thinking.type.enabled" is not supported for this model.')
        # The default of temperature passes.
        if set(body) & {"top_p", "top_k"} or body.get("temperature", 1) != 1:
            raise Refused("sampling parameters are not supported for this model")
        forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
        if thinking.get("type") == "adaptive" and forced:
            raise Refused("Thinking may not be enabled when tool_choice forces tool use.")
        if "tool_choice" in body and not body.get("tools"):
            raise Refused("tool_choice may only be specified while providing tools")
        if extra := set(body.get("output_config") or ()) - {"effort", "format", "task_budget"}:
            raise Refused(f"output_config.{min(extra)}: Extra inputs are not permitted")
        edits = (body.get("context_management") or {}).get("edits", ())
        if any(e["type"].startswith("clear_thinking") for e in edits) and thinking.get("type") in (
            None,
            "disabled",
        ):
            raise Refused("clear_thinking_20251015 strategy requires thinking to be enabled")

    def _read_message(self, index: int, message: Any) -> Turn:
        where = f"messages.{index}"
        if message["role"] not in ("user", "assistant", "system") or set(message) - {
            "role",
            "content",
        }:
            raise Refused(f"{where}: role {message['role']!r}, fields {sorted(message)}")
        blocks = _as_blocks(message["content"])
        if not blocks:
            raise Refused(f"{where}: content must be non-empty")
        turn = Turn({"assistant": "model"}.get(message["role"], message["role"]))
        for place, block in enumerate(blocks):
            self._read_block(f"{where}.content.{place}", block, turn)
        kinds = [block["type"] for block in blocks]
        if "tool_result" in kinds and kinds.index("tool_result") > 0:
            before = kinds[: kinds.index("tool_result")]
            if set(before) - {"tool_result"}:
                raise Refused(f"{where}: tool_result blocks must come first")
        return turn

    def _read_block(self, where: str, block: Any, turn: Turn) -> None:
        kind = block["type"]
        beta = _BETA_KINDS.get(kind)
        if kind not in _KINDS and (beta is None or beta not in self._betas):
            raise Refused(f"{where}: Input tag {kind!r} does not match any of the expected tags")
        if kind == "text":
            if not block["text"].strip():
                raise Refused(f"{where}: text content blocks must contain non-whitespace text")
            turn.text += block["text"]
        elif kind == "image":
            if block["source"]["type"] != "base64" or turn.role != "user":
                raise Refused(f"{where}: image")
            turn.images += 1
        elif kind == "thinking":
            if turn.role != "model" or block["signature"] != sign("anthropic", block["thinking"]):
                raise Refused(f"{where}: Invalid `signature` in `thinking` block")
        elif kind == "tool_use":
            if not re.fullmatch("[a-zA-Z0-9_-]+", block["id"]) or not isinstance(
                block["input"], dict
            ):
                raise Refused(f"{where}: id {block['id']!r}, input {block['input']!r}")
            turn.calls.append(block["id"])
        elif kind == "tool_result":
            turn.results.append(block["tool_use_id"])
            inner = block.get("content") or []
            for part in _as_blocks(inner):
                turn.images += part["type"] == "image"
                if part["type"] == "text" and not part["text"]:
                    raise Refused(f"{where}: text content blocks must be non-empty")

    def _check_order(self, body: Any, turns: list[Turn]) -> None:
        if not turns or turns[0].role != "user":
            raise Refused("messages: first message must use the user role")
        if turns[-1].role == "model":
            raise Refused("This model does not support assistant message prefill.")
        last = next((m for m in reversed(body["messages"]) if m["role"] == "assistant"), None)
        thinks = (body.get("thinking") or {}).get("type") == "adaptive"
        if last is not None and turns[-1].results and thinks:
            first = _as_blocks(last["content"])[0]["type"]
            if first not in ("thinking", "redacted_thinking"):
                # What Anthropic allows for adaptive thinking; here a gateway must not lose it.
                raise Refused(f"Expected `thinking`, but found `{first}`")

    def write(self, step: Step, number: int, body: Any) -> Iterator[bytes]:
        blocks: list[tuple[Any, list[Any]]] = []
        if (body.get("thinking") or {}).get("type") == "adaptive":
            text = f"Thought {number}." if body["thinking"].get("display") != "omitted" else ""
            deltas = [{"type": "thinking_delta", "thinking": text}] if text else []
            deltas.append({"type": "signature_delta", "signature": sign("anthropic", text)})
            blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, deltas))
        if step.text:
            blocks.append(
                ({"type": "text", "text": ""}, [{"type": "text_delta", "text": step.text}])
            )
        for place, call in enumerate(step.calls):
            text = json.dumps(call.arguments)
            half = len(text) // 2
            start = {
                "type": "tool_use",
                "id": f"toolu_{number}_{place}",
                "name": call.name,
                "input": {},
            }
            parts = ["", text[:half], text[half:]]
            blocks.append(
                (start, [{"type": "input_json_delta", "partial_json": part} for part in parts])
            )
        usage = {
            "input_tokens": 9,
            "output_tokens": 1,
            "cache_read_input_tokens": 0,
            "cache_creation_input_tokens": 0,
        }
        message = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage,
        }
        yield event({"type": "message_start", "message": message}, "message_start")
        for index, (start, deltas) in enumerate(blocks):
            yield event(
                {"type": "content_block_start", "index": index, "content_block": start},
                "content_block_start",
            )
            for delta in deltas:
                yield event(
                    {"type": "content_block_delta", "index": index, "delta": delta},
                    "content_block_delta",
                )
            yield event({"type": "content_block_stop", "index": index}, "content_block_stop")
        reason = "tool_use" if step.calls else "end_turn"
        yield event(
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": 20},
            },
            "message_delta",
        )
        yield event({"type": "message_stop"}, "message_stop")

    def error(self, words: str) -> Any:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": words}}

    def count(self, path: str, size: int) -> Any:
        return {"input_tokens": size // 4} if "/count_tokens" in path else None
