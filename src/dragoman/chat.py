"""A conversation with an agent that remembers what was said."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar, Unpack, overload

from typing_extensions import TypeForm

from dragoman.agent import Agent, Prompt, RunOptions
from dragoman.arguments import expect, expect_each
from dragoman.message import Message
from dragoman.portal import Portal, synchronous, synchronous_stream
from dragoman.result import ChatResult
from dragoman.run import Run

__all__ = ["Chat"]

T = TypeVar("T")


class Chat:
    """Sends with a history that grows. What was shown is kept: of a send that failed, was cancelled or was left early, the
    prompt and the answer as far as it had come.
    """

    def __init__(self, agent: Agent[Any], history: Iterable[Message] = ()) -> None:
        """`history` is copied.

        Raises:
            TypeError: `agent` is no `Agent`, or `history` holds something else than messages.
        """
        expect("agent", agent, Agent, hint='make one: Chat(Agent("openai"))')
        self.agent = agent
        self._history: list[Message] = expect_each("history", history, Message)
        self._open: list[_Kept] = []

    @property
    def history(self) -> list[Message]:
        """What was said, oldest first; also of an answer that is still being streamed, as far as it has come."""
        for kept in self._open:
            self._update(kept)
        return self._history

    @history.setter
    def history(self, messages: Iterable[Message]) -> None:
        self._history = expect_each("history", messages, Message)

    @property
    def display_name(self) -> str:
        """The agent's."""
        return self.agent.display_name

    @property
    def portal(self) -> Portal:
        """The agent's, where the synchronous calls run."""
        return self.agent.portal

    async def send(self, prompt: Prompt, **how: Unpack[RunOptions]) -> ChatResult[str]:
        """`Agent.send` with this history; `model=` goes on with another model."""
        async with self._kept(self.agent.run(prompt, **{**how, "history": self.history})) as run:
            return await run.result()

    @overload
    async def send_for(self, prompt: Prompt, output_type: type[T], **how: Unpack[RunOptions]) -> ChatResult[T]: ...
    @overload
    async def send_for(self, prompt: Prompt, output_type: TypeForm[T], **how: Unpack[RunOptions]) -> ChatResult[T]: ...
    async def send_for(self, prompt: Prompt, output_type: Any, **how: Unpack[RunOptions]) -> ChatResult[Any]:
        """`Agent.send_for` with this history."""
        run = self.agent.run(prompt, output_type=output_type, **{**how, "history": self.history})
        async with self._kept(run):
            return await run.result()

    async def send_stream(self, prompt: Prompt, **how: Unpack[RunOptions]) -> AsyncGenerator[ChatResult[str], None]:
        """`Agent.send_stream` with this history. Close it (`aclosing`) where you leave it early."""
        async with self._kept(self.agent.run(prompt, **{**how, "history": self.history})) as run:
            async with aclosing(run.steps()) as steps:
                async for step in steps:
                    for chunk in step.chunks():
                        yield chunk
            if run.exception is not None:
                raise run.exception

    # the same from any thread, also inside a running event loop (which they block)

    send_sync = synchronous(send)
    send_for_sync = synchronous(send_for)
    send_stream_sync = synchronous_stream(send_stream)

    @asynccontextmanager
    async def _kept(self, run: Run[T]) -> AsyncGenerator[Run[T], None]:
        """A run whose messages are part of the history, as far as they have come."""
        kept = _Kept(run, len(self._history))
        self._open.append(kept)
        try:
            async with run:
                yield run
        finally:
            self._update(kept)
            self._open.remove(kept)

    def _update(self, kept: _Kept) -> None:
        messages = kept.run.so_far().messages
        self._history[kept.at : kept.at + kept.count] = messages
        for later in self._open:
            if later.at > kept.at:
                later.at += len(messages) - kept.count
        kept.count = len(messages)


class _Kept:
    """Where the messages of a run stand in the history."""

    def __init__(self, run: Run[Any], at: int) -> None:
        self.run = run
        self.at = at
        self.count = 0
