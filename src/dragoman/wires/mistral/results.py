"""Results of tools ⇄ messages of the role `tool`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_objects, merged, rest
from dragoman.message import ProviderPart, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.mistral.calls import given_id, spelled_id, spelled_name
from dragoman.wires.mistral.chunks import dump_content, load_chunk
from dragoman.wires.mistral.outgoing import Outgoing
from dragoman.wires.mistral.quirks import OWN

__all__ = ["dump_result", "load_result"]


def load_result(message: Mapping[str, Any], asked: dict[str, ToolCallPart], fresh_ids: Iterator[str]) -> ToolResultPart:
    """A tool message → the result. `asked`: the calls so far by id; they tell the tool's name where the message does
    not, and the id where neither has one (the first such call that is not answered yet)."""
    name = message.get("name")
    named = isinstance(name, str)
    spelled: dict[str, Any] = {"name": True, **spelled_name(name)} if isinstance(name, str) and name else {}
    unnamed = (
        key for key, call in asked.items() if not given_id(call.native, key) and (not named or call.name == name)
    )
    call_id, fields = spelled_id(message, "tool_call_id", chain(unnamed, fresh_ids), (), spelled)
    call = asked.pop(call_id, None) if fields else asked.get(call_id)
    fields |= rest(message, "role", "tool_call_id", "content", *(("name",) if "name" in spelled else ()))
    result = _load_content(message, spelled)
    known = name if isinstance(name, str) and name else call.name if call else ""
    return ToolResultPart(call_id, known, result, native=OWN.note(fields, spelled))


def dump_result(
    position: int, place: int, part: ToolResultPart, call_id: str | None, out: Outgoing
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A result → its tool message, and the chunks of media that are taken in a user message only."""
    spelled, own = (OWN.form(part.native), OWN.fields(part.native)) if out.target is None else ({}, {})
    if "id" in own and own["id"] is None:
        call_id = given_id(part.native, part.id)
    body: dict[str, Any] = {"role": "tool"}
    if call_id is not None or "id" in spelled:
        body["tool_call_id"] = call_id
    if "name" in spelled:
        body["name"] = out.name(part.name)
    content, media = _dump_content(position, place, part, spelled, out)
    return merged(body | content, rest(own, "id")), media


def _load_content(message: Mapping[str, Any], spelled: dict[str, Any]) -> Any:
    """Text stays text, chunks become parts; anything else is the result itself, spelled `raw`."""
    if "content" not in message:
        spelled["content"] = "absent"
        return None
    content = message["content"]
    if isinstance(content, str):
        return content
    parts = tuple(load_chunk(chunk) for chunk in if_objects(content))
    if not parts or any(isinstance(part, (ProviderPart, ThinkingPart)) for part in parts):
        spelled["content"] = "raw"
        return content
    if len(parts) == 1 or not all(isinstance(part, TextPart) for part in parts):
        spelled["content"] = "list"
    return parts


def _dump_content(
    position: int, place: int, part: ToolResultPart, spelled: Mapping[str, Any], out: Outgoing
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Text as it is, parts as chunks, anything else as JSON."""
    how, result = spelled.get("content"), part.result
    if how == "absent" and result is None:
        return {}, []
    if how == "raw" and not part.is_content:
        return {"content": result}, []
    if not part.is_content:
        return {"content": result if isinstance(result, str) else json_bytes.encode(result).decode()}, []
    chunks = [(piece, out.chunk(position, place, piece) or {}) for piece in result]
    if out.quirks.tool_media or how == "list":
        kept, media = [chunk for _, chunk in chunks], []
    else:
        kept = [chunk for piece, chunk in chunks if isinstance(piece, TextPart)]
        media = [chunk for piece, chunk in chunks if not isinstance(piece, TextPart)]
    return dump_content(kept, {"content": "list"} if how == "list" else {}), media
