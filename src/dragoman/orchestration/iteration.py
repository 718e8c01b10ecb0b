"""What one step of an orchestrator gives: `StreamingIterationResult`, its events and the same said
as chunks.

Code that wraps a built-in orchestrator reads a step's `output`, and what it puts there counts:
`OutputText` reads the text off events, and `Rewriting` compares it with the step's `output`. Where
they differ, it makes the events and the finished message say what the output says. Neither runs
where nobody wraps a built-in orchestrator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from dragoman.event import (
    Event,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
)
from dragoman.fold import MessageBuilder, arguments_text, parse_call
from dragoman.interrupt import Interrupt
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import (
    Content,
    FinishReason,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.result import ChatResult, ModelCall

__all__ = [
    "WRITTEN_PARTS",
    "text_of",
    "RETURN_RESULT",
    "OutputText",
    "Rewriting",
    "StreamingIterationResult",
    "UNSAID",
    "metadata_of",
    "provider_metadata",
]


RETURN_RESULT = "return_result"
"""The tool whose arguments are the output, where a provider takes no schema for its answers."""


class _Unsaid(str):
    """An output that nobody gave, other than one that is empty."""

    __slots__ = ()


UNSAID = _Unsaid()
"""The output of a step whose events alone say what is shown."""


class StreamingIterationResult(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run.

    An orchestrator that passes on a model's events gives `events` and the finished `messages`; one
    that works with text alone gives `output` and `messages`, and the run tells the events of these.
    One that wraps a built-in orchestrator may change the `output` of its steps: the run's events,
    its messages and its result say then what the output says.
    """

    events: Sequence[Event] = ()
    """What happened, in order."""
    output: str = UNSAID
    """The text that the step shows. Where it is not what the events show, it wins over them; in a
    step without events it is shown as it is, and no newline is put before it."""
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
    metadata: Json = {}
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
        """The step as `send_stream` gives it: a chunk a piece, then metadata, then messages, or
        usage alone."""
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


def provider_metadata(part: Content) -> Json:
    """What the provider did by itself, under the tool's name, one event a chunk."""
    if isinstance(part, (ToolCallPart, ToolResultPart)) and part.run_by == "provider":
        return {_SHOWN.get((part.name, type(part)), part.name): [msgspec.to_builtins(part)]}
    if isinstance(part, ProviderPart):
        return {part.kind: [msgspec.to_builtins(part)]}
    return {}


def metadata_of(messages: Iterable[Message]) -> Json:
    """What the provider did by itself in these messages; of one name the last."""
    metadata: Json = {}
    for message in messages:
        for part in message.content:
            metadata.update(provider_metadata(part))
    return metadata


_Key = tuple[str, int]
WRITTEN_PARTS = (TextPart, ThinkingPart, ToolCallPart)
"""Parts whose deltas are text."""


class OutputText:
    """Reads which text of a run's events is output."""

    def __init__(self) -> None:
        self._texts: dict[_Key, str] = {}

    def read(self, events: Sequence[Event], shows: Callable[[PartStarted], bool]) -> str:
        """The output in the next events. `shows`: whether a part is output."""
        return "".join([self.read_one(event, shows) for event in events])

    def read_one(self, event: Event, shows: Callable[[PartStarted], bool]) -> str:
        """The output in the next event."""
        if isinstance(event, PartStarted):
            if isinstance(event.part, WRITTEN_PARTS) and shows(event):
                self._texts[event.message_id, event.index] = ""
            return ""
        if not isinstance(event, PartDelta | PartFinished):
            return ""
        key = event.message_id, event.index
        text = self._texts.get(key)
        if text is None:
            return ""
        if isinstance(event, PartDelta):
            added = str(event.delta)
        else:
            added = (
                text_of(event.part).removeprefix(text)
                if text_of(event.part).startswith(text)
                else ""
            )
        self._texts[key] = text + added
        return added

    def is_output(self, event: Event) -> bool:
        """Whether an event belongs to a part that is output."""
        if not isinstance(event, PartStarted | PartDelta | PartFinished):
            return False
        return (event.message_id, event.index) in self._texts


class Rewriting:
    """Makes a changed `output` count: in the events, and in the message that they make."""

    def __init__(self) -> None:
        self._original = OutputText()
        self._builder = MessageBuilder()
        self._texts: dict[_Key, str] = {}
        self._started: dict[_Key, PartStarted] = {}
        self._parts = 0
        self._changed = False
        self._waiting = ""
        """Output that came while no text was open: it stands before the next one."""

    def apply(
        self, step: StreamingIterationResult, shows: Callable[[PartStarted], bool]
    ) -> tuple[StreamingIterationResult, Message | None]:
        """A step → the step as its output says, and the message that it finishes where that was
        changed."""
        if not step.events:
            return step, None
        texts = [self._original.read_one(event, shows) for event in step.events]
        text = "".join(texts)
        output = self._waiting + (text if step.output is UNSAID else step.output)
        if output != text:
            self._changed, self._waiting = True, ""
            events = self._with_output(step.events, output)
        else:
            events = self._keep_events(step.events, texts)
        step = msgspec.structs.replace(step, events=events, output=UNSAID)
        finished = next(
            (event.message_id for event in events if isinstance(event, MessageFinished)), None
        )
        original = next((message for message in step.messages if message.id == finished), None)
        if original is None or not self._changed:
            return step, None
        return self._with_message(step, original)

    def as_shown(self, message: Message) -> Message:
        """A message that is not whole yet, with what the output said of it."""
        return (
            message.replace(content=self._builder.message().content) if self._changed else message
        )

    def _with_message(
        self, step: StreamingIterationResult, original: Message
    ) -> tuple[StreamingIterationResult, Message]:
        """The step with the message that its events make, in place of the one that the provider
        sent."""
        self._changed = False
        message = original.replace(content=self._builder.message().content)
        messages = [message if candidate is original else candidate for candidate in step.messages]
        return msgspec.structs.replace(step, messages=messages), message

    def _keep_events(self, events: Sequence[Event], texts: Sequence[str]) -> list[Event]:
        """The events with the text that they have."""
        changed: list[Event] = []
        for event, text in zip(events, texts, strict=True):
            changed += self._add(event, text)
        return changed

    def _with_output(self, events: Sequence[Event], output: str) -> list[Event]:
        """The events with another text: it stands where their first text stood."""
        changed: list[Event] = []
        first = next((index for index, event in enumerate(events) if self._takes_text(event)), None)
        for index, event in enumerate(events):
            if index == first and isinstance(event, PartFinished):
                changed += self._add(PartDelta(event.message_id, event.index, output), output)
            if first is None and output and isinstance(event, MessageFinished):
                changed += self._whole_part(event.message_id, output)
            if isinstance(event, PartDelta) and self._original.is_output(event):
                if index == first and output:
                    changed += self._add(msgspec.structs.replace(event, delta=output), output)
                continue
            changed += self._add(event, "")
        if first is None and not any(isinstance(event, MessageFinished) for event in events):
            self._waiting = output
        return changed

    def _takes_text(self, event: Event) -> bool:
        return isinstance(event, PartDelta | PartFinished) and self._original.is_output(event)

    def _whole_part(self, message_id: str, output: str) -> list[Event]:
        """A text of its own, where the message has no open part."""
        index = self._parts
        part: list[Event] = [
            PartStarted(message_id, index, OpenText()),
            PartDelta(message_id, index, output),
            PartFinished(message_id, index, TextPart(output)),
        ]
        for event in part:
            self._builder.add(event)
        return part

    def _add(self, event: Event, text: str) -> list[Event]:
        """The events to tell in the place of one, which the builder takes. A text begins with its
        first piece: one that the output leaves out is no part of the message."""
        events = [event]
        if isinstance(event, MessageStarted):
            self._builder, self._texts, self._started, self._parts = (
                MessageBuilder(event),
                {},
                {},
                0,
            )
        elif isinstance(event, PartStarted):
            self._parts = max(self._parts, event.index + 1)
            if isinstance(event.part, TextPart) and self._original.is_output(event):
                self._started[event.message_id, event.index] = event
                return []
        elif isinstance(event, PartDelta | PartFinished) and self._original.is_output(event):
            events = self._add_to_output(event, text)
        for added in events:
            self._builder.add(added)
        return events

    def _add_to_output(self, event: PartDelta | PartFinished, text: str) -> list[Event]:
        """The events of a part that is output."""
        key = event.message_id, event.index
        whole = self._texts[key] = self._texts.get(key, "") + text
        start = (
            self._started.pop(key, None)
            if whole or isinstance(event, PartFinished)
            else self._started.get(key)
        )
        if start is not None and not whole:
            return []
        if isinstance(event, PartFinished) and self._changed:
            event = msgspec.structs.replace(event, part=_with_text(event.part, whole))
        return [event] if start is None else [start, event]


def text_of(part: Content) -> str:
    """Returns what the deltas of a part say together: its text, or the arguments of a call."""
    if isinstance(part, TextPart | ThinkingPart):
        return part.text
    if isinstance(part, ToolCallPart):
        return arguments_text(part) if part.state == "complete" else part.raw or ""
    return ""


def _with_text(part: Content, text: str) -> Content:
    """A part with another text; a signature over the old one is left out."""
    if text == text_of(part):
        return part
    if isinstance(part, TextPart | ThinkingPart):
        return type(part)(text)
    if isinstance(part, ToolCallPart):
        return parse_call(msgspec.structs.replace(part, native=None), text)
    return part
