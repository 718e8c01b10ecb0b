"""Calls and what they returned: the tool parts of UI messages ↔ pieces. A part is a call and, where it has one, its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, text_or_json
from dragoman.fold import parse_call
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.failures import (
    dump_failure,
    load_failure,
    refused,
    unread_result,
)
from dragoman.wires.ai_sdk_messages.outputs import as_result, plain_output
from dragoman.wires.ai_sdk_messages.own import OWN, UI, applied
from dragoman.wires.ai_sdk_messages.reading import Fields, Reading, fault

__all__ = [
    "CALL_FIELDS",
    "STATES",
    "dump_call",
    "dump_result",
    "input_of",
    "load_input",
    "load_tool",
    "open_state",
    "unread_fields",
]

STATES = (
    "input-streaming", "input-available", "approval-requested", "approval-responded", "output-available", "output-error", "output-denied",
)  # fmt: skip
CALL_FIELDS = ("approval", "title", "toolMetadata")
"""Fields beside the neutral ones that several dialects have."""
_ANSWERED = ("output-available", "output-error", "output-denied")
_OF_RESULT = frozenset(["state", "output", "errorText", "preliminary", "resultProviderMetadata"])
_DYNAMIC = "dynamic-tool"


def load_tool(part: dict[str, Any], it: Reading, where: str) -> None:
    """A call, with its result where it has one."""
    type_ = part["type"]
    name = part.get("toolName") if type_ == _DYNAMIC else type_[5:]
    id_, state, given = part.get("toolCallId"), part.get("state"), part.get("input")
    if type(id_) is not str:
        fault(f"{where}.toolCallId must be a string, not {type(id_).__name__}")
    if type(name) is not str:
        fault(f"{where}.toolName must be a string, not {type(name).__name__}")
    it.opens(says=False)
    if (
        len(part) == 5
        and type(given) is dict
        and type_ != _DYNAMIC
        and state == "output-available"
        and "output" in part
    ):
        it.pieces.append(ToolCallPart(id_, name, cast("dict[str, Any]", given)))
        it.answers.append(ToolResultPart(id_, name, as_result(part["output"])))
        return
    if not isinstance(state, str) or state not in STATES:
        fault(f"{where}.state must be one of {', '.join(STATES)}, not {state!r:.50}")
    by_provider = part.get("providerExecuted") is True
    answered = state in _ANSWERED
    head = {key: value for key, value in part.items() if not (answered and key in _OF_RESULT)}
    if state == "output-denied" and head.get("approval") == refused(
        id_, if_object(head.get("approval")).get("reason")
    ):
        del head["approval"]
    call, form = load_input(
        ToolCallPart(id_, name, run_by="provider" if by_provider else "agent"), part, state
    )
    form = {**form, **({"dynamic": True} if type_ == _DYNAMIC else {})}
    kept = it.read(
        call,
        head,
        lambda made: dump_call(made, answered=answered),
        "tool",
        "callProviderMetadata",
        form,
    )
    it.add(kept)
    if answered:
        result = _load_result(part, kept, state, where)
        tail = {key: value for key, value in part.items() if key in _OF_RESULT}
        answer = it.read(
            result, tail, lambda made: dump_result(made, kept), "result", "resultProviderMetadata"
        )
        (it.pieces if by_provider else it.answers).append(answer)


def load_input(
    call: ToolCallPart, part: Fields, state: str | None, key: str = "input"
) -> tuple[ToolCallPart, dict[str, Any]]:
    """The arguments of a call, and the form in which they were where they are not the usual object. `state`: `input-streaming` where they
    may be cut."""
    given, raw = part.get(key), part.get("rawInput")
    if state == "input-streaming":
        if isinstance(raw, str):
            return msgspec.structs.replace(call, raw=raw, state="cut"), {}
        text = json_bytes.encode(given).decode() if key in part else ""
        return msgspec.structs.replace(call, raw=text, state="cut"), {
            "partial": True
        } if text else {}
    if isinstance(given, dict):
        return msgspec.structs.replace(call, arguments=cast("dict[str, Any]", given)), {}
    if given is None and isinstance(raw, dict):
        return msgspec.structs.replace(call, arguments=cast("dict[str, Any]", raw)), {}
    if given is None and isinstance(raw, str):
        read = parse_call(call, raw)
        return read if read.state == "complete" else msgspec.structs.replace(
            read, state="invalid"
        ), {}
    if given is None:
        return call, {}
    return msgspec.structs.replace(call, raw=text_or_json(given), state="invalid"), {}


def unread_fields(
    call: ToolCallPart, load: Callable[[ToolCallPart], tuple[ToolCallPart, Any]]
) -> dict[str, Any]:
    """The fields of a call that are not read again from its part. `load`: reads the arguments of that into a call without them."""
    fields: dict[str, Any] = {"run_by": "client"} if call.run_by == "client" else {}
    if call.state != "complete":
        again, _ = load(ToolCallPart(call.id, call.name))
        if (again.raw, again.state, again.arguments) != (call.raw, call.state, call.arguments):
            fields |= {"raw": call.raw, "state": call.state, "arguments": call.arguments}
    return fields


def input_of(call: ToolCallPart, *, answered: bool = False) -> dict[str, Any]:
    """The inverse: the fields of a call that hold its arguments."""
    if call.state == "complete":
        return {"input": call.arguments}
    if call.state == "invalid" or answered:
        return {"rawInput" if answered else "input": call.raw or ""}
    if OWN.form(call.native).get("partial") is True:
        try:
            return {"input": json_bytes.decode(call.raw or "")}
        except ValueError:
            pass
    return {"rawInput": call.raw} if call.raw else {}


def open_state(
    call: ToolCallPart, cut: str = "input-streaming", waiting: str = "input-available"
) -> str:
    """The state of a call that has no result. `cut`, `waiting`: what the dialect calls the first two."""
    if call.state == "cut":
        return cut
    approval = OWN.fields(call.native).get("approval") if call.native else None
    if not isinstance(approval, dict):
        return waiting
    return (
        "approval-responded"
        if isinstance(if_object(approval).get("approved"), bool)
        else "approval-requested"
    )


def dump_call(call: ToolCallPart, *, answered: bool = False) -> dict[str, Any]:
    """A call → its part, which `dump_result` goes on with where it is `answered`."""
    made: dict[str, Any] = {"type": f"tool-{call.name}", "toolCallId": call.id}
    if call.native is None and call.state == "complete" and call.run_by == "agent":
        return (
            {**made, "input": call.arguments}
            if answered
            else {**made, "state": "input-available", "input": call.arguments}
        )
    if OWN.form(call.native).get("dynamic") is True:
        made = {"type": _DYNAMIC, "toolName": call.name, "toolCallId": call.id}
    if not answered:
        made["state"] = open_state(call)
    made |= input_of(call, answered=answered)
    if call.run_by == "provider":
        made["providerExecuted"] = True
    fields = unread_fields(
        call, lambda bare: load_input(bare, made, None if answered else open_state(call))
    )
    if metadata := metadata_of("tool", call.native, fields):
        made["callProviderMetadata"] = metadata
    return applied(call.native, made, UI, CALL_FIELDS)


def dump_result(result: ToolResultPart, call: ToolCallPart) -> dict[str, Any]:
    """A result → the fields of its call's part."""
    plain = result.native is None and not (result.is_error or result.denied or result.is_content)
    if plain and result.name == call.name and result.run_by == call.run_by:
        return {"state": "output-available", "output": result.result}
    made, fields = {"state": "output-available", "output": plain_output(result)}, dict[str, Any]()
    if result.denied or result.is_error:
        made, fields = dump_failure(result)
    fields = {**unread_result(result, call), **fields}
    if metadata := metadata_of("result", result.native, fields):
        made["resultProviderMetadata"] = metadata
    return applied(result.native, made, UI)


def _load_result(part: Fields, call: ToolCallPart, state: str, where: str) -> ToolResultPart:
    failure = load_failure(part, call, state, where)
    return failure or ToolResultPart(
        call.id, call.name, as_result(part.get("output")), run_by=call.run_by
    )
