"""A conversation that waited goes on: what was decided is carried out, and stands in one user
message."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from inspect import isawaitable
from typing import Any, cast

import msgspec

from dragoman.fold import unfold
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, TextPart, ToolCallPart, ToolResultPart
from dragoman.orchestration.handing_over import is_handoff, transfer_results
from dragoman.orchestration.held_back import question_of
from dragoman.orchestration.interrupts import WaitingCall, expiry, interrupt_for, needs_mark
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.resume import Decision, ResumePlan
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.tool_round import ToolRound
from dragoman.repair import find_open_calls, make_interrupted_result
from dragoman.tools import ToolExecutionResult
from dragoman.tools.outcome import error_result
from dragoman.tools.record import CallRecord

__all__ = ["go_on"]

_EDITED = "the arguments were changed before the call was allowed; it was run with those given here"
_UNKNOWN = (
    "outcome unknown: this call was allowed and begun before, and nobody knows how it ended; it was not run again. "
    "Find out what it did before it is called once more"
)


async def go_on(
    state: StreamingState, plan: ResumePlan
) -> AsyncGenerator[StreamingIterationResult, None]:
    """Carries out what was decided. The last step says what is waited for still."""
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
        outcome = decision.result or await _find_obstacle(state, decision)
        if isinstance(outcome, ToolResultPart):
            tool_round.add(slot, outcome)
        elif outcome is not None:
            waiting.append(outcome)
        elif is_handoff(state, decision.call):
            transfers[slot] = decision
        else:
            runs[slot] = decision, decision.call
    if runs:
        tool_round.start(_run(state, tool_round, runs), reports=len(runs))
        try:
            while events := await tool_round.events():
                yield StreamingIterationResult(events=events)
        finally:
            await tool_round.end()
    for call, question in tool_round.asks:
        slot = next(slot for slot, other in enumerate(calls) if other is call)
        decision, as_run = runs[slot]
        waiting.append(
            question_of(state, opened[slot], question, state.records.of(as_run), decision)
        )
    for slot, decision in transfers.items():
        details = {"runs": decision.runs, "resume": decision.resume, "new": plan.new}
        for part in transfer_results(
            state,
            [decision.call],
            waits=bool(waiting or (plan.unanswered and not plan.speaks)),
            **details,
        ):
            tool_round.add(slot, part)
    still_waiting = () if plan.speaks else (*waiting, *plan.unanswered)
    # Nothing waits any longer: a call that nobody answered gets an error for a result, so that the
    # model can be asked.
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
    events, messages, state.tool_round = (
        [*tool_round.close()],
        (*tool_round.messages(), *plan.new),
        None,
    )
    state.add_to_history(*messages)
    state.request_next_message_prefix()
    everything = sorted(
        still_waiting,
        key=lambda waiting_call: (waiting_call.call.position, waiting_call.call.place),
    )
    yield StreamingIterationResult(
        events=[*events, *unfold(plan.new)],
        messages=messages,
        pending=tuple(
            [interrupt for waiting_call in everything for interrupt in waiting_call.interrupts]
        ),
        finish_reason=FinishReason.tool_calls if still_waiting else FinishReason.unspecified,
    )


async def _run(
    state: StreamingState, tool_round: ToolRound, runs: Mapping[int, tuple[Decision, ToolCallPart]]
) -> None:
    """Runs the calls that were allowed, by their place in the round, and reports each result."""
    slots = list(runs)
    calls = [call for _, call in runs.values()]
    for decision, call in runs.values():
        metadata = decision.waiting.interrupts[0].metadata
        state.records.begin(
            call, CallRecord(decision.answers, decision.runs, decision.resume, metadata)
        )

    def report(index: int, result: ToolExecutionResult) -> None:
        decision, _ = runs[slots[index]]
        part = _as_run(result.part, decision.arguments)
        tool_round.report(slots[index], msgspec.structs.replace(result, part=part))

    if state.executor.reports:
        await state.executor.execute_reporting(calls, state.tool_map, report)
        return
    for index, result in enumerate(await state.executor.execute_batch(calls, state.tool_map)):
        report(index, result)


async def _find_obstacle(
    state: StreamingState, decision: Decision
) -> ToolResultPart | WaitingCall | None:
    """Why a call that was answered is not run now: its result, or what it waits for first; `None`:
    it is run."""
    call, open_call = decision.call, decision.waiting.call
    tool = state.tool_map.get(call.name)
    # Its set has it no longer, and the executor says so.
    if tool is None:
        return None
    try:
        needs = await tool.needs_approval(call, state.tool_context())
    except Exception as error:  # noqa: BLE001 - code of the user's, which may raise anything: then it is not run
        return error_result(call, error).part
    if needs and not decision.approved:
        expires = expiry(tool, state.clock())
        history = state.conversation_history
        waiting = WaitingCall(
            open_call, (), decision.answers, decision.arguments, runs=decision.runs
        )
        past = waiting.state()
        interrupt = interrupt_for(
            history,
            open_call,
            "approval",
            state.tool_map,
            state.seal,
            state=past,
            expires_at=expires,
        )
        return msgspec.structs.replace(waiting, interrupts=(interrupt,))
    if not await _claim(state, decision) and not tool.idempotent:
        return ToolResultPart(call.id, call.name, {"error": _UNKNOWN}, is_error=True)
    return None


async def _claim(state: StreamingState, decision: Decision) -> bool:
    """Whether this run is the first to act upon the answers."""
    if state.claim is None:
        return True
    verdicts = [state.claim(state.thread_id, answer, state.run_id) for answer in decision.claims]
    return all([await verdict if isawaitable(verdict) else verdict for verdict in verdicts])


def _as_run(result: ToolResultPart, arguments: JsonMap | None) -> ToolResultPart:
    """A result that says with which arguments it was got, where they are not the model's."""
    if arguments is None:
        return result
    note = {"note": _EDITED, "arguments": dict(arguments)}
    value: Any = result.result
    if result.is_content:
        text = msgspec.json.encode(note).decode()
        return msgspec.structs.replace(result, result=(TextPart(text), *value))
    if result.is_error and isinstance(value, dict):
        return msgspec.structs.replace(result, result={**cast("Json", value), **note})
    return msgspec.structs.replace(result, result={**note, "result": value})
