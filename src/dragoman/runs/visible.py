"""Filters the events of a run: only what its client may see is left.

It hides calls that the agent runs itself and their results, runs of agents within its tools,
messages that the run writes to its own model, text of a typed run that is not yet valid, and what is
retracted. Everything else passes unchanged.

Most clients cannot take text back, and want one message as the answer. For them the messages of the
model are joined into one (`_is_joined`): the first message starts it, later ones add parts under new
indexes, and it ends with the run. The text of a typed run is withheld until the run succeeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TypeGuard

import msgspec

from dragoman.codec.marks import read_interrupt
from dragoman.codec.opening import hide_opening
from dragoman.errors import DragomanError, StreamCutError
from dragoman.event import (
    PARTS_DROPPED,
    Custom,
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolStarted,
    is_log_mark,
)
from dragoman.fold import arguments_text, part_events
from dragoman.inner_runs import InnerRuns
from dragoman.message import (
    Content,
    FinishReason,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.orchestration.iteration import RETURN_RESULT
from dragoman.runs.seen import SeenMessage, SeenPart

__all__ = [
    "Visible",
    "visible",
]


_replace = msgspec.structs.replace


def visible(events: Iterable[Event], retractable: bool = False) -> Iterator[Event]:
    """Yields the events of a run that its client may see, each as soon as possible.

    By default the model's messages of a run become one message, as in the response of every wire:
    with the id of the first, the texts joined as in the run's output, and the usage of all. If a
    message is retracted after some of its text or a call was sent, the run ends with a
    `StreamCutError`. The answer of a typed run is sent once it is valid.

    For events that arrive asynchronously use `Visible`.

    Args:
        events: the events of a run.
        retractable: the client can take messages back. Messages then stay apart, and
            `MessageDropped` is passed on, also for an answer of a typed run that is not valid.
    """
    view = Visible(retractable=retractable)
    for event in events:
        yield from view.feed(event)
    yield from view.close()


class Visible:
    """The filter of `visible` for one event at a time."""

    def __init__(
        self, *, retractable: bool = False, calls: bool = False, drops_parts: bool = False
    ) -> None:
        """Creates the filter. `retractable`: the client can take messages back. `calls`: the client
        runs all calls, so none is hidden. `drops_parts`: parts of the joined message can be taken back
        with a `Custom(PARTS_DROPPED, indexes)`, so that the answer goes on."""
        self._drops_parts = drops_parts
        self._retractable = retractable
        self._calls = calls
        self._inner = InnerRuns()
        self._reset_run(None)

    def _reset_run(self, run: RunStarted | None) -> None:
        """Begins a run. `run`: its start, or None if there is none."""
        self._run_id = None if run is None else run.run_id
        self._typed = None if run is None else run.typed
        self._in_step = self._is_over = self._after_tools = False
        self._messages: dict[str, SeenMessage] = {}
        self._answer: MessageStarted | None = None
        """The start of the joined message, once it was sent."""
        self._next_index = 0
        """Index of the next part of the joined message."""
        self._last_message: SeenMessage | None = None
        """The latest message of the model."""
        self._spoken_by: SeenMessage | None = None
        """The message whose text was sent last."""
        self._usage: Usage | None = None
        self._withheld: dict[tuple[str, int], Content | None] = {}
        """Parts of a typed run that may not be valid, by message id and index; None for a part that
        has not ended."""

    def feed(self, event: Event) -> list[Event]:
        """Takes the next event and returns what of it is visible. Returns the events that the
        client may see now."""
        # Deltas come first, because nearly all events of a stream are deltas.
        if isinstance(event, PartDelta):
            return [] if self._is_over else self._feed_delta(event)
        # Runs of agents within tools are not the client's to see.
        if self._inner.has(event):
            return []
        if isinstance(event, RunStarted):
            ended = self.close()
            self._reset_run(event)
            return [*ended, event]
        if self._is_over:
            return []
        if isinstance(event, PartStarted):
            return self._feed_part_start(event)
        if isinstance(event, PartFinished):
            return self._feed_part_end(event)
        if isinstance(event, MessageStarted):
            return self._feed_message_start(event)
        if isinstance(event, MessageFinished):
            return self._feed_message_end(event)
        if isinstance(event, MessageDropped):
            return self._feed_message_drop(event)
        if isinstance(event, RunFinished | RunError):
            return self._feed_run_end(event)
        if isinstance(event, StepStarted | StepFinished):
            self._in_step = isinstance(event, StepStarted)
            if self._in_step:
                return [*self._drop_void_answers(), event]
            return [event]
        if type(event) is ToolStarted or is_log_mark(event):
            return []
        return [event]

    def close(self) -> list[Event]:
        """Ends the visible events. Returns the end of the message that is still open; nothing after
        `RunFinished` or `RunError`."""
        ended = [] if self._is_over else self._end_answer(None)
        self._is_over = True
        return ended

    def _feed_message_start(self, event: MessageStarted) -> list[Event]:
        """Filters the start of a message for what is visible. Its start is sent with its first
        visible part."""
        is_model = event.role is Role.MODEL
        # Within a step, messages that are not the model's are written by the run for its model.
        if event.candidate == 0 and (is_model or not self._in_step):
            # The system text that an answer notes is not for clients.
            event = _replace(event, native=hide_opening(event.native))
            message = self._messages[event.message_id] = SeenMessage(event)
            if is_model:
                self._last_message = message
        return []

    def _feed_part_start(self, event: PartStarted) -> list[Event]:
        """Filters the start of a part for what is visible. Text is sent only with its first
        delta."""
        message, part = self._messages.get(event.message_id), event.part
        if isinstance(part, ToolResultPart) and part.run_by != "provider":
            self._after_tools = True
        if message is None:
            return []
        message.is_empty = False
        if (seen := self._visible_part(message, part)) is None:
            return []
        # The text of a typed run is sent once the whole answer is valid.
        if self._typed is not None and isinstance(seen, TextPart) and self._is_joined(message):
            self._withheld[event.message_id, event.index] = None
            return []
        seen_part = message.parts[event.index] = SeenPart(seen)
        # No text may come.
        if isinstance(seen, OpenText):
            return []
        return self._start_part(message, event.index, seen_part)

    def _start_part(self, message: SeenMessage, index: int, seen_part: SeenPart) -> list[Event]:
        """Returns the start of a part and, if needed, the start of its message before it."""
        if seen_part.index is not None:
            return []
        begun = self._start_message(message)
        message.has_answer = message.has_answer or not isinstance(seen_part.part, ThinkingPart)
        message.has_client_calls = message.has_client_calls or (
            isinstance(seen_part.part, ToolCallPart) and self._runs_at_client(seen_part.part)
        )
        seen_part.index = index
        if self._is_joined(message):
            seen_part.index, self._next_index = self._next_index, self._next_index + 1
        return [*begun, PartStarted(message.sent_as, seen_part.index, seen_part.part)]

    def _feed_delta(self, event: PartDelta) -> list[Event]:
        """Filters a delta for what is visible. In the common case it passes unchanged."""
        message = self._messages.get(event.message_id)
        if message is None:
            seen_part = None
        else:
            seen_part = message.parts.get(event.index)
        if message is None or seen_part is None or seen_part.deltas is None or not event.delta:
            return []
        seen_part.deltas.append(event.delta)
        if (
            seen_part.separator == ""
            and seen_part.index == event.index
            and message.sent_as == event.message_id
        ):
            return [event]
        started = self._start_part(message, event.index, seen_part)
        if seen_part.separator is None:
            before = self._text_separator(message, seen_part)
        else:
            before = ""
        if before:
            delta = before + str(event.delta)
        else:
            delta = event.delta
        return [*started, PartDelta(message.sent_as, seen_part.index or 0, delta)]

    def _feed_part_end(self, event: PartFinished) -> list[Event]:
        """Filters the end of a part: the agent's own calls are hidden."""
        key, part = (event.message_id, event.index), event.part
        if self._typed == "call" and _is_result_call(part):
            part = _result_as_text(part)
        if key in self._withheld:
            self._withheld[key] = part
        message = self._messages.get(event.message_id)
        if message is None:
            seen_part = None
        else:
            seen_part = message.parts.get(event.index)
        if message is None or seen_part is None or part is None:
            return []
        started = self._start_part(message, event.index, seen_part)
        if isinstance(part, TextPart):
            if seen_part.separator is None:
                before = self._text_separator(message, seen_part)
            else:
                before = seen_part.separator
            if before:
                part = _replace(part, text=before + part.text)
        elif isinstance(part, ToolCallPart) and part.run_by == "agent" and not self._calls:
            # The call cannot run, but its start was sent as a call for the client.
            part = _replace(part, run_by="client")
        seen_part.deltas = None
        return [*started, PartFinished(message.sent_as, seen_part.index or 0, part)]

    def _feed_message_end(self, event: MessageFinished) -> list[Event]:
        """Filters the end of a message for what is visible. A joined message ends only with the
        run."""
        message = self._messages.get(event.message_id)
        if message is None:
            return []
        message.finish = event
        if message.start.role is Role.MODEL and event.usage is not None:
            if self._usage is None:
                self._usage = event.usage
            else:
                self._usage = self._usage + event.usage
        if self._is_joined(message):
            cut = message.cut()
            message.parts.clear()
            return cut
        if not message.sent_as and not message.is_empty:
            return []
        return [
            *self._start_message(message),
            _replace(
                event, finish_reason=_finish_reason(event, None, waits=message.has_client_calls)
            ),
        ]

    def _feed_message_drop(self, event: MessageDropped) -> list[Event]:
        """Filters the retraction of a message for clients that cannot withdraw text."""
        message = self._messages.pop(event.message_id, None)
        if message is None:
            return []
        self._withheld = {
            key: part for key, part in self._withheld.items() if key[0] != event.message_id
        }
        if self._last_message is message:
            self._last_message = None
        if not self._is_joined(message):
            return [event] if message.sent_as else []
        if self._drops_parts:
            indexes = [seen.index for seen in message.parts.values() if seen.index is not None]
            return [*message.cut(), Custom(PARTS_DROPPED, indexes)] if indexes else []
        # Only thinking was sent, which may stand without an answer.
        if not message.has_answer:
            return message.cut()
        why = f"after a part of the answer was sent it began again, which this client cannot be told ({event.reason})"
        error = StreamCutError(f"{why}; send the request again")
        return [*message.cut(), *self._feed_run_end(RunError(error, self._run_id))]

    def _drop_void_answers(self) -> list[Event]:
        """Drops the answers of a typed run when its model is called again: they were not valid."""
        self._withheld.clear()
        if not (self._typed and self._retractable):
            return []
        void = [message.start for message in self._messages.values() if message.has_answer]
        answers = [start.message_id for start in void if start.role is Role.MODEL]
        return [
            event
            for message_id in answers
            for event in self._feed_message_drop(MessageDropped(message_id, "no valid answer"))
        ]

    def _feed_run_end(self, event: RunFinished | RunError) -> list[Event]:
        """Filters the end of the run for what is visible. A withheld answer is sent first if the
        run succeeded."""
        answer: list[Event] = []
        if isinstance(event, RunFinished) and event.outcome == "success":
            withheld, self._withheld, self._typed = self._withheld, {}, None
            whole = [
                part_event
                for key, part in withheld.items()
                if part is not None
                for part_event in part_events(*key, part)
            ]
            answer = [seen for part_event in whole for seen in self.feed(part_event)]
        ended = self._end_answer(event)
        self._is_over = True
        if isinstance(event, RunError):
            event = _replace(event, error=_without_result(event.error))
        return [*answer, *ended, event]

    def _end_answer(self, event: RunFinished | RunError | None) -> list[Event]:
        """Returns the events that end the joined message. `event`: the end of the run, if known."""
        last = self._last_message
        if last is None or self._retractable or self._answer is not None:
            begun = []
        else:
            begun = self._start_message(last)
        if self._answer is None:
            return []
        cut = [
            cut_event
            for message in self._messages.values()
            if self._is_joined(message)
            for cut_event in message.cut()
        ]
        finish = (last and last.finish) or MessageFinished("")
        reason = _finish_reason(finish, event, waits=last is not None and last.has_client_calls)
        usage = (event.usage if isinstance(event, RunFinished) else None) or self._usage
        # The wire's own fields may contain the old finish reason, so they go if it has changed.
        if reason is finish.finish_reason:
            native = finish.native
        else:
            native = None
        changes = {
            "message_id": self._answer.message_id,
            "finish_reason": reason,
            "usage": usage,
            "native": native,
        }
        return [*begun, *cut, _replace(finish, **changes)]

    def _visible_part(
        self, message: SeenMessage, part: Content | OpenText
    ) -> Content | OpenText | None:
        """Returns a part as the client sees it begin, or None if it is hidden."""
        by_call = self._typed == "call" and message.start.role is Role.MODEL
        if by_call and _is_result_call(part) and not message.has_result:
            message.has_result = True
            return OpenText()
        if (
            isinstance(part, ToolCallPart | ToolResultPart)
            and not self._calls
            and (part.run_by == "agent" or _asks(part))
        ):
            return None
        if by_call and isinstance(part, TextPart):
            return None
        return part

    def _runs_at_client(self, call: ToolCallPart) -> bool:
        """True if the client runs a call."""
        return call.run_by == "client" or (self._calls and call.run_by == "agent")

    def _is_joined(self, message: SeenMessage) -> bool:
        """True if a message is sent as a part of the joined message."""
        return not self._retractable and message.start.role is Role.MODEL

    def _start_message(self, message: SeenMessage) -> list[Event]:
        """Returns the start of the message for the client, unless it was sent already."""
        if message.sent_as:
            return []
        start, is_first = message.start, True
        if self._is_joined(message):
            is_first = self._answer is None
            start = self._answer = self._answer or start
        message.sent_as = start.message_id
        return [start] if is_first else []

    def _text_separator(self, message: SeenMessage, seen_part: SeenPart) -> str:
        """Returns the visible text to send before a part's own: a line break if tools ran after the
        text of an earlier message. It is called once for each part."""
        seen_part.separator = ""
        if isinstance(seen_part.part, TextPart) and self._is_joined(message):
            if self._after_tools and self._spoken_by not in (None, message):
                seen_part.separator = "\n"
            self._spoken_by = message
        return seen_part.separator


def _finish_reason(
    finish: MessageFinished, ended: RunFinished | RunError | None, *, waits: bool
) -> FinishReason | None:
    """Returns the visible finish reason for a client that sees only a part of the run.

    Args:
        finish: the end of the last message.
        ended: the end of the run, if it is known.
        waits: a call was sent that the client runs.
    """
    reason = finish.finish_reason
    if isinstance(ended, RunError):
        if reason is FinishReason.cancelled:
            return reason
        return FinishReason.error
    if ended is not None and ended.outcome == "cancelled":
        return FinishReason.cancelled
    if waits and ended is not None and ended.outcome == "pending":
        return FinishReason.tool_calls
    if reason is FinishReason.tool_calls and not waits:
        return FinishReason.stop
    return reason


def _asks(part: ToolCallPart | ToolResultPart) -> bool:
    """True for a call that the run's model waits with: the end of the run says what for."""
    if not isinstance(part, ToolCallPart):
        return False
    interrupt = read_interrupt(part)
    return interrupt is not None and interrupt.reason != "tool"


def _is_result_call(part: Content | OpenText) -> TypeGuard[ToolCallPart]:
    """True for a call of the tool with which a model returns the answer of a typed run."""
    return isinstance(part, ToolCallPart) and part.run_by == "agent" and part.name == RETURN_RESULT


def _result_as_text(call: ToolCallPart) -> TextPart | None:
    """Returns the arguments of a call as the visible text of an answer, or None if there are
    none."""
    if call.state == "complete":
        text = arguments_text(call)
    else:
        text = call.raw
    return TextPart(text) if text else None


def _without_result(error: DragomanError) -> DragomanError:
    """Returns the visible error without the partial result of the run."""
    error = copy(error)
    # They hold what was hidden from the client.
    error.partial = error.result = None
    return error
