"""The conversation of one run: loads it from a thread and stores each new message in the thread and
in a message list.

Of a history that came with the prompt only that counts as new which the thread does not have
(`unstored_messages`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.arguments import expect_each
from dragoman.codec.turns import holds_only_answers
from dragoman.logs import logger
from dragoman.memory.memory import Memory
from dragoman.memory.store import MessageQuery, Quote
from dragoman.memory.thread import StoredMessage, Thread
from dragoman.memory.thread_rules import check_owner
from dragoman.memory.thread_state import ThreadState
from dragoman.memory.titles import AskModel
from dragoman.memory.window import ThreadReading, count_tokens
from dragoman.message import Message, Role

if TYPE_CHECKING:
    from dragoman.history.list import MessageList
    from dragoman.tools import SharedState

from dragoman.memory.unstored_messages import find_unstored_messages

__all__ = ["ConversationRecorder", "open_conversation", "load_thread"]

_LOG = logger("memory")


def open_conversation(memory: Memory | None, options: Any) -> ConversationRecorder | None:
    """Returns a recorder of the conversation for a run with these options, or None if neither a
    thread nor a message list wants its messages."""
    history, thread_id = options.get("history", ()), options.get("thread_id")
    messages = _message_list(history)
    if not thread_id:
        memory = None
    if messages is None and memory is None:
        return None
    return ConversationRecorder(
        messages,
        memory,
        thread_id or "",
        options.get("resource_id"),
        options.get("reading"),
    )


class ConversationRecorder:
    """Loads the conversation of one run and stores its new messages, each once."""

    def __init__(
        self,
        messages: MessageList | None,
        memory: Memory | None,
        thread_id: str,
        resource_id: str | None,
        reading: ThreadReading | None = None,
    ) -> None:
        """Creates the recorder of a run's conversation. `messages`: list that gets the messages
        too. `memory`: store of the thread. `reading`: the thread, if it was already read."""
        self._messages, self._memory, self._reading = messages, memory, reading
        self._thread_id, self._resource_id = thread_id, resource_id
        self._early: list[Message] = []
        self._quotes: tuple[Quote, ...] = ()
        self._count = 0
        self.loaded: tuple[Message, ...] | None = None
        """The messages that were read from the thread."""
        self._begun: list[Message] | Exception | None = None
        self.ask: AskModel | None = None
        """Asks the model that makes titles."""
        self._state: ThreadState | None = None
        self._has_thread = False
        self._is_titled = False
        self._title: asyncio.Task[None] | None = None

    def share(self, shared: SharedState | None) -> None:
        """Names the state that is kept with the conversation's thread; `None`: it is another
        run's."""
        if shared is None or self._memory is None or not self._memory.keeps_state:
            self._state = None
            return
        store = self._memory.store
        self._state = ThreadState(store, self._thread_id, self._resource_id, shared)

    def restore_state(self) -> bool:
        """Gives the run the state of the thread. Returns False if it has none, or the run was given
        one."""
        return self._state is not None and self._state.restore()

    @property
    def reads(self) -> bool:
        """True if the conversation must be read before the run can begin."""
        return self._memory is not None

    async def load(self, history: Iterable[Message], new: Sequence[Message]) -> list[Message]:
        """Returns the conversation to continue: the thread's messages, then those of `history` that
        the thread lacks. `new`: the first messages of the run. The thread is read once, however
        often this is called.

        Raises:
            HistoryError: the thread is another resource's.
            StoreError: it cannot be read.
        """
        if self._begun is None:
            try:
                self._begun = await self._load(history, new)
            except Exception as error:  # noqa: BLE001 - whatever a store raises; who asks again is told the same
                self._begun = error
        if isinstance(self._begun, Exception):
            raise self._begun
        return [*self._begun]

    async def _load(self, history: Iterable[Message], new: Sequence[Message]) -> list[Message]:
        """Reads the thread, adds what the history has beyond it, and passes what was read to the
        list."""
        history_messages = expect_each("history", history, Message)
        if self._memory is None:
            return history_messages
        slot = self._state and self._state.slot
        reading = self._reading or await self._memory.read_thread(self._thread_id, slot)
        thread = reading.thread
        self._is_titled = thread is not None and bool(thread.title)
        stored: list[Message] = []
        known_messages: Sequence[Message] = stored
        if thread is not None:
            goes_on = not _has_question((*history_messages, *new))
            stored = await _load_newest(
                self._memory, reading, self._resource_id, new, goes_on=goes_on
            )
            known_messages = await self._load_known(self._memory, thread, history_messages, stored)
            self._has_thread = True
            if self._state is not None:
                await self._state.load(reading.state)
        early = find_unstored_messages(history_messages, known_messages)
        client_ids = {message.id for message in (*early, *new)}
        self.loaded = tuple([message for message in stored if message.id not in client_ids])
        talk = [message for message in early if message.role is not Role.SYSTEM]
        index = _find_prompt(talk, new)
        if index is not None:
            await self._add_memos(self._memory, reading, talk, index, new)
        self._early = [self._memory.stamp(message) for message in talk]
        if self._messages is not None:
            self._messages.add(list(self.loaded), "memory", ordered=True)
        system = [message for message in early if message.role is Role.SYSTEM]
        return [*system, *self.loaded, *self._early]

    async def _add_memos(
        self,
        memory: Memory,
        reading: ThreadReading,
        talk: list[Message],
        index: int,
        new: Sequence[Message],
    ) -> None:
        """Adds the memos for a prompt to the conversation's messages before it. What they take of
        the budget of tokens the window loses: `loaded` changes.

        Args:
            memory: the memory.
            reading: the thread.
            talk: what the history has beyond the thread.
            index: where in it the memos go.
            new: the first messages of the run.
        """
        loaded = self.loaded or ()
        memos = await self._make_memos(
            memory, reading.thread, [*loaded, *talk[:index]], [*talk[index:], *new]
        )
        if loaded and memos and memory.window.tokens is not None:
            newest = await _load_newest(
                memory, reading, self._resource_id, [*memos, *new], goes_on=False
            )
            ids = {message.id for message in newest}
            self.loaded = tuple([message for message in loaded if message.id in ids])
            # What was cut may have shown the working memory.
            earlier = [*self.loaded, *talk[:index], *memos]
            memos[:0] = await self._make_working_memo(memory, earlier)
        talk[index:index] = memos

    async def _make_memos(
        self,
        memory: Memory,
        thread: Thread | None,
        earlier: Sequence[Message],
        question: Sequence[Message],
    ) -> list[Message]:
        """Returns the memos that go before the conversation's prompt: the working memory, then what
        is recalled. `earlier`: what the model reads before them. A memory that cannot be read
        leaves them out: they help a run, and must not fail it."""
        memos = await self._make_working_memo(memory, earlier)
        recalled = await memory.make_recall_memo(
            question,
            earlier,
            resource_id=self._resource_id,
            thread=thread,
            thread_id=self._thread_id,
        )
        if recalled is not None:
            memo, self._quotes = recalled
            memos.append(memo)
        return memos

    async def _make_working_memo(self, memory: Memory, earlier: Sequence[Message]) -> list[Message]:
        """Returns for the conversation the memo that shows the working memory; none if the model
        knows it already."""
        if memory.working_memory is None:
            return []
        try:
            memo = await memory.make_working_memo(
                earlier, resource_id=self._resource_id, thread_id=self._thread_id
            )
        except Exception as error:  # noqa: BLE001 - whatever a store raises
            _LOG.warning("the working memory is left out: %s", error)
            return []
        return [] if memo is None else [memo]

    async def _load_known(
        self, memory: Memory, thread: Thread, history: Sequence[Message], stored: Sequence[Message]
    ) -> Sequence[Message]:
        """Returns the conversation's stored messages that the history may repeat; at least one if
        the thread is not empty."""
        last = max(
            [position for position, message in enumerate(history) if message.role is Role.MODEL],
            default=None,
        )
        if last is None:
            return stored
        stored_ids = {message.id for message in stored}
        # The window may have cut messages that the client still has: they are looked up by id.
        other_ids = tuple(
            [
                message.id
                for message in history[last:]
                if message.id is not None and message.id not in stored_ids
            ]
        )
        shown_query = MessageQuery(thread_id=thread.id, branch=thread.branch)
        older: list[StoredMessage] = []
        if other_ids:
            older = await memory.store.messages(msgspec.structs.replace(shown_query, ids=other_ids))
        if not stored and not older:
            older = await memory.store.messages(
                msgspec.structs.replace(shown_query, newest_first=True, limit=1)
            )
        return [*stored, *[message.message for message in older]]

    async def keep(self, messages: Sequence[Message], *, is_over: bool = False) -> None:
        """Stores those messages of the run's conversation that are not stored yet, and the state if
        it changed. They are durable when it returns. `is_over`: the run has ended.

        Raises:
            HistoryError: one cannot be stored.
            StoreError: the store failed.
        """
        if len(messages) > self._count or self._early:
            await self._keep_messages(messages)
        elif not is_over:
            return
        if self._state is not None and self._memory is not None and self._has_thread:
            await self._memory.keep_state(self._state)

    async def _keep_messages(self, messages: Sequence[Message]) -> None:
        """Stores messages of the conversation in the thread, and asks for a title of a new one."""
        new = [message for message in messages[self._count :] if message.role is not Role.SYSTEM]
        if self._memory is not None and not self._memory.read_only:
            unsaved = [*self._early, *[await self._extract(message) for message in new]]
            if unsaved:
                await self._memory.save(
                    unsaved, self._thread_id, resource_id=self._resource_id, quotes=self._quotes
                )
                self._has_thread = True
        self._early, self._quotes = [], ()
        if self._messages is not None:
            for message in new:
                is_input = message.role is Role.USER and not holds_only_answers(message)
                self._messages.add(message, "input" if is_input else "response")
        self._count = len(messages)

    def end(self) -> None:
        """Begins to make the title of the thread, once the run has given its answer."""
        if self._memory is not None and self.ask is not None and not self._is_titled:
            self._title = self._memory.begin_title(self._thread_id, self.ask)

    async def finish(self) -> None:
        """Waits for the title of the conversation's thread, if one is being made."""
        if self._title is not None:
            # Whoever stops waiting does not stop the title.
            await asyncio.wait([self._title])

    async def _extract(self, message: Message) -> Message:
        """Merges the working memory that an answer of the conversation holds, and returns the
        message as it is stored."""
        if self._memory is None or self._memory.working_memory is None:
            return message
        return await self._memory.extract_working(
            message, resource_id=self._resource_id, thread_id=self._thread_id
        )


async def load_thread(
    memory: Memory,
    thread_id: str,
    resource_id: str | None,
    *,
    reading: ThreadReading | None = None,
) -> list[Message]:
    """Returns the conversation to continue: the newest messages of a thread, in the window that an
    agent gets; none if the thread does not exist. `reading`: the thread, if it was already read.

    Raises:
        HistoryError: it is another resource's.
        StoreError: it cannot be read.
    """
    reading = reading or await memory.read_thread(thread_id)
    if reading.thread is None:
        return []
    return await _load_newest(memory, reading, resource_id, (), goes_on=True)


async def _load_newest(
    memory: Memory,
    reading: ThreadReading,
    resource_id: str | None,
    new: Sequence[Message],
    *,
    goes_on: bool,
) -> list[Message]:
    """Checks the owner of a conversation's thread and returns its newest messages."""
    assert reading.thread is not None
    check_owner(reading.thread, resource_id)
    loaded = await memory.load_newest(
        reading, other_tokens=count_tokens(*new) if new else 0, goes_on=goes_on
    )
    return [stored.message for stored in loaded.messages]


def _has_question(messages: Sequence[Message]) -> bool:
    """True if in the conversation a user message follows the last answer."""
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return False
        if message.role is Role.USER and not holds_only_answers(message):
            return True
    return False


def _find_prompt(early: Sequence[Message], new: Sequence[Message]) -> int | None:
    """Returns the index in the conversation (`early`) before which memos go, so that the prompt
    follows them; `None` if nothing is asked. `new`: the messages after `early`."""
    if _has_question(new):
        return len(early)
    if not _has_question((*early, *new)):
        return None
    # The history ends in the question.
    return max(index for index, message in enumerate(early) if _has_question([message]))


def _message_list(history: Any) -> MessageList | None:
    """Returns the conversation's history if it is a `MessageList`, otherwise None."""
    # Nearly every history is a plain list: then the package `history` need not be imported.
    if isinstance(history, (list, tuple)):
        return None
    from dragoman.history.list import MessageList

    return history if isinstance(history, MessageList) else None
