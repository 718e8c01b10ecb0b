"""Typed output in two phases, for providers that answer by a schema, but not together with tools."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from dragoman.event import MessageDropped, PartStarted
from dragoman.message import Message
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration.intake import Intake
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import (
    DefaultStreamingOrchestrator,
    Steps,
    response_metadata,
)
from dragoman.orchestration.state import StreamingState
from dragoman.request import ModelRequest

__all__ = ["TwoPhaseStreamingOrchestrator"]


class TwoPhaseStreamingOrchestrator(DefaultStreamingOrchestrator):
    """First the tools, without the schema: no text is output, and a message without calls is set aside. Then the answer
    by the schema, without tools. Its metadata tells also what was set aside, its text as `suppressedText`.
    """

    provider_hint = "two_phase"

    def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None = None,
    ) -> Steps:
        """One model call of the phase that the run is in."""
        phase = _Tools() if state.set_aside is None else _Answer()
        return phase.process_iteration(model, state, output_schema)


class _Tools(DefaultStreamingOrchestrator):
    """The first phase."""

    def request(
        self,
        state: StreamingState,
        output_schema: Mapping[str, Any] | None,  # noqa: ARG002
    ) -> ModelRequest:
        return super().request(state, None)

    def shows(self, part: PartStarted) -> bool:  # noqa: ARG002 - whatever it is
        return False

    def correction(self, state: StreamingState, message: Message) -> Message | None:  # noqa: ARG002
        return None

    async def finished(self, state: StreamingState, intake: Intake) -> Steps:
        message = intake.message()
        if intake.finish is None or message.tool_calls:
            async with aclosing(super().finished(state, intake)) as results:
                async for result in results:
                    yield result
            return
        state.intake = None
        state.set_aside = response_metadata(message)
        state.suppressed_text += message.text
        dropped = MessageDropped(intake.finish.message_id, "the answer follows by the schema")
        yield StreamingIterationResult(
            events=[] if intake.held is not None else [dropped], usage=intake.finish.usage
        )


class _Answer(DefaultStreamingOrchestrator):
    """The second phase."""

    def request(
        self, state: StreamingState, output_schema: Mapping[str, Any] | None
    ) -> ModelRequest:
        request = super().request(state, output_schema)
        settings = msgspec.structs.replace(
            request.settings, tool_choice=None, parallel_tool_calls=None
        )
        return request.replace(tools=(), settings=settings)

    async def finished(self, state: StreamingState, intake: Intake) -> Steps:
        metadata = dict(state.set_aside or {})
        if state.suppressed_text:
            metadata["suppressedText"] = state.suppressed_text
        state.set_aside, state.suppressed_text = {}, ""
        async with aclosing(super().finished(state, intake)) as results:
            async for result in results:
                yield msgspec.structs.replace(result, metadata={**metadata, **result.metadata})
                metadata = {}
