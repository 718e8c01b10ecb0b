"""Calls and what they returned in UI messages of ai 4: the part `tool-invocation` ↔ a call and its result."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.outputs import as_result, plain_output
from dragoman.wires.ai_sdk_messages.own import OURS, applied
from dragoman.wires.ai_sdk_messages.reading import Reading, fault
from dragoman.wires.ai_sdk_messages.tools import CALL_FIELDS, input_of, load_input, unread_fields
from dragoman.wires.ai_sdk_messages.v4_parts import V4

__all__ = ["STATES", "dump_invocation", "dump_invocation_result", "load_invocation"]

STATES = ("partial-call", "call", "result", "approval-requested", "approval-responded")
"""The last two are Mastra's, which writes its lists for ai 4 so: calls that wait for somebody."""
_KEY = "providerMetadata"
_INVOCATION = "toolInvocation"
_USUAL = frozenset(["state", "step", "toolCallId", "toolName", "args", "result"])
_OF_RESULT = frozenset(["state", "result"])


def load_invocation(part: dict[str, Any], it: Reading, where: str) -> None:
    """A call, with its result where it has one."""
    given = if_object(part.get(_INVOCATION))
    id_, name, state = given.get("toolCallId"), given.get("toolName"), given.get("state")
    if type(id_) is not str or type(name) is not str:
        fault(f"{where}.toolInvocation must have the strings toolCallId and toolName")
    if not isinstance(state, str) or state not in STATES:
        fault(f"{where}.toolInvocation.state must be one of {', '.join(STATES)}, not {state!r:.50}")
    it.opens(says=False)
    arguments = given.get("args")
    if (
        len(part) == 2
        and type(arguments) is dict
        and state == "result"
        and given.keys() == _USUAL
        and _is_number(given["step"], it.number)
    ):
        it.pieces.append(ToolCallPart(id_, name, cast("dict[str, Any]", arguments)))
        it.answers.append(ToolResultPart(id_, name, as_result(given["result"], V4)))
        return
    answered = state == "result"
    fields = {key: value for key, value in given.items() if not (answered and key in _OF_RESULT)}
    head = {
        **{key: value for key, value in part.items() if key != _INVOCATION},
        **_prefixed(fields),
    }
    head, ours = _without_ours(head)
    as_input = "input-streaming" if state == "partial-call" else state
    call, form = load_input(ToolCallPart(id_, name), given, as_input, "args")
    number = it.number
    kept = it.read(
        call,
        head,
        lambda made: _flat(dump_invocation(made, V4, answered, number)),
        "tool",
        _KEY,
        form,
    )
    it.add(kept)
    if answered:
        result = ToolResultPart(id_, name, as_result(given.get("result"), V4))
        tail = {key: value for key, value in given.items() if key in _OF_RESULT}
        answer = it.read(_with_ours(result, ours), tail, _result)
        if answer.run_by == "provider":
            it.add(answer)
        else:
            it.answers.append(answer)


def dump_invocation(call: ToolCallPart, dialect: str, answered: bool, step: int) -> dict[str, Any]:
    """A call → its part. `step`: its number."""
    inner = {
        "state": "partial-call" if call.state == "cut" else "call",
        "toolCallId": call.id,
        "toolName": call.name,
        **{
            "args" if key == "input" else key: value
            for key, value in input_of(call, answered=answered).items()
        },
        "step": step,
    }
    if answered:
        del inner["state"]
    made: dict[str, Any] = {"type": "tool-invocation", **_prefixed(inner)}
    state = "input-streaming" if call.state == "cut" and not answered else None
    carried = {
        **unread_fields(call, lambda bare: load_input(bare, inner, state, "args")),
        **({"run_by": "provider"} if call.run_by == "provider" else {}),
    }
    if metadata := metadata_of("tool", call.native, carried):
        made[_KEY] = metadata
    flat = applied(call.native, made, dialect, CALL_FIELDS)
    return _nested(flat)


def dump_invocation_result(
    part: dict[str, Any], result: ToolResultPart, call: ToolCallPart, dialect: str
) -> dict[str, Any]:
    """The part of a call, with its result."""
    both = {
        **part,
        _INVOCATION: {**part[_INVOCATION], **applied(result.native, _result(result), dialect)},
    }
    ours = _ours(result, call)
    if ours:
        metadata = if_object(part.get(_KEY))
        both[_KEY] = {**metadata, OURS: {**if_object(metadata.get(OURS)), "result": ours}}
    return both


def _result(result: ToolResultPart) -> dict[str, Any]:
    return {"state": "result", "result": plain_output(result, V4)}


def _ours(result: ToolResultPart, call: ToolCallPart) -> dict[str, Any]:
    """What an invocation has no field for."""
    held = if_object(metadata_of("result", result.native).get(OURS)).get("native")
    fields = {
        "is_error": result.is_error, "denied": result.denied, "native": held,
        "name": result.name if result.name != call.name else None, "run_by": result.run_by if result.run_by != "agent" else None,
    }  # fmt: skip
    return {key: value for key, value in fields.items() if value not in (None, False)}


def _without_ours(head: dict[str, Any]) -> tuple[dict[str, Any], _Carried | None]:
    """The fields of a call without what our key says of its result, and that."""
    metadata = if_object(head.get(_KEY))
    held = if_object(metadata.get(OURS))
    if "result" not in held:
        return head, None
    try:
        ours = msgspec.convert(held["result"], _Carried)
    except ValueError:  # half a character of UTF-16 is no ValidationError
        return head, None
    left = {key: value for key, value in held.items() if key != "result"}
    metadata = {
        **{key: value for key, value in metadata.items() if key != OURS},
        **({OURS: left} if left else {}),
    }
    out = {key: value for key, value in head.items() if key != _KEY}
    return ({**out, _KEY: metadata} if metadata else out), ours


def _with_ours(result: ToolResultPart, changes: _Carried | None) -> ToolResultPart:
    if changes is None:
        return result
    fields = {
        key: value
        for key, value in msgspec.structs.asdict(changes).items()
        if value is not msgspec.UNSET
    }
    return msgspec.structs.replace(result, **fields)


class _Carried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    is_error: bool | msgspec.UnsetType = msgspec.UNSET
    denied: bool | msgspec.UnsetType = msgspec.UNSET
    native: dict[str, dict[str, Any]] | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    run_by: str | msgspec.UnsetType = msgspec.UNSET


def _prefixed(inner: dict[str, Any]) -> dict[str, Any]:
    return {
        key
        if key in ("args", "rawInput", "toolCallId", "toolName")
        else f"{_INVOCATION}.{key}": value
        for key, value in inner.items()
    }


def _flat(part: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: value for key, value in part.items() if key != _INVOCATION},
        **_prefixed(part[_INVOCATION]),
    }


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = {}
    outer: dict[str, Any] = {}
    for key, value in flat.items():
        if key.startswith(f"{_INVOCATION}."):
            inner[key[len(_INVOCATION) + 1 :]] = value
        elif key in ("args", "rawInput", "toolCallId", "toolName"):
            inner[key] = value
        else:
            outer[key] = value
    return {**outer, _INVOCATION: inner}


def _is_number(value: Any, number: int) -> bool:
    return type(value) is int and value == number
