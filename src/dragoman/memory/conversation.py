"""The conversation of one run: read from a thread, and kept there and in a list, each message when
it is whole.

Of a history that came with the prompt only that counts as new which the thread does not have
(`incoming`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.arguments import expect_each
from dragoman.codec.digest import neutral_digest
from dragoman.codec.turns import holds_only_answers
from dragoman.memory.changing import check_owner
from dragoman.memory.memory import Memory
from dragoman.memory.store import MessageQuery
from dragoman.memory.thread import Thread
from dragoman.memory.window import ThreadReading, tokens_of
from dragoman.message import Message, Role

if TYPE_CHECKING:
    from dragoman.history.list import MessageList

__all__ = ["ConversationRecorder", "open_conversation", "new_messages", "load_thread"]


def new_messages(history: Sequence[Message], stored: Sequence[Message]) -> list[Message]:
    """Of a history that came from a client, what the thread does not have: what follows the last
    answer, and that answer, where it is another one than the thread has. The thread's own record
    counts for all before it. Of a thread without messages everything is new.

    System messages are for one request, and always there.
    """
    system = [message for message in history if message.role is Role.SYSTEM]
    talk = [message for message in history if message.role is not Role.SYSTEM]
    if not stored:
        return list(history)
    last = max(
        [position for position, message in enumerate(talk) if message.role is Role.MODEL],
        default=-1,
    )
    record = _Known(stored)
    return [*system, *[message for message in talk[max(last, 0) :] if not record.has(message)]]


class _Known:
    """What a thread has."""

    def __init__(self, stored: Sequence[Message]) -> None:
        self._ids = {message.id for message in stored}
        self._answers = {
            neutral_digest(message) for message in stored if message.role is Role.MODEL
        }
        self._calls = {call.id for message in stored for call in message.tool_calls}
        self._answered = {result.id for message in stored for result in message.tool_results}

    def has(self, message: Message) -> bool:
        """Returns whether it is there: by its id; an answer also by what it says, or by its calls;
        results by the calls that they answer."""
        if message.id is not None and message.id in self._ids:
            return True
        if message.role is Role.MODEL:
            calls = {call.id for call in message.tool_calls}
            return neutral_digest(message) in self._answers or (
                bool(calls) and calls <= self._calls
            )
        return (
            holds_only_answers(message)
            and {result.id for result in message.tool_results} <= self._answered
        )


def open_conversation(memory: Memory | None, options: Any) -> ConversationRecorder | None:
    """Returns the conversation of a run with these options; `None`: nobody wants to keep it."""
    history, thread_id = options.get("history", ()), options.get("thread_id")
    messages = None if isinstance(history, (list, tuple)) else _message_list(history)
    if messages is None and (memory is None or not thread_id):
        return None
    return ConversationRecorder(
        messages,
        memory if thread_id else None,
        thread_id or "",
        options.get("resource_id"),
        options.get("reading"),
    )


class ConversationRecorder:
    """Takes the messages of one run. What was kept is not kept again."""

    def __init__(
        self,
        messages: MessageList | None,
        memory: Memory | None,
        thread_id: str,
        resource_id: str | None,
        reading: ThreadReading | None = None,
    ) -> None:
        """`messages`: the list that is to have them. `memory`: where the thread is. `reading`: the
        thread, if it was read already."""
        self._messages, self._memory, self._reading = messages, memory, reading
        self._thread_id, self._resource_id = thread_id, resource_id
        self._early: list[Message] = []
        self._count = 0
        self.loaded: tuple[Message, ...] | None = None
        """What was read of the thread."""
        self._begun: list[Message] | Exception | None = None

    @property
    def reads(self) -> bool:
        """Whether the conversation must be read before the run can begin."""
        return self._memory is not None

    async def load(self, history: Iterable[Message], new: Sequence[Message]) -> list[Message]:
        """Returns what was said before, and is to be gone on with: of the thread, and of a history
        that came with the prompt what the thread does not have. `new`: what the run begins with. It
        is read once, however often it is asked for.

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
        history_messages = expect_each("history", history, Message)
        if self._memory is None:
            return history_messages
        reading = self._reading or await self._memory.read_thread(self._thread_id)
        thread = reading.thread
        stored: list[Message] = []
        if thread is not None:
            goes_on = not _asks((*history_messages, *new))
            stored = await _stored(self._memory, reading, self._resource_id, new, goes_on=goes_on)
        known_messages = (
            stored
            if thread is None
            else await self._known(self._memory, thread, history_messages, stored)
        )
        early = new_messages(history_messages, known_messages)
        given_ids = {message.id for message in (*early, *new)}
        self.loaded = tuple([message for message in stored if message.id not in given_ids])
        self._early = [
            self._memory.stamp(message) for message in early if message.role is not Role.SYSTEM
        ]
        if self._messages is not None:
            self._messages.add(list(self.loaded), "memory", ordered=True)
        early_messages = iter(self._early)
        system = [message for message in early if message.role is Role.SYSTEM]
        return [*system, *self.loaded, *early_messages]

    async def _known(
        self, memory: Memory, thread: Thread, history: Sequence[Message], stored: Sequence[Message]
    ) -> Sequence[Message]:
        """Returns what the thread has of messages that came with the prompt; something at least,
        where it is not empty."""
        last = max(
            [position for position, message in enumerate(history) if message.role is Role.MODEL],
            default=None,
        )
        if last is None:
            return stored
        stored_ids = {message.id for message in stored}
        wanted = tuple(
            [
                message.id
                for message in history[last:]
                if message.id is not None and message.id not in stored_ids
            ]
        )
        shown_query = MessageQuery(thread_id=thread.id, branch=thread.branch)
        older = (
            await memory.store.messages(msgspec.structs.replace(shown_query, ids=wanted))
            if wanted
            else []
        )
        if not stored and not older:
            older = await memory.store.messages(
                msgspec.structs.replace(shown_query, newest_first=True, limit=1)
            )
        return [*stored, *[message.message for message in older]]

    async def keep(self, messages: Sequence[Message]) -> None:
        """Keeps those of a run's messages that are not kept yet. When it returns, they are stored.

        Raises:
            HistoryError: one cannot be stored.
            StoreError: the store failed.
        """
        if len(messages) == self._count and not self._early:
            return
        new = [message for message in messages[self._count :] if message.role is not Role.SYSTEM]
        if self._memory is not None and not self._memory.read_only:
            written = [*self._early, *new]
            if written:
                await self._memory.save(written, self._thread_id, resource_id=self._resource_id)
        self._early = []
        if self._messages is not None:
            for message in new:
                is_input = message.role is Role.USER and not holds_only_answers(message)
                self._messages.add(message, "input" if is_input else "response")
        self._count = len(messages)


async def load_thread(
    memory: Memory,
    thread_id: str,
    resource_id: str | None,
    *,
    reading: ThreadReading | None = None,
) -> list[Message]:
    """Returns the newest messages of a thread, as an agent is given them; none if it is not there.
    `reading`: the thread, if it was read already.

    Raises:
        HistoryError: it is another resource's.
        StoreError: it cannot be read.
    """
    reading = reading or await memory.read_thread(thread_id)
    if reading.thread is None:
        return []
    return await _stored(memory, reading, resource_id, (), goes_on=True)


async def _stored(
    memory: Memory,
    reading: ThreadReading,
    resource_id: str | None,
    beside: Sequence[Message],
    *,
    goes_on: bool,
) -> list[Message]:
    assert reading.thread is not None
    check_owner(reading.thread, resource_id)
    tokens = tokens_of(*beside) if beside else 0
    loaded = await memory.load_newest(reading, beside=tokens, goes_on=goes_on)
    return [stored.message for stored in loaded.messages]


def _asks(messages: Sequence[Message]) -> bool:
    """Returns whether something is asked behind the last answer."""
    for message in reversed(messages):
        if message.role is Role.MODEL:
            return False
        if message.role is Role.USER and not holds_only_answers(message):
            return True
    return False


def _message_list(history: Any) -> MessageList | None:
    from dragoman.history.list import MessageList

    return history if isinstance(history, MessageList) else None
