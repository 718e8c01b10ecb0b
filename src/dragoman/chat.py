"""A conversation with an agent that remembers what was said.

Each send is a run with the chat's history. While the run goes on, a `_Kept` entry remembers which
slice of the history holds its messages. `_update` replaces that slice with what the run has so
far, and moves the slices behind it. It is called whenever someone reads `history`, and when the
run ends, however it ends. So the history is right in the middle of a stream, after an error, and
if several sends overlap.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from types import NoneType
from typing import Any, Generic, TypeVar, Unpack, overload

from typing_extensions import TypeForm

from dragoman.agent import Agent, Deps, Prompt, RunOptions
from dragoman.arguments import expect, expect_each
from dragoman.codec.memos import hide_memos
from dragoman.interrupt import Interrupt
from dragoman.memory.conversation import load_thread
from dragoman.message import Message
from dragoman.portal import Portal, synchronous, synchronous_stream
from dragoman.prompt import refuse_output_type
from dragoman.result import ChatResult
from dragoman.run import Run
from dragoman.runtime import new_id
from dragoman.typed_stream import send_stream_for

__all__ = ["Chat"]

T = TypeVar("T")


class Chat(Generic[Deps]):
    """Sends with a history that grows: one conversation. What was shown is kept: of a send that
    failed, was cancelled or was left early, the prompt, what tools did, and the answer as far as it
    had come.

    What the history waits for is `pending`; `send(None, resume=[…])` answers it. A prompt beside
    answers follows them, and is kept once they are carried out.
    """

    def __init__(
        self,
        agent: Agent[Deps],
        history: Iterable[Message] = (),
        thread_id: str | None = None,
        resource_id: str | None = None,
    ) -> None:
        """Creates a chat. `history` is copied. `thread_id`: id of the conversation, that of every
        run; left out, one is made. Only a given one is part of signatures and fits `claim=`, since
        no other process knows the other; with it, an agent that has a `memory` goes on with that
        thread. `resource_id`: the owner of the conversation.

        Raises:
            TypeError: `agent` is no `Agent`, an id is no string, or `history` holds something else than messages.
        """
        expect("agent", agent, Agent, hint='make one: Chat(Agent("openai"))')
        expect("thread_id", thread_id, str, NoneType)
        expect("resource_id", resource_id, str, NoneType)
        self.agent = agent
        self.thread_id = thread_id or new_id()
        """Id of the conversation."""
        self.resource_id = resource_id
        """Whose conversation it is."""
        self._given_thread = thread_id or None
        self._history: list[Message] = expect_each("history", history, Message)
        self._open: list[_Kept] = []

    @property
    def history(self) -> list[Message]:
        """What was said in the chat, oldest first; also of an answer that is still being streamed,
        as far as it has come."""
        for entry in self._open:
            self._update(entry)
        return self._history

    @history.setter
    def history(self, messages: Iterable[Message]) -> None:
        """Returns what was said, oldest first, and of an answer that still streams what has come so
        far."""
        self._history = expect_each("history", messages, Message)

    @property
    def pending(self) -> tuple[Interrupt, ...]:
        """Returns what the chat waits for, without a request. Client tools that were given to one
        send alone are included. Tools of the client that were given to one send alone are among it,
        too."""
        return self.agent.pending(
            self.history, thread_id=self._given_thread, resource_id=self.resource_id
        )

    @property
    def display_name(self) -> str:
        """Returns the agent's name for people."""
        return self.agent.display_name

    @property
    def portal(self) -> Portal:
        """Returns the agent's portal, in which the synchronous calls run."""
        return self.agent.portal

    async def load(self) -> list[Message]:
        """Reads into the chat the newest messages of the thread, as the agent is given them, where
        the agent has a `memory`, this chat a `thread_id`, and nothing is said here yet. Each send
        does so too. → `history`.

        Raises:
            HistoryError: the thread is another resource's.
            StoreError: it cannot be read.
        """
        memory, thread_id = self.agent.memory, self._given_thread
        if memory is not None and thread_id is not None and not self._history:
            self._history = hide_memos(await load_thread(memory, thread_id, self.resource_id))
        return self.history

    async def send(
        self, prompt: Prompt, **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[str]:
        """Sends a prompt of the chat as `Agent.send` with this history; `model=` goes on with
        another model. `None` as the prompt goes on with answers (`resume=`), or where the history
        ends in a prompt."""
        async with self._keep_messages(self._run(prompt, run_options)) as run:
            return await run.result()

    @overload
    async def send_for(
        self, prompt: Prompt, output_type: type[T], **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[T]: ...
    @overload
    async def send_for(
        self, prompt: Prompt, output_type: TypeForm[T], **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[T]: ...
    async def send_for(
        self, prompt: Prompt, output_type: object, **run_options: Unpack[RunOptions[Deps]]
    ) -> ChatResult[Any]:
        """Sends a prompt of the chat as `Agent.send_for` with this history."""
        async with self._keep_messages(self._run(prompt, run_options, output_type)) as run:
            return await run.result()

    async def send_stream(
        self, prompt: Prompt, **run_options: Unpack[RunOptions[Deps]]
    ) -> AsyncGenerator[ChatResult[str], None]:
        """Sends a prompt of the chat as `Agent.send_stream` with this history. Close it
        (`aclosing`) where you leave it early."""
        async with self._keep_messages(self._run(prompt, run_options)) as run:
            async with aclosing(run.steps()) as steps:
                async for step in steps:
                    for chunk in step.chunks():
                        yield chunk
            if run.exception is not None:
                raise run.exception

    def run(
        self,
        prompt: Prompt,
        *,
        output_type: object = str,
        **run_options: Unpack[RunOptions[Deps]],
    ) -> AbstractAsyncContextManager[Run[Any]]:
        """Returns `Agent.run` with this history, to be used in `async with`."""
        return self._keep_messages(self._run(prompt, run_options, output_type))

    send_stream_for = send_stream_for

    # the same from any thread, also inside a running event loop (which they block)

    send_sync = synchronous(send)
    send_for_sync = synchronous(send_for)
    send_stream_sync = synchronous_stream(send_stream)
    send_stream_for_sync = synchronous_stream(send_stream_for)

    def _run(
        self, prompt: Prompt, run_options: RunOptions[Deps], output_type: Any = str
    ) -> Run[Any]:
        """Returns a run of this chat. What a send says for itself alone goes before."""
        refuse_output_type(run_options)
        all_options: RunOptions[Deps] = {
            **run_options,
            "history": self.history,
            "thread_id": run_options.get("thread_id") or self._given_thread,
            "resource_id": run_options.get("resource_id") or self.resource_id,
        }
        run = self.agent.run(prompt, output_type=output_type, **all_options)
        # A run that was given no thread has its own id there.
        if run.thread_id == run.id:
            run.thread_id = self.thread_id
        return run

    @asynccontextmanager
    async def _keep_messages(self, run: Run[T]) -> AsyncGenerator[Run[T], None]:
        """Yields a run of the chat whose messages are part of the history, as far as they have
        come."""
        entry = _Kept(run, len(self._history))
        self._open.append(entry)
        try:
            async with run:
                yield run
        finally:
            self._update(entry)
            self._open.remove(entry)

    def _update(self, entry: _Kept) -> None:
        """Updates the chat's history with the messages of a run so far."""
        if not entry.at and not entry.has_loaded and entry.run.loaded is not None:
            # The thread has the memos: each run reads them there.
            loaded = hide_memos(entry.run.loaded)
            self._history[:0] = loaded
            entry.at, entry.has_loaded = len(loaded), True
        messages = entry.run.so_far().messages
        self._history[entry.at : entry.at + entry.count] = messages
        for later in self._open:
            if later.at > entry.at:
                later.at += len(messages) - entry.count
        entry.count = len(messages)


class _Kept:
    """Where the messages of a run stand in the history."""

    def __init__(self, run: Run[Any], index: int) -> None:
        """Keeps a chat's run and the index of its first message."""
        self.run = run
        self.at = index
        self.count = 0
        self.has_loaded = False
