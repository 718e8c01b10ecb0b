"""Rules that every store shares: who may write a thread, how a batch changes it, what a query
matches, and how to clone it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from dragoman.errors import ConflictError, HistoryError, ThreadNotFoundError
from dragoman.json_bytes import Json, JsonMap
from dragoman.memory.settings import check_metadata, check_optional_id, check_title
from dragoman.memory.store import Batch, Slot, ThreadChange, ThreadQuery
from dragoman.memory.thread import Thread
from dragoman.message import Message

__all__ = [
    "check_found",
    "check_owner",
    "check_slot",
    "describe_clone",
    "clone_messages",
    "matches_query",
    "change_thread",
    "is_owned",
    "split_words",
    "fold_words",
]

_WORD = re.compile(r"\w+")


def change_thread(batch: Batch, thread: Thread | None) -> Thread:
    """Returns the thread as it is after a batch is written. `thread`: its present state, or None if
    it does not exist.

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
        # A thread without an owner gets one only through `save_thread`, which writes no messages:
        # whoever merely writes a message must not take the thread over.
        if thread.resource_id is not None or batch.messages:
            check_owner(thread, change.resource_id)
    changes: Json = {"updated_at": batch.at, "trimmed": max(thread.trimmed, change.trimmed or 0)}
    if thread.resource_id is None:
        changes["resource_id"] = change.resource_id
    if change.metadata:
        changes["metadata"] = {**thread.metadata, **change.metadata}
    if change.title_if_empty is not None and not thread.title:
        changes["title"] = change.title_if_empty
    for name in ("title", "branch"):
        if (value := getattr(change, name)) is not None:
            changes[name] = value
    return msgspec.structs.replace(thread, **changes)


def check_slot(slot: Slot, thread: Thread | None, stored: int, version: int | None) -> None:
    """Checks the rule by which a slot of a thread may be written. `thread`: the slot's thread, or
    None. `stored`: the slot's version. `version`: the version to replace, or None for any.

    Raises:
        ThreadNotFoundError: the thread does not exist, or is another resource's.
        ConflictError: the versions differ.
    """
    if slot.thread_id is not None:
        if thread is None:
            raise ThreadNotFoundError(f"No thread found with id {slot.thread_id}")
        check_owner(thread, slot.resource_id)
    if version is not None and version != stored:
        raise ConflictError(
            f"the {slot.name} text has version {stored}, not {version}: read it again, and repeat the change"
        )


def check_owner(thread: Thread, resource_id: str | None) -> None:
    """Checks that a thread belongs to a resource. The error is the same as for a missing thread, so
    that it does not reveal the owner.

    Raises:
        ThreadNotFoundError: it is another's, or nobody's.
    """
    if not is_owned(thread, resource_id):
        raise ThreadNotFoundError(f"No thread found with id {thread.id}")


def check_found(thread: Thread | None, thread_id: str, resource_id: str | None) -> Thread:
    """Returns a thread that was looked up by its id, if it exists and is the resource's.

    Raises:
        ThreadNotFoundError: it does not exist, or is another's, or nobody's.
    """
    if thread is None:
        raise ThreadNotFoundError(f"No thread found with id {thread_id}")
    check_owner(thread, resource_id)
    return thread


def is_owned(thread: Thread, resource_id: str | None) -> bool:
    """True if the thread belongs to the resource, or if no resource is given."""
    return resource_id is None or thread.resource_id == resource_id


def matches_query(thread: Thread, query: ThreadQuery) -> bool:
    """True if by the rules of all stores a query finds the thread."""
    return (
        (query.ids is None or thread.id in query.ids)
        and is_owned(thread, query.resource_id)
        and all(
            name in thread.metadata and _is_same_value(thread.metadata[name], query.metadata[name])
            for name in query.metadata
        )
    )


def split_words(text: str) -> list[str]:
    """Returns the words of a text, in their own case."""
    return _WORD.findall(text)


def fold_words(text: str) -> frozenset[str]:
    """Returns the words of a text, case-folded for comparison."""
    return frozenset(_WORD.findall(text.casefold()))


def _is_same_value(value: Any, other: Any) -> bool:
    """True if two values are equal and both or neither are booleans: `1 == True` is no match."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def clone_messages(messages: Iterable[Message], new_id: Callable[[], str]) -> tuple[Message, ...]:
    """Returns the messages of a thread's copy, with new ids. A turn named by a message keeps that
    message's new id."""
    ids: dict[str, str] = {}

    def renew_id(old: str | None) -> str:
        """Returns the new id in the cloned thread for a call or message."""
        if old is None:
            return new_id()
        if old not in ids:
            ids[old] = new_id()
        return ids[old]

    # A turn is named by the id of its first message, so both go through the same map.
    return tuple(
        [
            message.replace(id=renew_id(message.id), turn=message.turn and renew_id(message.turn))
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
    """Returns the title, owner and metadata of a thread's copy. The arguments win over the thread's
    own values.

    Raises:
        HistoryError: one of them cannot be stored.
    """
    title = check_title(title)
    resource_id = check_optional_id("new_resource_id", resource_id)
    fields = check_metadata("metadata", metadata or {})
    if title is None:
        title = f"Clone of {thread.title}" if thread.title else ""
    if resource_id is None:
        resource_id = thread.resource_id
    last = messages[-1].id if messages else None
    # Mastra's names for these fields, so that a cloned thread reads the same in both.
    clone = {"sourceThreadId": thread.id, "clonedAt": time.isoformat(), "lastMessageId": last}
    return ThreadChange(
        title=title,
        resource_id=resource_id,
        metadata={**thread.metadata, **fields, "clone": clone},
    )
