"""Tool calls and results ⇄ parts. Arguments are a text; a result is a text, or a list of texts and documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, if_text, merged, rest, says_error
from dragoman.codec.replay import kind_of
from dragoman.fold import arguments_json, parse_call
from dragoman.message import TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.cohere.content import dump_block, dump_content, is_plain, load_block, unsaid
from dragoman.wires.cohere.quirks import OWN

__all__ = ["Lose", "dump_call", "dump_result", "is_call", "load_call", "load_result"]

Lose = Callable[[int | None, str, str], None]
"""Notes a loss: place of the piece, what, why."""


def is_call(entry: Any) -> bool:
    """Whether it is a call that can be read as one."""
    call = if_object(entry)
    return if_text(call.get("id")) != "" and if_text(if_object(call.get("function")).get("name")) != ""


def load_call(call: Mapping[str, Any]) -> ToolCallPart:
    """One of a message's `tool_calls` → the call. No arguments, an empty text and `null` are none."""
    function = if_object(call.get("function"))
    part = ToolCallPart(if_text(call.get("id")), if_text(function.get("name")))
    text = function.get("arguments")
    absent = [name for name, fields in (("type", call), ("arguments", function)) if name not in fields]
    spelled: dict[str, Any] = {"without": absent} if absent else {}
    if call.get("type", "function") != "function":
        spelled["type"] = call["type"]
    if isinstance(text, str):
        part = parse_call(part, text)
    if "arguments" in function and arguments_json(part) != text:
        spelled["arguments"] = text
    inner = rest(function, "name", "arguments")
    own = {**rest(call, "id", "type", "function"), **({"function": inner} if inner else {})}
    return replace(part, native=OWN.note(own, form=spelled))


def dump_call(call: ToolCallPart, call_id: str, name: str, *, exact: bool = True) -> dict[str, Any]:
    """The inverse, under that id and name. `exact`: as it was spelled when it was loaded."""
    spelled: Mapping[str, Any] = OWN.form(call.native) if exact else {}
    function: dict[str, Any] = {"name": name, "arguments": arguments_json(call)}
    absent = if_list(spelled.get("without"))
    if not call.arguments:
        function |= {"arguments": spelled["arguments"]} if "arguments" in spelled else {}
        function = rest(function, "arguments") if "arguments" in absent else function
    type_ = {} if "type" in absent else {"type": spelled.get("type", "function")}
    return merged({"id": call_id, **type_, "function": function}, OWN.fields(call.native))


def load_result(entry: Mapping[str, Any], names: Mapping[str, str]) -> ToolResultPart:
    """A tool message → the result. `names`: id of each call so far → its tool. A single document is the data in it."""
    call_id = if_text(entry.get("tool_call_id"))
    content, spelled = entry.get("content"), dict[str, Any]()
    result: Any = content
    blocks = if_list(content)
    loaded = [load_block(if_object(block)) for block in blocks]
    if "content" not in entry:
        spelled["content"] = "absent"
    elif (data := _only_document(blocks)) is not None:
        result, spelled["content"] = data, "document"
    elif blocks and all(isinstance(part, TextPart) for part in loaded):
        result = tuple(loaded)
        spelled |= {"content": "list"} if is_plain(blocks) else {}
    elif not isinstance(content, str):
        spelled["content"] = "raw"
    own = rest(entry, "role", "content", *(["tool_call_id"] if call_id else []))
    return ToolResultPart(call_id, names.get(call_id, ""), result, native=OWN.note(own, form=spelled))


def dump_result(
    part: ToolResultPart, call_id: str, place: int, lose: Lose
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A result → its tool message, and the blocks of media that are taken in a user message only. What is no text and no list
    of parts is told as JSON."""
    body: dict[str, Any] = {"role": "tool", **({"tool_call_id": call_id} if call_id else {})}
    if part.is_error and not says_error(part.result):
        lose(place, "is_error", "this format has no mark for a failed tool")
    content, media = _dump_content(part, place, lose)
    if media:
        media = [{"type": "text", "text": f"[result of {part.name or part.id}]"}, *media]
        lose(place, "media", "results of tools hold text and documents only; it follows in a user message")
    return merged({**body, **content}, OWN.fields(part.native)), media


def _dump_content(part: ToolResultPart, place: int, lose: Lose) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    how = OWN.form(part.native).get("content")
    if how == "absent" and part.result is None:
        return {}, []
    if how == "document" and (isinstance(part.result, str) or if_object(part.result)):
        return {"content": [_document(part.result)]}, []
    if how == "raw" and not part.is_content:
        return {"content": part.result}, []
    if not part.is_content:
        text = part.result if isinstance(part.result, str) else json_bytes.encode(part.result).decode()
        return {"content": text}, []
    blocks: list[dict[str, Any]] = []
    media: list[dict[str, Any]] = []
    for piece in part.result or ():
        block = dump_block(piece)
        if isinstance(block, str):
            lose(place, kind_of(piece), block)
            continue
        (blocks if block["type"] == "text" else media).append(block)
        if (lost := unsaid(piece, block)) is not None:
            lose(place, *lost)
    return dump_content(blocks, "", OWN.form(part.native)), media


def _document(data: Any) -> dict[str, Any]:
    return {"type": "document", "document": {"data": data}}


def _only_document(blocks: list[Any]) -> str | dict[str, Any] | None:
    """The data of a document that is all there is, and has nothing beside it."""
    data = if_object(if_object(blocks[0]).get("document")).get("data") if len(blocks) == 1 else None
    found = data if isinstance(data, str) else if_object(data) or None
    return found if found is not None and blocks[0] == _document(found) else None
