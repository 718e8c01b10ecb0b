"""Which conversation a message says that it is of, and whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.codec.layout import FormatFields
from dragoman.errors import HistoryError
from dragoman.formats.registry import Format
from dragoman.history.format_fields import threads_of
from dragoman.message import Message

__all__ = ["check", "named"]


def check(messages: Sequence[Message], thread_id: str | None, resource_id: str | None) -> None:
    """Refuses messages of another conversation. One that names none is of any.

    Raises:
        HistoryError: a message names another thread or resource.
    """
    if thread_id is None and resource_id is None:
        return
    for position, message in enumerate(messages):
        for field in threads_of(message):
            expected = thread_id if field.is_thread else resource_id
            if expected is not None and field.value != expected:
                raise HistoryError(
                    f"Received input message with wrong {field.name}: message {position} is of {field.value!r:.100}, "
                    f'and the list is of {expected!r:.100}. Add what was loaded with source="memory"'
                )


def named(payload: Any, format_: Format, thread_id: str | None, resource_id: str | None) -> Any:
    """What a list was written as: where its format names thread and resource, with those of the list where a message has none."""
    fields: FormatFields | None = getattr(format_, "fields", None)
    if fields is None or not fields.thread or (thread_id is None and resource_id is None):
        return payload
    ids = {fields.thread: thread_id, fields.resource: resource_id}
    own = {name: value for name, value in ids.items() if value is not None}
    return [
        {**row, **{name: value for name, value in own.items() if not row.get(name)}}
        for row in payload
    ]
