"""The protocol of a message store: its queries, batches and pages.

A store has few methods, and each takes a value that says everything: `save` takes a `Batch`, in
which messages and changes of the thread are written together or not at all, and the readers take
a query. Defaults, ids and checks of arguments are in `Memory`, so that a store need not repeat
them. `read_page` and `load_neighbours` are built on queries and work with every store.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import msgspec

from dragoman.json_bytes import Json
from dragoman.memory.thread import Branch, Page, StoredMessage, Thread
from dragoman.message import Message

__all__ = [
    "Batch",
    "Make",
    "MessageQuery",
    "Neighbours",
    "Quote",
    "Slot",
    "SlotText",
    "Store",
    "ThreadChange",
    "ThreadContent",
    "ThreadQuery",
    "limit_to_page",
    "load_neighbours",
    "make_page",
    "read_page",
]

Make = Literal["never", "missing", "new"]
"""Whether a missing thread is created: `never`, if it is `missing`, or only as a `new` one, which
must not exist."""


class ThreadChange(msgspec.Struct, frozen=True, kw_only=True):
    """Changes to a thread; `None` leaves a field as it is."""

    title: str | None = None
    """The new title."""
    title_if_empty: str | None = None
    """The title, if the thread has none yet."""
    resource_id: str | None = None
    """The owner, if the thread has none yet."""
    metadata: Json | None = None
    """Fields that are added to the metadata, replacing those of the same name."""
    trimmed: int | None = None
    """The position up to which the token budget cuts. It only moves forward."""
    branch: int | None = None
    """The branch that becomes visible."""


class ThreadQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects threads."""

    ids: tuple[str, ...] | None = None
    """Ids to find; `None`: any."""
    resource_id: str | None = None
    """Owner to find; `None`: any."""
    metadata: dict[str, str | int | float | bool | None] = {}
    """Fields that the metadata must have at its top level."""
    newest_first: bool = True
    """Order by the time of the last change."""
    offset: int = 0
    """Number of threads to skip."""
    limit: int | None = None
    """Most threads to return; `None`: all."""


class MessageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects messages."""

    thread_id: str | None = None
    """Thread to search; `None`: all (only together with `text`)."""
    branch: int | None = None
    """Branch whose view of the thread counts; `None`: all branches."""
    resource_id: str | None = None
    """Owner of the threads to search; `None`: any."""
    ids: tuple[str, ...] | None = None
    """Ids to find; `None`: any."""
    text: str | None = None
    """Words that the text must contain, in any case."""
    after: int | None = None
    """Only messages after this position."""
    before: int | None = None
    """Only messages before this position."""
    since: datetime | None = None
    """Only messages made at this time or later."""
    until: datetime | None = None
    """Only messages made before this time."""
    newest_first: bool = False
    """Reverse order. The order is by position in a thread, by time across threads."""
    offset: int = 0
    """Number of messages to skip."""
    limit: int | None = None
    """Most messages to return; `None`: all."""
    damaged: bool = False
    """True to return unreadable messages with `StoredMessage.problem`; otherwise they raise."""


class Quote(msgspec.Struct, frozen=True):
    """Names the message that a line of a memo quotes. If that message is deleted or changed, the
    line goes, too."""

    memo_id: str
    """Id of the memo, which is in the same batch."""
    line: int
    """Index of the line among those that quote."""
    thread_id: str
    """Thread of the quoted message."""
    position: int
    """Position of the quoted message."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that are written together, all or none."""

    thread_id: str
    """The thread that they are written into."""
    messages: tuple[Message, ...]
    """The messages in order, with unique ids."""
    at: datetime
    """The present time."""
    make: Make = "missing"
    """Whether the thread may be created."""
    change: ThreadChange = ThreadChange()
    """Other changes to the thread. A thread of another resource is refused."""
    after: str | None = None
    """Id of the message that the first one follows. If that is not the last one, the batch begins a
    branch, which becomes visible. `""`: they come first. `None`: they follow the last visible
    message."""
    quotes: tuple[Quote, ...] = ()
    """What the memos among the messages quote."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """Names a text that is stored beside messages: in a thread, or for all threads of a
    resource."""

    name: str
    """What it is: `working` or `state`. A resource has `working` alone."""
    thread_id: str | None = None
    """The thread; `None`: the text is the resource's."""
    resource_id: str | None = None
    """The resource; with a thread: its owner, or `None` if that is not checked."""


class SlotText(NamedTuple):
    """The text in a slot."""

    text: str = ""
    """The text."""
    version: int = 0
    """How often it was written; 0: never."""


@runtime_checkable
class Store(Protocol):
    """Stores threads and their messages. A write is atomic and durable when its method returns.
    Processes may share a store unless it lives in one process. `dragoman.testing.store_checks`
    tests whether a store complies.

    What is stored must come back equal, `Message`s with all their fields. A store holds one body of
    messages that are equal but for id, time and turn, and the bytes of attachments once.
    """

    async def save(self, batch: Batch) -> Thread:
        """Writes a batch into the store and returns the thread. A message with the id of a visible
        one replaces it; the others are appended in order.

        Raises:
            HistoryError: there is no such thread, or there is one and `make` is `new`, or it is another resource's; no message has the id `after`.
            StoreError: it cannot be written.
        """
        ...

    async def messages(self, query: MessageQuery) -> list[StoredMessage]:
        """Returns the messages that a query finds; none for a missing thread."""
        ...

    async def threads(self, query: ThreadQuery) -> list[Thread]:
        """Returns the threads that a query finds."""
        ...

    async def branches(self, thread_id: str) -> list[Branch]:
        """Returns the branches of a thread, sorted by number."""
        ...

    async def delete_thread(self, thread_id: str) -> bool:
        """Deletes from the store a thread with its messages, and all content that no other thread
        uses. Lines of memos that quote one of them are deleted, too, unless the memo's owner has
        another message with the same content. Returns False if it does not exist."""
        ...

    async def delete_messages(self, thread_id: str, ids: Sequence[str], at: datetime) -> int:
        """Deletes messages of the store from all branches, and the lines of memos that quote them,
        as `delete_thread` does. Returns how many. If there were any, `at` becomes the time of the
        thread's last change."""
        ...

    async def read_slot(self, slot: Slot) -> SlotText:
        """Returns the text in a slot, with version 0 if nothing was written. The owner of a thread
        is not checked."""
        ...

    async def write_slot(
        self, slot: Slot, text: str, version: int | None, time: datetime
    ) -> SlotText:
        """Replaces the text in a slot of the store and returns it with its new version. A thread's
        slots are deleted with the thread. `version`: the one that it replaces; `None`: any.

        Raises:
            ConflictError: the slot has another version. Nothing is written.
            ThreadNotFoundError: there is no such thread, or it is another resource's.
            StoreError: it cannot be written.
        """
        ...

    async def close(self) -> None:
        """Closes files and connections."""
        ...


T = TypeVar("T")
Q = TypeVar("Q", ThreadQuery, MessageQuery)


class ThreadContent(NamedTuple):
    """A thread, and what was read of it in the same step."""

    thread: Thread | None
    """`None`: it does not exist."""
    messages: Sequence[StoredMessage] | None = None
    """Those that the query finds; `None`: they were not read."""
    state: SlotText | None = None
    """Of the slot that was asked for; `None`: it was not read."""


class Neighbours(msgspec.Struct, frozen=True):
    """Asks `recall` for a message besides those of the page, with some messages around it."""

    message_id: str
    """Id of the message."""
    before: int = 0
    """Number of messages before it."""
    after: int = 0
    """Number of messages after it."""


def make_page(items: Sequence[T], page: int, per_page: int | None) -> Page[T]:
    """Returns a page of a store's items that were read with one more than the page holds."""
    page_items = tuple(items[:per_page])
    has_more = len(page_items) < len(items)
    return Page(items=page_items, page=page, per_page=per_page, has_more=has_more)


async def read_page(
    read: Callable[[Q], Awaitable[Sequence[T]]], query: Q, page: int, per_page: int | None
) -> Page[T]:
    """Reads from a store a page of a query's results, and one more to see if another page
    follows."""
    query = limit_to_page(query, page, per_page)
    return make_page([] if per_page == 0 else await read(query), page, per_page)


def limit_to_page(query: Q, page: int, per_page: int | None) -> Q:
    """Returns the query for a page of a store's items, and for one more to see if another page
    follows."""
    if per_page is None:
        return query
    return msgspec.structs.replace(query, offset=page * per_page, limit=per_page and per_page + 1)


async def load_neighbours(
    store: Store, query: MessageQuery, neighbours: Neighbours
) -> list[StoredMessage]:
    """Reads from a store a message and its neighbours in the thread and branch of a query; none if
    the branch does not show it."""
    shown_query = MessageQuery(thread_id=query.thread_id, branch=query.branch)
    messages = await store.messages(
        msgspec.structs.replace(shown_query, ids=(neighbours.message_id,))
    )
    if not messages:
        return []
    position = messages[0].position
    before = msgspec.structs.replace(
        shown_query, before=position, newest_first=True, limit=neighbours.before
    )
    after = msgspec.structs.replace(shown_query, after=position, limit=neighbours.after)
    return [*await store.messages(before), *messages, *await store.messages(after)]
