"""Goes on with a run whose earlier process is gone, from what its log tells (`Story`).

`find_calls` and `find_transfer` read off the conversation what comes next: the calls of the model's
last message (`CallPlan`), or a hand-off; a run that waits or has results goes on as any other.
`answer_again` has the orchestrator run the calls. `CallPlan.settle` tells which of them are not
run: those whose results are stored, and those that may have acted already. Nobody knows what the
latter did, so a call of a tool that is not idempotent gets an error as its result.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence

import msgspec

from dragoman.message import FinishReason, Message, Role, ToolCallPart
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, StreamingOrchestrator
from dragoman.orchestration.resume import CallPlan, Decision
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.story import Story
from dragoman.repair import OpenCall
from dragoman.tools import Tool
from dragoman.tools.agent_tool import Handoff, Transfer

__all__ = ["answer_again", "find_calls", "find_transfer", "settle_decisions"]


def find_calls(messages: Sequence[Message], story: Story, *, asks: bool) -> CallPlan | None:
    """Returns what a run that goes on is to do with the model's last message, if nothing was
    answered in the conversation after it; `None`: the conversation ends in something else. `asks`:
    a person is asked about calls that may have acted."""
    if messages[-1].role is not Role.MODEL:
        return None
    return CallPlan(tuple(messages[-1].tool_calls), story.results, story.begun, asks)


def find_transfer(
    messages: Sequence[Message], story: Story, tools: Mapping[str, Tool]
) -> tuple[ToolCallPart, Transfer] | None:
    """Returns the hand-off with which a run goes on: one that was accepted and not finished, with
    its call, or `None`."""
    answers = [message for message in messages if message.role is Role.MODEL]
    if not answers:
        return None
    accepted = {part.id for part in story.results.values() if not part.is_error}
    for call in answers[-1].tool_calls:
        handoff = tools.get(call.name)
        if isinstance(handoff, Handoff) and call.id in accepted:
            return call, Transfer(handoff)
    return None


def settle_decisions(
    decisions: Sequence[Decision],
    opened: Sequence[OpenCall],
    story: Story,
    tools: Mapping[str, Tool],
    *,
    asks: bool,
) -> list[Decision]:
    """Returns the decisions about answered calls, with the results of those that are not run again.

    Args:
        decisions: about the answered calls.
        opened: all calls of the conversation that have no result.
        story: what the log tells of the run.
        tools: by name.
        asks: a person is asked about calls that may have acted.
    """
    past = CallPlan(
        tuple([open_call.call for open_call in opened]), story.results, story.begun, asks
    )
    calls = [decision.waiting.call.call for decision in decisions]
    # A hand-off is accepted again, and then goes on.
    settled = {
        slot: part
        for slot, part in past.settle(calls, tools).items()
        if not isinstance(tools.get(part.name), Handoff)
    }
    return [
        msgspec.structs.replace(
            decision,
            result=decision.result or settled.get(slot),
            doubtful=asks and slot not in settled and past.is_doubtful(calls[slot], tools),
        )
        for slot, decision in enumerate(decisions)
    ]


async def answer_again(
    orchestrator: StreamingOrchestrator, state: StreamingState
) -> AsyncGenerator[StreamingIterationResult, None]:
    """Does what follows the model's last message, which an earlier process has stored, and yields
    steps."""
    built_in = orchestrator
    if not isinstance(built_in, DefaultStreamingOrchestrator):
        # An orchestrator of the user's calls models as it likes; the tools are run in our way.
        built_in = DefaultStreamingOrchestrator()
    message = state.conversation_history[-1]
    if message.role is not Role.MODEL:
        # The output is that of a call, whose result is stored.
        state.plan = None
        yield StreamingIterationResult(should_continue=False, finish_reason=FinishReason.stop)
        return
    await built_in.judge_stored(state, message)
    steps = built_in.answer_message(state, message)
    has_step = False
    try:
        async for step in steps:
            has_step = True
            yield step
    finally:
        state.plan = None
        await steps.aclose()
    if not has_step:
        reason = message.finish_reason or FinishReason.unspecified
        yield StreamingIterationResult(should_continue=False, finish_reason=reason)
