"""Reads and writes the tool calls of UI messages of ai 5 and later, whose part holds a call and its
result, and what tool calls of all dialects have in common: arguments, state, who ran them, failure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text, read_extra_fields, text_or_json
from dragoman.fold import parse_call
from dragoman.message import ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.notes import OWN, Fields, Part, flags, present, text_in
from dragoman.wires.ai_sdk_messages.read_parts import (
    MessageDialect,
    Reading,
    fault,
    finish,
    text_field,
)
from dragoman.wires.ai_sdk_messages.tool_output import (
    as_result,
    denial,
    denial_reason,
    dump_failure,
    plain_output,
    refusal,
    unread_result,
)

__all__ = [
    "CALL_FIELDS",
    "add_result",
    "dump_call",
    "dump_result",
    "has_no_form",
    "is_plain_answer",
    "input_of",
    "load_failure",
    "load_input",
    "load_tool",
    "open_state",
    "runner_of",
    "unread_fields",
    "without_refusal",
]

STATES = (
    "input-streaming", "input-available", "approval-requested", "approval-responded", "output-available", "output-error", "output-denied",
)  # fmt: skip
CALL_FIELDS = ("approval", "title", "toolMetadata")
"""Further fields of a call that several dialects have."""
_ANSWERED = ("output-available", "output-error", "output-denied")
_OF_RESULT = frozenset(["state", "output", "errorText", "preliminary", "resultProviderMetadata"])
_DYNAMIC = "dynamic-tool"
_CALL_KEY, _RESULT_KEY = "callProviderMetadata", "resultProviderMetadata"


# UI messages


def load_tool(part: Part, reading: Reading, where: str) -> None:
    """Reads a call of an AI SDK UI message, and its result."""
    type_, state = part["type"], part.get("state")
    id_ = text_field(part, "toolCallId", where)
    is_dynamic = type_ == _DYNAMIC
    if is_dynamic:
        name = text_field(part, "toolName", where)
    else:
        name = type_.removeprefix("tool-")
    reading.opens(says=False)
    # Most parts of an answered call have nothing to note, and are read at once.
    if len(part) == 5 and not is_dynamic and is_plain_answer(part):
        reading.pieces.append(ToolCallPart(id_, name, part["input"]))
        reading.answers.append(ToolResultPart(id_, name, as_result(part["output"])))
        return
    if not isinstance(state, str) or state not in STATES:
        fault(f"{where}.state must be one of {', '.join(STATES)}, not {state!r:.50}")
    answered = state in _ANSWERED
    head = without_refusal(read_extra_fields(part, *_OF_RESULT) if answered else part, id_, state)
    call, form = load_input(ToolCallPart(id_, name, run_by=runner_of(part)), part, state)
    form |= flags(dynamic=is_dynamic)
    write = partial(dump_call, answered=answered)
    call = reading.take(call, head, write, "tool", _CALL_KEY, form)
    if answered:
        _load_answer(part, call, reading, where)


def is_plain_answer(part: Part) -> bool:
    """True if an answered call has an object as arguments and an output."""
    is_answer = part.get("state") == "output-available" and "output" in part
    return is_answer and type(part.get("input")) is dict


def _load_answer(
    part: Part,
    call: ToolCallPart,
    reading: Reading,
    where: str,
) -> None:
    """Reads the result of a call from its AI SDK part."""
    result = load_failure(part, call, part["state"], where) or ToolResultPart(
        call.id, call.name, as_result(part.get("output")), run_by=call.run_by
    )
    tail = {key: value for key, value in part.items() if key in _OF_RESULT}
    write = partial(dump_result, call=call)
    answer = reading.read(result, tail, write, "result", _RESULT_KEY)
    # The part says where its result stands, whoever is carried as having run the call.
    reading.answer(answer, run_by=runner_of(part))


def dump_call(call: ToolCallPart, dialect: MessageDialect, answered: bool = False) -> Part:
    """Returns the AI SDK part of a call. `add_result` adds the result of an `answered` one."""
    part: Part = {"type": f"tool-{call.name}", "toolCallId": call.id}
    if has_no_form(call):  # most calls, at once
        if not answered:
            part["state"] = "input-available"
        part["input"] = call.arguments
        return part
    if OWN.form(call.native).get("dynamic") is True:
        part = {"type": _DYNAMIC, "toolName": call.name, "toolCallId": call.id}
    state: str | None = None
    if not answered:
        state = part["state"] = open_state(call)
    part |= input_of(call, answered=answered)
    if call.run_by == "provider":
        part["providerExecuted"] = True
    unread = unread_fields(call, lambda bare: load_input(bare, part, state))
    return finish(part, call, "tool", dialect, unread, CALL_FIELDS, _CALL_KEY)


def dump_result(result: ToolResultPart, dialect: MessageDialect, call: ToolCallPart) -> Part:
    """Returns the fields of an AI SDK tool call part that hold its result."""
    is_plain = result.native is None and not (result.is_error or result.denied or result.is_content)
    if is_plain and result.name == call.name and result.run_by == call.run_by:
        return {"state": "output-available", "output": result.result}
    if result.denied or result.is_error:
        fields, unread = dump_failure(result)
    else:
        fields, unread = {"state": "output-available", "output": plain_output(result)}, {}
    unread = {**unread_result(result, call), **unread}
    return finish(fields, result, "result", dialect, unread, key=_RESULT_KEY)


def add_result(
    part: Part, result: ToolResultPart, call: ToolCallPart, dialect: MessageDialect
) -> Part:
    """Returns the AI SDK part of a call with its result."""
    both = {**part, **dump_result(result, dialect, call)}
    if result.denied and "approval" not in both:
        both["approval"] = refusal(call.id, denial_reason(result))
    return both


# what all dialects share


def runner_of(part: Fields) -> Literal["agent", "provider"]:
    """Returns who ran the call of an AI SDK part."""
    if part.get("providerExecuted") is True:
        return "provider"
    return "agent"


def has_no_form(call: ToolCallPart) -> bool:
    """True if a call has no notes, is complete, and the agent ran it."""
    return call.native is None and call.state == "complete" and call.run_by == "agent"


def without_refusal(fields: Part, id_: str, state: str) -> Part:
    """Returns the fields of a tool call without an AI SDK approval that only repeats that the call
    was denied."""
    approval = fields.get("approval")
    # It is written again from the result, which says that it was denied.
    if state == "output-denied" and approval == refusal(id_, if_object(approval).get("reason")):
        return read_extra_fields(fields, "approval")
    return fields


def load_failure(
    fields: Fields, call: ToolCallPart, state: str, where: str
) -> ToolResultPart | None:
    """Returns the result of a failed or denied AI SDK tool call, or None in any other state."""
    if state == "output-error":
        text = text_field(fields, "errorText", where)
        return ToolResultPart(call.id, call.name, text, True, run_by=call.run_by)
    if state == "output-denied":
        result, is_error = denial(if_text(if_object(fields.get("approval")).get("reason")))
        return ToolResultPart(call.id, call.name, result, is_error, run_by=call.run_by, denied=True)
    return None


def load_input(
    call: ToolCallPart, part: Fields, state: str | None, key: str = "input"
) -> tuple[ToolCallPart, Part]:
    """Returns an AI SDK tool call with its arguments, and the note of their form.

    Args:
        call: the call without arguments.
        part: the fields with them.
        state: `input-streaming` if they may be cut.
        key: field of the arguments.
    """
    arguments, raw = part.get(key), part.get("rawInput")
    if state == "input-streaming":
        return _load_cut_input(call, part, key)
    if isinstance(raw, str) and arguments is None:
        call = parse_call(call, raw)
        is_cut = call.state != "complete"
        return msgspec.structs.replace(call, state="invalid") if is_cut else call, {}
    if arguments is None and isinstance(raw, dict):
        arguments = cast("Part", raw)
    if isinstance(arguments, dict):
        call = msgspec.structs.replace(call, arguments=cast("Part", arguments))
    elif arguments is not None:
        call = msgspec.structs.replace(call, raw=text_or_json(arguments), state="invalid")
    return call, {}


def _load_cut_input(call: ToolCallPart, part: Fields, key: str) -> tuple[ToolCallPart, Part]:
    """Returns an AI SDK tool call whose arguments were cut, and the note of their form."""
    text, is_partial = text_in(part, "rawInput"), False
    if text is None and key in part:
        text, is_partial = json_bytes.encode(part[key]).decode(), True
    return msgspec.structs.replace(call, raw=text or "", state="cut"), flags(partial=is_partial)


def unread_fields(
    call: ToolCallPart, load: Callable[[ToolCallPart], tuple[ToolCallPart, Any]]
) -> Part:
    """Returns the fields of a call that a reader would miss. `load` reads the AI SDK part's
    arguments into a call."""
    fields: Part = {}
    if call.run_by == "client":
        fields["run_by"] = "client"
    if call.state == "complete":
        return fields
    read, _ = load(ToolCallPart(call.id, call.name))
    if (read.raw, read.state, read.arguments) != (call.raw, call.state, call.arguments):
        fields |= {
            "raw": call.raw,
            "state": call.state,
            "arguments": call.arguments,
        }
    return fields


def input_of(call: ToolCallPart, *, answered: bool = False, key: str = "input") -> Part:
    """Returns the fields of an AI SDK tool part with a call's arguments. The inverse of
    `load_input`."""
    if call.state == "complete":
        return {key: call.arguments}
    if answered:
        return {"rawInput": call.raw or ""}
    if call.state == "invalid":
        return {key: call.raw or ""}
    if OWN.form(call.native).get("partial") is True:
        try:
            return {key: json_bytes.decode(call.raw or "")}
        except ValueError:
            pass
    return present(rawInput=call.raw or None)


def open_state(
    call: ToolCallPart, cut: str = "input-streaming", waiting: str = "input-available"
) -> str:
    """Returns the state of a call without a result. `cut` and `waiting` are the AI SDK dialect's
    words."""
    if call.state == "cut":
        return cut
    approval = OWN.fields(call.native).get("approval")
    if not isinstance(approval, dict):
        return waiting
    is_answered = isinstance(if_object(approval).get("approved"), bool)
    if is_answered:
        return "approval-responded"
    return "approval-requested"


# model messages
