"""What a store decides of a thread, the same in all: whether it may be written, and what it is
then; what a query finds; and a copy of a thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from dragoman.errors import HistoryError, ThreadNotFoundError
from dragoman.json_bytes import JsonMap
from dragoman.memory.settings import check_metadata, check_optional_id, check_title
from dragoman.memory.store import Batch, ThreadChange, ThreadQuery
from dragoman.memory.thread import Thread
from dragoman.message import Message

__all__ = [
    "check_owner",
    "describe_clone",
    "clone_messages",
    "fits",
    "change_thread",
    "is_owned",
    "split_words",
    "words_of",
]

_WORD = re.compile(r"\w+")


def change_thread(batch: Batch, thread: Thread | None) -> Thread:
    """Returns the thread into which a batch is written, as it is then. `thread`: as it is now;
    `None`: it is not there.

    Raises:
        ThreadNotFoundError: it must be there and is not, or is another resource's.
        HistoryError: it must not be there and is.
    """
    change = batch.change
    if thread is None:
        if batch.make == "never":
            raise ThreadNotFoundError(f"No thread found with id {batch.thread_id}")
        thread = Thread(id=batch.thread_id, created_at=batch.at, updated_at=batch.at)
    elif batch.make == "new":
        raise HistoryError(f"a thread with id {batch.thread_id} is there already: give another id")
    else:
        # A thread of nobody's is given an owner by name, with `save_thread`, not by who happens to
        # write into it.
        if thread.resource_id is not None or batch.messages:
            check_owner(thread, change.resource_id)
    return msgspec.structs.replace(
        thread,
        updated_at=batch.at,
        resource_id=thread.resource_id if thread.resource_id is not None else change.resource_id,
        title=thread.title if change.title is None else change.title,
        metadata={**thread.metadata, **change.metadata} if change.metadata else thread.metadata,
        trimmed=max(thread.trimmed, change.trimmed or 0),
        branch=thread.branch if change.branch is None else change.branch,
    )


def check_owner(thread: Thread, resource_id: str | None) -> None:
    """Checks that a thread is a resource's. The error is that of a thread which is not there, and
    names no owner.

    Raises:
        ThreadNotFoundError: it is another's, or nobody's.
    """
    if not is_owned(thread, resource_id):
        raise ThreadNotFoundError(f"No thread found with id {thread.id}")


def is_owned(thread: Thread, resource_id: str | None) -> bool:
    """Returns whether it is that resource's; every thread is where no resource is given."""
    return resource_id is None or thread.resource_id == resource_id


def fits(thread: Thread, wanted: ThreadQuery) -> bool:
    """Returns whether a query finds the thread."""
    return (
        (wanted.ids is None or thread.id in wanted.ids)
        and is_owned(thread, wanted.resource_id)
        and all(
            name in thread.metadata and _same(thread.metadata[name], wanted.metadata[name])
            for name in wanted.metadata
        )
    )


def split_words(text: str) -> list[str]:
    """Returns the words of a text, as they are."""
    return _WORD.findall(text)


def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text, as they are compared."""
    return frozenset(_WORD.findall(text.casefold()))


def _same(value: Any, other: Any) -> bool:
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def clone_messages(messages: Iterable[Message], new_id: Callable[[], str]) -> tuple[Message, ...]:
    """Returns the messages with new ids. A turn that is named by a message is named by its new
    id."""
    ids: dict[str, str] = {}

    def named(old: str | None) -> str:
        if old is None:
            return new_id()
        if old not in ids:
            ids[old] = new_id()
        return ids[old]

    return tuple(
        [
            message.replace(id=named(message.id), turn=message.turn and named(message.turn))
            for message in messages
        ]
    )


def describe_clone(
    thread: Thread,
    messages: Sequence[Message],
    time: datetime,
    title: str | None,
    resource_id: str | None,
    metadata: JsonMap | None,
) -> ThreadChange:
    """Returns what a copy of a thread with these messages says of itself. `title`, `resource_id`,
    `metadata`: go before the thread's own.

    Raises:
        HistoryError: one of them cannot be stored.
    """
    title = check_title(title)
    resource_id = check_optional_id("new_resource_id", resource_id)
    fields = check_metadata("metadata", metadata or {})
    if title is None:
        title = f"Clone of {thread.title}" if thread.title else ""
    last = messages[-1].id if messages else None
    clone = {"sourceThreadId": thread.id, "clonedAt": time.isoformat(), "lastMessageId": last}
    return ThreadChange(
        title=title,
        resource_id=thread.resource_id if resource_id is None else resource_id,
        metadata={**thread.metadata, **fields, "clone": clone},
    )
