"""A conversation that waited goes on: what was decided is carried out, and stands in one user message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Any, cast

import msgspec

from dragoman.fold import unfold
from dragoman.interrupt import Interrupt
from dragoman.message import Content, FinishReason, Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.orchestration.interrupts import Waiting, expiry, ids_of, interrupt_for, reason_of
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.resume import Decision
from dragoman.orchestration.state import StreamingState
from dragoman.repair import OpenCall, open_calls, stand_in, to_call
from dragoman.tools import AskUser, Tool
from dragoman.tools.inner import AgentWaits
from dragoman.tools.outcome import failed, words
from dragoman.tools.record import CallRecord

__all__ = ["Plan", "go_on", "held_back", "round_of"]

_EDITED = "the arguments were changed before the call was allowed; it was run with those given here"
_UNKNOWN = (
    "outcome unknown: this call was allowed and begun before, and nobody knows how it ended; it was not run again. "
    "Find out what it did before it is called once more"
)


class Plan(msgspec.Struct, frozen=True):
    """How a conversation that waits goes on."""

    decisions: tuple[Decision, ...] = ()
    """What was answered."""
    left: tuple[Waiting, ...] = ()
    """What was not."""
    new: tuple[Message, ...] = ()
    """Messages that follow the results."""
    speaks: bool = False
    """Somebody has said something, so that nothing is waited for any longer."""


async def held_back(state: StreamingState, calls: Sequence[ToolCallPart]) -> tuple[list[ToolCallPart], list[Waiting]]:
    """The calls of the model's last message → those to run now, and what the others wait for."""
    tools = state.tool_map
    reasons = [
        reason_of(call, tools) if call.name in tools or call.run_by == "client" else None for call in calls
    ]  # the answer to a call of an unknown tool is an error
    if not any(reasons):
        return list(calls), []
    history = state.conversation_history
    opened = {id(one.call): one for one in open_calls(history)}
    now: list[ToolCallPart] = []
    waiting: list[Waiting] = []
    for call, reason in zip(calls, reasons, strict=True):
        needs: Mapping[str, Any] | None = {}
        if reason == "approval":
            needs = await _verdict(state, state.tool_map[call.name], call)
        if reason is None or needs is None:
            now.append(call)
            continue
        one = opened.get(id(call)) or next(each for each in opened.values() if each.call == call)
        interrupt = interrupt_for(history, one, reason, state.tool_map, state.seal, **needs)
        waiting.append(Waiting(one, (interrupt,)))
    return now, waiting


async def _verdict(state: StreamingState, tool: Tool, call: ToolCallPart) -> Mapping[str, Any] | None:
    """What is told of a call that needs approval; `None`: it needs none."""
    told: dict[str, Any] = {}
    try:
        if not await tool.needs_approval(call, state.tool_context()):
            return None
    except Exception as error:  # noqa: BLE001 - code of the user's, which may raise anything: then somebody decides
        told["message"] = f"whether this call needs approval could not be decided: {words(error)}"
    if (expires := expiry(tool, state.clock())) is not None:
        told["expires_at"] = expires
    return told


def asked(
    state: StreamingState, one: OpenCall, question: AskUser, record: CallRecord, decision: Decision | None = None
) -> Waiting:
    """What a call waits for whose tool asked for something. `decision`: that by which it was run again."""
    history = state.conversation_history
    arguments = decision.arguments if decision is not None else None
    approved = decision is not None and decision.approved
    if isinstance(question, AgentWaits):
        outer = ids_of(history, one)[0]
        inner = [
            state.seal.sealed(msgspec.structs.replace(each, id=f"{outer}/{each.id}", parent=(outer, *each.parent)))
            for each in question.pending
        ]
        return Waiting(one, tuple(inner), record.answers, arguments, approved, tuple(record.runs))
    interrupt = interrupt_for(
        history,
        one,
        question.reason,
        state.tool_map,
        state.seal,
        asked=len(record.answers),
        message=question.message,
        schema=question.schema,
        expires_at=question.expires_at,
        metadata=dict(question.metadata),
    )
    return Waiting(one, (interrupt,), record.answers, arguments, approved, tuple(record.runs))


def needs_mark(waiting: Waiting, tools: Mapping[str, Tool]) -> bool:
    """Whether the messages and the tools do not tell all of what a call waits for."""
    first = waiting.interrupts[0]
    tool = tools.get(waiting.call.call.name)
    flagged = first.reason == "tool" or (
        first.reason == "approval" and tool is not None and tool.requires_approval is True
    )
    return not flagged or bool(first.parent or waiting.answers or waiting.runs or first.message or first.expires_at)


def message_of(
    opened: Sequence[OpenCall],
    results: Mapping[tuple[int, int], ToolResultPart],
    waiting: Sequence[Waiting],
    tools: Mapping[str, Tool],
) -> Message | None:
    """The user message of a round: results by the place of their call, and marks of what waits; `None`: nothing is to be told."""
    content: list[Content] = []
    before: set[str] = set()
    for one in opened:
        result = results.get((one.position, one.place))
        if result is None:
            before.add(one.call.id)
        else:
            content.append(to_call(result, one.turn) if one.call.id in before else result)
    content += [each.mark() for each in waiting if needs_mark(each, tools)]
    return Message.user(*content) if content else None


def round_of(
    state: StreamingState,
    run: Sequence[ToolCallPart],
    results: Sequence[ToolResultPart],
    waiting: Sequence[Waiting],
) -> tuple[Message | None, tuple[Interrupt, ...]]:
    """The user message of a round that was just run, and what it waits for. `results`: those of `run` without those that ask."""
    if not waiting and not state.asks:
        return (Message.user(*results) if results else None), ()
    opened = open_calls(state.conversation_history)
    of = {id(one.call): one for one in opened}
    waits = [*waiting, *[asked(state, of[key], ask, state.records.of(of[key].call)) for key, ask in state.asks.items()]]
    given = iter(results)
    places = {
        (one.position, one.place): next(given) for call in run if id(call) not in state.asks and (one := of[id(call)])
    }
    waits.sort(key=lambda each: (each.call.position, each.call.place))
    pending = tuple([interrupt for each in waits for interrupt in each.interrupts])
    return message_of(opened, places, waits, state.tool_map), pending


async def go_on(state: StreamingState, plan: Plan) -> StreamingIterationResult:
    """Carries out what was decided → the step that tells it, and what is waited for still."""
    history = state.conversation_history
    results, waiting = await _carried_out(state, plan.decisions)
    left = () if plan.speaks else (*waiting, *plan.left)
    if not left:
        made_up = {(one.position, one.place): stand_in(one.call) for one in open_calls((*history, *plan.new))}
        results = {**made_up, **results}
    messages: list[Message] = []
    if (told := message_of(open_calls(history), results, () if plan.speaks else waiting, state.tool_map)) is not None:
        messages.append(told.replace(id=state.new_id() if state.new_id else None, created_at=state.clock()))
    messages += plan.new
    state.add_to_history(*messages)
    everything = sorted(left, key=lambda each: (each.call.position, each.call.place))
    pending = tuple([interrupt for each in everything for interrupt in each.interrupts])
    return StreamingIterationResult(
        events=unfold(messages),
        messages=tuple(messages),
        pending=pending,
        finish_reason=FinishReason.tool_calls if pending else FinishReason.unspecified,
    )


async def _carried_out(
    state: StreamingState, decisions: Sequence[Decision]
) -> tuple[dict[tuple[int, int], ToolResultPart], list[Waiting]]:
    """What came of each call, by its place, and what those wait for that wait again."""
    results: dict[tuple[int, int], ToolResultPart] = {}
    waiting: list[Waiting] = []
    runs: list[tuple[Decision, ToolCallPart]] = []
    for decision in decisions:
        one = decision.waiting.call
        outcome = decision.result or await _stopped(state, decision)
        if isinstance(outcome, ToolResultPart):
            results[one.position, one.place] = outcome
        elif outcome is not None:
            waiting.append(outcome)
        else:
            call = decision.call
            state.records.begin(call, CallRecord(decision.answers, decision.runs, decision.resume))
            runs.append((decision, call))
    done = await state.executor.execute_batch([call for _, call in runs], state.tool_map) if runs else []
    for (decision, call), result in zip(runs, done, strict=True):
        one = decision.waiting.call
        if isinstance(result.exception, AskUser):
            waiting.append(asked(state, one, result.exception, state.records.of(call), decision))
        else:
            results[one.position, one.place] = _as_run(result.part, decision.arguments)
    return results, waiting


async def _stopped(state: StreamingState, decision: Decision) -> ToolResultPart | Waiting | None:
    """Why a call that was answered is not run now: its result, or what it waits for first; `None`: it is run."""
    call, one = decision.call, decision.waiting.call
    tool = state.tool_map[call.name]
    try:
        needs = await tool.needs_approval(call, state.tool_context())
    except Exception as error:  # noqa: BLE001 - code of the user's, which may raise anything: then it is not run
        return failed(call, error).part
    if needs and not decision.approved:
        expires = expiry(tool, state.clock())
        interrupt = interrupt_for(
            state.conversation_history, one, "approval", state.tool_map, state.seal, expires_at=expires
        )
        return Waiting(one, (interrupt,), decision.answers, decision.arguments, runs=decision.runs)
    for claimed in decision.claims:
        if state.claim is None or tool.idempotent:
            continue
        verdict = state.claim(state.thread_id, claimed, state.run_id)
        if not (await verdict if isawaitable(verdict) else verdict):
            return ToolResultPart(call.id, call.name, {"error": _UNKNOWN}, is_error=True)
    return None


def _as_run(result: ToolResultPart, arguments: Mapping[str, Any] | None) -> ToolResultPart:
    """A result that says with which arguments it was got, where they are not the model's."""
    if arguments is None:
        return result
    said = {"note": _EDITED, "arguments": dict(arguments)}
    if result.is_content:
        text = msgspec.json.encode(said).decode()
        return msgspec.structs.replace(result, result=(TextPart(text), *result.result))
    value: Any = result.result
    if result.is_error and isinstance(value, dict):
        return msgspec.structs.replace(result, result={**cast("dict[str, Any]", value), **said})
    return msgspec.structs.replace(result, result={**said, "result": value})
