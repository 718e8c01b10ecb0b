"""Tool calls ⇄ `ToolCallPart`: functions, custom tools, the older `function_call`, and tools that the vendor ran."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.fold import arguments_json, parse_call
from dragoman.message import Native, ToolCallPart, ToolResultPart
from dragoman.wires.openai_chat.quirks import OWN

__all__ = [
    "dump_call",
    "dump_executed",
    "load_call",
    "load_executed",
    "given_id",
    "is_call",
    "load_function_call",
    "read_arguments",
    "spelled_id",
]


def is_call(entry: Mapping[str, Any]) -> bool:
    """Whether it is a call that can be read as one."""
    kind = entry.get("type", "function")
    return kind in ("function", "custom") and if_text(if_object(entry.get(kind)).get("name")) != ""


def load_call(call: Mapping[str, Any], fresh_ids: Iterator[str]) -> ToolCallPart:
    """One of a message's `tool_calls` → the call. Without an id it gets a fresh one and is marked `"id": None`.

    A custom tool's text input is its argument `input`.
    """
    kind = "custom" if call.get("type") == "custom" else "function"
    body = if_object(call.get(kind))
    spelled: dict[str, Any] = {} if "type" in call and kind == "function" else {"type": call.get("type", "absent")}
    call_id, fields = spelled_id(call, "id", fresh_ids, spelled)
    part = ToolCallPart(call_id, str(body.get("name") or ""))
    if kind == "custom":
        read = ("name", "input")
        part = replace(part, arguments={"input": str(body.get("input") or "")})
    else:
        read = ("name", "arguments")
        value = body.get("arguments")
        part = read_arguments(part, value)
        if "arguments" not in body:
            spelled["without"] = "arguments"
        elif arguments_json(part) != value:
            spelled["arguments"] = value
    unread = rest(body, *read)
    fields |= rest(call, "id", kind, "type") | ({kind: unread} if unread else {})
    return replace(part, native=OWN.note(fields, spelled))


def read_arguments(call: ToolCallPart, value: object) -> ToolCallPart:
    """A call with its arguments as a vendor tells them: as text, as an object, or not at all."""
    if isinstance(value, dict):
        return replace(call, arguments=cast("dict[str, Any]", value), raw=None, state="complete")
    return parse_call(call, value) if isinstance(value, str) else call


def dump_call(call: ToolCallPart, call_id: str | None, name: str, *, exact: bool) -> dict[str, Any]:
    """A call → one of a message's `tool_calls`, under that id (`None`: none). `exact`: as spelled when it was loaded."""
    spelled = OWN.form(call.native)
    block: dict[str, Any] = {} if call_id is None else {"id": call_id}
    if call_id is None and "id" in spelled:
        block["id"] = None
    if spelled.get("type") == "custom":
        block |= {"type": "custom", "custom": {"name": name, "input": call.arguments.get("input", "")}}
        return merged(block, rest(OWN.fields(call.native), "id"))
    function: dict[str, Any] = {"name": name, "arguments": arguments_json(call)}
    if exact and "arguments" in spelled and read_arguments(call, spelled["arguments"]).arguments == call.arguments:
        function["arguments"] = spelled["arguments"]
    if exact and "without" in spelled and not call.arguments:
        del function["arguments"]
    if not (exact and spelled.get("type") == "absent"):
        block["type"] = "function"
    return merged(block | {"function": function}, rest(OWN.fields(call.native), "id"))


def load_function_call(body: Mapping[str, Any], fresh_ids: Iterator[str]) -> ToolCallPart:
    """The older `function_call` of a message → the call."""
    call = load_call({"type": "function", "function": body}, fresh_ids)
    return replace(call, native=OWN.with_form(call.native, field="function_call"))


def spelled_id(
    owner: Mapping[str, Any], field: str, fresh_ids: Iterator[str], spelled: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """An id, or a fresh one where none was given; then the mark for it, and in `spelled` what stood in its place."""
    value = owner.get(field)
    if isinstance(value, str) and value:
        return value, {}
    if field in owner:
        spelled["id"] = value
    return next(fresh_ids), {"id": None}


def given_id(native: Native, own_id: str) -> str | None:
    """The id that was given: `None` or an empty one where there was none."""
    fields = OWN.fields(native)
    return OWN.form(native).get("id") if "id" in fields and fields["id"] is None else own_id


def load_executed(entry: Mapping[str, Any], fresh_ids: Iterator[str]) -> tuple[ToolCallPart, ToolResultPart | None]:
    """A tool that the vendor ran (Groq's `executed_tools`) → its call and, where it is known, its result."""
    call_id = next(fresh_ids)
    name, output = str(entry.get("type") or ""), entry.get("output")
    call = read_arguments(ToolCallPart(call_id, name, run_by="provider"), entry.get("arguments"))
    unread = OWN.note(rest(entry, "index", "type", "arguments", "output"))
    if output is None:
        return replace(call, native=unread), None
    return call, ToolResultPart(call_id, name, output, run_by="provider", native=unread)


def dump_executed(call: ToolCallPart, result: ToolResultPart | None, index: int) -> dict[str, Any]:
    """The inverse of `load_executed`."""
    given = arguments_json(call) if call.state == "complete" else call.raw or ""
    entry = merged({"index": index, "type": call.name, "arguments": given}, OWN.fields(call.native))
    if result is not None:
        output = result.result
        entry["output"] = output if isinstance(output, str) else json_bytes.encode(output).decode()
        entry = merged(entry, OWN.fields(result.native))
    return entry
