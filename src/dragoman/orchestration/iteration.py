"""What one step of an orchestrator gives: events, and the same said as chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from dragoman.event import Event, PartDelta, PartFinished
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Message, ProviderPart, ToolCallPart, ToolResultPart, Usage
from dragoman.result import ChatResult

__all__ = ["Shown", "StreamingIterationResult", "provider_metadata"]


class Shown:
    """Which parts of the message that is being streamed are output, and which are thinking."""

    __slots__ = ("id", "output", "thinking")

    def __init__(self) -> None:
        self.id = ""
        self.output: set[int] = set()
        self.thinking: set[int] = set()


class StreamingIterationResult(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run. `events` is all of it; the rest says what the step means for the run."""

    events: Sequence[Event] = ()
    messages: tuple[Message, ...] = ()
    """Messages that this step finished."""
    should_continue: bool = True
    """`False` on the last step of the run."""
    finish_reason: FinishReason = FinishReason.unspecified
    usage: Usage | None = None
    """Of the model call that this step ended."""
    metadata: dict[str, Any] = {}
    pending: tuple[ToolCallPart, ...] = ()
    """Calls that the client must answer."""
    losses: tuple[Loss, ...] = ()
    """What the requests of the step had to leave out."""
    prefix: str = ""
    """Stands before the step's first output: one newline after tools (D-24). Never in a message."""
    shown: Shown | None = None

    @property
    def output(self) -> str:
        """The step's text, with its prefix."""
        return "".join([chunk.output for chunk in self.chunks()])

    @property
    def thinking(self) -> str | None:
        """The step's thinking."""
        return "".join([chunk.thinking or "" for chunk in self.chunks()]) or None

    def chunks(self) -> Iterator[ChatResult[str]]:
        """The step as `send_stream` gives it: a chunk a delta, then metadata, then messages, or usage alone (D-08)."""
        prefix, shown = self.prefix, self.shown
        if shown is not None:
            message_id, output, thinking = shown.id, shown.output, shown.thinking
            for event in self.events:
                if type(event) is PartDelta:
                    delta: str = event.delta  # pyright: ignore[reportAssignmentType] - text and thinking come as text
                    if event.index in output:
                        yield ChatResult(prefix + delta if prefix else delta, id=message_id)
                        prefix = ""
                    elif event.index in thinking:
                        yield ChatResult("", thinking=delta, metadata={"thinking": delta}, id=message_id)
                elif type(event) is PartFinished and (told := provider_metadata(event.part)):
                    yield ChatResult("", metadata=told, id=message_id)
        if self.metadata:
            yield ChatResult("", metadata=self.metadata, id=shown.id if shown is not None else "")
        if self.messages or self.usage is not None or self.pending or self.losses:
            yield ChatResult(
                "",
                messages=self.messages,
                finish_reason=self.finish_reason,
                usage=self.usage,
                id=shown.id if shown is not None else "",
                pending=self.pending,
                losses=self.losses,
            )


def provider_metadata(part: Content) -> dict[str, Any]:
    """What the provider did by itself, under the tool's name, one event a chunk (D-114, D-148, decision 22)."""
    if isinstance(part, (ToolCallPart, ToolResultPart)) and part.run_by == "provider":
        return {part.name: [msgspec.to_builtins(part)]}
    if isinstance(part, ProviderPart):
        return {part.kind: [msgspec.to_builtins(part)]}
    return {}
