"""Tool calls ⇄ `ToolCallPart`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.fold import arguments_json, parse_call
from dragoman.message import Native, ToolCallPart
from dragoman.wires.mistral.quirks import OWN, Quirks

__all__ = ["dump_call", "given_id", "is_call", "load_call", "spelled_id", "spelled_name"]

_RULES = Quirks()


def is_call(entry: Mapping[str, Any]) -> bool:
    """Whether it is a call that can be read as one."""
    return entry.get("type", "function") == "function" and if_text(if_object(entry.get("function")).get("name")) != ""


def load_call(entry: Mapping[str, Any], fresh_ids: Iterator[str], known: Collection[str]) -> ToolCallPart:
    """One of a message's `tool_calls` → the call. `known`: ids of the calls before it."""
    body = if_object(entry.get("function"))
    name, value = if_text(body.get("name")), body.get("arguments")
    spelled: dict[str, Any] = {**({} if "type" in entry else {"type": "absent"}), **spelled_name(name)}
    call_id, fields = spelled_id(entry, "id", fresh_ids, known, spelled)
    part = _with_arguments(ToolCallPart(call_id, name), value)
    if "arguments" not in body:
        spelled["without"] = "arguments"
    elif arguments_json(part) != value:
        spelled["arguments"] = value
    unread = rest(body, "name", "arguments")
    fields |= rest(entry, "id", "type", "function") | ({"function": unread} if unread else {})
    return replace(part, native=OWN.note(fields, spelled))


def dump_call(call: ToolCallPart, call_id: str | None, name: str, *, exact: bool) -> dict[str, Any]:
    """A call → one of a message's `tool_calls`, under that id (`None`: none). `exact`: as spelled when it was loaded."""
    spelled: Mapping[str, Any] = OWN.form(call.native) if exact else {}
    entry: dict[str, Any] = {} if call_id is None and "id" not in spelled else {"id": call_id}
    function: dict[str, Any] = {"name": name, "arguments": arguments_json(call)}
    if "arguments" in spelled and _with_arguments(call, spelled["arguments"]).arguments == call.arguments:
        function["arguments"] = spelled["arguments"]
    if "without" in spelled and not call.arguments:
        del function["arguments"]
    if spelled.get("type") != "absent":
        entry["type"] = "function"
    return merged(entry | {"function": function}, rest(OWN.fields(call.native), "id"))


def spelled_id(
    owner: Mapping[str, Any], field: str, fresh_ids: Iterator[str], known: Collection[str], spelled: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """An id, or a fresh one where none was given; then the mark for it. In `spelled`: what stood in its place, and
    whether it is one that would otherwise not be sent as it is."""
    value = owner.get(field)
    if isinstance(value, str) and value:
        if value in known or not _RULES.ids.fits(value):
            spelled["as_is"] = True
        return value, {}
    if field in owner:
        spelled["id"] = value
    return next(fresh_ids), {"id": None}


def spelled_name(name: str) -> dict[str, Any]:
    """The mark for a name that would otherwise not be sent as it is."""
    return {} if _RULES.names.fits(name) else {"name_as_is": True}


def given_id(native: Native, own_id: str) -> str | None:
    """The id that was given: `None` or an empty one where there was none."""
    fields = OWN.fields(native)
    return OWN.form(native).get("id") if "id" in fields and fields["id"] is None else own_id


def _with_arguments(call: ToolCallPart, value: object) -> ToolCallPart:
    """A call with its arguments as they are told: as text, as an object, or not at all."""
    if isinstance(value, dict):
        return replace(call, arguments=cast("dict[str, Any]", value), raw=None, state="complete")
    return parse_call(call, value) if isinstance(value, str) else call
