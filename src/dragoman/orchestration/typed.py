"""Typed output through a tool, for providers that force tools but take no schema for their answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from dragoman.errors import SettingsError, TypedOutputError
from dragoman.event import PartStarted
from dragoman.fold import arguments_text
from dragoman.message import FinishReason, Message, ToolCallPart, ToolResultPart
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, Steps
from dragoman.orchestration.output import RETURN_RESULT
from dragoman.orchestration.state import StreamingState
from dragoman.request import ModelRequest, ToolSpec

__all__ = ["RETURN_RESULT", "TypedOutputStreamingOrchestrator"]


class TypedOutputStreamingOrchestrator(DefaultStreamingOrchestrator):
    """The output is the arguments of a call of `return_result`, streamed as they come.

    The model's text is withheld from the output; it stands in the messages and in metadata as `suppressedText`.
    """

    provider_hint = RETURN_RESULT
    own_tools = frozenset({RETURN_RESULT})

    def __init__(self, *, force: bool = True) -> None:
        """`force`: the provider can be made to call a tool (`Capability.forced_tools`)."""
        self._force = force
        self._shown = ("", 0)

    def request(
        self, state: StreamingState, output_schema: Mapping[str, Any] | None
    ) -> ModelRequest:
        """The request with `return_result` among its tools. A call is forced unless the model is to think first.

        Raises:
            SettingsError: a tool of the user's has that name.
        """
        if RETURN_RESULT in state.tool_map:
            raise SettingsError(
                f"a tool is named {RETURN_RESULT!r}, which typed output needs for itself; rename the tool"
            )
        request = super().request(state, None)
        tool = ToolSpec(
            RETURN_RESULT,
            "Gives the final answer. Call it once, when you know the answer.",
            output_schema or {},
        )
        settings = request.settings
        if self._force and settings.tool_choice is None and settings.reasoning in (None, "off"):
            settings = msgspec.structs.replace(settings, tool_choice="required")
        return request.replace(tools=(*request.tools, tool), settings=settings)

    def shows(self, part: PartStarted) -> bool:
        """The arguments of a message's first `return_result` are the output; text is not."""
        if not isinstance(part.part, ToolCallPart) or part.part.name != RETURN_RESULT:
            return False
        if self._shown[0] != part.message_id:
            self._shown = (part.message_id, part.index)
        return self._shown == (part.message_id, part.index)

    def correction(self, state: StreamingState, message: Message) -> Message | None:
        """The model answered without the tool: it is told to use it."""
        state.suppressed_text += message.text
        if not state.output_retries:
            raise TypedOutputError.because(
                f"No JSON output found: the model answered without calling {RETURN_RESULT}",
                output=message.text,
                partial=message,
            )
        state.output_retries -= 1
        return Message.user(f"Give your answer by calling the tool {RETURN_RESULT}.")

    async def answered(self, state: StreamingState, calls: Sequence[ToolCallPart]) -> Steps:
        """Runs the message's calls. A valid `return_result` ends the run, a wrong one goes on."""
        state.suppressed_text += state.conversation_history[-1].text
        async with aclosing(super().answered(state, calls)) as steps:
            async for step in steps:
                yield step if state.output is None else self._ended(state, calls, step)

    def _ended(
        self, state: StreamingState, calls: Sequence[ToolCallPart], last: StreamingIterationResult
    ) -> StreamingIterationResult:
        """The last step of a run whose output is there."""
        returned = next(call for call in calls if call.name == RETURN_RESULT)
        metadata = {"toolId": returned.id, "toolName": returned.name}
        if state.suppressed_text:
            metadata["suppressedText"] = state.suppressed_text
        reason = FinishReason.tool_calls if last.pending else FinishReason.stop
        return msgspec.structs.replace(
            last, should_continue=False, finish_reason=reason, metadata=metadata
        )

    def own_results(
        self, state: StreamingState, calls: Sequence[ToolCallPart]
    ) -> list[ToolResultPart]:
        """The answers to `return_result`, of which the first counts."""
        return [self.returned(state, calls[0]), *map(_not_the_first, calls[1:])]

    def returned(self, state: StreamingState, call: ToolCallPart) -> ToolResultPart:
        """The answer to a message's `return_result` call: what is wrong with it, or that it was taken."""
        text = arguments_text(call)
        if call.state != "complete":
            problem = f"the arguments are {call.state}, no JSON object"
        else:
            problem = None
            try:
                if state.validate is not None:
                    state.validate(text)
            except ValueError as error:
                problem = str(error)
        if problem is None:
            state.output = text
            return ToolResultPart(call.id, call.name, "ok")
        if not state.output_retries:
            last = state.conversation_history[-1]
            state.failure = TypedOutputError.because(problem, output=call.raw or text, partial=last)
        state.output_retries -= 1
        return ToolResultPart(call.id, call.name, {"error": problem}, is_error=True)


def _not_the_first(call: ToolCallPart) -> ToolResultPart:
    return ToolResultPart(
        call.id, call.name, {"error": "only the first answer counts"}, is_error=True
    )
