"""Calls of the model's: `tool_calls` and `invalid_tool_calls`, of which blocks of the content may
be mirrors, and the older `function_call`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.content import Content, ToolCallPart, ToolResultPart
from dragoman.fold import parse_call
from dragoman.formats.langchain.envelope import OWN
from dragoman.json_bytes import Json, JsonMap

__all__ = ["dump_calls", "dump_function_call", "load_calls", "load_function_call", "name_results"]

_CUT = "the arguments were cut off"
"""Error of a call whose arguments' text ended inside them."""


def load_calls(data: JsonMap, content: Sequence[Content], where: str) -> list[Content]:
    """Returns the content of a model's message with the calls of its lists: those that its
    LangChain blocks do not have are added, and the lists say what the arguments of all of them are.

    Args:
        data: the fields of the message.
        content: the pieces of its blocks.
        where: the message; a call without an id is named by its place there.
    """
    pieces = list(content)
    if not (data.get("tool_calls") or data.get("invalid_tool_calls")):
        return pieces
    call_indexes = {
        piece.id: index for index, piece in enumerate(pieces) if isinstance(piece, ToolCallPart)
    }
    whole = _entries(data.get("tool_calls"), dict)
    broken = _entries(data.get("invalid_tool_calls"), str | None)
    cut = _find_cut_arguments(data.get("tool_call_chunks"))
    for number, fields in enumerate([*whole, *broken]):
        id_ = fields.get("id")
        form: Json = {}
        if not isinstance(id_, str):
            id_, form = f"{where}.tool_calls[{number}]", {"id": "absent"}
        changes = _read_arguments(fields)
        if id_ in cut:
            changes |= {"arguments": {}, "raw": cut[id_], "state": "cut"}
        if id_ not in call_indexes:
            native = OWN.note(_extra_fields(fields), form)
            pieces.append(ToolCallPart(id_, if_text(fields.get("name")), **changes, native=native))
            continue
        index = call_indexes[id_]
        before = cast("ToolCallPart", pieces[index])
        # The block's own spelling of the same arguments is kept.
        is_complete = before.state == changes["state"] == "complete"
        if not is_complete or before.arguments != changes["arguments"]:
            pieces[index] = msgspec.structs.replace(before, **changes)
    return pieces


def _entries(value: Any, arguments_type: Any) -> list[Json]:
    """Returns the calls of a list whose arguments are of a type."""
    entries = [if_object(entry) for entry in if_list(value)]
    return [entry for entry in entries if isinstance(entry.get("args"), arguments_type)]


def _read_arguments(fields: JsonMap) -> Json:
    """Returns the arguments of a call in a LangChain list, as fields of a `ToolCallPart`."""
    arguments = fields.get("args")
    if isinstance(arguments, dict):
        return {"arguments": cast("Json", arguments), "raw": None, "state": "complete"}
    state = "cut" if fields.get("error") == _CUT else "invalid"
    return {"arguments": {}, "raw": arguments or "", "state": state}


def _extra_fields(fields: JsonMap) -> Json:
    """Returns the fields of a call in a LangChain list that a `ToolCallPart` has no field for."""
    extra_fields = read_extra_fields(fields, "name", "args", "id", "type")
    is_whole = isinstance(fields.get("args"), dict)
    if not is_whole and extra_fields.get("error") in (None, _CUT):
        return read_extra_fields(extra_fields, "error")
    return extra_fields


def dump_calls(calls: Iterable[ToolCallPart]) -> dict[str, list[Json]]:
    """Returns the fields `tool_calls` and `invalid_tool_calls` of calls in a LangChain message,
    each only if it has any."""
    out: dict[str, list[Json]] = {}
    for call in calls:
        extra_fields, form = OWN.fields(call.native), OWN.form(call.native)
        if form.keys() & {"as", "wire"}:
            extra_fields = {}
        entry = {
            **extra_fields,
            "name": call.name,
            "args": call.arguments,
            "id": None if "id" in form else call.id,
        }
        if call.state == "complete":
            out.setdefault("tool_calls", []).append({**entry, "type": "tool_call"})
            continue
        error = _CUT if call.state == "cut" else None
        broken = {"error": error, **entry, "args": call.raw, "type": "invalid_tool_call"}
        out.setdefault("invalid_tool_calls", []).append(broken)
    return out


def load_function_call(value: Any, where: str) -> ToolCallPart | None:
    """Returns the call in LangChain's `function_call`, as the first of OpenAI's models had it: one,
    without an id."""
    match value:
        case {"name": str(name), "arguments": str(raw), **more} if not more:
            call = ToolCallPart(
                f"{where}.function_call", name, native=OWN.note(form={"as": "function_call"})
            )
            return parse_call(call, raw)
        case _:
            return None


def dump_function_call(call: ToolCallPart) -> Json:
    """Returns a call as the older field `function_call` of a LangChain message."""
    if call.raw is not None:
        raw = call.raw
    else:
        raw = json_bytes.encode(call.arguments).decode()
    return {"name": call.name, "arguments": raw}


def _find_cut_arguments(chunks: object) -> dict[str, str]:
    """Returns the argument texts of a LangChain chunk's incomplete calls, by their ids."""
    texts: dict[str, str] = {}
    for chunk in if_list(chunks):
        fields = if_object(chunk)
        id_, raw = fields.get("id"), fields.get("args")
        if isinstance(id_, str) and isinstance(raw, str):
            try:
                json_bytes.decode(raw)
            except ValueError:
                texts[id_] = raw
    return texts


def name_results(content: Sequence[Content]) -> tuple[Content, ...]:
    """Returns the content of a LangChain message, in which results of tools that the provider ran
    have the names of their calls; their blocks have none."""
    names = {piece.id: piece.name for piece in content if isinstance(piece, ToolCallPart)}
    if not names:
        return tuple(content)
    return tuple(
        [
            msgspec.structs.replace(piece, name=names[piece.id])
            if isinstance(piece, ToolResultPart) and not piece.name and piece.id in names
            else piece
            for piece in content
        ]
    )
