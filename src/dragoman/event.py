"""Change: something that just happened. About a dozen frozen values that a model's stream, an
agent's run, a stored transcript and a browser's connection all speak. `fold` turns them into
messages, `unfold` back.

A message is open from `MessageStarted` to `MessageFinished`, a part from `PartStarted` to
`PartFinished`. Every delta names its message and its part; parts of one message may be open side by
side.

Runs of agents within tools are told in the stream of the run around them: each between its own
`RunStarted`, whose `parent_run_id` says whose tool it is, and its `RunFinished` or `RunError`. What
else belongs to such a run has its `run_id`, and parts and deltas belong to their message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman import error_json
from dragoman.errors import DragomanError, HistoryError
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Native, Origin, Role, TextPart, Usage

__all__ = [
    "BACKGROUND_STATUS",
    "CALLS_BEGUN",
    "RUN_BEGUN",
    "SET_ASIDE",
    "STEP_DONE",
    "Custom",
    "Event",
    "MessageDropped",
    "MessageFinished",
    "MessageStarted",
    "OpenText",
    "PARTIAL_IMAGE",
    "PARTS_DROPPED",
    "PartDelta",
    "PartFinished",
    "PartStarted",
    "RunError",
    "RunFinished",
    "RunStarted",
    "StateDelta",
    "StateSnapshot",
    "StepFinished",
    "StepStarted",
    "TOOL_PROGRESS",
    "ToolStarted",
    "event_from_json",
    "event_to_json",
    "is_calls_begun",
    "is_log_mark",
    "set_time",
]

if TYPE_CHECKING:
    Delta = str | bytes
else:
    # msgspec takes no union of two string-like types: one of bytes is stored as a `_BytesDelta`.
    Delta = str


class OpenText(TextPart, frozen=True, omit_defaults=True, tag="open_text"):
    """A text part whose text is still to come. Stands in `PartStarted` only, never in a message."""

    text: str = ""
    """Always empty."""

    def __post_init__(self) -> None:
        pass


_astuple = msgspec.structs.astuple


class _TimedEvent(
    msgspec.Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, kw_only=True
):
    """What every event may have."""

    at: datetime | None = None
    """When the log of its run stored it, in UTC; `None`: no log did, or that of an earlier release.
    It does not count when events are compared."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        # `at` is the last field.
        return _astuple(self)[:-1] == _astuple(other)[:-1]

    def __hash__(self) -> int:
        return hash(_astuple(self)[:-1])


class RunStarted(_TimedEvent, frozen=True, tag="run_started"):
    """A run begins."""

    run_id: str
    """Id of the run."""
    thread_id: str | None = None
    """Id of the conversation that it belongs to, where there is one."""
    parent_run_id: str | None = None
    """Id of the run that started it, where one did."""
    resource_id: str | None = None
    """Whose conversation it is, where that was told."""
    typed: Literal["text", "call"] | None = None
    """Where the output is held to a type, what of the model's is it: its text, or the arguments of
    its call of `return_result`, so that its text is none. What came before the last step is
    void."""
    native: Native = None
    """What a format has beside these fields, by its name."""
    call_id: str | None = None
    """Id of the call of the parent's in whose tool it runs; `None`: it runs in none."""


class RunFinished(_TimedEvent, frozen=True, tag="run_finished"):
    """A run ended as it should, or waits for its client."""

    run_id: str
    """Id of the run."""
    outcome: Literal["success", "pending", "cancelled"] = "success"
    """`pending`: the run waits for what is in `pending`."""
    usage: Usage | None = None
    """Sum over the run's model calls, those of the runs in its tools included."""
    pending: tuple[Interrupt, ...] = ()
    """What somebody must answer before the conversation can go on."""
    result: Any = None
    """The run's output as JSON: the text, or the value of a typed run; `None`: there is none."""
    native: Native = None
    """What a format has beside these fields, by its name."""


class RunError(_TimedEvent, frozen=True, tag="run_error"):
    """A model call or a run failed. What came before stands."""

    error: DragomanError
    """What went wrong."""
    run_id: str | None = None
    """Id of the run; `None`: a model call outside a run."""
    native: Native = None
    """What a format has beside these fields, by its name."""


class StepStarted(_TimedEvent, frozen=True, tag="step_started"):
    """One step of a run begins: a model call and the tools it asks for."""

    name: str
    """Such as `model call 1`; no other step of the run has it."""
    native: Native = None
    """What a format has beside these fields, by its name."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


class StepFinished(_TimedEvent, frozen=True, tag="step_finished"):
    """The step of that name ended."""

    name: str
    """As in `StepStarted`."""
    losses: tuple[Loss, ...] = ()
    """What its requests had to leave out and no earlier step of the run did; positions are those in
    what was sent."""
    native: Native = None
    """What a format has beside these fields, by its name."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


class MessageStarted(_TimedEvent, frozen=True, tag="message_started"):
    """A message is open."""

    message_id: str
    """Id of the message."""
    role: Role
    """Whose it is."""
    candidate: int = 0
    """Which of several alternative answers; `fold` takes number 0."""
    origin: Origin | None = None
    """Where it comes from, as far as that is known already."""
    metadata: Mapping[str, Any] = {}
    """As in `Message`."""
    native: Native = None
    """As in `Message`."""
    created_at: datetime | None = None
    """When it was made."""
    anonymous: bool = False
    """The message has no id; `message_id` only ties its events together."""
    turn: str | None = None
    """As in `Message`."""
    losses: tuple[Loss, ...] = ()
    """What the request that it answers had to leave out. Of the event alone: no message keeps
    it."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


class PartStarted(_TimedEvent, frozen=True, tag="part_started"):
    """A part is open. `part` is what is known of it: `OpenText()` for text, a call without its
    arguments, …"""

    message_id: str
    """Id of the message."""
    index: int
    """Place of the part in the message's content."""
    part: Content | OpenText
    """What is known of it."""


class PartDelta(_TimedEvent, frozen=True, tag="part_delta", gc=False):
    """More of an open part: text, thinking, a call's arguments as text, or bytes of data."""

    message_id: str
    """Id of the message."""
    index: int
    """Which of its parts."""
    delta: Delta
    """What is new of it."""

    def __repr__(self) -> str:
        """Returns the event in short, without all of a long delta."""
        delta = repr(self.delta)
        if isinstance(self.delta, bytes):
            delta = f"<{len(self.delta)} bytes>"
        return f"PartDelta({self.message_id!r}, {self.index}, {delta})"


class PartFinished(_TimedEvent, frozen=True, tag="part_finished"):
    """A part is closed. `part` is the whole of it, and the authority where deltas said otherwise.

    A second one amends a part of thinking whose signature the provider corrected at the end of the
    message: what can be told of a part once only may pass over it.
    """

    message_id: str
    """Id of the message."""
    index: int
    """Which of its parts."""
    part: Content
    """All of it."""


class MessageFinished(_TimedEvent, frozen=True, tag="message_finished"):
    """A message is closed. Origin, metadata and native add to those of its start."""

    message_id: str
    """Id of the message."""
    finish_reason: FinishReason | None = None
    """Why the model stopped."""
    usage: Usage | None = None
    """Of the model call that made the message."""
    origin: Origin | None = None
    """Where it came from, with what the answer told of it."""
    metadata: Mapping[str, Any] = {}
    """Is added to that of `MessageStarted`."""
    native: Native = None
    """Is added to that of `MessageStarted`."""
    cached: bool = False
    """The message came from a response cache, and no model was asked. Of the event alone: no
    message keeps it."""
    losses: tuple[Loss, ...] = ()
    """What the provider says at the end that it left out of the request, such as thinking that is
    bound to another conversation. Of the event alone: no message keeps it."""


class MessageDropped(_TimedEvent, frozen=True, tag="message_dropped"):
    """A message is retracted: a retry or a fallback begins again."""

    message_id: str
    """Id of the message."""
    reason: str = ""
    """Why, in words for people."""


class StateSnapshot(_TimedEvent, frozen=True, tag="state_snapshot"):
    """The whole state that agent and client share."""

    state: Any
    """Any JSON value."""
    native: Native = None
    """What a format has beside these fields, by its name."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


class StateDelta(_TimedEvent, frozen=True, tag="state_delta"):
    """A change of the shared state, as JSON Patch (RFC 6902)."""

    operations: tuple[Mapping[str, Any], ...]
    """Operations of JSON Patch (RFC 6902), in order."""
    native: Native = None
    """What a format has beside these fields, by its name."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


class ToolStarted(_TimedEvent, frozen=True, tag="tool_started"):
    """A tool of the agent begins to run. Until then its call waits, for a person or its turn."""

    call_id: str
    """Id of the call."""
    name: str
    """Name of the tool."""
    arguments: Mapping[str, Any] | None = None
    """Those that a person put in place of the model's; `None`: the model's own."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


class Custom(_TimedEvent, frozen=True, tag="custom"):
    """Anything else, by name."""

    name: str
    """What it is."""
    value: Any = None
    """Any JSON value."""
    native: Native = None
    """What a format has beside these fields, by its name."""
    run_id: str | None = None
    """Of a run within a tool: its id; `None`: of the run whose stream this is."""


PARTS_DROPPED = "dragoman.parts_dropped"
"""Name of the custom event that takes parts of an answer back, for streams that can go on then. Its
value is their indexes."""
PARTIAL_IMAGE = "image_generation.partial_image"
"""Name of the custom event that shows an image before it is finished. Its value holds
`partial_image_b64`, the whole image as far as it goes, and may hold `output_format` and
`partial_image_index`. No message keeps it."""
BACKGROUND_STATUS = "background.status"
"""Name of the custom event that tells how far an answer is that the provider makes in the
background. Its value is `{"id": …, "status": "queued"}` or `in_progress`."""

TOOL_PROGRESS = "tool_progress"
"""Name of the `Custom` events of `ToolContext.progress`."""

CALLS_BEGUN = "dragoman.calls_begun"
"""Name of the `Custom` that the log of a run holds before the tools of some calls begin. Its value is
the ids of these calls. Clients do not get it."""


STEP_DONE = "dragoman.step_done"
"""Name of the `Custom` with which a log holds the result of `ToolContext.step`. Its value is `{"call":
…, "name": …, "value": …}`. Clients do not get it."""


RUN_BEGUN = "dragoman.run_begun"
"""Name of the `Custom` that stands in the log of a durable run before a run of an agent in a tool, or
after a hand-off. Its value is `{"run": …, "call": …, "number": …}`: the ids of that run and of the
call whose tool begins it (empty: a hand-off), and how many that tool has begun before. Clients do
not get it."""


SET_ASIDE = "dragoman.set_aside"
"""Name of the `Custom` with which the log of a durable run holds the end of the first of two phases:
`{"metadata": …, "call": …}`, the metadata of the message that was set aside, and its `ModelCall`.
Clients do not get it."""
_LOG_MARKS = frozenset({CALLS_BEGUN, STEP_DONE, RUN_BEGUN, SET_ASIDE})


def is_log_mark(event: Event) -> bool:
    """True if an event is for the log alone, and for no client."""
    return type(event) is Custom and event.name in _LOG_MARKS


def is_calls_begun(event: Event) -> bool:
    """True if an event is the mark `CALLS_BEGUN`."""
    return type(event) is Custom and event.name == CALLS_BEGUN


class _BytesDelta(_TimedEvent, frozen=True, tag="part_delta_bytes"):
    """How JSON has a `PartDelta` of bytes, so that it comes back as one."""

    message_id: str
    index: int
    delta: bytes


Event = (
    RunStarted
    | RunFinished
    | RunError
    | StepStarted
    | StepFinished
    | MessageStarted
    | PartStarted
    | PartDelta
    | PartFinished
    | MessageFinished
    | MessageDropped
    | StateSnapshot
    | StateDelta
    | ToolStarted
    | Custom
)


def event_to_json(event: Event) -> bytes:
    """Encodes any event as JSON, one object with a `type`. `event_from_json` gives it back as it
    was.

    Raises:
        HistoryError: it holds what JSON cannot, such as half a character of a text that was cut in UTF-16.
    """
    try:
        if type(event) is PartDelta and isinstance(event.delta, bytes):
            return _encode(_BytesDelta(event.message_id, event.index, event.delta, at=event.at))
        return _encode(event)
    except (TypeError, ValueError, RecursionError) as error:
        raise HistoryError(f"an event cannot be stored as JSON: {error}") from error


def event_from_json(data: bytes | str) -> Event:
    """Decodes an event from the JSON that `event_to_json` wrote.

    Raises:
        HistoryError: it is no stored event.
    """
    try:
        event = _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise HistoryError(
            f"not a stored event: {error}. Write it with event_to_json()."
        ) from error
    if type(event) is _BytesDelta:
        return PartDelta(event.message_id, event.index, event.delta, at=event.at)
    return event


def set_time(events: Iterable[Event], time: datetime | None) -> list[Event]:
    """Returns the events with this time, or without any."""
    # A delta, as nearly all of a stream is, is made anew at a third of the cost of `replace`.
    return [
        PartDelta(event.message_id, event.index, event.delta, at=time)
        if type(event) is PartDelta
        else msgspec.structs.replace(event, at=time)
        for event in events
    ]


def _encode_error(value: object) -> Any:
    """Encodes an error within an event, as a hook of msgspec."""
    if isinstance(value, DragomanError):
        return msgspec.Raw(error_json.to_json(value))
    # As msgspec asks of its hooks.
    raise NotImplementedError(f"a {type(value).__name__} has no JSON form")


def _decode_error(wanted_type: type, value: object) -> Any:
    """Decodes an error within an event, as a hook of msgspec."""
    if wanted_type is DragomanError:
        return error_json.from_json(msgspec.json.encode(value))
    # As msgspec asks of its hooks.
    raise NotImplementedError(f"a {wanted_type.__name__} has no JSON form")


_encode = msgspec.json.Encoder(enc_hook=_encode_error).encode
_decode: Callable[[bytes | str], Any] = msgspec.json.Decoder(
    Event | _BytesDelta, dec_hook=_decode_error
).decode
