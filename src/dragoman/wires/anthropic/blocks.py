"""A block of the wire → a piece of content. What has no neutral shape, or is not of the documented shape, is kept whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, cast

from dragoman import json_bytes
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.anthropic.media import load_media
from dragoman.wires.anthropic.quirks import NAME, OWN

__all__ = ["CALLS", "load_block", "whole"]

CALLS = {"tool_use": "agent", "server_tool_use": "provider", "mcp_tool_use": "provider"}
"""Types of the blocks that are calls → who runs the tool."""

Names = Mapping[str, str]
"""Id of a call → name of its tool."""


def load_block(block: Mapping[str, Any], names: Names = {}) -> Content:
    """A block → a piece of content. `names` tells the tools of the calls so far, since results do not name them."""
    kind = str(block.get("type"))
    load = _LOADERS.get(kind) or (_provider_result if kind.endswith("_tool_result") else _nothing)
    return load(block, names) or whole(block)


def whole(block: Mapping[str, Any]) -> ProviderPart:
    """A block that only the provider understands."""
    return ProviderPart(str(block.get("type")), {NAME: dict(block)})


def _text(block: Mapping[str, Any], _: Names) -> TextPart | None:
    text = block.get("text")
    if isinstance(text, str) and text.strip():
        return TextPart(text, _rest(block, "text"))
    return None  # the API refuses blank text, and no part may be empty (decision 14)


def _thinking(block: Mapping[str, Any], _: Names) -> ThinkingPart | None:
    text = block.get("thinking")
    if not isinstance(text, str):
        return None
    if "signature" in block:
        return ThinkingPart(text, _rest(block, "thinking"))
    return ThinkingPart(text, _rest(block, "thinking", spelling={"signature": "absent"}))


def _redacted(block: Mapping[str, Any], _: Names) -> ThinkingPart:
    return ThinkingPart(native={NAME: dict(block)})


def _media(block: Mapping[str, Any], _: Names) -> DataPart | LinkPart | FilePart | None:
    return load_media(block)


def _call(block: Mapping[str, Any], _: Names) -> ToolCallPart | None:
    id_, name, arguments = block.get("id"), block.get("name"), block.get("input")
    if not isinstance(id_, str) or not isinstance(name, str):
        return None
    if CALLS[block["type"]] == "provider":
        if not isinstance(arguments, dict):
            return None
        native = _rest(block, "id", "name", "input", keep_type=True)
        return ToolCallPart(id_, name, cast("dict[str, Any]", arguments), run_by="provider", native=native)
    if isinstance(arguments, dict):
        return ToolCallPart(id_, name, cast("dict[str, Any]", arguments), native=_rest(block, "id", "name", "input"))
    raw = json_bytes.encode(arguments).decode()
    return ToolCallPart(id_, name, raw=raw, state="invalid", native=_rest(block, "id", "name"))


def _result(block: Mapping[str, Any], names: Names) -> ToolResultPart | None:
    id_ = block.get("tool_use_id")
    if not isinstance(id_, str) or not isinstance(block.get("content"), (str, list, NoneType)):
        return None
    result, spelled = _result_content(block)
    known = ("tool_use_id", "content") if result is not None or "absent" in spelled.values() else ("tool_use_id",)
    is_error = block.get("is_error") is True
    native = _rest(block, *known, *(["is_error"] if is_error else []), spelling=spelled)
    return ToolResultPart(id_, names.get(id_, ""), result, is_error, native=native)


def _result_content(block: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
    """What a tool returned, and how it was spelled. A list that holds more than text and media is kept as it is."""
    if "content" not in block:
        return None, {"content": "absent"}
    content = block["content"]
    if not isinstance(content, list):
        return content, {}
    blocks = cast("list[Any]", content)
    parts = [load_block(cast("dict[str, Any]", piece)) for piece in blocks if isinstance(piece, dict)]
    if len(parts) == len(blocks) > 0 and all(isinstance(p, (TextPart, DataPart, LinkPart, FilePart)) for p in parts):
        return tuple(parts), {}
    return blocks, {"content": "blocks"}


def _provider_result(block: Mapping[str, Any], names: Names) -> ToolResultPart | None:
    id_ = block.get("tool_use_id")
    if not isinstance(id_, str) or "content" not in block:
        return None
    is_error = block.get("is_error") is True
    native = _rest(block, "tool_use_id", "content", *(["is_error"] if is_error else []), keep_type=True)
    return ToolResultPart(id_, names.get(id_, ""), block["content"], is_error, "provider", native)


def _nothing(_: Mapping[str, Any], __: Names) -> None:
    return None


def _rest(
    block: Mapping[str, Any], *known: str, keep_type: bool = False, spelling: Mapping[str, Any] | None = None
) -> Native:
    """The fields of a block beyond the neutral ones."""
    rest = {key: value for key, value in block.items() if key not in known and (keep_type or key != "type")}
    return OWN.note(rest, form=spelling or {})


_LOADERS: Mapping[str, Callable[[Mapping[str, Any], Names], Content | None]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted,
    "image": _media,
    "document": _media,
    "container_upload": _media,
    **dict.fromkeys(CALLS, _call),
    "tool_result": _result,
}
