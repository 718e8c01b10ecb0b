"""`Memory`: stored conversations, and the window of one that an agent is given.

Each method checks its arguments and the owner of the thread, and passes a query or a `Batch` to
the store, which writes it whole or not at all. `load_newest` reads the window that an agent is
given and stores where the token budget cut, so that the next turn's window starts there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, Never, Self, cast

import msgspec

from dragoman.arguments import expect, expect_each, wrong_type_error
from dragoman.errors import HistoryError, SettingsError
from dragoman.memory.memory_store import open_store
from dragoman.memory.recall_settings import Hit, Recall
from dragoman.memory.recaller import Recaller, question_text
from dragoman.memory.search_tool import make_search_tool
from dragoman.memory.settings import check_id, check_ids, check_optional_id, check_page, make_window
from dragoman.memory.store import (
    Batch,
    MessageQuery,
    Neighbours,
    Quote,
    Slot,
    Store,
    ThreadChange,
    limit_to_page,
    load_neighbours,
    make_page,
    read_page,
)
from dragoman.memory.stored_working_memory import StoredWorking
from dragoman.memory.thread import Page, StoredMessage, Thread
from dragoman.memory.thread_rules import check_found
from dragoman.memory.thread_state import ThreadState
from dragoman.memory.titles import AskModel, Titles, TitleTasks, make_title
from dragoman.memory.vectors import VectorStore
from dragoman.memory.window import Loaded, ThreadReading, count_first, load_newest
from dragoman.memory.working_memory import WorkingMemory
from dragoman.message import Message
from dragoman.runtime import new_id, now
from dragoman.tools import Tool, ToolContext

__all__ = ["Memory"]

_SEARCHED = 4
"""Messages that the search tool finds by words."""

_FIRST_EXCHANGE = 20
"""Messages among which the first exchange is looked for; calls and results stand between."""


class Memory(StoredWorking):
    """Threads of messages in a store. Give it to an agent and name a thread when you send:

    ```python
    agent = Agent("openai", memory=Memory("sqlite:///chats.db"))
    await agent.send("Hello", thread_id="t1", resource_id="ann")
    ```

    Tasks, threads and event loops may share it. `close` (or `async with`) closes its store.
    """

    def __init__(
        self,
        store: str | Store = "memory:",
        *,
        last_messages: int | Literal[False] | None = None,
        tokens: int | None = None,
        remove_tokens: int | None = None,
        recall: Recall | None = None,
        working: WorkingMemory | None = None,
        titles: bool | Titles = False,
        state: bool = True,
        read_only: bool = False,
        id_factory: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
        **unknown: Never,
    ) -> None:
        """Creates the memory of an agent. Opens nothing before the first use.

        Args:
            store: `memory:`, `sqlite:///PATH`, `postgresql://USER:PASSWORD@HOST/DATABASE`, or your own `Store`.
            last_messages: most messages of a thread that an agent is given; `False` or 0: none. Default 10, unless `tokens`
                is given. The window begins with a user message and keeps its start for several turns, so it may hold fewer.
            tokens: most tokens of the conversation that an agent is given, estimated. Beyond it the oldest exchanges are left out.
            remove_tokens: tokens that a cut leaves free; default a quarter of `tokens`. Nothing is deleted.
            recall: how earlier messages are found by their meaning, and shown to the model; `None`: they are not.
            working: what agents keep of a user or a thread, and change; `None`: nothing.
            titles: True, or how, to have a model make titles of threads without one.
            state: True to keep the state of a run with its thread, so that the next run begins with it.
            read_only: True to write nothing.
            id_factory: makes ids of threads and messages.
            clock: returns the time, in UTC.

        Raises:
            SettingsError: the store's URL or a number is invalid, or a package is missing.
            TypeError: an argument is of another type.
        """
        if unknown:
            raise _unknown_error(unknown)
        if isinstance(store, type) or not isinstance(cast(object, store), (str, Store)):
            raise wrong_type_error("store", store, 'a URL such as "sqlite:///chats.db", or a Store')
        super().__init__(
            open_store(store) if isinstance(store, str) else store,
            read_only=read_only,
            id_factory=id_factory,
            clock=clock,
        )
        self._recaller = None if recall is None else self._make_recaller(recall)
        expect("working", working, WorkingMemory, type(None))
        self.working_memory = working
        expect("state", state, bool)
        self.keeps_state = state
        """True if the state of a run is kept with its thread."""
        expect("titles", titles, bool, Titles)
        self.titles = Titles() if titles is True else titles or None
        """How titles are made; `None`: they are not."""
        self._title_tasks = TitleTasks()
        self.window = make_window(last_messages, tokens, remove_tokens)
        """How many messages and tokens of a thread an agent is given."""

    # messages

    async def save(
        self,
        messages: Iterable[Message],
        thread_id: str,
        *,
        resource_id: str | None = None,
        after: str | None = None,
        quotes: Iterable[Quote] = (),
    ) -> list[Message]:
        """Saves messages in the memory: appends them to a thread, which is created if missing, and
        returns them as stored. A message with the id of a visible one replaces it. Messages without
        id or time get one. All are durable when it returns.

        `after`: id of the message that they follow, or `""` for the beginning. If other messages
        follow it already, the new ones begin a branch, which becomes the visible one. This is how
        you edit a message or ask for another answer: nothing is deleted.

        `quotes`: what the memos among the messages quote, so that they lose it when it is deleted.

        Raises:
            ThreadNotFoundError: the thread is there, and is another resource's or nobody's.
            HistoryError: it shows no message with the id `after`; a message cannot be stored.
            SettingsError: the memory is read-only.
            StoreError: the store failed.
            TypeError: something is no message.
        """
        self._check_writable()
        checked = expect_each("messages", messages, Message)
        # One id twice: the later message counts, at the place of the earlier one.
        by_id = {message.id: message for message in map(self.stamp, checked)}
        batch = Batch(
            thread_id=check_id("thread_id", thread_id),
            messages=tuple(by_id.values()),
            at=self._clock(),
            change=ThreadChange(resource_id=check_optional_id("resource_id", resource_id)),
            after=after and check_id("after", after),
            quotes=tuple(expect_each("quotes", quotes, Quote)),
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
        """Returns from the memory a page of a thread's messages. `per_page=None`: all. `since`,
        `until`: only those made from then on, or before. `include`: adds these messages and their
        neighbours. `branch`: the branch to read. `problems`: a list that gets a description of each
        damaged message; without it a damaged message raises.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: there is no such branch or page, or a message is damaged.
        """
        check_page(page, per_page)
        query = MessageQuery(
            thread_id=check_id("thread_id", thread_id),
            branch=branch,
            since=since,
            until=until,
            newest_first=newest_first,
            damaged=problems is not None,
        )
        content = await self._read_content(query := limit_to_page(query, page, per_page))
        thread = check_found(content.thread, thread_id, resource_id)
        if branch is None:
            query = msgspec.structs.replace(query, branch=thread.branch)
        messages = content.messages
        if messages is None and per_page != 0:
            messages = await self.store.messages(query)
        stored_page = make_page(messages or (), page, per_page)
        items = {stored.position: stored for stored in stored_page.items}
        for neighbours in expect_each("include", include, Neighbours):
            items |= {
                stored.position: stored
                for stored in await load_neighbours(self.store, query, neighbours)
            }
        ordered = [stored for _, stored in sorted(items.items(), reverse=newest_first)]
        if problems is not None:
            problems += [stored.problem for stored in ordered if stored.problem]
        return Page(
            items=tuple([stored.message for stored in ordered if stored.problem is None]),
            page=page,
            per_page=per_page,
            has_more=stored_page.has_more,
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
        """Finds messages of the memory that contain all these words, ignoring case, newest first:
        in one thread, in a resource's threads, or everywhere. Whole words are compared, without
        stemming. Files, tool results and text beyond the first 100,000 characters are not searched.
        Branches that are not visible are.

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
        )
        return await read_page(self.store.messages, query, page, per_page)

    async def similar(
        self,
        text: str,
        *,
        resource_id: str | None = None,
        thread_id: str | None = None,
        limit: int = 4,
    ) -> list[Hit]:
        """Finds messages of the memory whose meaning is like that of a text, best first: in one
        thread, in a resource's threads, or everywhere. Only visible branches count, and each text
        once. Texts that are not embedded yet are, 64 at most; `index` embeds all.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            SettingsError: this memory has no `recall`.
            HistoryError: `limit` is below 1.
            DragomanError: the embedder or a store failed.
        """
        expect("text", text, str)
        check_page(0, limit)
        recaller = self._find_recaller()
        if thread_id is not None:
            await self._load_owned(thread_id, resource_id)
        hits = await recaller.find(
            text,
            resource_id=check_optional_id("resource_id", resource_id),
            thread_id=thread_id,
            limit=limit,
        )
        return [Hit(stored.message, stored.thread_id, score) for stored, score, _ in hits]

    async def index(self, limit: int | None = None) -> int:
        """Embeds texts of the memory that have no vector yet, newest first, and returns how many.
        Recall does so for 64 of them before each prompt; this is for those of a store that had no
        recall, or another embeddings model.

        Args:
            limit: most texts to embed; `None`: all.

        Raises:
            SettingsError: this memory has no `recall`, or is read-only.
            DragomanError: the embedder or the store failed. What was embedded before stays.
        """
        check_page(0, limit)
        self._check_writable()
        return await self._find_recaller().index(limit)

    def search_tool(self) -> Tool:
        """Returns a tool with which a model searches earlier messages itself, in the thread of its
        run or, with `Recall(scope="resource")`, in all of its owner. Without `recall` it finds
        messages that contain all words."""

        async def find(text: str, context: ToolContext[Any]) -> list[StoredMessage]:
            """Finds messages of the memory for the model's search."""
            owner, thread_id = context.resource_id, context.thread_id
            if self._recaller is not None:
                return await self._recaller.search(text, resource_id=owner, thread_id=thread_id)
            page = await self.search(
                text, thread_id=thread_id, resource_id=owner, per_page=_SEARCHED
            )
            return [*page.items]

        return make_search_tool(find)

    async def make_recall_memo(
        self,
        question: Iterable[Message],
        earlier: Sequence[Message],
        *,
        resource_id: str | None,
        thread: Thread | None,
        thread_id: str,
    ) -> tuple[Message, tuple[Quote, ...]] | None:
        """Returns the memo that goes before a prompt, and what it quotes; None if nothing is
        recalled. `question`: the prompt; `earlier`: what the model reads before it; `thread`: None
        if it does not exist yet."""
        if self._recaller is None or not self._recaller.is_automatic:
            return None
        recollection = await self._recaller.make_memo(
            question_text(question),
            earlier,
            resource_id=resource_id,
            thread_id=thread_id,
            is_new=thread is None,
        )
        if recollection is None:
            return None
        memo = self.stamp(recollection.memo)
        quotes = [
            Quote(memo.id or "", line, stored.thread_id, stored.position)
            for line, stored in enumerate(recollection.quoted)
        ]
        return memo, tuple(quotes)

    def _make_recaller(self, recall: Recall) -> Recaller:
        """Returns what recalls the memory's messages. Raises `SettingsError` if vectors have no
        store."""
        expect("recall", recall, Recall)
        vectors = recall.vectors or getattr(self.store, "vectors", None)
        if not isinstance(vectors, VectorStore):
            raise SettingsError(
                f"{type(self.store).__name__} stores no vectors: give recall a VectorStore with Recall(vectors=…)"
            )
        return Recaller(self.store, recall, vectors, read_only=self.read_only)

    def _find_recaller(self) -> Recaller:
        """Returns what recalls the memory's messages, or raises if the memory has no `recall`."""
        if self._recaller is None:
            raise SettingsError(
                'this memory finds nothing by its meaning: make it with recall=Recall(Agent("local"))'
            )
        return self._recaller

    async def update_messages(
        self, messages: Iterable[Message], thread_id: str, *, resource_id: str | None = None
    ) -> list[Message]:
        """Replaces the memory's messages with the same ids and returns the new ones.

        Raises:
            ThreadNotFoundError: there is no such thread of this resource.
            HistoryError: the thread shows no message with such an id.
        """
        checked = expect_each("messages", messages, Message)
        thread = await self._load_owned(thread_id, resource_id)
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
        """Deletes messages of the memory from all branches. Returns how many; 0 if there is no such
        thread."""
        self._check_writable()
        message_ids = check_ids(ids)
        if not await self._is_reachable(thread_id, resource_id):
            return 0
        return await self.store.delete_messages(
            check_id("thread_id", thread_id), message_ids, self._clock()
        )

    def stamp(self, message: Message) -> Message:
        """Returns a message with an id and a time, ready to store in the memory.

        Raises:
            HistoryError: its id is none that can be stored.
        """
        message_id = message.id
        if message_id is None:
            message_id = self._new_id()
        check_id("the id of a message", message_id)
        if message.turn is not None:
            check_id("the turn of a message", message.turn)
        return message.replace(id=message_id, created_at=message.created_at or self._clock())

    async def read_thread(self, thread_id: str, slot: Slot | None = None) -> ThreadReading:
        """Returns from the memory a thread in its present state. What is not read with it is read
        when it is first needed. `slot`: that of its state, if a run needs that.

        Raises:
            StoreError: the store failed.
        """
        count = count_first(self.window)
        query = MessageQuery(
            thread_id=check_id("thread_id", thread_id), newest_first=True, limit=count
        )
        return ThreadReading(self.store, await self._read_content(query, slot), count)

    async def load_newest(
        self, reading: ThreadReading, *, other_tokens: int = 0, goes_on: bool = False
    ) -> Loaded:
        """Returns from the memory the messages of a thread that an agent is given, and stores where
        the token budget cut. `other_tokens`: tokens of what is sent besides. `goes_on`: the last
        exchange continues, without a new prompt."""
        loaded = await load_newest(reading, self.window, other_tokens=other_tokens, goes_on=goes_on)
        thread = reading.thread
        if thread is not None and loaded.trimmed > thread.trimmed and not self.read_only:
            await self._write_change(thread.id, ThreadChange(trimmed=loaded.trimmed))
            reading.trim(loaded.trimmed)
        return loaded

    async def keep_state(self, state: ThreadState) -> None:
        """Writes the state of a run into the memory if it changed.

        Raises:
            StoreError: it cannot be written.
        """
        if not self.read_only:
            await state.keep(self._clock())

    def begin_title(self, thread_id: str, ask: AskModel) -> asyncio.Task[None] | None:
        """Begins to make a title for a thread that has none, in a task. Returns the task, or None
        if this memory makes no titles. `ask`: sends a request to the model."""
        if self.titles is None or self.read_only:
            return None
        return self._title_tasks.begin(self._make_title(self.titles, thread_id, ask), thread_id)

    async def _make_title(self, titles: Titles, thread_id: str, ask: AskModel) -> None:
        """Makes the title of a thread of the memory, and stores it."""
        thread = await self.thread(thread_id)
        # Another run, or a person, may have given it one since this run read the thread.
        if thread is None or thread.title:
            return
        query = MessageQuery(thread_id=thread_id, branch=thread.branch, limit=_FIRST_EXCHANGE)
        messages = [stored.message for stored in await self.store.messages(query)]
        title = await make_title(titles, messages, ask)
        if title is not None:
            # The title that a person gave meanwhile stays.
            change = ThreadChange(title_if_empty=title, resource_id=thread.resource_id)
            await self._write_change(thread_id, change)

    # its end

    async def finish(self) -> None:
        """Waits for the titles that are being made in this event loop."""
        await self._title_tasks.finish()

    async def close(self) -> None:
        """Closes the memory: waits for titles that are being made, and closes the connections of
        the store."""
        await self.finish()
        if self._recaller is not None:
            await self._recaller.close()
        await self.store.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()


def _unknown_error(names: Collection[str]) -> Exception:
    """Returns the error for arguments that `Memory` does not have."""
    if not {"threads", "generateTitle", "generate_title"}.isdisjoint(names):
        return SettingsError("threads.generateTitle has been moved: give Memory(titles=True)")
    return TypeError(f"Memory() takes no argument {min(names)!r}")
