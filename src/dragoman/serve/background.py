"""Answers that are made without their client: work of the server's own, which ends with the server at the latest."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from dragoman.errors import OverloadedError
from dragoman.logs import logger

__all__ = ["Background"]

_LOG = logger("serve")


class Background:
    """Work that goes on without a connection, by the id of the call that began it."""

    def __init__(self, most: int | None) -> None:
        """`most`: so much may go on at a time."""
        self._most = most
        self._group: TaskGroup | None = None
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._ended: dict[str, anyio.Event] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """While the server runs. Leaving it cancels what still goes on, and waits until that has noted its end."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                group.cancel_scope.cancel()

    def start(self, id: str, work: Callable[[], Awaitable[None]]) -> None:  # noqa: A002 what it is
        """Begins work.

        Raises:
            OverloadedError: the server has not begun, is about to end, or has as much of it as may be.
        """
        if self._group is None:
            raise OverloadedError(
                "this server makes no answers in the background now: its application was not started, or ends"
            )
        if self._most is not None and len(self._scopes) >= self._most:
            raise OverloadedError("as many answers are made in the background as may be; try again", retry_after=1.0)
        scope, ended = anyio.CancelScope(), anyio.Event()
        self._scopes[id], self._ended[id] = scope, ended
        self._group.start_soon(self._run, id, scope, work)

    def is_running(self, id: str) -> bool:  # noqa: A002 what it is
        """Whether the work of that id goes on here."""
        return id in self._scopes

    async def cancel(self, id: str) -> bool:  # noqa: A002 what it is
        """Ends work, and waits for that → whether it went on here."""
        if (scope := self._scopes.get(id)) is None:
            return False
        ended = self._ended[id]
        scope.cancel()
        await ended.wait()
        return True

    async def _run(self, id: str, scope: anyio.CancelScope, work: Callable[[], Awaitable[None]]) -> None:  # noqa: A002 what it is
        try:
            with scope:
                await work()
        except Exception:  # noqa: BLE001 - nobody waits for it
            _LOG.exception("work in the background failed")
        finally:
            del self._scopes[id]
            self._ended.pop(id).set()
