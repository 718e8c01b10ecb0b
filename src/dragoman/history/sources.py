"""Where messages come from, and when: the sources of a list, ids and times that are missing, and
what rows are sorted by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from os import urandom
from typing import Any, Literal, NamedTuple

from msgspec.structs import force_setattr

from dragoman.codec.format_layout import FormatFields
from dragoman.errors import HistoryError
from dragoman.formats.registry import Format
from dragoman.history.format_fields import threads_of
from dragoman.json_bytes import JsonMap
from dragoman.message import Message
from dragoman.runtime import new_id

__all__ = [
    "NOT_SAVED",
    "RESPONSE",
    "SOURCES",
    "Mint",
    "Source",
    "check_threads",
    "later_time",
    "microseconds",
    "with_threads",
    "read_noted_time",
    "find_source",
    "stamp",
]

Source = Literal["input", "response", "memory", "context", "system"]
SOURCES: tuple[Source, ...] = ("input", "response", "memory", "context", "system")
NOT_SAVED: frozenset[str] = frozenset(["input", "response"])
"""The sources whose messages are to be saved."""
RESPONSE: frozenset[str] = frozenset(["response"])
"""The source of what was answered."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = timedelta(milliseconds=1)
_MICROSECOND = timedelta(microseconds=1)


class Mint(NamedTuple):
    """What makes the ids and times that messages do not have."""

    new_id: Callable[[], str]
    """A fresh id."""
    clock: Callable[[], datetime]
    """The time."""

    def ids(self, count: int) -> list[str]:
        """Mints `count` new message ids, for messages of any source."""
        if self.new_id is not new_id:
            return [self.new_id() for _ in range(count)]
        digits = urandom(16 * count).hex()
        return [digits[offset : offset + 32] for offset in range(0, 32 * count, 32)]


def find_source(name: object) -> Source:
    """Returns the source of that name; `user` is an older one of `input`.

    Raises:
        HistoryError: there is none.
    """
    if name == "user":
        return "input"
    if name not in SOURCES:
        raise HistoryError(
            f"messages come from one of {', '.join(SOURCES)}, not from {name!r:.100}"
        )
    return name


def microseconds(time: datetime) -> int:
    """Returns the time of a message from a source as a number; one without a zone is taken for
    UTC."""
    if time.tzinfo is not None:
        aware = time
    else:
        aware = time.replace(tzinfo=UTC)
    return (aware - _EPOCH) // _MICROSECOND


def later_time(time: datetime | None, now: datetime) -> datetime:
    """Returns a time for a message that its source sent without one, behind `time`: now, or a
    millisecond later than `time` if that is in the future."""
    if time is None:
        return now
    if time.tzinfo is None and now.tzinfo is not None:
        time = time.replace(tzinfo=UTC)
    elif time.tzinfo is not None and now.tzinfo is None:
        now = now.replace(tzinfo=UTC)
    try:
        return max(now, time + _STEP)
    except OverflowError:
        return now


def stamp(
    message: Message, mint: Mint, latest: datetime | None, turn: str | None = None
) -> Message:
    """Returns a message of a source with an id, a time and, if given, a turn. Unchanged if it has
    them."""
    needs_turn = turn is not None and message.turn is None
    if message.id is not None and message.created_at is not None and not needs_turn:
        return message
    copied = copy(message)  # nobody has it yet
    if message.id is None:
        force_setattr(copied, "id", mint.new_id())
    if message.created_at is None:
        force_setattr(
            copied,
            "created_at",
            read_noted_time(message.metadata) or later_time(latest, mint.clock()),
        )
    if needs_turn:
        force_setattr(copied, "turn", turn)
    return copied


def read_noted_time(metadata: JsonMap) -> datetime | None:
    """Returns the time that a source notes in a message's metadata, as user interfaces note it."""
    value = metadata.get("createdAt") if metadata else None
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def check_threads(
    messages: Sequence[Message], thread_id: str | None, resource_id: str | None
) -> None:
    """Refuses messages from a source that name another conversation. One that names none is of any.

    Raises:
        HistoryError: a message names another thread or resource.
    """
    if thread_id is None and resource_id is None:
        return
    for position, message in enumerate(messages):
        for field in threads_of(message):
            if field.is_thread:
                expected = thread_id
            else:
                expected = resource_id
            if expected is not None and field.value != expected:
                raise HistoryError(
                    f"Received input message with wrong {field.name}: message {position} is of {field.value!r:.100}, "
                    f'and the list is of {expected!r:.100}. Add what was loaded with source="memory"'
                )


def with_threads(
    payload: Any, format_: Format, thread_id: str | None, resource_id: str | None
) -> Any:
    """Returns what a list was written as, with the names of its thread: where its format names
    thread and resource, with those of the list where a message has none."""
    fields: FormatFields | None = getattr(format_, "fields", None)
    if fields is None or not fields.thread or (thread_id is None and resource_id is None):
        return payload
    ids = {fields.thread: thread_id, fields.resource: resource_id}
    missing = {name: value for name, value in ids.items() if value is not None}
    return [
        {**row, **{name: value for name, value in missing.items() if not row.get(name)}}
        for row in payload
    ]
