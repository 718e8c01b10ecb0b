"""Typed output: which orchestrator holds a model to a schema.

A provider that answers by a schema gets the schema (`DefaultStreamingOrchestrator`), after the
tools where it takes them only apart (`TwoPhaseStreamingOrchestrator`). One that only calls tools
gets the schema as a tool, `return_result` (`TypedOutputStreamingOrchestrator`).
`choose_orchestrator` reads this off the providers' capabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import cast

import msgspec

from dragoman.capability import Capability
from dragoman.errors import SettingsError, TypedOutputError
from dragoman.event import MessageDropped, PartStarted
from dragoman.fold import arguments_text, parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Message, Role, ToolCallPart, ToolResultPart
from dragoman.model.chat_model import ChatModel
from dragoman.orchestration.accumulator import Intake
from dragoman.orchestration.iteration import RETURN_RESULT, StreamingIterationResult
from dragoman.orchestration.orchestrator import (
    DefaultStreamingOrchestrator,
    Steps,
    StreamingOrchestrator,
    response_metadata,
)
from dragoman.orchestration.resume import CallPlan
from dragoman.orchestration.state import StreamingState
from dragoman.providers.provider import Provider
from dragoman.request import ModelRequest, ToolSpec

__all__ = [
    "JsonTextStreamingOrchestrator",
    "RETURN_RESULT",
    "TwoPhaseStreamingOrchestrator",
    "TypedOutputStreamingOrchestrator",
    "choose_orchestrator",
]


def choose_orchestrator(
    *providers: Provider, typed: bool, tools: bool, json_text: bool = False
) -> StreamingOrchestrator:
    """Returns the orchestrator that types the output of a run with any of these providers.

    Those that answer by a schema get the schema, also together with tools where they take both or
    where tools go through constrained decoding anyway, else after the tools; any others that call
    tools get `return_result`.

    Args:
        providers: with the capabilities of the models that are asked.
        typed: the output is more than text.
        tools: the run has tools.
        json_text: a model is known to take neither a schema nor tools, so that text is the only
            means that is left.

    Raises:
        SettingsError: a provider can give no typed output at all, or they can give it by no means that all have.
    """
    if not typed:
        return DefaultStreamingOrchestrator()
    means = [_means(provider, tools=tools) for provider in providers]
    if "schema" in (shared := means[0].intersection(*means[1:])):
        return DefaultStreamingOrchestrator()
    if "schema after tools" in shared:
        return TwoPhaseStreamingOrchestrator()
    if "tool" in shared:
        force = all(Capability.forced_tools in provider.capabilities for provider in providers)
        return TypedOutputStreamingOrchestrator(force=force)
    if json_text:
        return JsonTextStreamingOrchestrator()
    for provider, own_means in zip(providers, means, strict=True):
        if not own_means:
            raise SettingsError(
                f"{provider.display_name} can give no typed output; use a provider that can (see `dragoman providers`)",
                provider=provider.name,
            )
    names = ", ".join(provider.display_name for provider in providers)
    raise SettingsError(
        f"these providers give typed output by different means, and no means is common to all: {names}; "
        "leave one of them out of the fallback (see `dragoman providers`)"
    )


def _means(provider: Provider, *, tools: bool) -> set[str]:
    """Returns the means by which a provider can give typed output."""
    can = provider.capabilities
    means = {"tool"} if Capability.tools in can else set[str]()
    if Capability.typed_output in can:
        means.add("schema after tools")
        if not tools or Capability.typed_output_with_tools in can or Capability.tools not in can:
            means.add("schema")
    return means


class JsonTextStreamingOrchestrator(DefaultStreamingOrchestrator):
    """The output is JSON in the model's text, for models that take neither a schema nor tools. The
    schema stands in a system message, and an answer that is not valid gets a second try."""

    provider_hint = "json_text"

    def request(self, state: StreamingState, output_schema: JsonMap | None) -> ModelRequest:
        """Returns the request of a typed run with the output schema as a text at its beginning. The
        schema itself stays in it too: lowering turns it into the API's JSON mode, where the model
        has one."""
        request = super().request(state, output_schema)
        schema = msgspec.json.encode(output_schema).decode()
        words = f"Answer with JSON alone, without a code fence. It must satisfy this JSON Schema: {schema}"
        return request.replace(messages=(Message.system(words), *request.messages))


class TypedOutputStreamingOrchestrator(DefaultStreamingOrchestrator):
    """The output is the arguments of a call of `return_result`, streamed as they come.

    The model's text is withheld from the output; it stands in the messages and in metadata as
    `suppressedText`.
    """

    provider_hint = RETURN_RESULT
    own_tools = frozenset({RETURN_RESULT})

    def __init__(self, *, force: bool = True) -> None:
        """Creates the orchestrator. `force`: True if the provider can be made to call a tool
        (`Capability.forced_tools`)."""
        self._force = force
        self._shown = ("", 0)

    async def initialize(self, state: StreamingState) -> None:
        """Takes over what the model has said and returned in earlier processes of a durable run."""
        if (story := state.story) is None:
            return
        spoken = [message for message in story.messages if message.role is Role.MODEL]
        if story.is_returned and (call := _first_result_call(spoken[-1])) is not None:
            state.output = arguments_text(call)
        # The last message is answered again, and then adds its own text.
        if isinstance(state.plan, CallPlan) and not story.is_returned:
            spoken = spoken[:-1]
        state.suppressed_text = "".join([message.text for message in spoken])

    def request(self, state: StreamingState, output_schema: JsonMap | None) -> ModelRequest:
        """Returns the request with `return_result` among its tools. A call is forced unless the
        model is to think first.

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
        # Providers refuse to force a tool while the model thinks.
        if self._force and settings.tool_choice is None and settings.reasoning in (None, "off"):
            settings = msgspec.structs.replace(settings, tool_choice="required")
        return request.replace(tools=(*request.tools, tool), settings=settings)

    def shows(self, part: PartStarted) -> bool:
        """Returns whether a part is shown as output: the arguments of a message's first
        `return_result` are, text is not."""
        if not isinstance(part.part, ToolCallPart) or part.part.name != RETURN_RESULT:
            return False
        if self._shown[0] != part.message_id:
            self._shown = (part.message_id, part.index)
        return self._shown == (part.message_id, part.index)

    def read_output(self, message: Message) -> str | None:
        """Returns the arguments of the message's first `return_result`, if they are whole."""
        call = _first_result_call(message)
        if call is None or call.state != "complete":
            return None
        return arguments_text(call)

    def write_output(self, message: Message, text: str) -> Message:
        """Returns a message with other arguments of its first `return_result`."""
        call = _first_result_call(message)
        assert call is not None
        changed = parse_call(msgspec.structs.replace(call, native=None), text)
        parts = [changed if part is call else part for part in message.content]
        return message.replace(content=tuple(parts))

    def correction(self, state: StreamingState, message: Message) -> Message | None:
        """Returns the message that tells the model to use the tool, if it answered without it."""
        state.suppressed_text += message.text
        if state.output_retries < 1:
            raise TypedOutputError.because(
                f"No JSON output found: the model answered without calling {RETURN_RESULT}",
                output=message.text,
                partial=message,
            )
        state.output_retries -= 1
        return Message.user(f"Give your answer by calling the tool {RETURN_RESULT}.")

    async def answer_calls(self, state: StreamingState, calls: Sequence[ToolCallPart]) -> Steps:
        """Runs the message's calls. A valid `return_result` ends the run, a wrong one goes on."""
        state.suppressed_text += state.conversation_history[-1].text
        async with aclosing(super().answer_calls(state, calls)) as steps:
            async for step in steps:
                yield step if state.output is None else self._end_step(state, calls, step)

    def _end_step(
        self, state: StreamingState, calls: Sequence[ToolCallPart], last: StreamingIterationResult
    ) -> StreamingIterationResult:
        """Returns the last step of a typed run whose output has arrived."""
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
        """Returns the results for calls of `return_result`, of which the first counts."""
        return [self.take_result(state, calls[0]), *map(_not_the_first, calls[1:])]

    def take_result(self, state: StreamingState, call: ToolCallPart) -> ToolResultPart:
        """Returns the result for a call of `return_result`: what is wrong with the value, or that
        it was taken."""
        text = arguments_text(call)
        if call.state != "complete":
            problem = f"the arguments are {call.state}, no JSON object"
        else:
            problem = state.refused
            try:
                if state.validate is not None:
                    state.validate(text)
            except ValueError as error:
                problem = str(error)
        if problem is None:
            state.output = text
            return ToolResultPart(call.id, call.name, "ok")
        if state.output_retries < 1:
            last = state.conversation_history[-1]
            error = TypedOutputError.because if state.refused is None else TypedOutputError.refused
            state.failure = error(problem, output=call.raw or text, partial=last)
        state.output_retries -= 1
        return ToolResultPart(call.id, call.name, {"error": problem}, is_error=True)


def _first_result_call(message: Message) -> ToolCallPart | None:
    return next((call for call in message.tool_calls if call.name == RETURN_RESULT), None)


def _not_the_first(call: ToolCallPart) -> ToolResultPart:
    return ToolResultPart(
        call.id, call.name, {"error": "only the first answer counts"}, is_error=True
    )


class TwoPhaseStreamingOrchestrator(DefaultStreamingOrchestrator):
    """First the tools, without the schema: no text is output, and a message without calls is set
    aside. Then the answer by the schema, without tools. Its metadata tells also what was set aside,
    its text as `suppressedText`.
    """

    provider_hint = "two_phase"

    async def initialize(self, state: StreamingState) -> None:
        """Takes over the phase that an earlier process of a durable run has reached."""
        if state.story is not None:
            state.set_aside = cast("Json | None", state.story.set_aside)

    def process_iteration(
        self,
        model: ChatModel,
        state: StreamingState,
        output_schema: JsonMap | None = None,
    ) -> Steps:
        """Makes one model call in the typed run's current phase."""
        phase = _Tools() if state.set_aside is None else _Answer()
        return phase.process_iteration(model, state, output_schema)


class _Tools(DefaultStreamingOrchestrator):
    """The first phase."""

    def request(
        self,
        state: StreamingState,
        output_schema: JsonMap | None,  # noqa: ARG002
    ) -> ModelRequest:
        """Returns the request of the first phase of a typed run, with tools and without the
        schema."""
        return super().request(state, None)

    def shows(self, part: PartStarted) -> bool:  # noqa: ARG002 - whatever it is
        return False

    def correction(self, state: StreamingState, message: Message) -> Message | None:  # noqa: ARG002
        return None

    async def finish_message(self, state: StreamingState, intake: Intake) -> Steps:
        """Ends a message of the first phase of a typed run: runs its tools, or drops its text
        because the typed answer follows."""
        message = intake.message()
        if intake.finish is None or message.tool_calls:
            async with aclosing(super().finish_message(state, intake)) as results:
                async for result in results:
                    yield result
            return
        state.intake = None
        metadata = response_metadata(message)
        if message.text:
            metadata["suppressedText"] = message.text
        events = state.note_set_aside(metadata)
        if intake.held is None:
            dropped = MessageDropped(intake.finish.message_id, "the answer follows by the schema")
            events.append(dropped)
        yield StreamingIterationResult(events=events, usage=intake.finish.usage)


class _Answer(DefaultStreamingOrchestrator):
    """The second phase."""

    def request(self, state: StreamingState, output_schema: JsonMap | None) -> ModelRequest:
        """Returns the request of the second phase of a typed run, with the schema and without
        tools."""
        request = super().request(state, output_schema)
        settings = msgspec.structs.replace(
            request.settings, tool_choice=None, parallel_tool_calls=None
        )
        return request.replace(tools=(), settings=settings)

    async def finish_message(self, state: StreamingState, intake: Intake) -> Steps:
        """Ends a message of the second phase of a typed run, with the metadata of the first."""
        metadata, state.set_aside = dict(state.set_aside or {}), {}
        async with aclosing(super().finish_message(state, intake)) as results:
            async for result in results:
                yield msgspec.structs.replace(result, metadata={**metadata, **result.metadata})
                metadata = {}
