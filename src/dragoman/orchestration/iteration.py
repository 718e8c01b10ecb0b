"""The steps that an orchestrator yields: `StreamingIterationResult`, with its events and its
chunks.

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
    "read_text",
    "RETURN_RESULT",
    "OutputText",
    "Rewriting",
    "StreamingIterationResult",
    "UNSAID",
    "collect_metadata",
    "provider_metadata",
]


RETURN_RESULT = "return_result"
"""The tool whose arguments are the output, where a provider takes no schema for its answers."""


class _Unsaid(str):
    """Marks an output that was not given, as opposed to an empty one."""

    __slots__ = ()


UNSAID = _Unsaid()
"""The output of a step whose events alone say what is shown."""


class StreamingIterationResult(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a run: events, output, finished messages.

    An orchestrator that passes on a model's events gives `events` and the finished `messages`; one
    that works with text alone gives `output` and `messages`, and the run tells the events of these.
    One that wraps a built-in orchestrator may change the `output` of its steps: the run's events,
    its messages and its result say then what the output says.
    """

    events: Sequence[Event] = ()
    """Events, in order."""
    output: str = UNSAID
    """Text that the step shows. If it differs from what the events show, it wins. In a step without
    events it is shown as it is, without a newline before it."""
    messages: Sequence[Message] = ()
    """Messages that this step finished."""
    should_continue: bool = True
    """In the last step of an iteration: True if the model is called again."""
    finish_reason: FinishReason = FinishReason.unspecified
    """Finish reason of the message that it ends."""
    usage: Usage | None = None
    """Usage of the model call that it ends."""
    calls: tuple[ModelCall, ...] = ()
    """Model calls that have ended since the last step. The run fills it in."""
    metadata: Json = {}
    """Metadata of the provider's response."""
    pending: tuple[Interrupt, ...] = ()
    """Interrupts that the run waits for."""
    losses: tuple[Loss, ...] = ()
    """Losses of the step's requests."""
    pieces: Sequence[ChatResult[str]] = ()
    """Visible output, one chunk each. The run fills it in if chunks are wanted."""
    message_id: str = ""
    """Id of the model's present message. The run fills it in with the pieces."""

    def chunks(self) -> Iterator[ChatResult[str]]:
        """Returns the step as chunks of `send_stream`: one per piece, then metadata, then messages
        and usage."""
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


_METADATA_KEYS: Mapping[tuple[str, type[Content]], str] = {
    ("codeExecution", ToolCallPart): "executable_code",
    ("codeExecution", ToolResultPart): "code_execution_result",
}
"""Name and type of a part of a provider's tool → its metadata key, if that is not the name."""


def provider_metadata(part: Content) -> Json:
    """Returns what the provider ran itself in an iteration's step, as metadata under the tool's
    name."""
    if isinstance(part, (ToolCallPart, ToolResultPart)) and part.run_by == "provider":
        return {_METADATA_KEYS.get((part.name, type(part)), part.name): [msgspec.to_builtins(part)]}
    if isinstance(part, ProviderPart):
        return {part.kind: [msgspec.to_builtins(part)]}
    return {}


def collect_metadata(messages: Iterable[Message]) -> Json:
    """Returns what the provider ran itself in these messages of an iteration; the last of each name
    counts."""
    metadata: Json = {}
    for message in messages:
        for part in message.content:
            metadata.update(provider_metadata(part))
    return metadata


_PartKey = tuple[str, int]
WRITTEN_PARTS = (TextPart, ThinkingPart, ToolCallPart)
"""Parts whose deltas are text."""


class OutputText:
    """Reads from a run's events the text that is output."""

    def __init__(self) -> None:
        self._texts: dict[_PartKey, str] = {}

    def read(self, events: Sequence[Event], shows: Callable[[PartStarted], bool]) -> str:
        """Returns the output in the next events. `shows`: True for a part that is output."""
        return "".join([self.read_one(event, shows) for event in events])

    def read_one(self, event: Event, shows: Callable[[PartStarted], bool]) -> str:
        """Returns the output of an iteration in the next event."""
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
        added = ""
        if isinstance(event, PartDelta):
            added = str(event.delta)
        elif (whole := read_text(event.part)).startswith(text):
            added = whole[len(text) :]
        self._texts[key] = text + added
        return added

    def is_output(self, event: Event) -> bool:
        """True if an event of an iteration belongs to a part that is output."""
        if not isinstance(event, PartStarted | PartDelta | PartFinished):
            return False
        return (event.message_id, event.index) in self._texts


class Rewriting:
    """Applies an `output` that an orchestrator changed to the events and to their message."""

    def __init__(self) -> None:
        """Starts without events of a message whose output process_iteration may rewrite."""
        self._original = OutputText()
        self._builder = MessageBuilder()
        self._texts: dict[_PartKey, str] = {}
        self._started: dict[_PartKey, PartStarted] = {}
        self._parts = 0
        self._changed = False
        self._waiting = ""
        """Output that came while no text was open: it stands before the next one."""

    def apply(
        self, step: StreamingIterationResult, shows: Callable[[PartStarted], bool]
    ) -> tuple[StreamingIterationResult, Message | None]:
        """Returns the iteration's step with its events changed to match its output, and the message
        that it ends if that changed."""
        if not step.events:
            return step, None
        texts = [self._original.read_one(event, shows) for event in step.events]
        text = "".join(texts)
        output = self._waiting + (text if step.output is UNSAID else step.output)
        if output != text:
            self._changed, self._waiting = True, ""
            events = self._rewrite_events(step.events, output)
        else:
            events = self._copy_events(step.events, texts)
        step = msgspec.structs.replace(step, events=events, output=UNSAID)
        finished = next(
            (event.message_id for event in events if isinstance(event, MessageFinished)), None
        )
        original = next((message for message in step.messages if message.id == finished), None)
        if original is None or not self._changed:
            return step, None
        return self._replace_message(step, original)

    def rewrite_message(self, message: Message) -> Message:
        """Returns a message of the model that a failed or cancelled step left unfinished, with the
        text that users were shown if process_iteration has rewritten the step's output."""
        if not self._changed:
            return message
        return message.replace(content=self._builder.message().content)

    def _replace_message(
        self, step: StreamingIterationResult, original: Message
    ) -> tuple[StreamingIterationResult, Message]:
        """Returns the step with the message that its events make in place of the provider's."""
        self._changed = False
        message = original.replace(content=self._builder.message().content)
        messages = [message if candidate is original else candidate for candidate in step.messages]
        return msgspec.structs.replace(step, messages=messages), message

    def _copy_events(self, events: Sequence[Event], texts: Sequence[str]) -> list[Event]:
        """Returns the iteration's events with their own text."""
        changed: list[Event] = []
        for event, text in zip(events, texts, strict=True):
            changed += self._add_event(event, text)
        return changed

    def _rewrite_events(self, events: Sequence[Event], output: str) -> list[Event]:
        """Returns the iteration's events with another text in the place of their first one."""
        changed: list[Event] = []
        first = next(
            (index for index, event in enumerate(events) if self._is_output_text(event)), None
        )
        for index, event in enumerate(events):
            if index == first and isinstance(event, PartFinished):
                changed += self._add_event(PartDelta(event.message_id, event.index, output), output)
            if first is None and output and isinstance(event, MessageFinished):
                changed += self._insert_part(event.message_id, output)
            if isinstance(event, PartDelta) and self._original.is_output(event):
                if index == first and output:
                    changed += self._add_event(msgspec.structs.replace(event, delta=output), output)
                continue
            changed += self._add_event(event, "")
        if first is None and not any(isinstance(event, MessageFinished) for event in events):
            self._waiting = output
        return changed

    def _is_output_text(self, event: Event) -> bool:
        """True if an event carries text of the output."""
        return isinstance(event, PartDelta | PartFinished) and self._original.is_output(event)

    def _insert_part(self, message_id: str, output: str) -> list[Event]:
        """Returns the events of a new text part for the output that an iteration rewrote, for a
        message without an open one."""
        index = self._parts
        part: list[Event] = [
            PartStarted(message_id, index, OpenText()),
            PartDelta(message_id, index, output),
            PartFinished(message_id, index, TextPart(output)),
        ]
        for event in part:
            self._builder.add(event)
        return part

    def _add_event(self, event: Event, text: str) -> list[Event]:
        """Passes an event of the iteration to the builder and returns the events to show. A text
        part starts with its first piece, so that one without output leaves no trace."""
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
        """Returns the events to show for an event of an output part, whose text an iteration may
        rewrite."""
        key = event.message_id, event.index
        whole = self._texts[key] = self._texts.get(key, "") + text
        start = self._started.get(key)
        if whole or isinstance(event, PartFinished):
            self._started.pop(key, None)
        if start is not None and not whole:
            return []
        if isinstance(event, PartFinished) and self._changed:
            event = msgspec.structs.replace(event, part=_replace_text(event.part, whole))
        if start is None:
            return [event]
        return [start, event]


def read_text(part: Content) -> str:
    """Returns the text of an iteration's part, which its deltas form: its text, or the arguments of
    a call."""
    if isinstance(part, TextPart | ThinkingPart):
        return part.text
    if isinstance(part, ToolCallPart):
        return arguments_text(part) if part.state == "complete" else part.raw or ""
    return ""


def _replace_text(part: Content, text: str) -> Content:
    """Returns a part, whose output an iteration rewrote, with another text and without a signature
    over the old one."""
    if text == read_text(part):
        return part
    if isinstance(part, TextPart | ThinkingPart):
        return type(part)(text)
    if isinstance(part, ToolCallPart):
        return parse_call(msgspec.structs.replace(part, native=None), text)
    return part
