"""A model that says what a test tells it to: a middleware that answers in place of a provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import msgspec

from dragoman import Agent, Capability, Interrupt, Message, Provider, ToolCallPart, Usage, unfold
from dragoman.codec.digest import neutral_digest
from dragoman.errors import DragomanError
from dragoman.event import Event, PartDelta, RunError
from dragoman.interrupt import Reason
from dragoman.message import FinishReason
from dragoman.request import ModelRequest

ALL = frozenset(
    {
        Capability.chat,
        Capability.embeddings,
        Capability.tools,
        Capability.parallel_tools,
        Capability.typed_output,
        Capability.typed_output_with_tools,
    }
)
PROVIDER = Provider(
    name="scripted",
    display_name="Scripted",
    wire="openai_chat",
    base_url="http://127.0.0.1:9/v1",
    chat_model="m",
    embeddings_model="e",
    capabilities=ALL,
)
FORCING = msgspec.structs.replace(
    PROVIDER, capabilities=frozenset({Capability.chat, Capability.tools, Capability.forced_tools})
)


def call(name: str = "t", /, id: str = "c1", **arguments: Any) -> ToolCallPart:
    """A tool call."""
    return ToolCallPart(id, name, arguments)


def waits_for(
    message: Message, call: ToolCallPart, reason: Reason = "tool", *, id: str = "m1"
) -> Interrupt:
    """What a run waits for after a message of the script."""
    return Interrupt(
        call.id,
        reason,
        call,
        metadata={"message_id": id, "message_digest": neutral_digest(message)},
    )


def waiting(name: str = "ask", /, id: str = "c1") -> ToolCallPart:
    """A tool call that waits for the client."""
    return ToolCallPart(id, name, run_by="client")


def says(*content: Any, reason: FinishReason | None = None, usage: int | None = None) -> Message:
    """A model's message."""
    message = Message.model(*content)
    reason = reason or (FinishReason.tool_calls if message.tool_calls else FinishReason.stop)
    return message.replace(
        finish_reason=reason,
        usage=None
        if usage is None
        else Usage(input_tokens=0, output_tokens=usage, total_tokens=usage),
    )


class Script:
    """Answers each model call with the next of `answers`: a message, events, or an exception to be
    told of."""

    def __init__(
        self, *answers: Message | Sequence[Event] | DragomanError, piece: int = 3, ids: str = "m"
    ) -> None:
        """`piece`: length of a delta. `ids`: what the ids of its messages begin with."""
        self.answers = list(answers)
        self.requests: list[ModelRequest] = []
        self.closed = 0
        self.piece, self.ids = piece, ids

    async def __call__(self, request: ModelRequest, _next: Any) -> AsyncIterator[Event]:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        try:
            if isinstance(answer, DragomanError):
                yield RunError(answer)
            elif isinstance(answer, Message):
                number = f"{self.ids}{len(self.requests)}"
                for event in pieces(unfold([answer.replace(id=number)]), self.piece):
                    yield event
            else:
                for event in answer:
                    yield event
        finally:
            self.closed += 1


def pieces(events: Iterable[Event], size: int) -> Iterable[Event]:
    """The same events, their deltas cut into pieces."""
    for event in events:
        if isinstance(event, PartDelta):
            for start in range(0, len(event.delta), size):
                yield PartDelta(event.message_id, event.index, event.delta[start : start + size])
        else:
            yield event


def agent(
    *answers: Any, provider: Provider = PROVIDER, ids: str = "m", **how: Any
) -> tuple[Agent[Any], Script]:
    """An agent whose model follows a script, and the script. `ids`: what the ids of its messages
    begin with."""
    script = Script(*answers, ids=ids)
    return Agent(provider, middleware=[script], **how), script
