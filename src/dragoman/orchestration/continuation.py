"""Continues a run that waited: carries out the decisions about its calls and writes all results
into one user message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from inspect import isawaitable
from typing import Any, cast

import msgspec

from dragoman.codec.marks import read_interrupt
from dragoman.fold import unfold
from dragoman.interrupt import Reason
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, TextPart, ToolCallPart, ToolResultPart
from dragoman.orchestration.handoff import is_handoff, transfer_results
from dragoman.orchestration.interrupts import WaitingCall, find_expiry, make_interrupt, needs_mark
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.resume import DOUBT_QUESTION, Decision, ResumePlan
from dragoman.orchestration.resume_results import make_unknown_result
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.tool_round import ToolRound
from dragoman.orchestration.waiting import build_waiting_call, list_interrupts
from dragoman.repair import OpenCall, find_open_calls, make_interrupted_result
from dragoman.tools import ToolExecutionResult
from dragoman.tools.call_record import CallRecord
from dragoman.tools.tool_result import error_result

__all__ = ["resume_run"]

_EDITED_NOTE = (
    "the arguments were changed before the call was allowed; it was run with those given here"
)


async def resume_run(
    state: StreamingState, plan: ResumePlan
) -> AsyncGenerator[StreamingIterationResult, None]:
    """Continues a run that waited: carries out the decisions of a plan and yields steps. The last
    step names what is still pending."""
    history = state.conversation_history
    opened = find_open_calls(history)
    calls = [open_call.call for open_call in opened]
    number = {(open_call.position, open_call.place): slot for slot, open_call in enumerate(opened)}
    tool_round = state.begin_round(calls)
    waiting: list[WaitingCall] = []
    runs: dict[int, tuple[Decision, ToolCallPart]] = {}
    transfers: dict[int, Decision] = {}
    for decision in plan.decisions:
        slot = number[decision.waiting.call.position, decision.waiting.call.place]
        outcome = await _find_result(state, decision) or await _find_obstacle(state, decision)
        if isinstance(outcome, ToolResultPart):
            tool_round.add(slot, outcome)
        elif outcome is not None:
            waiting.append(outcome)
        elif is_handoff(state, decision.call):
            transfers[slot] = decision
        else:
            runs[slot] = decision, decision.call
    if runs:
        tool_round.start(_run_calls(state, tool_round, runs), reports=len(runs))
        try:
            while events := await tool_round.events():
                yield StreamingIterationResult(events=events)
        finally:
            await tool_round.end()
    waiting += _list_questions(state, tool_round, opened, runs)
    _hand_over(state, tool_round, plan, transfers, waits=bool(waiting))
    # A new prompt ends all waiting.
    still_waiting = () if plan.speaks else (*waiting, *plan.unanswered)
    # Nothing waits any longer: an unanswered call gets an error as its result, because providers
    # refuse a conversation with a call that has none.
    if not still_waiting:
        for open_call in find_open_calls((*history, *tool_round.messages(), *plan.new)):
            tool_round.add(
                number[open_call.position, open_call.place], make_interrupted_result(open_call.call)
            )
    else:
        tool_round.name_twins(opened)
        for waiting_call in waiting:
            if needs_mark(waiting_call, state.fixed_tools):
                tool_round.append(waiting_call.mark())
    events = [*tool_round.close(), *unfold(plan.new)]
    messages = (*tool_round.messages(), *plan.new)
    state.tool_round = None
    state.add_to_history(*messages)
    state.request_next_message_prefix()
    yield StreamingIterationResult(
        events=events,
        messages=messages,
        pending=list_interrupts(still_waiting),
        finish_reason=FinishReason.tool_calls if still_waiting else FinishReason.unspecified,
    )


async def _run_calls(
    state: StreamingState, tool_round: ToolRound, runs: Mapping[int, tuple[Decision, ToolCallPart]]
) -> None:
    """Continues a run that waited: runs the allowed calls, by slot in the round, and reports each
    result."""
    slots = list(runs)
    calls = [call for _, call in runs.values()]
    for decision, call in runs.values():
        metadata = decision.waiting.interrupts[0].metadata
        record = CallRecord(
            decision.answers,
            decision.runs,
            decision.resume,
            metadata,
            is_edited=decision.arguments is not None,
        )
        state.records.begin(call, record)

    def report(index: int, result: ToolExecutionResult) -> None:
        decision, _ = runs[slots[index]]
        part = _name_arguments(result.part, decision.arguments)
        tool_round.report(slots[index], msgspec.structs.replace(result, part=part))

    if state.executor.reports:
        await state.executor.execute_reporting(calls, state.tool_map, report)
        return
    for index, result in enumerate(await state.executor.execute_batch(calls, state.tool_map)):
        report(index, result)


async def _find_result(state: StreamingState, decision: Decision) -> ToolResultPart | None:
    """Returns the result that a continued run knows without running the call. An approval that is
    passed on to whoever runs the call counts once, too."""
    is_passed_on = decision.result is not None and read_interrupt(decision.call) is not None
    if is_passed_on and not await _claim_answers(state, decision):
        return make_unknown_result(decision.call)
    return decision.result


async def _find_obstacle(
    state: StreamingState, decision: Decision
) -> ToolResultPart | WaitingCall | None:
    """Returns the reason why, as a run continues, an answered call cannot run now: a result in its
    place, or another wait. None: it can run."""
    call = decision.call
    tool = state.tool_map.get(call.name)
    # Its set has it no longer, and the executor says so.
    if tool is None:
        return None
    if decision.doubtful:
        return _make_waiting(state, decision, "doubt", message=DOUBT_QUESTION)
    try:
        needs = await tool.needs_approval(call, state.tool_context())
    except Exception as error:  # noqa: BLE001 - code of the user's, which may raise anything: then it is not run
        return error_result(call, error).part
    if needs and not decision.approved:
        expires = find_expiry(tool, state.clock())
        return _make_waiting(state, decision, "approval", expires_at=expires)
    if not await _claim_answers(state, decision) and not tool.idempotent:
        return make_unknown_result(call)
    return None


def _make_waiting(
    state: StreamingState, decision: Decision, reason: Reason, **details: Any
) -> WaitingCall:
    """Returns an answered call that waits again as the run continues. `details`: fields of its
    interrupt."""
    open_call = decision.waiting.call
    waiting = WaitingCall(
        open_call, (), decision.answers, decision.arguments, decision.approved, decision.runs
    )
    history, past = state.conversation_history, waiting.state()
    interrupt = make_interrupt(
        history, open_call, reason, state.tool_map, state.seal, state=past, **details
    )
    return msgspec.structs.replace(waiting, interrupts=(interrupt,))


async def _claim_answers(state: StreamingState, decision: Decision) -> bool:
    """True if this continued run is the first to act on the answers."""
    if state.claim is None:
        return True
    verdicts = [state.claim(state.thread_id, answer, state.run_id) for answer in decision.claims]
    return all([await verdict if isawaitable(verdict) else verdict for verdict in verdicts])


def _list_questions(
    state: StreamingState,
    tool_round: ToolRound,
    opened: Sequence[OpenCall],
    runs: Mapping[int, tuple[Decision, ToolCallPart]],
) -> list[WaitingCall]:
    """Returns the calls of the continued run whose tools asked while they ran, and so wait again.
    `runs`: the calls that ran, by their indexes in `opened`."""
    waiting: list[WaitingCall] = []
    for call, question in tool_round.asks:
        # By identity: two calls of a conversation may have the same id.
        slot = next(slot for slot, open_call in enumerate(opened) if open_call.call is call)
        decision, as_run = runs[slot]
        record = state.records.of(as_run)
        waiting.append(build_waiting_call(state, opened[slot], question, record, decision))
    return waiting


def _hand_over(
    state: StreamingState,
    tool_round: ToolRound,
    plan: ResumePlan,
    transfers: Mapping[int, Decision],
    *,
    waits: bool,
) -> None:
    """Adds the results of allowed hand-off calls to the continued run. `waits`: another call of the
    run still waits."""
    # A new prompt ends all waiting, so that unanswered calls are no obstacle.
    waits = waits or bool(plan.unanswered and not plan.speaks)
    for slot, decision in transfers.items():
        details = {"runs": decision.runs, "resume": decision.resume, "new": plan.new}
        for part in transfer_results(state, [decision.call], waits=waits, **details):
            tool_round.add(slot, part)


def _name_arguments(result: ToolResultPart, arguments: JsonMap | None) -> ToolResultPart:
    """Returns the result of a continued run's call with a note of the arguments, if they are not
    the model's."""
    if arguments is None:
        return result
    note = {"note": _EDITED_NOTE, "arguments": dict(arguments)}
    value: Any = result.result
    if result.is_content:
        text = msgspec.json.encode(note).decode()
        return msgspec.structs.replace(result, result=(TextPart(text), *value))
    if result.is_error and isinstance(value, dict):
        return msgspec.structs.replace(result, result={**cast("Json", value), **note})
    return msgspec.structs.replace(result, result={**note, "result": value})
