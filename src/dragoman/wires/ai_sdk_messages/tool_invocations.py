"""Reads and writes the parts `tool-invocation` of ai 4 and of Mastra's rows: a tool call and, where
it has one, its result.

The object within the part and the part itself are read and written as one object (`Nesting`). Of
the metadata the call has all but what is under our key as `result`, since a part has metadata once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import drop_empty, if_object, pick, read_extra_fields
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.notes import (
    OURS,
    OWN,
    V4,
    Fields,
    Nesting,
    Part,
    flags,
    present,
    restore,
)
from dragoman.wires.ai_sdk_messages.provider_metadata import metadata_of
from dragoman.wires.ai_sdk_messages.read_parts import (
    MessageDialect,
    Reading,
    fault,
    finish,
    load_mark,
)
from dragoman.wires.ai_sdk_messages.tool_output import (
    as_result,
    denial_reason,
    dump_failure,
    plain_output,
    refusal,
    unread_result,
)
from dragoman.wires.ai_sdk_messages.ui_tool_parts import (
    CALL_FIELDS,
    has_no_form,
    input_of,
    load_failure,
    load_input,
    open_state,
    runner_of,
    unread_fields,
    without_refusal,
)

__all__ = [
    "INVOCATION",
    "add_old_result",
    "add_row_result",
    "dump_old_call",
    "dump_row_call",
    "load_inner",
    "load_old_invocation",
    "load_row_invocation",
]

INVOCATION = "tool-invocation"
_HOLDER, _KEY = "toolInvocation", "providerMetadata"
_RESULT_KEY = "resultProviderMetadata"

_STATES = {
    "partial-call": "input-streaming",
    "call": "input-available",
    "approval-requested": "approval-requested",
    "approval-responded": "approval-responded",
    "result": "output-available",
    "output-error": "output-error",
    "output-denied": "output-denied",
}
"""State → the state that UI messages of ai 5 and later have for it."""


# UI messages of ai 4

_OLD = Nesting(
    _HOLDER,
    frozenset(["args", "rawInput", "toolCallId", "toolName"]),
    inner=f"{_HOLDER}.",
    outer="",
)
_OLD_STATES = ("partial-call", "call", "result", "approval-requested", "approval-responded")
"""States of ai 4. Only Mastra writes the last two, for calls that wait for a person."""
_OLD_USUAL = frozenset(["state", "step", "toolCallId", "toolName", "args", "result"])
_OLD_OF_RESULT = ("state", "result")


class _Carried(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a tool result that an invocation of ai 4 has no field for."""

    is_error: bool | msgspec.UnsetType = msgspec.UNSET
    denied: bool | msgspec.UnsetType = msgspec.UNSET
    native: dict[str, Part] | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    run_by: str | msgspec.UnsetType = msgspec.UNSET


def load_old_invocation(part: Part, reading: Reading, where: str) -> None:
    """Reads a call of a UI message of AI SDK 4, and its result."""
    inner = if_object(part.get(_HOLDER))
    id_, name, state = _invocation_identity(inner, f"{where}.{_HOLDER}", _OLD_STATES)
    reading.opens(says=False)
    number, answered = reading.number, state == "result"
    if len(part) == 2 and answered and _is_usual(inner, number):
        reading.pieces.append(ToolCallPart(id_, name, inner["args"]))
        reading.answers.append(ToolResultPart(id_, name, as_result(inner["result"], V4)))
        return
    head = _OLD.flatten(part, read_extra_fields(inner, *_OLD_OF_RESULT) if answered else inner)
    without, carried = _pop_result(head)
    changes = _changes_of(carried)
    # What somebody else wrote under our key stays in the metadata of the call.
    if changes is not None:
        head = without
    call, form = load_input(ToolCallPart(id_, name), inner, _STATES.get(state), "args")
    write = partial(_old_fields, answered=answered, step=number)
    reading.take(call, head, write, "tool", form=form)
    if not answered:
        return
    result = ToolResultPart(id_, name, as_result(inner.get("result"), V4))
    tail = pick(inner, _OLD_OF_RESULT)
    answer = reading.read(msgspec.structs.replace(result, **(changes or {})), tail, _old_result)
    reading.answer(answer, answer.run_by)


def _is_usual(inner: Part, number: int) -> bool:
    """True if an answered tool invocation of the AI SDK has only the fields that every one has.
    `number` is that of its step."""
    step = inner.get("step")
    is_numbered = type(step) is int and step == number
    return is_numbered and inner.keys() == _OLD_USUAL and type(inner["args"]) is dict


def _changes_of(carried: Any) -> Part | None:
    """Returns the carried fields of a tool invocation's result, or None if dragoman did not write
    them."""
    try:
        changes = msgspec.convert(carried, _Carried)
    except ValueError:  # half a character of UTF-16 is no ValidationError
        return None
    fields = msgspec.structs.asdict(changes)
    return {key: value for key, value in fields.items() if value is not msgspec.UNSET}


def dump_old_call(
    call: ToolCallPart,
    dialect: MessageDialect,
    answered: bool,
    step: int,
) -> Part:
    """Returns the part of a call in AI SDK 4. `add_old_result` adds its result.

    Args:
        call: the call.
        dialect: table of the dialect.
        answered: True if a result will be added.
        step: number of its step, from 0.
    """
    outer, inner = _OLD.nest(_old_fields(call, dialect, answered, step))
    return {**outer, _HOLDER: inner}


def _old_fields(
    call: ToolCallPart,
    dialect: MessageDialect,
    answered: bool,
    step: int,
) -> Part:
    """Returns the fields of a call and of the part around it as one AI SDK object."""
    is_cut = call.state == "cut"
    inner: Part = {"toolCallId": call.id, "toolName": call.name, "step": step}
    if not answered:
        inner["state"] = "partial-call" if is_cut else "call"
    inner |= input_of(call, answered=answered, key="args")
    state = _STATES.get(inner.get("state", ""))
    unread = unread_fields(call, lambda bare: load_input(bare, inner, state, "args"))
    if call.run_by == "provider":
        unread["run_by"] = "provider"
    fields = _OLD.flatten({"type": INVOCATION}, inner)
    return finish(fields, call, "tool", dialect, unread, CALL_FIELDS)


def add_old_result(
    part: Part, result: ToolResultPart, call: ToolCallPart, dialect: MessageDialect
) -> Part:
    """Returns the part of a call in AI SDK 4 with its result."""
    fields = restore(result.native, _old_result(result, dialect), dialect.name)
    both = {**part, _HOLDER: {**part[_HOLDER], **fields}}
    carried = {
        "is_error": result.is_error,
        "denied": result.denied,
        "native": if_object(metadata_of("result", result.native).get(OURS)).get("native"),
        **unread_result(result, msgspec.structs.replace(call, run_by="agent")),
    }
    carried = {key: value for key, value in carried.items() if value not in (None, False)}
    if carried:
        return _with_result(both, carried)
    return both


def _old_result(result: ToolResultPart, _: MessageDialect) -> Part:
    """Returns the fields of a result in ai 4."""
    return {"state": "result", "result": plain_output(result, V4)}


# Mastra's rows

_ROW = Nesting(
    _HOLDER,
    frozenset(
        ["state", "step", "toolCallId", "toolName", "args", "result", "errorText", "rawInput", "approval", "isError"]
    ),
)  # fmt: skip
_ANSWERED = ("result", "output-error", "output-denied")
_RESPONDED = "approval-responded"
_ROW_OF_RESULT = frozenset(["state", "result", "errorText", "isError", "preliminary", _RESULT_KEY])
_SHARED = ("approval", "title")


def load_row_invocation(part: Part, reading: Reading, where: str) -> None:
    """Reads a call of a Mastra row, and its result."""
    inner = part.get(_HOLDER)
    if len(part) == 2 and _load_plain(if_object(inner), reading):
        return
    if not isinstance(inner, dict) or not _ROW.is_clear(part):
        load_mark(part, reading, where)
        return
    load_inner(cast("Part", inner), part, reading, f"{where}.{_HOLDER}")


def _load_plain(inner: Part, reading: Reading) -> bool:
    """Reads an answered tool invocation without further fields. Returns False, and reads nothing,
    for any other."""
    if len(inner) != 5 or inner.get("state") != "result" or "result" not in inner:
        return False
    id_, name, arguments = inner.get("toolCallId"), inner.get("toolName"), inner.get("args")
    if (
        type(id_) is not str
        or type(name) is not str
        or type(arguments) is not dict
        or not arguments
    ):
        return False
    reading.opens(says=False)
    reading.arguments.pop((id_, name), None)
    reading.pieces.append(ToolCallPart(id_, name, cast("Part", arguments)))
    reading.answers.append(ToolResultPart(id_, name, as_result(inner["result"])))
    return True


def load_inner(
    inner: Part,
    part: Fields,
    reading: Reading,
    where: str,
    form: Fields = {},
) -> None:
    """Reads a call from its inner object and the AI SDK part around it.

    Args:
        inner: the inner object.
        part: the part around it.
        reading: takes the call and its result.
        where: path for error messages.
        form: note of where the call stands.
    """
    id_, name, state = _invocation_identity(inner, where, _STATES)
    fields = _ROW.flatten(read_extra_fields(part, "type"), inner)
    answered = state in _ANSWERED or ("result" in inner and state == _RESPONDED)
    carried: Any = None
    if answered:
        fields, carried = _pop_result(fields)
        form = {**form, **present(answered=state if state == _RESPONDED else None)}
    head = fields
    if answered:
        head = read_extra_fields(fields, *_ROW_OF_RESULT)
    run_by = runner_of(part)
    call, noted = _load_arguments(ToolCallPart(id_, name, run_by=run_by), inner, state, reading)
    reading.opens(says=False)
    head = without_refusal(head, id_, state)
    write = partial(_row_fields, answered=answered)
    call = reading.take(call, head, write, "tool", form={**form, **noted})
    if answered:
        tail = pick(fields, _ROW_OF_RESULT)
        if isinstance(carried, dict):
            tail[_RESULT_KEY] = carried
        answer = _load_answer(inner, tail, call, state, reading, where)
        reading.answer(answer, run_by)


def _load_answer(
    inner: Part, tail: Part, call: ToolCallPart, state: str, reading: Reading, where: str
) -> Any:
    """Returns the result of an AI SDK tool invocation. `tail` has those of its fields that belong
    to the result."""
    result = load_failure(inner, call, state, where)
    if result is None:
        value, is_error = as_result(inner.get("result")), inner.get("isError") is True
        result = ToolResultPart(call.id, call.name, value, is_error, run_by=call.run_by)
    if state == _RESPONDED:
        tail = {**tail, "state": "result"}
    form = flags(isError=result.is_error and state == "result")
    write = partial(_row_result, call=call)
    return reading.read(result, tail, write, "result", _RESULT_KEY, form)


def _load_arguments(
    call: ToolCallPart, inner: Fields, state: str, reading: Reading
) -> tuple[ToolCallPart, Part]:
    """Returns a call with its arguments, and the note of their form.

    A later part with the result may leave the arguments out.
    """
    read, form = _read_arguments(call, inner, state)
    key = call.id, call.name
    if read.arguments and state in _ANSWERED:
        reading.arguments.pop(key, None)  # another call may have its id
    elif read.arguments:
        reading.arguments[key] = read.arguments
    # Mastra's rows may hold the arguments with the open call alone, and nothing with its result.
    elif state in _ANSWERED and read.state == "complete" and not inner.get("args") and call.id:
        read = msgspec.structs.replace(read, arguments=reading.arguments.get(key, read.arguments))
    return read, form


def _read_arguments(
    call: ToolCallPart, inner: Fields, state: str | None
) -> tuple[ToolCallPart, Part]:
    """Returns a call with the arguments in its AI SDK part, and the note of their form."""
    raw = inner.get("rawInput")
    if isinstance(raw, str) and not inner.get("args") and state != "partial-call":
        return load_input(call, {"rawInput": raw}, None)
    return load_input(call, inner, _STATES.get(state or ""), "args")


def dump_row_call(call: ToolCallPart, dialect: MessageDialect, answered: bool) -> Part:
    """Returns the part of a call in a Mastra row. `add_row_result` adds the result of an `answered`
    one."""
    outer, inner = _ROW.nest(_row_fields(call, dialect, answered))
    return {"type": INVOCATION, _HOLDER: inner, **outer}


def _row_fields(call: ToolCallPart, dialect: MessageDialect, answered: bool) -> Part:
    """Returns the fields of a call without its result, and of the part around it, as one AI SDK
    object."""
    fields: Part = {"toolCallId": call.id, "toolName": call.name, "args": {}}
    if not answered:
        fields["state"] = open_state(call, "partial-call", "call")
    if call.state == "invalid" or (answered and call.state != "complete"):
        fields["rawInput"] = call.raw or ""
    else:
        fields |= input_of(call, key="args")
    if has_no_form(call):
        return fields
    if call.run_by == "provider":
        fields["providerExecuted"] = True
    unread = unread_fields(call, lambda bare: _read_arguments(bare, fields, fields.get("state")))
    return finish(fields, call, "tool", dialect, unread, _SHARED)


def add_row_result(
    part: Part, result: ToolResultPart, call: ToolCallPart, dialect: MessageDialect
) -> Part:
    """Returns the part of a call in a row with its result."""
    fields = _row_result(result, dialect, call)
    carried = fields.pop(_RESULT_KEY, None)
    is_responded = OWN.form(call.native).get("answered") == _RESPONDED
    # Mastra leaves the state of an approved call as it was when it adds the result.
    if is_responded and fields.get("state") == "result":
        fields["state"] = _RESPONDED
    outer, inner = _ROW.nest(fields)
    inner = {**part[_HOLDER], **inner}
    if result.denied and "approval" not in inner:
        inner["approval"] = refusal(call.id, denial_reason(result))
    both = {**part, **outer, _HOLDER: inner}
    if carried:
        return _with_result(both, carried)
    return both


def _row_result(result: ToolResultPart, dialect: MessageDialect, call: ToolCallPart) -> Part:
    """Returns the fields of a tool invocation's result beside those of its call."""
    fields: Part = {"state": "result", "result": plain_output(result)}
    unread: Part = {}
    if result.is_error and not result.denied and OWN.form(result.native).get("isError") is True:
        fields["isError"] = True
    elif result.denied or result.is_error:
        fields, unread = dump_failure(result)
    unread = {**unread_result(result, call), **unread}
    return finish(fields, result, "result", dialect, unread, key=_RESULT_KEY)


# what both share


def _invocation_identity(
    inner: Part, where: str, states: Mapping[str, str] | tuple[str, ...]
) -> tuple[str, str, str]:
    """Returns the id, tool and state of an AI SDK tool invocation.

    Raises:
        HistoryError: one of them is missing or unknown.
    """
    id_, name, state = inner.get("toolCallId"), inner.get("toolName"), inner.get("state")
    if type(id_) is not str or type(name) is not str:
        fault(f"{where} must have the strings toolCallId and toolName")
    if not isinstance(state, str) or state not in states:
        fault(f"{where}.state must be one of {', '.join(states)}, not {state!r:.50}")
    return id_, name, state


def _pop_result(fields: Part) -> tuple[Part, Any]:
    """Returns an AI SDK part's fields without what they carry of its result, and that or None."""
    metadata = if_object(fields.get(_KEY))
    extras = if_object(metadata.get(OURS))
    if extras.get("result") is None:
        return fields, None
    call_extras = read_extra_fields(extras, "result")
    metadata = {**read_extra_fields(metadata, OURS), **drop_empty({OURS: call_extras})}
    return {**read_extra_fields(fields, _KEY), **drop_empty({_KEY: metadata})}, extras["result"]


def _with_result(part: Part, carried: Part) -> Part:
    """Returns a part that carries fields of its result. The inverse of `_pop_result`."""
    metadata = if_object(part.get(_KEY))
    return {**part, _KEY: {**metadata, OURS: {**if_object(metadata.get(OURS)), "result": carried}}}
