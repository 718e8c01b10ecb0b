"""Decides what happens to waiting calls after their interrupts are answered. All answers are
checked before any of them takes effect."""

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
from dragoman.orchestration.resume_results import (
    make_denial,
    make_resumed_result,
    make_undone,
    make_unknown_result,
)
from dragoman.orchestration.seal import Seal, late_error
from dragoman.repair import OpenCall, make_interrupted_result
from dragoman.tools import Tool
from dragoman.tools.agent_tool import AgentTool
from dragoman.tools.call_record import InnerRun
from dragoman.tools.schema_check import find_faults

__all__ = [
    "DOUBT_QUESTION",
    "CallPlan",
    "Decision",
    "ResumePlan",
    "decide_calls",
]

DOUBT_QUESTION = (
    "The process that ran this call ended, and nobody knows what the call did. Approve to run it again, answer with the result "
    "that it had, or deny if it did nothing."
)
"""What a person is asked about such a call."""


class Decision(msgspec.Struct, frozen=True):
    """Outcome of an answered call: a `result`, or the call is run."""

    waiting: WaitingCall
    """The call and its interrupts."""
    claims: tuple[str, ...] = ()
    """Names of the answers that allow it, each of which may be used once."""
    result: ToolResultPart | None = None
    """The result for the model; `None`: the call is run."""
    arguments: JsonMap | None = None
    """Arguments that replace the model's."""
    approved: bool = False
    """True if the call is or was approved."""
    answers: tuple[Any, ...] = ()
    """Answers to the tool's questions."""
    runs: tuple[InnerRun, ...] = ()
    """Runs of agents inside the tool."""
    resume: tuple[Resume, ...] = ()
    """Answers to the interrupts of the last of those runs."""

    doubtful: bool = False
    """True if the call may have acted already, so that a person is asked first."""

    @property
    def call(self) -> ToolCallPart:
        """Returns the call with the arguments that it runs with."""
        call = self.waiting.call.call
        if self.arguments is None:
            return call
        return msgspec.structs.replace(call, arguments=dict(self.arguments), raw=None)


class ResumePlan(msgspec.Struct, frozen=True):
    """How a waiting conversation continues."""

    decisions: tuple[Decision, ...] = ()
    """Decisions about answered calls."""
    unanswered: tuple[WaitingCall, ...] = ()
    """Calls that still wait."""
    new: tuple[Message, ...] = ()
    """Messages after the results."""
    speaks: bool = False
    """True if the user sent a new prompt, so that nothing waits any longer."""


class CallPlan(msgspec.Struct, frozen=True):
    """How a run goes on whose log ends in a message of the model: its calls are answered, or its
    output is corrected."""

    calls: tuple[ToolCallPart, ...]
    """The calls of the message; none: the message is the answer."""
    results: Mapping[tuple[int, str], ToolResultPart]
    """Results that the log holds, by the places and the ids of their calls."""
    doubtful: Collection[str]
    """Ids of the calls that may have begun, and whose outcome nobody knows if it is not known."""
    asks: bool = False
    """True if a person is asked about them, and the model is not told."""

    def settle(
        self, calls: Sequence[ToolCallPart], tools: Mapping[str, Tool]
    ) -> dict[int, ToolResultPart]:
        """Returns the results of those calls of a resumed run that are not to be run, by their
        indexes: the stored result, or an error if the call may have acted and its tool is not
        idempotent."""
        settled: dict[int, ToolResultPart] = {}
        for index, call in enumerate(calls):
            if (result := self.find_known(call)) is not None:
                settled[index] = result
            elif self.is_doubtful(call, tools) and not self.asks:
                settled[index] = make_unknown_result(call)
        return settled

    def find_known(self, call: ToolCallPart) -> ToolResultPart | None:
        """Returns the stored result of a call, or `None`."""
        if self._is_twin(call):
            # By its place: the id alone does not say whose the result is.
            slot = next((slot for slot, other in enumerate(self.calls) if other is call), -1)
            return self.results.get((slot, call.id))
        return next((part for (_, name), part in self.results.items() if name == call.id), None)

    def is_doubtful(self, call: ToolCallPart, tools: Mapping[str, Tool]) -> bool:
        """True if a call may have acted, and may not be run again."""
        tool = tools.get(call.name)
        if call.id not in self.doubtful or (tool is not None and tool.idempotent):
            return False
        # A run of an agent goes on from its own story, unless nobody knows which call began it.
        return not (isinstance(tool, AgentTool) and tool.goes_on) or self._is_twin(call)

    def _is_twin(self, call: ToolCallPart) -> bool:
        """True if another of the calls has the same id."""
        return sum(other.id == call.id for other in self.calls) > 1


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
    """Checks all answers (resumes) to a run that waited and returns a decision for each answered
    call, in the order of the calls.

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
        index, interrupt_index = _find_interrupt(answer, waiting, messages)
        if interrupt_index in answers.setdefault(index, {}):
            raise ResumeError(
                f"{answer.interrupt_id!r} is answered twice in one send; send one answer to it"
            )
        answers[index][interrupt_index] = answer, waiting[index].interrupts[interrupt_index]
    # A schema that a client may have made up is not evaluated: it could be built to take for ever.
    for index, by_interrupt in answers.items():
        if seal.key is None and waiting[index].call in forged:
            answers[index] = {
                which: (answer, msgspec.structs.replace(interrupt, schema=None))
                for which, (answer, interrupt) in by_interrupt.items()
            }
    return [
        _decide_call(waiting[index], answers[index], tools, seal, now, has_toolsets)
        for index in sorted(answers)
    ]


def _find_matches(
    interrupt_id: str, waiting: Sequence[WaitingCall], messages: Sequence[Message]
) -> list[tuple[int, int]]:
    """Returns the indexes of all waiting calls and interrupts that a resume with an id may be for:
    by the interrupts' own ids, or else by the ids that the calls have in other histories."""
    matches = [
        (index, interrupt_index)
        for index, waiting_call in enumerate(waiting)
        for interrupt_index, interrupt in enumerate(waiting_call.interrupts)
        if interrupt.id == interrupt_id
    ]
    if matches:
        return matches
    return [
        (index, 0)
        for index, waiting_call in enumerate(waiting)
        if not waiting_call.interrupts[0].parent
        and not waiting_call.answers
        and interrupt_id in answer_ids(messages, waiting_call.call)
    ]


def _find_interrupt(
    resume: Resume, waiting: Sequence[WaitingCall], messages: Sequence[Message]
) -> tuple[int, int]:
    """Returns the indexes of the waiting call and of its interrupt that an answer is for."""
    interrupt_id = resume.interrupt_id
    matches = _find_matches(interrupt_id, waiting, messages)
    if not matches:
        raise ResumeError(_explain_missing(interrupt_id, waiting, messages))
    if len(matches) > 1:
        raise ResumeError(
            f"several calls wait under the id {interrupt_id!r}; answer with the interrupts of `pending`"
        )
    # Ids of calls repeat in some conversations; the answer's metadata names the message as well.
    message = messages[waiting[matches[0][0]].call.position]
    if not _is_for(resume, waiting[matches[0][0]].interrupts[matches[0][1]], message):
        raise ResumeError(
            f"the answer to {interrupt_id!r} is for a call of another message; the one that waits has its id alone in common"
        )
    return matches[0]


def _explain_missing(
    interrupt_id: str, waiting: Sequence[WaitingCall], messages: Sequence[Message]
) -> str:
    """Returns the message for a resume (answer) that matches no waiting interrupt."""
    call_id = interrupt_id.partition("@")[0].partition("?")[0].partition("/")[0]
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
        return f"{interrupt_id!r} is answered already; what waits now: {waiting_ids}"
    return f"nothing waits under the id {interrupt_id!r}; what waits: {waiting_ids}. Is it the right history?"


def _is_for(resume: Resume, interrupt: Interrupt, message: Message) -> bool:
    """True if a resume (answer) was made for a call of this message, as far as its metadata
    shows."""
    metadata = resume.metadata
    if interrupt.parent:
        return True
    if (message_id := metadata.get("message_id")) and message.id:
        return message_id == message.id
    digest = metadata.get("message_digest")
    return digest is None or digest == interrupt.metadata.get("message_digest", digest)


def _decide_call(
    waiting: WaitingCall,
    answers: Mapping[int, tuple[Resume, Interrupt]],
    tools: Mapping[str, Tool],
    seal: Seal,
    now: datetime,
    has_toolsets: bool,
) -> Decision:
    """Returns the decision about one answered call of a resumed run."""
    tool = tools.get(waiting.call.call.name)
    if waiting.interrupts[0].parent:
        _check_tool(tool, waiting.call.call, answers[min(answers)][0], tools, has_toolsets)
        return _decide_inner(waiting, answers, seal, now)
    resume, interrupt = answers[0]
    call = waiting.call.call
    payload = _read_payload(resume)
    # A denial needs no signature: denying runs nothing.
    if payload is not None and payload.get("approved") is not False:
        _check_answer(resume, interrupt, payload, seal, now, waiting.state())
    # A remote agent's interrupt: that agent runs the call, so its answer is passed on as a result.
    if interrupt.reason != "tool" and read_interrupt(call) is not None:
        approves = payload is not None and payload.get("approved") is True
        claims = (seal.claim_name(resume, interrupt.id),) if approves else ()
        return Decision(waiting, claims, result=_answer_remote_call(call, resume, payload))
    if payload is None:
        return Decision(waiting, result=make_interrupted_result(call))
    if payload.get("approved") is False:
        is_doubt = interrupt.reason == "doubt"
        make = make_undone if is_doubt else make_denial
        return Decision(waiting, result=make(call, payload.get("reason")))
    if interrupt.reason == "tool" or (interrupt.reason == "doubt" and "value" in payload):
        return Decision(waiting, result=make_resumed_result(call, resume, payload["value"]))
    _check_tool(tool, call, resume, tools, has_toolsets)
    return _decide_run(waiting, answers[0], payload, tool, seal)


def _decide_run(
    waiting: WaitingCall,
    answer: tuple[Resume, Interrupt],
    payload: JsonMap,
    tool: Tool | None,
    seal: Seal,
) -> Decision:
    """Returns the decision to run a call that was approved, or whose tool got its answer."""
    resume, interrupt = answer
    claim = seal.claim_name(resume, interrupt.id)
    arguments, tool_answers = waiting.arguments, waiting.answers
    is_approval = interrupt.reason in ("approval", "doubt")
    if interrupt.reason == "doubt":
        # The call may have been approved under the same id.
        claim += "?doubt"
    elif is_approval:
        arguments = _edited_arguments(resume, payload, waiting.call.call, tool) or arguments
    else:
        # An approval and the first question of its tool share an id: their claims must differ.
        claim += "" if tool_answers else "?1"
        tool_answers = (*tool_answers, payload["value"])
    return Decision(
        waiting,
        (claim,),
        arguments=arguments,
        approved=waiting.approved or is_approval,
        answers=tool_answers,
        runs=waiting.runs,
    )


def _edited_arguments(
    resume: Resume, payload: JsonMap, call: ToolCallPart, tool: Tool | None
) -> JsonMap | None:
    """Returns the checked arguments that an approval changed, or None if it left them as they
    were."""
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


def _decide_inner(
    waiting: WaitingCall, answers: Mapping[int, tuple[Resume, Interrupt]], seal: Seal, now: datetime
) -> Decision:
    """Returns the decision that passes answers to an agent inside the tool. Their outer signatures
    are checked here, the rest by that agent's run."""
    inner_answers: list[Resume] = []
    for resume, interrupt in answers.values():
        payload = _read_payload(resume)
        signature = resume.signature
        if payload is not None and payload.get("approved") is not False:
            signature = _check_answer(resume, interrupt, payload, seal, now, waiting.state())
        inner_id = interrupt.id.removeprefix(f"{interrupt.parent[0]}/")
        inner_answers.append(
            msgspec.structs.replace(resume, interrupt_id=inner_id, signature=signature)
        )
    return Decision(
        waiting,
        tuple([seal.claim_name(resume, interrupt.id) for resume, interrupt in answers.values()]),
        arguments=waiting.arguments,
        approved=waiting.approved,
        answers=waiting.answers,
        runs=waiting.runs,
        resume=tuple(inner_answers),
    )


def _read_payload(resume: Resume) -> JsonMap | None:
    """Returns the payload of a resume, or None if it cancels."""
    if resume.status == "cancelled":
        return None
    payload: Any = resume.payload
    if not isinstance(payload, Mapping):
        raise ResumeError(
            f"the answer to {resume.interrupt_id!r} has no payload that can be read; make it with approve(), deny() or answer()"
        )
    return cast("JsonMap", payload)


def _check_answer(
    resume: Resume,
    interrupt: Interrupt,
    payload: JsonMap,
    seal: Seal,
    now: datetime,
    state: bytes,
) -> str | None:
    """Checks a resume (answer) against its interrupt. Returns its signature for an agent inside the
    tool.

    Raises:
        ResumeError: it is forged or late, or no answer to that.
    """
    inner = seal.check(interrupt, resume, now, state)
    expires = interrupt.expires_at
    if expires is not None and expires.tzinfo is None:
        expires = expires.replace(tzinfo=UTC)
    if expires is not None and now > expires:
        raise late_error(resume.interrupt_id)
    if interrupt.reason == "doubt":
        if "value" not in payload and payload.get("approved") is not True:
            raise ResumeError(
                f"{resume.interrupt_id!r} waits for a decision: approve() runs the call again, answer(value) gives its result, "
                "deny() says that it did nothing"
            )
    elif interrupt.reason == "approval":
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
    """Raises `ResumeError` if a resume's payload is no valid approval."""
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
    tool: Tool | None,
    call: ToolCallPart,
    resume: Resume,
    tools: Mapping[str, Tool],
    has_toolsets: bool,
) -> None:
    """Raises `ResumeError` if the tool to run is gone, unless it may have gone with its toolset."""
    # Tools of toolsets come and go: the model is told of one that went.
    if has_toolsets and tool is None:
        return
    if tool is None or tool.handler is None:
        names = ", ".join(tools) or "none"
        raise ResumeError(
            f"{resume.interrupt_id!r} is to run {call.name!r}, and there is no such tool here any more; the tools are: {names}. "
            "It can be denied or cancelled"
        )


def _answer_remote_call(
    call: ToolCallPart, resume: Resume, payload: JsonMap | None
) -> ToolResultPart:
    """Returns the result that passes an answer on to a remote agent, which runs the call itself."""
    if payload is None:
        result = make_interrupted_result(call)
    elif payload.get("approved") is False:
        result = make_denial(call, payload.get("reason"))
    else:
        result = make_resumed_result(call, resume, payload.get("value", dict(payload)))
    return attach_resume(result, resume)
