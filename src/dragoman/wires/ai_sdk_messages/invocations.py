"""Calls and what they returned as ai 4 and Mastra have them: parts `tool-invocation` ↔ pieces. A part is a call and, where it has one, its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object, rest
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.failures import (
    denial_reason,
    dump_failure,
    load_failure,
    refused,
    unread_result,
)
from dragoman.wires.ai_sdk_messages.nested import flat, is_flat, nested
from dragoman.wires.ai_sdk_messages.outputs import as_result, plain_output
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, applied
from dragoman.wires.ai_sdk_messages.reading import Fields, Reading, fault, load_mark
from dragoman.wires.ai_sdk_messages.tools import input_of, load_input, open_state, unread_fields

__all__ = [
    "INVOCATION",
    "dump_invocation",
    "dump_invocation_result",
    "load_inner",
    "load_invocation",
]

INVOCATION = "tool-invocation"
_HOLDER = "toolInvocation"
_OWN = frozenset(
    [
        "state",
        "step",
        "toolCallId",
        "toolName",
        "args",
        "result",
        "errorText",
        "rawInput",
        "approval",
        "isError",
    ]
)
"""Fields of the inner object."""
_STATES = {
    "partial-call": "input-streaming",
    "call": "input-available",
    "approval-requested": "approval-requested",
    "approval-responded": "approval-responded",
    "result": "output-available",
    "output-error": "output-error",
    "output-denied": "output-denied",
}
"""State → that of UI messages of ai 5 and later."""
_ANSWERED = ("result", "output-error", "output-denied")
_OF_RESULT = frozenset(
    ["state", "result", "errorText", "isError", "preliminary", "resultProviderMetadata"]
)
_SHARED = ("approval", "title")
_KEY = "providerMetadata"


def load_invocation(part: dict[str, Any], it: Reading, where: str) -> None:
    """A call, with its result where it has one."""
    inner = part.get(_HOLDER)
    if len(part) == 2 and _load_plain(inner, it):
        return
    if not isinstance(inner, dict) or not is_flat(part):
        load_mark(part, it, where)
        return
    load_inner(cast("dict[str, Any]", inner), part, it, f"{where}.{_HOLDER}")


def _load_plain(inner: Any, it: Reading) -> bool:
    """Reads a call that was answered and has nothing beside it; whether it is one."""
    if (
        type(inner) is not dict
        or len(fields := cast("dict[str, Any]", inner)) != 5
        or fields.get("state") != "result"
    ):
        return False
    id_, name, given = fields.get("toolCallId"), fields.get("toolName"), fields.get("args")
    if (
        type(id_) is not str
        or type(name) is not str
        or type(given) is not dict
        or not given
        or "result" not in fields
    ):
        return False
    it.opens(says=False)
    it.arguments.pop((id_, name), None)
    it.pieces.append(ToolCallPart(id_, name, cast("dict[str, Any]", given)))
    it.answers.append(ToolResultPart(id_, name, as_result(fields["result"])))
    return True


def load_inner(
    inner: dict[str, Any], part: Fields, it: Reading, where: str, form: Mapping[str, Any] = {}
) -> None:
    """The object of a call and the part around it. `form`: what is noted of where it stands."""
    id_, name, state = inner.get("toolCallId"), inner.get("toolName"), inner.get("state")
    if type(id_) is not str or type(name) is not str:
        fault(f"{where} must have the strings toolCallId and toolName")
    if not isinstance(state, str) or state not in _STATES:
        fault(f"{where}.state must be one of {', '.join(_STATES)}, not {state!r:.50}")
    fields = flat(part, inner, _OWN, _HOLDER)
    del fields["type"]
    answered = state in _ANSWERED or ("result" in inner and state == "approval-responded")
    by_provider = part.get("providerExecuted") is True
    metadata = if_object(part.get(_KEY))
    ours = if_object(metadata.get(OURS))
    result_metadata: Any = ours.get("result") if answered else None
    if (
        result_metadata is not None
    ):  # what the result alone has stands within our key, since a part has metadata once
        kept_ours = rest(ours, "result")
        fields[_KEY] = {**rest(metadata, OURS), **({OURS: kept_ours} if kept_ours else {})}
        if not fields[_KEY]:
            del fields[_KEY]
    head = {key: value for key, value in fields.items() if not (answered and key in _OF_RESULT)}
    if state == "output-denied" and head.get("approval") == refused(
        id_, if_object(head.get("approval")).get("reason")
    ):
        del head["approval"]
    if answered and state == "approval-responded":
        form = {**form, "answered": state}
    call, noted_form = _load_args(
        ToolCallPart(id_, name, run_by="provider" if by_provider else "agent"), inner, state, it
    )
    it.opens(says=False)
    dialect = it.dialect
    kept = it.read(
        call,
        head,
        lambda made: _dump_call(made, dialect, answered=answered),
        "tool",
        _KEY,
        {**form, **noted_form},
    )
    it.add(kept)
    if answered:
        tail = {key: value for key, value in fields.items() if key in _OF_RESULT}
        if state == "approval-responded":
            tail["state"] = "result"
        if isinstance(result_metadata, dict):
            tail["resultProviderMetadata"] = result_metadata
        result = _load_result(inner, kept, state, where)
        answer = it.read(
            result, tail, lambda made: _dump_result(made, kept, dialect), "result", "resultProviderMetadata",
            {"isError": True} if result.is_error and state == "result" else {},
        )  # fmt: skip
        (it.pieces if by_provider else it.answers).append(answer)


def dump_invocation(call: ToolCallPart, dialect: str, *, answered: bool) -> dict[str, Any]:
    """A call → its part, which `dump_invocation_result` goes on with where it is `answered`."""
    outer, inner = nested(_dump_call(call, dialect, answered=answered), _OWN)
    return {"type": INVOCATION, _HOLDER: inner, **outer}


def dump_invocation_result(
    part: Fields, result: ToolResultPart, call: ToolCallPart, dialect: str
) -> dict[str, Any]:
    """The part of a call, with its result."""
    fields = _dump_result(result, call, dialect)
    metadata = fields.pop("resultProviderMetadata", None)
    if (
        OWN.form(call.native).get("answered") == "approval-responded"
        and fields.get("state") == "result"
    ):
        fields["state"] = "approval-responded"
    outer, inner = nested(fields, _OWN)
    both = {**part, **outer, _HOLDER: {**part[_HOLDER], **inner}}
    if result.denied and "approval" not in both[_HOLDER]:
        both[_HOLDER]["approval"] = refused(call.id, denial_reason(result))
    if metadata:
        held = if_object(both.get(_KEY))
        both[_KEY] = {**held, OURS: {**if_object(held.get(OURS)), "result": metadata}}
    return both


def _load_args(
    call: ToolCallPart, inner: Fields, state: str, it: Reading
) -> tuple[ToolCallPart, dict[str, Any]]:
    given = inner.get("args")
    read, form = _read_args(call, inner, state)
    if read.arguments and state in _ANSWERED:  # another call may have its id
        it.arguments.pop((call.id, call.name), None)
    elif read.arguments:
        it.arguments[call.id, call.name] = read.arguments
    elif (
        state in _ANSWERED
        and read.state == "complete"
        and not given
        and call.id
        and (call.id, call.name) in it.arguments
    ):
        read = msgspec.structs.replace(read, arguments=it.arguments[call.id, call.name])
    return read, form


def _read_args(
    call: ToolCallPart, inner: Fields, state: str | None
) -> tuple[ToolCallPart, dict[str, Any]]:
    raw = inner.get("rawInput")
    if isinstance(raw, str) and not inner.get("args") and state != "partial-call":
        return load_input(call, {"rawInput": raw}, None)
    return load_input(call, inner, _STATES.get(state or ""), "args")


def _dump_call(call: ToolCallPart, dialect: str, *, answered: bool) -> dict[str, Any]:
    """The fields of a call, without its result."""
    made: dict[str, Any] = {} if answered else {"state": open_state(call, "partial-call", "call")}
    made |= {"toolCallId": call.id, "toolName": call.name}
    if call.state == "complete":
        made["args"] = call.arguments
    elif call.state == "invalid" or answered:
        made |= {"args": {}, "rawInput": call.raw or ""}
    else:
        made |= {
            "args": {},
            **{"args" if key == "input" else key: value for key, value in input_of(call).items()},
        }
    if call.native is None and call.run_by == "agent" and call.state == "complete":
        return made
    if call.run_by == "provider":
        made["providerExecuted"] = True
    unread = unread_fields(call, lambda bare: _read_args(bare, made, made.get("state")))
    if metadata := metadata_of("tool", call.native, unread):
        made[_KEY] = metadata
    return applied(call.native, made, dialect, _SHARED)


def _dump_result(result: ToolResultPart, call: ToolCallPart, dialect: str) -> dict[str, Any]:
    """The fields of a result, beside those of its call."""
    made, fields = {"state": "result", "result": plain_output(result)}, dict[str, Any]()
    if result.is_error and not result.denied and OWN.form(result.native).get("isError") is True:
        made["isError"] = True
    elif result.denied or result.is_error:
        made, fields = dump_failure(result)
    fields = {**unread_result(result, call), **fields}
    if metadata := metadata_of("result", result.native, fields):
        made["resultProviderMetadata"] = metadata
    return applied(result.native, made, dialect)


def _load_result(inner: Fields, call: ToolCallPart, state: str, where: str) -> ToolResultPart:
    if (failure := load_failure(inner, call, state, where)) is not None:
        return failure
    value = as_result(inner.get("result"))
    return ToolResultPart(
        call.id, call.name, value, inner.get("isError") is True, run_by=call.run_by
    )
