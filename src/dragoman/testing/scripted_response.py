"""How a scripted answer arrives: its bytes in pieces, up to where the connection breaks or waits."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

import anyio.lowlevel

from dragoman.codec.emitter import Emitter
from dragoman.errors import (
    DragomanError,
    ProviderConnectionError,
    ProviderTimeoutError,
    StreamCutError,
)
from dragoman.event import Event, MessageFinished, RunError
from dragoman.fold import fold
from dragoman.message import Content, FinishReason, ToolCallPart
from dragoman.request import ModelRequest
from dragoman.testing.scripted_answer import Answer, Piece, as_message, finished, with_id
from dragoman.testing.wire.bench import cut_into, events_of

__all__ = ["ScriptedResponse", "delivered", "live_events", "written_events"]


class ScriptedResponse:
    """A `Response` that is made up. `ended` is called with it when it is over."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes],
        ended: Callable[[object], None],
    ) -> None:
        self.status = status
        self.headers = headers
        self._pieces = pieces
        self._ended = ended
        self._closed = False

    async def read(self) -> bytes:
        """See `Response.read`."""
        if self._closed:
            raise ProviderConnectionError("the answer was closed before this read: read it first")
        await anyio.lowlevel.checkpoint()
        piece = await anext(self._pieces, b"")
        if not piece:
            self._ended(self)
        return piece

    async def close(self) -> None:
        """See `Response.close`."""
        self._closed = True
        self._ended(self)
        await self._pieces.aclose()


async def delivered(answer: Answer, data: bytes, size: int) -> AsyncGenerator[bytes]:
    """The bytes of an answer, so many at a time, as far as it lets them through.

    Raises:
        StreamCutError: the connection breaks.
    """
    first = (
        int(len(data) * answer.share)
        if answer.cut or answer.wrong or answer.gate is not None
        else len(data)
    )
    for piece in cut_into(data[:first] + answer.wrong, size):
        yield piece
    if answer.gate is not None:
        await answer.gate.wait()
    if answer.cut:
        raise StreamCutError("the scripted connection breaks here")
    if not answer.wrong:
        for piece in cut_into(data[first:], size):
            yield piece


def written_events(content: Any, request: ModelRequest, number: int) -> list[Event]:
    """The events of an answer: those that were given, or those of the message that the texts and parts make."""
    message = as_message(content)
    return list(content) if message is None else events_of(finished(message, request, number))


async def live_events(
    pieces: AsyncIterator[Piece] | Iterator[Piece], request: ModelRequest, number: int
) -> AsyncGenerator[list[Event]]:
    """The events of pieces that come one by one, each as soon as it is there; an error that stops them is the last event. Texts that
    follow one another are one part.

    Raises:
        ProviderConnectionError: the pieces broke the connection off.
        ProviderTimeoutError: likewise.
    """
    emitter, calls = Emitter(lambda: f"m{number}"), 0
    given: list[Event] = []
    try:
        async with aclosing(_each(pieces)) as every:
            async for piece in every:
                if isinstance(piece, str):
                    emitter.text("text", piece)
                elif isinstance(piece, Content):
                    emitter.close_all()
                    calls += isinstance(piece, ToolCallPart)
                    emitter.whole(with_id(piece, f"call_{number}_{calls}"))
                else:
                    emitter.events.append(piece)
                given += (events := emitter.take())
                yield events
    except (ProviderConnectionError, ProviderTimeoutError):
        raise
    except DragomanError as error:
        yield [RunError(error)]
        return
    if not any(isinstance(event, MessageFinished) for event in given):
        emitter.close_all()
        emitter.start()
        message = finished(fold([*given, *emitter.events])[0], request, number)
        emitter.finish(message.finish_reason or FinishReason.stop, message.usage)
        yield emitter.take()


async def _each(pieces: AsyncIterator[Piece] | Iterator[Piece]) -> AsyncGenerator[Piece]:
    """The pieces of an iterator of either kind, which is closed with it."""
    if isinstance(pieces, AsyncIterator):
        try:
            async for piece in pieces:
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
    else:
        for piece in pieces:
            yield piece
