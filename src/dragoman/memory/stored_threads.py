"""`StoredThreads`: the threads of a memory, without their messages: create, list, change, clone and
delete them, and choose the branch that is visible.

Each method checks its arguments and the owner of the thread before the store writes anything.
`Memory` adds the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime

import msgspec

from dragoman.arguments import expect
from dragoman.errors import SettingsError, ThreadNotFoundError
from dragoman.json_bytes import JsonMap
from dragoman.memory.settings import (
    check_filter,
    check_id,
    check_ids,
    check_metadata,
    check_optional_id,
    check_page,
    check_title,
)
from dragoman.memory.store import (
    Batch,
    Make,
    MessageQuery,
    Slot,
    Store,
    ThreadChange,
    ThreadContent,
    ThreadQuery,
    read_page,
)
from dragoman.memory.thread import Branch, Page, Thread
from dragoman.memory.thread_rules import check_found, clone_messages, describe_clone, is_owned

__all__ = ["StoredThreads"]

Scalar = str | int | float | bool | None


class StoredThreads:
    """Threads in a store, each with an id, an owner, a title and metadata."""

    def __init__(
        self,
        store: Store,
        *,
        read_only: bool,
        id_factory: Callable[[], str],
        clock: Callable[[], datetime],
    ) -> None:
        """Gives access to the stored threads. `store`: holds them. `read_only`: True to write
        nothing. `id_factory`: makes ids. `clock`: returns the time, in UTC."""
        expect("read_only", read_only, bool)
        self.store = store
        """Holds threads and messages."""
        self.read_only = read_only
        """True if nothing is written."""
        self._new_id, self._clock = id_factory, clock

    # threads

    async def save_thread(
        self,
        thread_id: str | None = None,
        *,
        resource_id: str | None = None,
        title: str | None = None,
        metadata: JsonMap | None = None,
    ) -> Thread:
        """Creates a stored thread, or updates the existing one: metadata is merged, and values that
        are not given stay. Returns the thread.

        A thread without an owner gets `resource_id`. No other method changes an owner.

        Raises:
            ThreadNotFoundError: it is another resource's.
            HistoryError: something cannot be stored.
        """
        return await self._change_thread(
            thread_id or self._new_id(), "missing", resource_id, title, metadata
        )

    async def thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """Returns a stored thread, or None if there is none or it belongs to another resource."""
        threads = await self.store.threads(ThreadQuery(ids=(check_id("thread_id", thread_id),)))
        if not threads or not is_owned(threads[0], check_optional_id("resource_id", resource_id)):
            return None
        return threads[0]

    async def threads(
        self,
        *,
        resource_id: str | None = None,
        metadata: Mapping[str, Scalar] | None = None,
        page: int = 0,
        per_page: int | None = 100,
        newest_first: bool = True,
    ) -> Page[Thread]:
        """Returns a page of stored threads, sorted by the time of their last change. `metadata`:
        only threads with all these top-level fields.

        Raises:
            HistoryError: there is no such page, or a field of `metadata` is to be an object or a list.
        """
        check_page(page, per_page)
        query = ThreadQuery(
            resource_id=check_optional_id("resource_id", resource_id),
            metadata=check_filter(metadata or {}),
            newest_first=newest_first,
        )
        return await read_page(self.store.threads, query, page, per_page)

    async def update_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        title: str | None = None,
        metadata: JsonMap | None = None,
    ) -> Thread:
        """Updates a stored thread and returns it. Metadata is merged field by field at the top
        level.

        Raises:
            ThreadNotFoundError: there is none, or it is not this resource's.
            HistoryError: something cannot be stored.
        """
        self._check_writable()
        await self._load_owned(thread_id, resource_id)
        return await self._change_thread(thread_id, "never", resource_id, title, metadata)

    async def delete_thread(self, thread_id: str, *, resource_id: str | None = None) -> bool:
        """Deletes a stored thread with its messages. Returns False if the resource has no such
        one."""
        self._check_writable()
        if not await self._is_reachable(thread_id, resource_id):
            return False
        return await self.store.delete_thread(check_id("thread_id", thread_id))

    async def clone_thread(
        self,
        thread_id: str,
        *,
        new_id: str | None = None,
        title: str | None = None,
        resource_id: str | None = None,
        new_resource_id: str | None = None,
        metadata: JsonMap | None = None,
        last_messages: int | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        ids: Iterable[str] | None = None,
    ) -> Thread:
        """Copies the visible messages of a thread under new ids, with its working memory and the
        state of its runs, and returns the new thread. Content is shared, not duplicated. The copy's `metadata["clone"]` names its source.

        Args:
            thread_id: the thread to copy.
            new_id: id of the copy.
            title: of the copy; by default made of the thread's.
            resource_id: whose the thread must be.
            new_resource_id: whose the copy is; by default the thread's owner's.
            metadata: of the copy, beside the thread's.
            last_messages: so many of the newest.
            since: those made then or later.
            until: those made before.
            ids: those with these ids.

        Raises:
            ThreadNotFoundError: there is none, or it is not this resource's.
            HistoryError: one with the new id is there already.
        """
        self._check_writable()
        thread = await self.thread(thread_id, resource_id=resource_id)
        if thread is None:
            raise ThreadNotFoundError(f"Source thread with id {thread_id} not found")
        query = MessageQuery(thread_id=thread_id, branch=thread.branch, since=since, until=until)
        if ids is not None:
            query = msgspec.structs.replace(query, ids=tuple(check_ids(ids)))
        if last_messages is not None:
            check_page(0, last_messages)
            query = msgspec.structs.replace(query, newest_first=True, limit=last_messages)
        messages = [stored.message for stored in await self.store.messages(query)]
        if query.newest_first:
            messages.reverse()
        time = self._clock()
        change = describe_clone(thread, messages, time, title, new_resource_id, metadata)
        clone_id = self._new_id() if new_id is None else check_id("new_id", new_id)
        copies = clone_messages(messages, self._new_id)
        batch = Batch(thread_id=clone_id, messages=copies, at=time, make="new", change=change)
        clone = await self.store.save(batch)
        for name in ("working", "state"):
            text = (await self.store.read_slot(Slot(name=name, thread_id=thread_id))).text
            if text:
                slot = Slot(name=name, thread_id=clone_id)
                await self.store.write_slot(slot, text, None, time)
        return clone

    # branches

    async def branches(self, thread_id: str, *, resource_id: str | None = None) -> list[Branch]:
        """Returns the branches of a stored thread besides the first one, which is number 0.
        `Thread.branch` is the visible one. Returns none if the resource has no such thread."""
        if not await self._is_reachable(thread_id, resource_id):
            return []
        return await self.store.branches(check_id("thread_id", thread_id))

    async def show_branch(
        self, thread_id: str, branch: int, *, resource_id: str | None = None
    ) -> Thread:
        """Makes another branch the visible one, which new messages continue. Returns the thread.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: there is no such branch.
        """
        expect("branch", branch, int)
        self._check_writable()
        await self._load_owned(thread_id, resource_id)
        change = ThreadChange(branch=branch, resource_id=resource_id)
        return await self._write_change(check_id("thread_id", thread_id), change)

    async def _read_content(self, query: MessageQuery, slot: Slot | None = None) -> ThreadContent:
        """Reads a query's stored thread. If the store has a method `read_content`, which none
        needs, that reads the query's messages and the slot in the same step. Without a branch the
        query means the visible one, and with the limit 0 no messages."""
        if (read := getattr(self.store, "read_content", None)) is not None:
            return await read(query, slot)
        return ThreadContent(await self.thread(query.thread_id or ""))

    async def _load_owned(self, thread_id: str, resource_id: str | None) -> Thread:
        """Returns a stored thread of this owner. Raises `ThreadNotFoundError` if the resource has
        no such one."""
        return check_found(await self.thread(thread_id), thread_id, resource_id)

    async def _is_reachable(self, thread_id: str, resource_id: str | None) -> bool:
        """True if the resource may use the stored thread, or if no resource is given."""
        return (
            resource_id is None or await self.thread(thread_id, resource_id=resource_id) is not None
        )

    async def _change_thread(
        self,
        thread_id: str,
        make: Make,
        resource_id: str | None,
        title: str | None,
        metadata: JsonMap | None,
    ) -> Thread:
        """Writes title, owner and metadata of a stored thread and returns it."""
        self._check_writable()
        change = ThreadChange(
            title=check_title(title),
            resource_id=check_optional_id("resource_id", resource_id),
            metadata=None if metadata is None else check_metadata("metadata", metadata),
        )
        return await self._write_change(check_id("thread_id", thread_id), change, make)

    async def _write_change(
        self, thread_id: str, change: ThreadChange, make: Make = "never"
    ) -> Thread:
        """Writes a change of a stored thread, without messages."""
        time = self._clock()
        return await self.store.save(
            Batch(thread_id=thread_id, messages=(), at=time, make=make, change=change)
        )

    def _check_writable(self) -> None:
        if self.read_only:
            raise SettingsError("this memory is read-only; make another one of its store to write")
