"""Turns the events of a model call into the events that a run shows (`Intake`) and into a message
(`MessageAccumulator`).

`MessageAccumulator` is the seeds' extension point: a builder of one message, which a user may
replace. `Intake` feeds it, holds back the start of a message until something is in it, joins the
calls of a turn that the provider paused, and drops other candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from typing import Any, TypeGuard

import msgspec

from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    StateDelta,
    StateSnapshot,
)
from dragoman.fold import MessageBuilder, unfold
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Message, TextPart, ToolCallPart, Usage
from dragoman.result import ModelCall
from dragoman.tools.shared_state import SharedState

__all__ = [
    "Intake",
    "MessageAccumulator",
]


class MessageAccumulator(MessageBuilder):
    """Builds the message of a model call from its events: `add` each one, then `message()`. Takes
    linear time.

    `accumulate` and `consolidate` are the seeds' way, on messages. A subclass that overrides one of
    them has it called: the first with each piece of text as it comes and with every other part when
    it is whole, the second at the end. What they make is the message's content and metadata; the
    rest of it is the provider's.
    """

    provider_hint = "default"
    """For whom it is made."""
    _overridden = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        base = MessageAccumulator
        cls._overridden = (
            cls.accumulate is not base.accumulate or cls.consolidate is not base.consolidate
        )

    def _begin(self, start: MessageStarted | None) -> None:
        """Resets the message accumulator for the next message."""
        super()._begin(start)
        self._chunks: list[Message] = []
        self._accumulated: Message | None = None
        self._streamed: set[int] = set()

    def add(self, event: Event) -> None:
        """Takes the next event of a model call."""
        super().add(event)
        if self._overridden and (part := self._event_content(event)) is not None:
            chunk = Message.model(part)
            self._chunks.append(chunk)
            self._accumulated = self.accumulate(self._accumulated or Message.model(), chunk)

    def _event_content(self, event: Event) -> Content | None:
        """Returns the content that an event adds, a piece of text or a finished part, or None."""
        if not isinstance(event, PartDelta | PartFinished) or event.message_id != self._id:
            return None
        if isinstance(event, PartFinished):
            # A text that was streamed was added piece by piece already.
            if isinstance(event.part, TextPart) and event.index in self._streamed:
                return None
            return event.part
        if (
            not event.delta
            or event.index not in self._deltas
            or not isinstance(self._parts[event.index], TextPart)
        ):
            return None
        self._streamed.add(event.index)
        return TextPart(str(event.delta))

    def message(self) -> Message:
        """Returns the message that the events of a model call make so far."""
        built = super().message()
        if self._accumulated is None:
            return built
        plain = MessageAccumulator()
        consolidated = self.consolidate(self._accumulated)
        # The overriding methods changed nothing: the built message has more than chunks can hold,
        # such as signatures and the borders between texts.
        if consolidated == plain.consolidate(reduce(plain.accumulate, self._chunks)):
            return built
        signed_texts: dict[str, Content] = {
            part.text: part for part in built.content if isinstance(part, TextPart) and part.native
        }
        content = [
            signed_texts.get(getattr(part, "text", ""), part)
            if isinstance(part, TextPart)
            else part
            for part in consolidated.content
        ]
        return built.replace(
            content=tuple(content), metadata={**built.own_metadata, **consolidated.own_metadata}
        )

    def accumulate(self, existing: Message | None, chunk: Message) -> Message:
        """Accumulates a message: returns it with a chunk added.

        With nothing before, the chunk is the message. A call whose id is there already is merged,
        new name and arguments winning where they are not empty. Other parts are appended, metadata
        is merged, the role stays.
        """
        if existing is None or not existing.content:
            return chunk
        changes: Json = {"metadata": {**existing.metadata, **chunk.metadata}}
        for name in ("id", "created_at", "origin", "finish_reason", "usage", "native"):
            changes[name] = getattr(chunk, name) or getattr(existing, name)
        if not any(isinstance(part, ToolCallPart) for part in chunk.content):
            return existing.replace(content=existing.content + chunk.content, **changes)
        content: list[Content] = list(existing.content)
        position_of = {
            part.id: index
            for index, part in enumerate(content)
            if isinstance(part, ToolCallPart) and part.id
        }
        for part in chunk.content:
            if isinstance(part, ToolCallPart) and part.id in position_of:
                content[position_of[part.id]] = _merge_call(content[position_of[part.id]], part)
            else:
                if isinstance(part, ToolCallPart) and part.id:
                    position_of[part.id] = len(content)
                content.append(part)
        return existing.replace(content=tuple(content), **changes)

    def consolidate(self, message: Message) -> Message:
        """Returns the accumulated message with neighbouring plain texts joined. Texts with native
        fields and all other parts stay as they are."""
        content: list[Content] = []
        texts: list[str] = []

        def flush() -> None:
            if texts:
                content.append(TextPart("".join(texts)))
                texts.clear()

        for part in message.content:
            if isinstance(part, TextPart) and not part.native:
                texts.append(part.text)
            else:
                flush()
                content.append(part)
        flush()
        return message.replace(content=tuple(content))


def _merge_call(old: Content, new: ToolCallPart) -> ToolCallPart:
    """Returns an accumulated tool call with a new name and new arguments, where they are not
    empty."""
    assert isinstance(old, ToolCallPart)
    # Text, state and arguments belong together.
    source = new if new.arguments else old
    return ToolCallPart(
        new.id,
        new.name or old.name,
        source.arguments,
        source.raw,
        source.state,
        old.run_by,
        new.native or old.native,
    )


class Intake:
    """Takes the events of one message: of one model call, or of several if the provider paused its
    turn.

    The message's start is held until something stands in it, so that an empty message leaves no
    trace; its end is kept in `finish`, for the orchestrator to tell. Other candidates are left out.
    """

    def __init__(
        self,
        accumulator: MessageAccumulator,
        losses: dict[Loss, None],
        client_tools: Collection[str] = (),
        *,
        calls: list[ModelCall] | None = None,
        run_id: str = "",
        turn: str | None = "",
        shared: SharedState | None = None,
    ) -> None:
        """Creates the intake. `client_tools`: names of tools that the client runs; their calls are
        marked. `calls`: gets each model call when it ends, under `run_id`. `turn`: turn of the
        message; `None`: it begins one; empty: unknown. `shared`: follows the state that a remote
        agent reports."""
        self.accumulator = accumulator
        self.message_id = ""
        self.held: MessageStarted | None = None
        self.finish: MessageFinished | None = None
        self.error: DragomanError | None = None
        self.losses = losses
        """Losses of the requests, each once and in order."""
        self.calls = [] if calls is None else calls
        self._run_id, self._turn, self._shared = run_id, turn, shared
        self._answering: MessageStarted | None = None
        self._client_tools = client_tools
        self._plain = type(accumulator) is MessageAccumulator
        self._shown = accumulator if self._plain else MessageBuilder()
        self._builders = tuple(dict.fromkeys((accumulator, self._shown)))
        self._others: set[str] = set()
        self._paused: MessageFinished | None = None
        self._offset = 0

    def feed(self, events: Sequence[Event]) -> Sequence[Event]:
        """Takes the events of one network read and returns those to show now."""
        # The fast path: nothing begins or ends, and no accumulator of the user's looks at each
        # event.
        if self._plain and self._paused is None and not self._others and _are_deltas(events):
            self.accumulator.add_deltas(events)
            return events
        passed: list[Event] = []
        deltas: list[PartDelta] = []
        pass_on, other_candidates = passed.append, self._others
        for event in events:
            if self._paused is not None:
                event = self._move_to_paused(event)
            if type(event) is PartDelta:
                if event.message_id not in other_candidates:
                    deltas.append(event)
                    pass_on(event)
                continue
            if deltas:
                self._add_deltas(deltas)
                deltas = []
            if type(event) is RunError:
                self.error = event.error
                break
            if self._is_passed_on(event := self._mark_client_call(event), pass_on):
                self._add(event)
                pass_on(event)
        if deltas:
            self._add_deltas(deltas)
        return passed

    def cut(self, reason: FinishReason) -> list[Event]:
        """Ends an accumulated message in its middle and returns the closing events; none if nothing
        of it was shown."""
        if not self.has_shown:
            return []
        closed: list[Event] = []
        # Each builder was fed the same events, so the last one closes what all of them have open.
        for builder in self._builders:
            closed = [*builder.cut()]
        last = self.finish or self._paused or MessageFinished(self.message_id, FinishReason.pause)
        if last.finish_reason is FinishReason.pause:
            self.finish = msgspec.structs.replace(last, finish_reason=reason)
            self._add(self.finish)
        return [*closed, *self.end()]

    @property
    def has_shown(self) -> bool:
        """True if some of the message was shown."""
        return self.held is None and bool(self.message_id)

    def end(self) -> list[Event]:
        """Returns the events that end the accumulated message. If a custom accumulator changed it,
        they retract it and show the changed one."""
        if self.finish is None:
            return []
        is_custom = self._shown is not self.accumulator
        if is_custom and (message := self.message()) != self._shown.message():
            events = unfold([message])
            if self.held is None:
                events.insert(0, MessageDropped(self.message_id, "rewritten"))
            return events
        events: list[Event] = [self.finish]
        if self.held is not None:
            events.insert(0, self.held)
        return events

    def resume(self) -> Message:
        """Continues the accumulated message after the provider paused its turn. Returns the message
        so far."""
        message = self.message()
        self._paused, self.finish = self.finish, None
        self._offset = len(message.content)
        return message

    def message(self) -> Message:
        """Returns the message so far: content from the accumulator, all other fields from the
        provider."""
        message = self.accumulator.message()
        if self._shown is self.accumulator:
            return message
        return self._shown.message().replace(content=message.content, metadata=message.own_metadata)

    def _add_deltas(self, deltas: Sequence[PartDelta]) -> None:
        """Passes deltas of a model call to the accumulators of message and output."""
        if self._plain:
            self.accumulator.add_deltas(deltas)
        else:
            for delta in deltas:
                self._add(delta)

    def _add(self, event: Event) -> None:
        """Passes an event to the accumulators."""
        for builder in self._builders:
            builder.add(event)

    def _is_passed_on(self, event: Event, pass_on: Callable[[Event], Any]) -> bool:
        """Takes an event other than a delta. Returns True if it is shown as it is."""
        if isinstance(event, MessageStarted):
            self.losses |= dict.fromkeys(event.losses)
            if event.candidate:
                self._others.add(event.message_id)
                return False
            self._answering = event
            # A later call of a paused turn goes on in the same message: its own start is not told.
            if not self._paused:
                if event.turn is None and self._turn != "":
                    event = msgspec.structs.replace(event, turn=self._turn or event.message_id)
                self.message_id = event.message_id
                self.held = event
                self._add(event)
            return False
        if getattr(event, "message_id", "") in self._others:
            return False
        if isinstance(event, MessageFinished):
            self.losses |= dict.fromkeys(event.losses)
            self.end_call(event)
            self.finish = self._sum_usage(event)
            self._add(self.finish)
            return False
        if isinstance(event, MessageDropped):
            self.end_call()
            self._add(event)
            if self.held is None:
                pass_on(event)
            self.message_id, self._offset = "", 0
            self.held = self.finish = self._paused = None
            return False
        if isinstance(event, StateSnapshot | StateDelta) and self._shared is not None:
            self._shared.follow(event)
        if self.held is not None:
            pass_on(self.held)
            self.held = None
        return True

    def end_call(self, finish: MessageFinished | None = None) -> None:
        """Records that a model call of the accumulated message has ended. Without `finish` the call
        was abandoned, and its usage is unknown."""
        start, self._answering = self._answering, None
        if finish is not None:
            origin, time = finish.origin or (start and start.origin), start and start.created_at
            self.calls.append(
                ModelCall(origin, finish.usage, self._run_id, time, finish.cached, finish.native)
            )
        elif start is not None:
            self.calls.append(ModelCall(start.origin, None, self._run_id, start.created_at))

    def _mark_client_call(self, event: Event) -> Event:
        """Returns the event of an accumulated message with a complete call of a client's tool
        marked as the client's."""
        if not isinstance(event, PartStarted | PartFinished) or not isinstance(
            call := event.part, ToolCallPart
        ):
            return event
        if (
            call.name not in self._client_tools
            or call.run_by != "agent"
            or call.state != "complete"
        ):
            return event
        return msgspec.structs.replace(event, part=msgspec.structs.replace(call, run_by="client"))

    def _move_to_paused(self, event: Event) -> Event:
        """Returns an event of a later model call as one of the accumulated message, which the
        provider paused, with its indexes shifted."""
        message_id = getattr(event, "message_id", None)
        if message_id is None or message_id in self._others or isinstance(event, MessageStarted):
            return event
        changes: Json = {"message_id": self.message_id}
        index: int | None = getattr(event, "index", None)
        if index is not None:
            changes["index"] = index + self._offset
        return msgspec.structs.replace(event, **changes)

    def _sum_usage(self, finish: MessageFinished) -> MessageFinished:
        """Returns the end of the accumulated message with the usage of all its calls and the prefix
        of the first."""
        paused = self._paused
        if paused is None:
            return finish
        usage = (paused.usage or Usage()) + (finish.usage or Usage())
        origin = finish.origin
        if origin is not None and paused.origin is not None:
            origin = msgspec.structs.replace(origin, prefix=paused.origin.prefix)
        return msgspec.structs.replace(finish, usage=usage, origin=origin)


def _are_deltas(events: Sequence[Event]) -> TypeGuard[Sequence[PartDelta]]:
    """True if all events to accumulate are deltas, as in nearly every network read."""
    for event in events:  # noqa: SIM110 - at a third of the cost of a generator
        if type(event) is not PartDelta:
            return False
    return True
