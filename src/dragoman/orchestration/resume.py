"""Answers to what a conversation waits for: all are checked, and only then is anything done with
one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from dragoman.codec.marks import attach_resume, read_interrupt
from dragoman.errors import ResumeError, ToolError
from dragoman.interrupt import Interrupt, Resume
from dragoman.json_bytes import JsonMap
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart
from dragoman.orchestration.interrupts import WaitingCall, answer_ids
from dragoman.orchestration.seal import Seal, late
from dragoman.repair import OpenCall, make_interrupted_result
from dragoman.tools import Tool
from dragoman.tools.check import find_faults
from dragoman.tools.outcome import success_result
from dragoman.tools.record import InnerRun

__all__ = ["Decision", "ResumePlan", "decide_calls"]


class Decision(msgspec.Struct, frozen=True):
    """What becomes of a call that was answered: it has its `result`, or it is run."""

    waiting: WaitingCall
    """The call, and what it waited for."""
    claims: tuple[str, ...] = ()
    """What may be done once: ids of the answers that allow it."""
    result: ToolResultPart | None = None
    """What the model is told; `None`: the call is run."""
    arguments: JsonMap | None = None
    """In place of the model's."""
    approved: bool = False
    """Somebody allowed it, now or before."""
    answers: tuple[Any, ...] = ()
    """To the questions of the tool."""
    runs: tuple[InnerRun, ...] = ()
    """Runs of agents in the tool."""
    resume: tuple[Resume, ...] = ()
    """Answers to what the last of those waits for."""

    @property
    def call(self) -> ToolCallPart:
        """The call as it is run."""
        call = self.waiting.call.call
        if self.arguments is None:
            return call
        return msgspec.structs.replace(call, arguments=dict(self.arguments), raw=None)


class ResumePlan(msgspec.Struct, frozen=True):
    """How a conversation that waits goes on."""

    decisions: tuple[Decision, ...] = ()
    """What was answered."""
    unanswered: tuple[WaitingCall, ...] = ()
    """What was not."""
    new: tuple[Message, ...] = ()
    """Messages that follow the results."""
    speaks: bool = False
    """Somebody has said something, so that nothing is waited for any longer."""


def decide_calls(
    resume: Sequence[Resume],
    waiting: Sequence[WaitingCall],
    messages: Sequence[Message],
    tools: Mapping[str, Tool],
    seal: Seal,
    now: datetime,
    *,
    has_toolsets: bool = False,
    forged: Collection[OpenCall] = (),
) -> list[Decision]:
    """What the answers decide, in the order of the calls.

    Args:
        resume: the answers.
        waiting: what the conversation waits for.
        messages: the conversation.
        tools: by name.
        seal: checks signatures.
        now: the time, for expiry.
        has_toolsets: tools come and go; the model is told of one that went.
        forged: calls that a client may have made up. Without a signature their schemas are not evaluated.

    Raises:
        ResumeError: an answer is to nothing that waits, comes too late or twice, is not what was asked for, or is not signed.
    """
    answers: dict[int, dict[int, tuple[Resume, Interrupt]]] = {}
    for answer in resume:
        index, which = _find(answer, waiting, messages)
        if which in answers.setdefault(index, {}):
            raise ResumeError(
                f"{answer.interrupt_id!r} is answered twice in one send; send one answer to it"
            )
        answers[index][which] = answer, waiting[index].interrupts[which]
    # A schema that a client may have made up is not evaluated: it could be built to take for ever.
    for index, by_interrupt in answers.items():
        if seal.key is None and waiting[index].call in forged:
            answers[index] = {
                which: (answer, msgspec.structs.replace(interrupt, schema=None))
                for which, (answer, interrupt) in by_interrupt.items()
            }
    return [
        _decide(waiting[index], answers[index], tools, seal, now, has_toolsets)
        for index in sorted(answers)
    ]


def _find(
    resume: Resume, waiting: Sequence[WaitingCall], messages: Sequence[Message]
) -> tuple[int, int]:
    """The place of the call, and of its interrupt, that an answer is for."""
    wanted = resume.interrupt_id
    matches = [
        (index, which)
        for index, waiting_call in enumerate(waiting)
        for which, interrupt in enumerate(waiting_call.interrupts)
        if interrupt.id == wanted
    ] or [
        (index, 0)
        for index, waiting_call in enumerate(waiting)
        if not waiting_call.interrupts[0].parent
        and not waiting_call.answers
        and wanted in answer_ids(messages, waiting_call.call)
    ]
    if not matches:
        raise ResumeError(_nothing_waits(wanted, waiting, messages))
    if len(matches) > 1:
        raise ResumeError(
            f"several calls wait under the id {wanted!r}; answer with the interrupts of `pending`"
        )
    message = messages[waiting[matches[0][0]].call.position]
    if not _is_of(resume, waiting[matches[0][0]].interrupts[matches[0][1]], message):
        raise ResumeError(
            f"the answer to {wanted!r} is for a call of another message; the one that waits has its id alone in common"
        )
    return matches[0]


def _nothing_waits(wanted: str, waiting: Sequence[WaitingCall], messages: Sequence[Message]) -> str:
    call_id = wanted.partition("@")[0].partition("?")[0].partition("/")[0]
    ids = {
        piece.id
        for message in messages
        if message.role is Role.MODEL
        for piece in message.tool_calls
    }
    waiting_ids = (
        ", ".join(
            repr(interrupt.id) for waiting_call in waiting for interrupt in waiting_call.interrupts
        )
        or "nothing"
    )
    if call_id in ids and not any(waiting_call.call.call.id == call_id for waiting_call in waiting):
        return f"{wanted!r} is answered already; what waits now: {waiting_ids}"
    return f"nothing waits under the id {wanted!r}; what waits: {waiting_ids}. Is it the right history?"


def _is_of(resume: Resume, interrupt: Interrupt, message: Message) -> bool:
    """Whether an answer was made for a call of this message, as far as it tells."""
    metadata = resume.metadata
    if interrupt.parent:
        return True
    if (message_id := metadata.get("message_id")) and message.id:
        return message_id == message.id
    digest = metadata.get("message_digest")
    return digest is None or digest == interrupt.metadata.get("message_digest", digest)


def _decide(
    waiting: WaitingCall,
    answers: Mapping[int, tuple[Resume, Interrupt]],
    tools: Mapping[str, Tool],
    seal: Seal,
    now: datetime,
    has_toolsets: bool,
) -> Decision:
    tool = tools.get(waiting.call.call.name)
    is_gone = has_toolsets and tool is None
    if waiting.interrupts[0].parent:
        if not is_gone:
            _check_tool(tool, waiting.call.call, answers[min(answers)][0], tools)
        return _inner(waiting, answers, seal, now)
    resume, interrupt = answers[0]
    call = waiting.call.call
    payload = _payload(resume)
    if interrupt.reason != "tool" and read_interrupt(call) is not None:
        if payload is not None and payload.get("approved") is not False:
            _check(resume, interrupt, payload, seal, now, waiting.state())
        return Decision(waiting, result=_pass_on(call, resume, payload))
    if payload is None:
        return Decision(waiting, result=make_interrupted_result(call))
    if payload.get("approved") is False:
        return Decision(waiting, result=_denial_of(call, payload.get("reason")))
    _check(resume, interrupt, payload, seal, now, waiting.state())
    if interrupt.reason == "tool":
        return Decision(waiting, result=_result(call, resume, payload["value"]))
    if not is_gone:
        _check_tool(tool, call, resume, tools)
    arguments = waiting.arguments
    if interrupt.reason == "approval":
        arguments = _edited_arguments(resume, payload, call, tool) or arguments
    value = (payload["value"],) if interrupt.reason != "approval" else ()
    # An approval and the first question of its tool share an id.
    question = "" if waiting.answers or not value else "?1"
    return Decision(
        waiting,
        (seal.claim_name(resume, interrupt.id) + question,),
        arguments=arguments,
        approved=waiting.approved or not value,
        answers=(*waiting.answers, *value),
        runs=waiting.runs,
    )


def _edited_arguments(
    resume: Resume, payload: JsonMap, call: ToolCallPart, tool: Tool | None
) -> JsonMap | None:
    """The arguments with which a call is approved; `None`: the model's."""
    edited: JsonMap | None = payload.get("arguments")
    if edited is None or tool is None or dict(edited) == call.arguments:
        return None
    try:
        tool.convert_arguments(edited)
    except ToolError as error:
        raise ResumeError(
            f"the changed arguments in the approval of {resume.interrupt_id!r} do not fit: {error.message}"
        ) from error
    return edited


def _inner(
    waiting: WaitingCall, answers: Mapping[int, tuple[Resume, Interrupt]], seal: Seal, now: datetime
) -> Decision:
    """Answers to an agent within the tool: its own run checks them; what seals them on the way
    there is checked here."""
    passed: list[Resume] = []
    for resume, interrupt in answers.values():
        payload = _payload(resume)
        signature = resume.signature
        if payload is not None and payload.get("approved") is not False:
            signature = _check(resume, interrupt, payload, seal, now, waiting.state())
        inner_id = interrupt.id.removeprefix(f"{interrupt.parent[0]}/")
        passed.append(msgspec.structs.replace(resume, interrupt_id=inner_id, signature=signature))
    return Decision(
        waiting,
        tuple([seal.claim_name(resume, interrupt.id) for resume, interrupt in answers.values()]),
        arguments=waiting.arguments,
        approved=waiting.approved,
        answers=waiting.answers,
        runs=waiting.runs,
        resume=tuple(passed),
    )


def _payload(resume: Resume) -> JsonMap | None:
    """The payload of an answer; `None`: it was cancelled."""
    if resume.status == "cancelled":
        return None
    payload: Any = resume.payload
    if not isinstance(payload, Mapping):
        raise ResumeError(
            f"the answer to {resume.interrupt_id!r} has no payload that can be read; make it with approve(), deny() or answer()"
        )
    return cast("JsonMap", payload)


def _check(
    resume: Resume,
    interrupt: Interrupt,
    payload: JsonMap,
    seal: Seal,
    now: datetime,
    state: bytes,
) -> str | None:
    """Holds an answer against what was asked → its signature for an agent within.

    Raises:
        ResumeError: it is forged or late, or no answer to that.
    """
    inner = seal.check(interrupt, resume, now, state)
    expires = interrupt.expires_at
    if expires is not None and now > (expires if expires.tzinfo else expires.replace(tzinfo=UTC)):
        raise late(resume.interrupt_id)
    if interrupt.reason == "approval":
        _check_approval(resume, interrupt, payload)
    elif "value" not in payload:
        raise ResumeError(
            f"{resume.interrupt_id!r} waits for a value ({interrupt.reason}); give it with answer(value)"
        )
    elif interrupt.schema is not None and (
        wrong := find_faults(interrupt.schema, payload["value"])
    ):
        raise ResumeError(
            f"the answer to {resume.interrupt_id!r} is not what was asked for: {'; '.join(wrong)}"
        )
    return inner


def _check_approval(resume: Resume, interrupt: Interrupt, payload: JsonMap) -> None:
    if payload.get("approved") is not True:
        raise ResumeError(
            f"{resume.interrupt_id!r} waits for an approval; answer with approve() or deny()"
        )
    arguments = payload.get("arguments")
    if arguments is None:
        return
    if not isinstance(arguments, Mapping):
        raise ResumeError(
            f"the arguments in the approval of {resume.interrupt_id!r} are no JSON object"
        )
    call = interrupt.call
    if (
        not interrupt.editable
        and call is not None
        and dict(cast("JsonMap", arguments)) != call.arguments
    ):
        raise ResumeError(
            f"the approval of {resume.interrupt_id!r} changes arguments, which {call.name} does not allow; "
            "approve it as it is, deny it, or declare the tool with editable=True"
        )


def _check_tool(
    tool: Tool | None, call: ToolCallPart, resume: Resume, tools: Mapping[str, Tool]
) -> None:
    if tool is None or tool.handler is None:
        names = ", ".join(tools) or "none"
        raise ResumeError(
            f"{resume.interrupt_id!r} is to run {call.name!r}, and there is no such tool here any more; the tools are: {names}. "
            "It can be denied or cancelled"
        )


def _pass_on(call: ToolCallPart, resume: Resume, payload: JsonMap | None) -> ToolResultPart:
    """What is answered to an agent that is asked like a model: it runs the call itself, or does
    not."""
    if payload is None:
        result = make_interrupted_result(call)
    elif payload.get("approved") is False:
        result = _denial_of(call, payload.get("reason"))
    else:
        result = _result(call, resume, payload.get("value", dict(payload)))
    return attach_resume(result, resume)


def _denial_of(call: ToolCallPart, reason: Any) -> ToolResultPart:
    message = (
        f"denied: {reason}"
        if reason
        else "denied: somebody decided that this call is not to be run"
    )
    return ToolResultPart(call.id, call.name, {"error": message}, is_error=True, denied=True)


def _result(call: ToolCallPart, resume: Resume, value: Any) -> ToolResultPart:
    if isinstance(value, ToolResultPart):
        return msgspec.structs.replace(value, id=call.id, name=call.name)
    try:
        return success_result(call, value).part
    except Exception as error:
        raise ResumeError(
            f"the answer to {resume.interrupt_id!r} is no JSON value: {error}"
        ) from error
