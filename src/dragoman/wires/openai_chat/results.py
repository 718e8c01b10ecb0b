"""Results of tools ⇄ messages of the role `tool` (and `function`, its older form)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_objects, merged, rest
from dragoman.message import ProviderPart, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.openai_chat.calls import given_id, spelled_id
from dragoman.wires.openai_chat.content import ABSENT, dump_content, load_block
from dragoman.wires.openai_chat.outgoing import Outgoing
from dragoman.wires.openai_chat.quirks import OWN

__all__ = ["dump_result", "load_result"]


def load_result(message: Mapping[str, Any], asked: dict[str, ToolCallPart], fresh_ids: Iterator[str]) -> ToolResultPart:
    """A tool message → the result. `asked`: the calls so far by id; they tell the tool's name where the message does not."""
    spelled: dict[str, Any] = {}
    name = message.get("name")
    named = isinstance(name, str)
    if message["role"] == "function":
        spelled["role"] = "function"
    elif named:
        spelled["name"] = True
    unnamed = (
        key for key, call in asked.items() if not given_id(call.native, key) and (not named or call.name == name)
    )
    call_id, fields = spelled_id(message, "tool_call_id", chain(unnamed, fresh_ids), spelled)
    call = asked.pop(call_id, None) if fields else asked.get(call_id)
    fields |= rest(message, "role", "tool_call_id", "content", *(("name",) if named else ()))
    result = _load_content(message, spelled)
    known = name if isinstance(name, str) else call.name if call else ""
    return ToolResultPart(call_id, known, result, native=OWN.note(fields, spelled))


def dump_result(
    position: int, place: int, part: ToolResultPart, call_id: str | None, out: Outgoing
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A result → its tool message, and the blocks of media that the vendor takes in a user message only."""
    spelled = OWN.form(part.native) if out.target is None else {}
    if "id" in (own := OWN.fields(part.native)) and out.target is None:
        call_id = given_id(part.native, part.id) if own["id"] is None else call_id
    body: dict[str, Any] = {"role": "function" if spelled.get("role") == "function" else "tool"}
    if call_id is not None or "id" in spelled:
        body["tool_call_id"] = call_id
    if "name" in spelled or "role" in spelled:
        body["name"] = out.name(part.name)
    content, media = _dump_content(position, place, part, spelled, out)
    return merged(body | content, rest(own, "id")), media


def _load_content(message: Mapping[str, Any], spelled: dict[str, Any]) -> Any:
    """Text stays text, blocks become parts; anything else is the result itself, spelled `raw`."""
    if "content" not in message:
        spelled["content"] = ABSENT
        return None
    content = message["content"]
    if isinstance(content, str):
        return content
    parts = tuple(load_block(block) for block in if_objects(content))
    if not parts or any(isinstance(part, ProviderPart) for part in parts):
        spelled["content"] = "raw"
        return content
    if len(parts) == 1 or not all(isinstance(part, TextPart) for part in parts):
        spelled["content"] = "list"
    return parts


def _dump_content(
    position: int, place: int, part: ToolResultPart, spelled: Mapping[str, Any], out: Outgoing
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Text as it is, parts as blocks, anything else as JSON."""
    how, result = spelled.get("content"), part.result
    if how == ABSENT and result is None:
        return {}, []
    if how == "raw" and not part.is_content:
        return {"content": result}, []
    if not part.is_content:
        return {"content": result if isinstance(result, str) else json_bytes.encode(result).decode()}, []
    pieces = [(piece, out.block(position, place, piece) or {}) for piece in result]
    if out.quirks.tool_media or how == "list":
        kept, media = [block for _, block in pieces], []
    else:
        kept = [block for piece, block in pieces if isinstance(piece, TextPart)]
        media = [block for piece, block in pieces if not isinstance(piece, TextPart)]
    return dump_content(kept, "", spelled, string_only=out.quirks.string_content), media
