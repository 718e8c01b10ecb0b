"""Where threads and messages are kept: the protocol of a store, what it is asked with, a store by
its URL, and pages of what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeVar, runtime_checkable

import msgspec

from dragoman.json_bytes import Json
from dragoman.memory.thread import Branch, Page, StoredMessage, Thread
from dragoman.message import Message

__all__ = [
    "Batch",
    "Make",
    "MessageQuery",
    "Neighbours",
    "Store",
    "ThreadChange",
    "ThreadQuery",
    "page_of",
    "with_neighbours",
]

Make = Literal["never", "missing", "new"]
"""Whether a thread that is not there is made: `new` refuses one that is."""


class ThreadChange(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be another in a thread; `None` leaves a field as it is."""

    title: str | None = None
    """The title."""
    resource_id: str | None = None
    """Whose it is; only a thread that is nobody's takes it."""
    metadata: Json | None = None
    """Fields that are put into the metadata, each in place of the one of that name."""
    trimmed: int | None = None
    """The boundary of a token budget. It moves only forward."""
    branch: int | None = None
    """The branch that is shown."""


class ThreadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which threads."""

    ids: tuple[str, ...] | None = None
    """With these ids; `None`: any."""
    resource_id: str | None = None
    """Of this resource; `None`: of any."""
    metadata: dict[str, str | int | float | bool | None] = {}
    """With all these fields at the top of their metadata."""
    newest_first: bool = True
    """By the time of their last change."""
    offset: int = 0
    """Without the first so many."""
    limit: int | None = None
    """Most of them; `None`: all."""


class MessageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages."""

    thread_id: str | None = None
    """Of this thread; `None`: of any (then with `text`)."""
    branch: int | None = None
    """As this branch shows the thread; `None`: whatever the branch."""
    resource_id: str | None = None
    """Of threads of this resource; `None`: of any."""
    ids: tuple[str, ...] | None = None
    """With these ids; `None`: any."""
    text: str | None = None
    """With all these words in their text, whatever the case."""
    after: int | None = None
    """Behind this position."""
    before: int | None = None
    """Before this position."""
    since: datetime | None = None
    """Made then or later."""
    until: datetime | None = None
    """Made before."""
    newest_first: bool = False
    """In reverse order. The order is that of positions; across threads, that of times."""
    offset: int = 0
    """Without the first so many."""
    limit: int | None = None
    """Most of them; `None`: all."""
    damaged: bool = False
    """With those that are there and cannot be read, as `StoredMessage.problem` tells; else they are
    an error."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that are written at once: all or none."""

    thread_id: str
    """Into which thread."""
    messages: tuple[Message, ...]
    """In order, with ids, none of them twice."""
    at: datetime
    """Now."""
    make: Make = "missing"
    """Whether the thread may be made."""
    change: ThreadChange = ThreadChange()
    """What else is written of the thread. A thread that is another resource's is refused."""
    after: str | None = None
    """Id of the message that the first one follows: where that is not the last one, a branch
    begins, which is then shown. `""`: they stand at the beginning. `None`: the end of what is
    shown."""


@runtime_checkable
class Store(Protocol):
    """Keeps threads and their messages. What a function wrote is durable when it returns, whole or
    not at all; processes may share a store where it is not of one process alone.
    `dragoman.testing.store_checks` tells whether a store does all this.

    What is stored must come back equal, `Message`s with all their fields. A store holds one body of
    messages that are equal but for id, time and turn, and the bytes of attachments once.
    """

    async def save(self, batch: Batch) -> Thread:
        """Writes messages → the thread. One with an id that the shown branch has takes that
        message's place; the others follow its end, in order.

        Raises:
            HistoryError: there is no such thread, or there is one and `make` is `new`, or it is another resource's; no message has the id `after`.
            StoreError: it cannot be written.
        """
        ...

    async def messages(self, wanted: MessageQuery) -> list[StoredMessage]:
        """Returns the messages that were asked for. Of a thread that is not there: none."""
        ...

    async def threads(self, wanted: ThreadQuery) -> list[Thread]:
        """Returns the threads that were asked for."""
        ...

    async def branches(self, thread_id: str) -> list[Branch]:
        """Returns the branches of a thread, by their numbers."""
        ...

    async def delete_thread(self, thread_id: str) -> bool:
        """Deletes a thread with its messages, and the bodies and attachments that no other has →
        whether there was one."""
        ...

    async def delete_messages(self, thread_id: str, ids: Sequence[str], at: datetime) -> int:
        """Deletes messages, in all branches → how many. The thread is changed at that time, where
        there were any."""
        ...

    async def close(self) -> None:
        """Gives back what it holds open."""
        ...


T = TypeVar("T")


class Neighbours(msgspec.Struct, frozen=True):
    """A message that `recall` is to bring beside those of the page, with some around it."""

    message_id: str
    """Which message."""
    before: int = 0
    """How many before it."""
    after: int = 0
    """How many behind it."""


def page_of(items_found: Sequence[T], page: int, per_page: int | None) -> Page[T]:
    """Returns a page of what was asked for with one more than it holds."""
    items = tuple(items_found if per_page is None else items_found[:per_page])
    return Page(items=items, page=page, per_page=per_page, has_more=len(items) < len(items_found))


async def with_neighbours(
    store: Store, query: MessageQuery, wanted: Neighbours
) -> list[StoredMessage]:
    """Returns a message of the thread and branch of a query, and its neighbours; none where those
    do not show it."""
    shown_query = MessageQuery(thread_id=query.thread_id, branch=query.branch)
    messages = await store.messages(msgspec.structs.replace(shown_query, ids=(wanted.message_id,)))
    if not messages:
        return []
    position = messages[0].position
    before = msgspec.structs.replace(
        shown_query, before=position, newest_first=True, limit=wanted.before
    )
    after = msgspec.structs.replace(shown_query, after=position, limit=wanted.after)
    return [*await store.messages(before), *messages, *await store.messages(after)]
