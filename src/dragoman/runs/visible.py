"""What the client of an agent may see of a run.

Hidden are calls that the agent runs itself with their results, runs of agents within its tools,
what the run tells its model, text that a typed run withholds, and what is retracted. All else stays
as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TypeGuard

import msgspec

from dragoman.errors import DragomanError, StreamCutError
from dragoman.event import (
    Event,
    InnerRuns,
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
)
from dragoman.fold import arguments_text, close_part, part_events
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

__all__ = [
    "SeenMessage",
    "SeenPart",
    "Visible",
    "visible",
]


class SeenPart:
    """A part that is told."""

    __slots__ = ("deltas", "index", "part", "separator")

    def __init__(self, part: Content | OpenText) -> None:
        self.part = part
        self.index: int | None = None
        """Where the client sees it; `None`: it does not yet."""
        self.deltas: list[str | bytes] | None = []
        """While it is open."""
        self.separator: str | None = None
        """What is told before its text; `None`: nothing of it is told yet."""


class SeenMessage:
    """A message of the run, as far as it is told."""

    __slots__ = (
        "finish",
        "has_answer",
        "has_client_calls",
        "has_result",
        "is_empty",
        "parts",
        "sent_as",
        "start",
    )

    def __init__(self, start: MessageStarted) -> None:
        self.start = start
        self.finish: MessageFinished | None = None
        self.sent_as = ""
        """Id of the message that the client sees it in; empty: it sees nothing of it yet."""
        self.parts: dict[int, SeenPart] = {}
        """Those that are told and may get more."""
        self.is_empty = True
        """Nothing stands in it, seen or not."""
        self.has_answer = False
        """Something beside thinking is told."""
        self.has_client_calls = False
        """A call is told that the client runs."""
        self.has_result = False
        """Its call of `return_result` has begun."""

    def cut(self) -> list[Event]:
        """Ends the parts that are open, as far as they were told."""
        cut: list[Event] = []
        for seen in self.parts.values():
            if seen.deltas is not None and seen.index is not None:
                deltas = [seen.separator, *seen.deltas] if seen.separator else seen.deltas
                part = close_part(seen.part, deltas, cut=True)
                cut += [] if part is None else [PartFinished(self.sent_as, seen.index, part)]
                seen.deltas = None
        return cut


_replace = msgspec.structs.replace


def visible(events: Iterable[Event], retractable: bool = False) -> Iterator[Event]:
    """A run's events → those that its client may see, each as soon as it may.

    Without `retractable` the model's messages of a run are one message, as every wire's response
    is: the first one's id, the texts joined as in the run's output, the usage of all. Nothing is
    taken back: where a message is retracted after text or a call of it went out, the run ends in a
    `StreamCutError`; its thinking stays. The answer of a typed run comes once it is valid.

    With it, for clients that can take back, messages stay apart and `MessageDropped` is passed on;
    it also tells that an answer of a typed run was not valid.

    For events that come asynchronously there is `Visible`.
    """
    view = Visible(retractable=retractable)
    for event in events:
        yield from view.feed(event)
    yield from view.close()


class Visible:
    """`visible`, event by event: for events that come asynchronously."""

    def __init__(self, *, retractable: bool = False, calls: bool = False) -> None:
        """`retractable`: the client can take back. `calls`: it runs the model's calls, of which
        none is the agent's own then."""
        self._retractable = retractable
        self._calls = calls
        self._inner = InnerRuns()
        self._reset(None)

    def _reset(self, run: RunStarted | None) -> None:
        self._run_id = None if run is None else run.run_id
        self._typed = None if run is None else run.typed
        self._in_step = self._is_over = self._after_tools = False
        self._messages: dict[str, SeenMessage] = {}
        self._answer: MessageStarted | None = None
        """The start of the one message that the model's are told as, once it is told."""
        self._next_index = 0
        """Index of its next part."""
        self._last_message: SeenMessage | None = None
        """The model's latest message."""
        self._spoken_by: SeenMessage | None = None
        """Whose text was told last."""
        self._usage: Usage | None = None
        self._withheld: dict[tuple[str, int], Content | None] = {}
        """The text of a typed run that may be no valid answer; `None`: a part that has not
        ended."""

    def feed(self, event: Event) -> list[Event]:
        """The next event → what the client may see now."""
        # Nearly all of a stream.
        if isinstance(event, PartDelta):
            return [] if self._is_over else self._feed_delta(event)
        if self._inner.has(event):
            return []
        if isinstance(event, RunStarted):
            ended = self.close()
            self._reset(event)
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
            return [*self._drop_void_answers(), event] if self._in_step else [event]
        return [event]

    def close(self) -> list[Event]:
        """The end of the events → the end of the message that is still open. After `RunFinished`
        and `RunError` there is none."""
        ended = [] if self._is_over else self._end_answer(None)
        self._is_over = True
        return ended

    def _feed_message_start(self, event: MessageStarted) -> list[Event]:
        """The start is told with the first part that is seen."""
        is_model = event.role is Role.MODEL
        # In a step others' messages are the run's own.
        if event.candidate == 0 and (is_model or not self._in_step):
            message = self._messages[event.message_id] = SeenMessage(event)
            self._last_message = message if is_model else self._last_message
        return []

    def _feed_part_start(self, event: PartStarted) -> list[Event]:
        message, part = self._messages.get(event.message_id), event.part
        if isinstance(part, ToolResultPart) and part.run_by != "provider":
            self._after_tools = True
        if message is None:
            return []
        message.is_empty = False
        if (seen := self._visible_part(message, part)) is None:
            return []
        # A client that cannot take back gets a typed answer once it is valid.
        if self._typed is not None and isinstance(seen, TextPart) and self._is_joined(message):
            self._withheld[event.message_id, event.index] = None
            return []
        seen_part = message.parts[event.index] = SeenPart(seen)
        # No text may come.
        return (
            [] if isinstance(seen, OpenText) else self._start_part(message, event.index, seen_part)
        )

    def _start_part(self, message: SeenMessage, index: int, seen_part: SeenPart) -> list[Event]:
        """The start of a part, if that is not told yet, behind the start of what it stands in."""
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
        message = self._messages.get(event.message_id)
        seen_part = None if message is None else message.parts.get(event.index)
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
        before = self._separator(message, seen_part) if seen_part.separator is None else ""
        delta = before + str(event.delta) if before else event.delta
        return [*started, PartDelta(message.sent_as, seen_part.index or 0, delta)]

    def _feed_part_end(self, event: PartFinished) -> list[Event]:
        key, part = (event.message_id, event.index), event.part
        if self._typed == "call" and _is_result_call(part):
            part = _result_as_text(part)
        if key in self._withheld:
            self._withheld[key] = part
        message = self._messages.get(event.message_id)
        seen_part = None if message is None else message.parts.get(event.index)
        if message is None or seen_part is None or part is None:
            return []
        started = self._start_part(message, event.index, seen_part)
        if isinstance(part, TextPart):
            before = (
                self._separator(message, seen_part)
                if seen_part.separator is None
                else seen_part.separator
            )
            part = _replace(part, text=before + part.text) if before else part
        elif isinstance(part, ToolCallPart) and part.run_by == "agent" and not self._calls:
            # It cannot be run, but its start was told as the client's.
            part = _replace(part, run_by="client")
        seen_part.deltas = None
        return [*started, PartFinished(message.sent_as, seen_part.index or 0, part)]

    def _feed_message_end(self, event: MessageFinished) -> list[Event]:
        message = self._messages.get(event.message_id)
        if message is None:
            return []
        message.finish = event
        if message.start.role is Role.MODEL and event.usage is not None:
            self._usage = event.usage if self._usage is None else self._usage + event.usage
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
        message = self._messages.pop(event.message_id, None)
        if message is None:
            return []
        self._withheld = {
            key: part for key, part in self._withheld.items() if key[0] != event.message_id
        }
        self._last_message = None if self._last_message is message else self._last_message
        if not self._is_joined(message):
            return [event] if message.sent_as else []
        if not message.has_answer:
            return message.cut()
        why = f"after a part of the answer was sent it began again, which this client cannot be told ({event.reason})"
        error = StreamCutError(f"{why}; send the request again")
        return [*message.cut(), *self._feed_run_end(RunError(error, self._run_id))]

    def _drop_void_answers(self) -> list[Event]:
        """The model is called again: what a typed run has said is no valid answer."""
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
        """The end of the one message that the model's are told as."""
        last = self._last_message
        begun = (
            []
            if last is None or self._retractable or self._answer is not None
            else self._start_message(last)
        )
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
        # A wire may have the reason there too.
        native = finish.native if reason is finish.finish_reason else None
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
        """A part as the client sees it begin; `None`: it does not."""
        by_call = self._typed == "call" and message.start.role is Role.MODEL
        if by_call and _is_result_call(part) and not message.has_result:
            message.has_result = True
            return OpenText()
        if (
            isinstance(part, ToolCallPart | ToolResultPart)
            and part.run_by == "agent"
            and not self._calls
        ):
            return None
        return None if by_call and isinstance(part, TextPart) else part

    def _runs_at_client(self, call: ToolCallPart) -> bool:
        return call.run_by == "client" or (self._calls and call.run_by == "agent")

    def _is_joined(self, message: SeenMessage) -> bool:
        """Whether a message is told as a part of the one answer."""
        return not self._retractable and message.start.role is Role.MODEL

    def _start_message(self, message: SeenMessage) -> list[Event]:
        """The start of what a message is told in, where that was not told yet."""
        if message.sent_as:
            return []
        start, is_first = message.start, True
        if self._is_joined(message):
            is_first = self._answer is None
            start = self._answer = self._answer or start
        message.sent_as = start.message_id
        return [start] if is_first else []

    def _separator(self, message: SeenMessage, seen_part: SeenPart) -> str:
        """What is told before a part's text, asked once: a line's end where tools ran since another
        message's text."""
        seen_part.separator = ""
        if isinstance(seen_part.part, TextPart) and self._is_joined(message):
            if self._after_tools and self._spoken_by not in (None, message):
                seen_part.separator = "\n"
            self._spoken_by = message
        return seen_part.separator


def _finish_reason(
    finish: MessageFinished, ended: RunFinished | RunError | None, *, waits: bool
) -> FinishReason | None:
    """Why the answer ended, for who sees only a part of it. `waits`: a call is seen that the client
    runs."""
    reason = finish.finish_reason
    if isinstance(ended, RunError):
        return reason if reason is FinishReason.cancelled else FinishReason.error
    if ended is not None and ended.outcome == "cancelled":
        return FinishReason.cancelled
    if waits and ended is not None and ended.outcome == "pending":
        return FinishReason.tool_calls
    return FinishReason.stop if reason is FinishReason.tool_calls and not waits else reason


def _is_result_call(part: Content | OpenText) -> TypeGuard[ToolCallPart]:
    return isinstance(part, ToolCallPart) and part.run_by == "agent" and part.name == RETURN_RESULT


def _result_as_text(call: ToolCallPart) -> TextPart | None:
    """The arguments of a call as the text of an answer."""
    text = arguments_text(call) if call.state == "complete" else call.raw
    return TextPart(text) if text else None


def _without_result(error: DragomanError) -> DragomanError:
    """The error without what the run had come to, of which the client has seen its part."""
    error = copy(error)
    error.partial = error.result = None
    return error
