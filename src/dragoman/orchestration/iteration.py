"""What one step of an orchestrator gives: events, and the same said as chunks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.event import Event
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    ProviderPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.result import ChatResult, ModelCall

__all__ = ["UNSAID", "StreamingIterationResult", "metadata_of", "provider_metadata"]


class _Unsaid(str):
    """An output that nobody gave, other than one that is empty."""

    __slots__ = ()


UNSAID = _Unsaid()
"""The output of a step whose events alone say what is shown."""


class StreamingIterationResult(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run.

    An orchestrator that passes on a model's events gives `events` and the finished `messages`; one that
    works with text alone gives `output` and `messages`, and the run tells the events of these. One that wraps a
    built-in orchestrator may change the `output` of its steps: the run's events, its messages and its result say then what the output says.
    """

    events: Sequence[Event] = ()
    """What happened, in order."""
    output: str = UNSAID
    """The text that the step shows. Where it is not what the events show, it wins over them; in a step without events it is shown as it is, and no
    newline is put before it."""
    messages: Sequence[Message] = ()
    """Messages that this step finished."""
    should_continue: bool = True
    """Of an iteration's last step: whether the model is called again."""
    finish_reason: FinishReason = FinishReason.unspecified
    """Of the message that it ends."""
    usage: Usage | None = None
    """Of the model call that this step ended."""
    calls: tuple[ModelCall, ...] = ()
    """The model calls that have ended by now and no earlier step had. The run fills it in."""
    metadata: dict[str, Any] = {}
    """What the provider said beside its message."""
    pending: tuple[Interrupt, ...] = ()
    """What the run waits for."""
    losses: tuple[Loss, ...] = ()
    """What the requests of the step had to leave out."""
    pieces: Sequence[ChatResult[str]] = ()
    """What of it is shown, a chunk each. The run fills it in, where chunks are wanted."""
    message_id: str = ""
    """Id of the model's message that is being told. The run fills it in, with the pieces."""

    def chunks(self) -> Iterator[ChatResult[str]]:
        """The step as `send_stream` gives it: a chunk a piece, then metadata, then messages, or usage alone."""
        chunks = [*self.pieces]
        if self.metadata:
            chunks.append(ChatResult("", metadata=self.metadata, id=self.message_id))
        if self.messages or self.usage is not None or self.pending or self.losses:
            chunks.append(
                ChatResult(
                    "",
                    messages=tuple(self.messages),
                    finish_reason=self.finish_reason,
                    usage=self.usage,
                    id=self.message_id,
                    pending=self.pending,
                    losses=self.losses,
                    calls=self.calls,
                )
            )
        return iter(chunks)


_SHOWN: Mapping[tuple[str, type[Content]], str] = {
    ("codeExecution", ToolCallPart): "executable_code",
    ("codeExecution", ToolResultPart): "code_execution_result",
}
"""Name and kind of what a provider ran → its key in metadata, where that is not the name."""


def provider_metadata(part: Content) -> dict[str, Any]:
    """What the provider did by itself, under the tool's name, one event a chunk."""
    if isinstance(part, (ToolCallPart, ToolResultPart)) and part.run_by == "provider":
        return {_SHOWN.get((part.name, type(part)), part.name): [msgspec.to_builtins(part)]}
    if isinstance(part, ProviderPart):
        return {part.kind: [msgspec.to_builtins(part)]}
    return {}


def metadata_of(messages: Iterable[Message]) -> dict[str, Any]:
    """What the provider did by itself in these messages; of one name the last."""
    metadata: dict[str, Any] = {}
    for message in messages:
        for part in message.content:
            metadata.update(provider_metadata(part))
    return metadata
