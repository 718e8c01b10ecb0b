"""Decides which calls of a model's message run now and which wait, and closes a round of tools.

`hold_back_calls` runs before the tools: it sets calls of client tools and calls that need approval
aside, each as a `WaitingCall` with a signed interrupt. Tools may also ask while they run.
`close_round` runs after the tools: it turns those questions into waiting calls too, adds a mark
for each waiting call that needs one to the message of results, and returns the step that ends
the round. A run goes on only if nothing waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.codec.marks import read_interrupt
from dragoman.interrupt import Interrupt, Reason
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, ToolCallPart
from dragoman.orchestration.interrupts import (
    WaitingCall,
    answer_ids,
    find_expiry,
    find_reason,
    make_interrupt,
    needs_mark,
)
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.resume import DOUBT_QUESTION, Decision
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.tool_round import ToolRound
from dragoman.repair import OpenCall, find_open_calls
from dragoman.tools import AskUser, Tool
from dragoman.tools.call_record import AgentWaits, CallRecord
from dragoman.tools.tool_result import describe_error

__all__ = ["build_waiting_call", "close_round", "hold_back_calls", "list_interrupts"]


def _find_reason_to_wait(call: ToolCallPart, tools: Mapping[str, Tool]) -> Reason | None:
    """Returns why a call of the model waits, or None if it is to run now."""
    if call.name in tools or call.run_by == "client" or read_interrupt(call):
        return find_reason(call, tools)
    # A call of an unknown tool is run too: its result is an error that the model sees.
    return None


async def hold_back_calls(
    state: StreamingState, calls: Sequence[ToolCallPart]
) -> tuple[Sequence[ToolCallPart], list[WaitingCall]]:
    """Splits into running and waiting the calls of the model's last message into those to run now
    and those that wait, with their interrupts."""
    tools = state.tool_map
    reasons: list[Reason | None] = [
        "doubt" if state.asks_about(call) else _find_reason_to_wait(call, tools) for call in calls
    ]
    # Nearly always every call is run, and the history need not be searched.
    if not any(reasons):
        return calls, []
    history = state.conversation_history
    opened = {id(open_call.call): open_call for open_call in find_open_calls(history)}
    now: list[ToolCallPart] = []
    waiting: list[WaitingCall] = []
    for call, reason in zip(calls, reasons, strict=True):
        asks = reason == "approval" and call.run_by != "client"
        details: JsonMap | None = (
            await _check_approval(state, tools[call.name], call) if asks else {}
        )
        if reason == "doubt":
            details = {"message": DOUBT_QUESTION}
        if reason is None or details is None:
            now.append(call)
        else:
            open_call = opened[id(call)]
            waiting.append(
                WaitingCall(
                    open_call,
                    (make_interrupt(history, open_call, reason, tools, state.seal, **details),),
                )
            )
    return now, waiting


async def _check_approval(state: StreamingState, tool: Tool, call: ToolCallPart) -> JsonMap | None:
    """Returns the details of the approval that a call must wait for, or None if it needs none."""
    details: Json = {}
    try:
        if not await tool.needs_approval(call, state.tool_context()):
            return None
    except Exception as error:  # noqa: BLE001 - code of the user's, which may raise anything: then somebody decides
        details["message"] = (
            f"whether this call needs approval could not be decided: {describe_error(error)}"
        )
    if (expires := find_expiry(tool, state.clock())) is not None:
        details["expires_at"] = expires
    return details


def build_waiting_call(
    state: StreamingState,
    open_call: OpenCall,
    question: AskUser,
    record: CallRecord,
    decision: Decision | None = None,
) -> WaitingCall:
    """Returns the waiting call for a tool's question. `decision`: the answer with which the call
    had been run again."""
    arguments, approved = None, False
    if decision is not None:
        arguments, approved = decision.arguments, decision.approved
    runs = question.runs if isinstance(question, AgentWaits) else tuple(record.runs)
    waiting = WaitingCall(open_call, (), record.answers, arguments, approved, runs)
    return msgspec.structs.replace(waiting, interrupts=_make_interrupts(state, waiting, question))


def _make_interrupts(
    state: StreamingState, waiting: WaitingCall, question: AskUser
) -> tuple[Interrupt, ...]:
    """Returns the interrupts for a question that a call waits for: one, or those of an agent inside
    the tool under this call's id."""
    history, past = state.conversation_history, waiting.state()
    if isinstance(question, AgentWaits):
        outer = answer_ids(history, waiting.call)[0]
        inner = [
            msgspec.structs.replace(
                interrupt, id=f"{outer}/{interrupt.id}", parent=(outer, *interrupt.parent)
            )
            for interrupt in question.pending
        ]
        return tuple([state.seal.sign_interrupt(interrupt, past) for interrupt in inner])
    return (
        make_interrupt(
            history,
            waiting.call,
            question.reason,
            state.tool_map,
            state.seal,
            answered=len(waiting.answers),
            state=past,
            message=question.message,
            schema=question.schema,
            expires_at=question.expires_at,
            metadata=dict(question.metadata),
        ),
    )


def _find_open_call(call: ToolCallPart, opened: Sequence[OpenCall]) -> OpenCall:
    """Returns the open call of a tool call, by identity or by its id, since a custom executor may
    copy calls."""
    return next((candidate for candidate in opened if candidate.call is call), None) or next(
        candidate for candidate in opened if candidate.call.id == call.id
    )


def list_interrupts(waiting: Iterable[WaitingCall]) -> tuple[Interrupt, ...]:
    """Returns the interrupts of waiting calls, in the order of the calls."""
    ordered = sorted(waiting, key=lambda call: (call.call.position, call.call.place))
    return tuple([interrupt for call in ordered for interrupt in call.interrupts])


def close_round(
    state: StreamingState, tool_round: ToolRound, waiting: Sequence[WaitingCall]
) -> StreamingIterationResult:
    """Ends a round of tools in which calls may wait: stores the message of its results, with marks
    of waiting calls, and returns the last step."""
    waits = list(waiting)
    if waits or tool_round.asks:
        # Sorted by the order of the calls, since tools may ask in any order.
        opened = find_open_calls(state.conversation_history)
        waits += [
            build_waiting_call(state, _find_open_call(call, opened), ask, state.records.of(call))
            for call, ask in tool_round.asks
        ]
        waits.sort(key=lambda waiting_call: (waiting_call.call.position, waiting_call.call.place))
        tool_round.name_twins(opened)
        for waiting_call in waits:
            if needs_mark(waiting_call, state.fixed_tools):
                tool_round.append(waiting_call.mark())
    events, messages, state.tool_round = tool_round.close(), tool_round.messages(), None
    state.add_to_history(*messages)
    goes_on = bool(messages) and not waits
    return StreamingIterationResult(
        events=events,
        messages=messages,
        should_continue=goes_on,
        pending=list_interrupts(waits),
        finish_reason=FinishReason.unspecified if goes_on else FinishReason.tool_calls,
    )
