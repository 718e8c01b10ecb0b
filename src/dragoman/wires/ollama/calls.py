"""Tool calls ⇄ `ToolCallPart`. Arguments are an object; older servers give no ids, and then none go back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text, merged, rest
from dragoman.fold import parse_call
from dragoman.message import Native, ToolCallPart
from dragoman.wires.ollama.quirks import OWN

__all__ = ["dump_call", "is_call", "is_unnamed", "load_call"]


def is_call(entry: Any) -> bool:
    """Whether it is a call that can be read as one."""
    return if_text(if_object(if_object(entry).get("function")).get("name")) != ""


def is_unnamed(native: Native) -> bool:
    """Whether a call or result came without an id."""
    return OWN.fields(native).get("id", "") is None


def load_call(call: Mapping[str, Any], fresh_id: Callable[[], str]) -> ToolCallPart:
    """One of a message's `tool_calls` → the call. Without an id it gets a fresh one and is marked `"id": None`."""
    function = if_object(call.get("function"))
    call_id, arguments = if_text(call.get("id")), function.get("arguments")
    part = ToolCallPart(call_id or fresh_id(), if_text(function.get("name")))
    spelled: dict[str, Any] = {}
    if isinstance(arguments, dict):
        part = replace(part, arguments=if_object(arguments))
    else:
        text = arguments if isinstance(arguments, str) else json_bytes.encode(arguments).decode()
        part = parse_call(part, text)
        spelled |= {"arguments": arguments} if "arguments" in function else {"without": "arguments"}
    if not call_id and "id" in call:
        spelled["id"] = call["id"]
    own: dict[str, Any] = {} if call_id else {"id": None}
    inner = rest(function, "name", "arguments")
    return replace(
        part,
        native=OWN.note(
            {**own, **rest(call, "id", "function"), **({"function": inner} if inner else {})}, form=spelled
        ),
    )


def dump_call(call: ToolCallPart, call_id: str) -> dict[str, Any]:
    """The inverse, under that id. Cut and invalid arguments are sent as none, unless a loaded conversation held them."""
    spelled = OWN.form(call.native)
    function: dict[str, Any] = {"name": call.name, "arguments": call.arguments}
    exact = {"name": call.name, **({"arguments": spelled["arguments"]} if "arguments" in spelled else {})}
    if {"arguments", "without"} & spelled.keys() and load_call({"function": exact}, str).arguments == call.arguments:
        function = exact
    named = {"id": spelled["id"]} if "id" in spelled else {} if is_unnamed(call.native) else {"id": call_id}
    return merged({**named, "function": function}, rest(OWN.fields(call.native), "id"))
