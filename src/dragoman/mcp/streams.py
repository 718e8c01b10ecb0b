"""The streams of a session, watched for their end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

__all__ = ["watched"]


@asynccontextmanager
async def watched(
    transport: AbstractAsyncContextManager[Any], ended: Callable[[], object]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """A transport whose end is told at once: `ended` is called when nothing more comes from the server."""
    async with transport as (read, write):
        yield _Watched(read, ended), write


class _Watched:
    """A stream to read from. `last_context` is what the library reads off some: the context in which a message was sent for."""

    def __init__(self, stream: Any, ended: Callable[[], object]) -> None:
        self._stream = stream
        self._ended = ended

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return await self._stream.receive()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def close(self) -> None:
        self._stream.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)
