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

from dragoman.errors import RunInterruptedError
from dragoman.message import FinishReason, Message, Role
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import (
    DefaultStreamingOrchestrator,
    StreamingOrchestrator,
)
from dragoman.orchestration.resume import CallPlan, Decision
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.story import Story
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
) -> Transfer | None:
    """Returns the hand-off with which a run goes on: one that was accepted and not finished, or
    `None`.

    Raises:
        RunInterruptedError: tools of the other agent may have acted.
    """
    answers = [message for message in messages if message.role is Role.MODEL]
    if not answers:
        return None
    for call in answers[-1].tool_calls:
        handoff, result = tools.get(call.name), story.results.get(call.id)
        if not isinstance(handoff, Handoff) or result is None or result.is_error:
            continue
        if story.has_inner_calls:
            raise RunInterruptedError(
                f"the run was handed over to {handoff.to}, and the process that drove it ended while tools of that agent "
                "may have acted: it is not handed over a second time"
            )
        return Transfer(handoff)
    return None


def settle_decisions(
    decisions: Sequence[Decision], story: Story, tools: Mapping[str, Tool], *, asks: bool
) -> list[Decision]:
    """Returns the decisions about answered calls, with the results of those that are not run again.
    `asks`: a person is asked about calls that may have acted."""
    past = CallPlan(
        tuple([decision.waiting.call.call for decision in decisions]),
        story.results,
        story.begun,
        asks,
    )
    settled = past.settle(past.calls, tools)
    return [
        msgspec.structs.replace(
            decision,
            result=decision.result or settled.get(slot),
            doubtful=asks and slot not in settled and past.is_doubtful(past.calls[slot], tools),
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
