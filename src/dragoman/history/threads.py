"""Which conversation a message says that it is of, and whose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import HistoryError
from dragoman.message import Message
from dragoman.wires.ai_sdk_messages.own import thread_of

__all__ = ["check", "named"]

_NATIVE = "ai_sdk"
"""Under which native a message names its thread and resource."""
_FORMATS = ("mastra_v1", "mastra_v2")
"""Formats whose messages do."""


def check(messages: Sequence[Message], thread_id: str | None, resource_id: str | None) -> None:
    """Refuses messages of another conversation. One that names none is of any.

    Raises:
        HistoryError: a message names another thread or resource.
    """
    if thread_id is None and resource_id is None:
        return
    for place, message in enumerate(messages):
        if not message.native:
            continue
        for name, own in (("threadId", thread_id), ("resourceId", resource_id)):
            given = _named(message, name)
            if given is not None and own is not None and given != own:
                raise HistoryError(
                    f"Received input message with wrong {name}: message {place} is of {given!r:.100}, and the list is of {own!r:.100}. "
                    'Add what was loaded with source="memory"'
                )


def named(payload: Any, format_: str, thread_id: str | None, resource_id: str | None) -> Any:
    """What a list was written as: where its format names thread and resource, with those of the list where a message has none."""
    own = {
        name: value
        for name, value in (("threadId", thread_id), ("resourceId", resource_id))
        if value is not None
    }
    if format_ not in _FORMATS or not own:
        return payload
    return [
        {**row, **{name: value for name, value in own.items() if not row.get(name)}}
        for row in payload
    ]


def _named(message: Message, name: str) -> str | None:
    """The thread or resource that a message names: in the fields of its format, or, read from a row, in those of the row."""
    fields = {**if_object((message.native or {}).get(_NATIVE)), **thread_of(message.native)}
    return if_text(fields.get(name)) or None
