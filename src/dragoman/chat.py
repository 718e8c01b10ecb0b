"""A conversation with an agent that remembers what was said."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing
from typing import Any, TypeVar, Unpack

from dragoman.agent import Agent, Prompt, RunOptions
from dragoman.message import Message
from dragoman.result import ChatResult

__all__ = ["Chat"]

T = TypeVar("T")


class Chat:
    """Sends with a history that grows: each send's messages are appended as they are made."""

    def __init__(self, agent: Agent[Any], history: Iterable[Message] = ()) -> None:
        """`history` is copied."""
        self.agent = agent
        self.history: list[Message] = list(history)

    @property
    def display_name(self) -> str:
        """The agent's."""
        return self.agent.display_name

    async def send(self, prompt: Prompt, **how: Unpack[RunOptions]) -> ChatResult[str]:
        """`Agent.send` with this history; `model=` goes on with another model."""
        return self._kept(await self.agent.send(prompt, **{**how, "history": self.history}))

    async def send_for(self, prompt: Prompt, output_type: type[T] | Any, **how: Unpack[RunOptions]) -> ChatResult[T]:
        """`Agent.send_for` with this history."""
        return self._kept(await self.agent.send_for(prompt, output_type, **{**how, "history": self.history}))

    async def send_stream(self, prompt: Prompt, **how: Unpack[RunOptions]) -> AsyncGenerator[ChatResult[str], None]:
        """`Agent.send_stream` with this history."""
        async with aclosing(self.agent.send_stream(prompt, **{**how, "history": self.history})) as chunks:
            async for chunk in chunks:
                yield self._kept(chunk)

    # the same from outside an event loop

    def send_sync(self, prompt: Prompt, **how: Unpack[RunOptions]) -> ChatResult[str]:
        """`send` from any thread."""
        return self._kept(self.agent.send_sync(prompt, **{**how, "history": self.history}))

    def send_for_sync(self, prompt: Prompt, output_type: type[T] | Any, **how: Unpack[RunOptions]) -> ChatResult[T]:
        """`send_for` from any thread."""
        return self._kept(self.agent.send_for_sync(prompt, output_type, **{**how, "history": self.history}))

    def send_stream_sync(self, prompt: Prompt, **how: Unpack[RunOptions]) -> Iterator[ChatResult[str]]:
        """`send_stream` from any thread."""
        for chunk in self.agent.send_stream_sync(prompt, **{**how, "history": self.history}):
            yield self._kept(chunk)

    def _kept(self, result: ChatResult[T]) -> ChatResult[T]:
        self.history.extend(result.messages)
        return result
