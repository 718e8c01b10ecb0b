"""`Memory`: conversations that last, and how much of one an agent is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Literal, Self, cast

import msgspec

from dragoman.arguments import expect, expect_each, wrong_type_error
from dragoman.errors import HistoryError, SettingsError, ThreadNotFoundError
from dragoman.json_bytes import JsonMap
from dragoman.memory.changing import check_owner, clone_messages, describe_clone, is_owned
from dragoman.memory.memory_store import open_store
from dragoman.memory.settings import (
    check_id,
    check_ids,
    check_metadata,
    check_optional_id,
    check_page,
    check_title,
    window,
)
from dragoman.memory.store import (
    Batch,
    Make,
    MessageQuery,
    Neighbours,
    Store,
    ThreadChange,
    ThreadQuery,
    page_of,
    with_neighbours,
)
from dragoman.memory.thread import Branch, Page, StoredMessage, Thread
from dragoman.memory.window import Loaded, ThreadReading, newest
from dragoman.message import Message
from dragoman.runtime import new_id, now

__all__ = ["Memory"]

Scalar = str | int | float | bool | None


class Memory:
    """Threads of messages in a store. Give it to an agent, and name a thread when you send:

    ```python
    agent = Agent("openai", memory=Memory("sqlite:///chats.db"))
    await agent.send("Hello", thread_id="t1", resource_id="ann")
    ```

    It may be shared by tasks, threads and event loops. `close` (or `async with`) gives back what
    its store holds open.
    """

    def __init__(
        self,
        store: str | Store = "memory:",
        *,
        last_messages: int | Literal[False] | None = None,
        tokens: int | None = None,
        remove_tokens: int | None = None,
        read_only: bool = False,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Opens nothing before the first use.

        Args:
            store: `memory:`, `sqlite:///PATH`, `postgresql://USER:PASSWORD@HOST/DATABASE`, or your own `Store`.
            last_messages: how many of a thread's newest messages an agent is given; `False` or 0: none. Default 10, unless `tokens`
                is given. The window begins with a user message and keeps its start for several turns, so it may hold fewer.
            tokens: about how many tokens of the conversation an agent is given. Beyond it the oldest exchanges are left out.
            remove_tokens: how many tokens are then free again; default a quarter of `tokens`. Nothing is deleted.
            read_only: whether nothing is written.
            id_factory: makes ids of threads and messages. `clock`: gives their times.

        Raises:
            SettingsError: the store's URL, or a number, is none; a package is missing.
            TypeError: an argument is of another type.
        """
        if isinstance(store, type) or not isinstance(cast(object, store), (str, Store)):
            raise wrong_type_error("store", store, 'a URL such as "sqlite:///chats.db", or a Store')
        expect("read_only", read_only, bool)
        self.window = window(last_messages, tokens, remove_tokens)
        """How much of a thread an agent is given."""
        self.read_only = read_only
        """Whether nothing is written."""
        self.store: Store = open_store(store) if isinstance(store, str) else store
        """Where it all is."""
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
        """Makes a thread, or writes into the one that is there: metadata is merged, what is not
        given stays. → the thread.

        A thread that nobody owns becomes `resource_id`'s; no other function changes an owner.

        Raises:
            ThreadNotFoundError: it is another resource's.
            HistoryError: something cannot be stored.
        """
        return await self._change(
            thread_id or self._new_id(), "missing", resource_id, title, metadata
        )

    async def thread(self, thread_id: str, *, resource_id: str | None = None) -> Thread | None:
        """Returns a thread by its id; `None`: there is none, or it is not this resource's."""
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
        """Threads, by the time of their last change. `metadata`: those that have all these fields
        at the top of theirs.

        Raises:
            HistoryError: there is no such page, or a field of `metadata` is to be an object or a list.
        """
        check_page(page, per_page)
        fields = {} if metadata is None else check_metadata("metadata", metadata)
        for name, value in fields.items():
            if isinstance(value, (dict, list)):
                raise HistoryError(
                    f"metadata[{name!r}]: threads are found by texts, numbers, booleans and None alone"
                )
        query = ThreadQuery(
            resource_id=check_optional_id("resource_id", resource_id),
            metadata=fields,
            newest_first=newest_first,
            offset=page * (per_page or 0),
            limit=None if per_page is None else per_page + 1,
        )
        return page_of([] if per_page == 0 else await self.store.threads(query), page, per_page)

    async def update_thread(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        title: str | None = None,
        metadata: JsonMap | None = None,
    ) -> Thread:
        """Writes into a thread: metadata is merged, field by field at its top. → the thread.

        Raises:
            ThreadNotFoundError: there is none, or it is not this resource's.
            HistoryError: something cannot be stored.
        """
        self._check_writable()
        await self._owned(thread_id, resource_id)
        return await self._change(thread_id, "never", resource_id, title, metadata)

    async def delete_thread(self, thread_id: str, *, resource_id: str | None = None) -> bool:
        """Deletes a thread with its messages → whether there was one, of this resource if one is
        given."""
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
        """Copies a thread as it is shown, with ids of its own; what messages hold is shared. → the
        new thread, whose `metadata["clone"]` says where it is from. `last_messages`, `since`,
        `until`, `ids`: only those messages.

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
        wanted = None if ids is None else tuple(check_ids(ids))
        query = MessageQuery(
            thread_id=thread_id, branch=thread.branch, ids=wanted, since=since, until=until
        )
        if last_messages is not None:
            check_page(0, last_messages)
            query = msgspec.structs.replace(query, newest_first=True, limit=last_messages)
        copied = [stored.message for stored in await self.store.messages(query)]
        messages = copied if last_messages is None else copied[::-1]
        time = self._clock()
        change = describe_clone(thread, messages, time, title, new_resource_id, metadata)
        new = check_id("new_id", new_id) if new_id is not None else self._new_id()
        copies = clone_messages(messages, self._new_id)
        batch = Batch(thread_id=new, messages=copies, at=time, make="new", change=change)
        return await self.store.save(batch)

    # branches

    async def branches(self, thread_id: str, *, resource_id: str | None = None) -> list[Branch]:
        """Returns the ways in which a thread went on beside the first one, which is number 0.
        `Thread.branch` is the one that is shown. There are none where there is no such thread of
        this resource."""
        if not await self._is_reachable(thread_id, resource_id):
            return []
        return await self.store.branches(check_id("thread_id", thread_id))

    async def show_branch(
        self, thread_id: str, branch: int, *, resource_id: str | None = None
    ) -> Thread:
        """Shows another branch, and goes on with it. → the thread.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: there is no such branch.
        """
        expect("branch", branch, int)
        self._check_writable()
        await self._owned(thread_id, resource_id)
        change = ThreadChange(branch=branch, resource_id=resource_id)
        batch = Batch(
            thread_id=check_id("thread_id", thread_id),
            messages=(),
            at=self._clock(),
            make="never",
            change=change,
        )
        return await self.store.save(batch)

    # messages

    async def save(
        self,
        messages: Iterable[Message],
        thread_id: str,
        *,
        resource_id: str | None = None,
        after: str | None = None,
    ) -> list[Message]:
        """Writes messages at the end of a thread, which is made where it is missing; one whose id
        the thread shows takes that message's place. What has no id or time gets one. → the messages
        as they are stored, which they are, all of them, when this returns.

        `after`: id of the message that they follow, `""` for the beginning: where others follow it
        already, they begin a branch, which is then shown. That is how a message is edited or
        answered again: nothing is deleted.

        Raises:
            ThreadNotFoundError: the thread is there, and is another resource's or nobody's.
            HistoryError: it shows no message with the id `after`; a message cannot be stored.
            SettingsError: the memory is read-only.
            StoreError: the store failed.
            TypeError: something is no message.
        """
        self._check_writable()
        checked = expect_each("messages", messages, Message)
        time = self._clock()
        by_id = {message.id: message for message in map(self.stamp, checked)}
        batch = Batch(
            thread_id=check_id("thread_id", thread_id),
            messages=tuple(by_id.values()),
            at=time,
            change=ThreadChange(resource_id=check_optional_id("resource_id", resource_id)),
            after=after and check_id("after", after),
        )
        await self.store.save(batch)
        return [*batch.messages]

    async def recall(
        self,
        thread_id: str,
        *,
        resource_id: str | None = None,
        page: int = 0,
        per_page: int | None = 40,
        newest_first: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
        include: Iterable[Neighbours] = (),
        branch: int | None = None,
        problems: list[str] | None = None,
    ) -> Page[Message]:
        """Messages of a thread, a page of them; `per_page=None`: all. `since` and `until` (which is
        not in it): when they were made. `include`: these, too, with their neighbours. `branch`: as
        that one shows the thread. `problems`: takes what is wrong with messages that are damaged in
        the store, which are left out then.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: there is no such branch or page, or a message is damaged.
        """
        check_page(page, per_page)
        thread = await self._owned(thread_id, resource_id)
        query = MessageQuery(
            thread_id=thread.id,
            branch=thread.branch if branch is None else branch,
            since=since,
            until=until,
            newest_first=newest_first,
            offset=page * (per_page or 0),
            limit=None if per_page is None else per_page + 1,
            damaged=problems is not None,
        )
        page_found = page_of(
            [] if per_page == 0 else await self.store.messages(query), page, per_page
        )
        items = {stored.position: stored for stored in page_found.items}
        for wanted in expect_each("include", include, Neighbours):
            items |= {
                stored.position: stored
                for stored in await with_neighbours(self.store, query, wanted)
            }
        ordered = [stored for _, stored in sorted(items.items(), reverse=newest_first)]
        (problems if problems is not None else []).extend(
            [stored.problem for stored in ordered if stored.problem]
        )
        return Page(
            items=tuple([stored.message for stored in ordered if stored.problem is None]),
            page=page,
            per_page=per_page,
            has_more=page_found.has_more,
        )

    async def search(
        self,
        text: str,
        *,
        thread_id: str | None = None,
        resource_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        page: int = 0,
        per_page: int | None = 40,
    ) -> Page[StoredMessage]:
        """Messages whose text has all these words, whatever their case, newest first; in all
        threads, or those of a resource, or one. Whole words are compared, by their letters alone:
        no endings, no meaning, nothing of files or of results of tools, and of a message the first
        100,000 characters. Messages in branches that are not shown are found, too.

        Raises:
            HistoryError: there is no such page.
        """
        expect("text", text, str)
        check_page(page, per_page)
        query = MessageQuery(
            thread_id=check_optional_id("thread_id", thread_id),
            resource_id=check_optional_id("resource_id", resource_id),
            text=text,
            since=since,
            until=until,
            newest_first=True,
            offset=page * (per_page or 0),
            limit=None if per_page is None else per_page + 1,
        )
        return page_of([] if per_page == 0 else await self.store.messages(query), page, per_page)

    async def update_messages(
        self, messages: Iterable[Message], thread_id: str, *, resource_id: str | None = None
    ) -> list[Message]:
        """Writes messages in place of those that have their ids. → the messages.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: the thread shows no message with such an id.
        """
        checked = expect_each("messages", messages, Message)
        thread = await self._owned(thread_id, resource_id)
        ids = tuple([check_id("the id of a message", message.id or "") for message in checked])
        stored_messages = await self.store.messages(
            MessageQuery(thread_id=thread.id, branch=thread.branch, ids=ids)
        )
        if missing := {*ids} - {message.message.id for message in stored_messages}:
            raise HistoryError(
                f'the thread "{thread_id}" shows no message with the id {min(missing)!r}'
            )
        return await self.save(checked, thread_id, resource_id=resource_id)

    async def delete_messages(
        self, ids: Iterable[str], thread_id: str, *, resource_id: str | None = None
    ) -> int:
        """Deletes messages of a thread, in all its branches → how many; none where there is no such
        thread of this resource."""
        self._check_writable()
        wanted = check_ids(ids)
        if not await self._is_reachable(thread_id, resource_id):
            return 0
        return await self.store.delete_messages(
            check_id("thread_id", thread_id), wanted, self._clock()
        )

    def stamp(self, message: Message) -> Message:
        """Returns a message with an id and a time, as it is stored.

        Raises:
            HistoryError: its id is none that can be stored.
        """
        message_id = (
            self._new_id() if message.id is None else check_id("the id of a message", message.id)
        )
        if message.turn is not None:
            check_id("the turn of a message", message.turn)
        return message.replace(id=message_id, created_at=message.created_at or self._clock())

    async def read_thread(self, thread_id: str) -> ThreadReading:
        """Returns a thread as it is now, whose messages are read when they are first asked for.

        Raises:
            StoreError: the store failed.
        """
        return ThreadReading(self.store, await self.thread(thread_id))

    async def load_newest(
        self, reading: ThreadReading, *, beside: int = 0, goes_on: bool = False
    ) -> Loaded:
        """Returns what an agent is given of a thread, and keeps the boundary of the token budget in
        the thread. `beside`: tokens of what is sent with it. `goes_on`: nothing new is asked."""
        loaded = await newest(reading, self.window, beside=beside, goes_on=goes_on)
        thread = reading.thread
        if thread is not None and loaded.trimmed > thread.trimmed and not self.read_only:
            change = ThreadChange(trimmed=loaded.trimmed)
            batch = Batch(
                thread_id=thread.id, messages=(), at=self._clock(), make="never", change=change
            )
            await self.store.save(batch)
            reading.trim(loaded.trimmed)
        return loaded

    # its end

    async def close(self) -> None:
        """Gives back what the store holds open."""
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def _owned(self, thread_id: str, resource_id: str | None) -> Thread:
        thread = await self.thread(thread_id)
        if thread is None:
            raise ThreadNotFoundError(f"No thread found with id {thread_id}")
        check_owner(thread, resource_id)
        return thread

    async def _is_reachable(self, thread_id: str, resource_id: str | None) -> bool:
        """Returns whether a resource may use a thread; without a resource nothing is asked."""
        return (
            resource_id is None or await self.thread(thread_id, resource_id=resource_id) is not None
        )

    async def _change(
        self,
        thread_id: str,
        make: Make,
        resource_id: str | None,
        title: str | None,
        metadata: JsonMap | None,
    ) -> Thread:
        self._check_writable()
        change = ThreadChange(
            title=check_title(title),
            resource_id=check_optional_id("resource_id", resource_id),
            metadata=None if metadata is None else check_metadata("metadata", metadata),
        )
        thread_id = check_id("thread_id", thread_id)
        return await self.store.save(
            Batch(thread_id=thread_id, messages=(), at=self._clock(), make=make, change=change)
        )

    def _check_writable(self) -> None:
        if self.read_only:
            raise SettingsError("this memory is read-only; make another one of its store to write")
