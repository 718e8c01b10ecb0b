"""A copy of a thread: the same content under other ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from dragoman.memory.store import ThreadChange
from dragoman.memory.thread import Thread
from dragoman.message import Message

__all__ = ["clone_of", "cloned"]


def cloned(messages: Iterable[Message], new_id: Callable[[], str]) -> tuple[Message, ...]:
    """The messages with new ids. A turn that is named by a message is named by its new id."""
    ids: dict[str, str] = {}

    def named(old: str | None) -> str:
        if old is None:
            return new_id()
        if old not in ids:
            ids[old] = new_id()
        return ids[old]

    return tuple(
        [each.replace(id=named(each.id), turn=each.turn and named(each.turn)) for each in messages]
    )


def clone_of(
    thread: Thread,
    messages: Sequence[Message],
    at: datetime,
    *,
    title: str | None,
    resource_id: str | None,
    metadata: dict[str, Any],
) -> ThreadChange:
    """What a copy of a thread with these messages says of itself. `title`, `resource_id`, `metadata`: go before the thread's own."""
    last = messages[-1].id if messages else None
    clone = {"sourceThreadId": thread.id, "clonedAt": at.isoformat(), "lastMessageId": last}
    return ThreadChange(
        title=(f"Clone of {thread.title}" if thread.title else "") if title is None else title,
        resource_id=thread.resource_id if resource_id is None else resource_id,
        metadata={**thread.metadata, **metadata, "clone": clone},
    )
