"""One call of a tool as a run: tools, approvals, questions and answers as in any other, and no model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from dragoman.fold import unfold
from dragoman.message import Message, ToolCallPart
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration import (
    DefaultStreamingOrchestrator,
    StreamingIterationResult,
    StreamingState,
)
from dragoman.orchestration.orchestrator import Steps
from dragoman.providers.provider import Provider

__all__ = ["caller"]


def caller(call: ToolCallPart | None = None) -> Provider:
    """A record in whose runs the call is made and answered, and nobody is asked. `None`: the conversation waits on a call that was made
    before."""
    return Provider(
        name="client",
        display_name="MCP client",
        wire="openai_chat",
        chat_model="call",
        orchestrator=partial(_OneCall, call),
    )


class _OneCall(DefaultStreamingOrchestrator):
    """Makes the call in place of a model."""

    def __init__(self, call: ToolCallPart | None) -> None:
        self._call = call

    async def process_iteration(
        self,
        model: ChatModel,  # noqa: ARG002 - there is none
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Steps:
        """The call, where it is still to be made, and its answer."""
        if self._call is not None:
            message = Message.model(self._call).replace(
                id=state.new_id and state.new_id(), created_at=state.clock()
            )
            state.add_to_history(message)
            yield StreamingIterationResult(events=unfold([message]), messages=(message,))
            steps = self.answered(state, message.tool_calls)
            try:
                async for step in steps:
                    yield step
            finally:
                await steps.aclose()
        yield StreamingIterationResult(should_continue=False)
