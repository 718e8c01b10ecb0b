"""`Sessions`: the session with a server that all its users in one event loop share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from dragoman.mcp.options import Options
from dragoman.runtime import running_loop

if TYPE_CHECKING:
    from dragoman.mcp.connection import Connection

__all__ = ["Sessions"]


class _SharedSession:
    """The session of one event loop and the number of its users."""

    def __init__(self) -> None:
        self.users = 0
        self.lock = asyncio.Lock()
        self.connection: Connection | None = None


class Sessions:
    """At most one session per event loop. The first user opens it, and it closes when the last one
    leaves."""

    def __init__(self, options: Options, name: str) -> None:
        self._options = options
        self._name = name
        self._loops: dict[asyncio.AbstractEventLoop, _SharedSession] = {}

    def enter(self) -> None:
        """Adds a user in this event loop."""
        self._get_session().users += 1

    async def leave(self) -> None:
        """Removes a user of the MCP session, and closes the MCP session after the last one."""
        shared = self._get_session()
        shared.users -= 1
        if shared.users <= 0:
            self._loops.pop(running_loop(), None)
            if shared.connection is not None:
                await shared.connection.close()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        """Yields the MCP session, and opens it if there is none or it broke.

        Raises:
            SignIn, ToolError: see `Connection.open`.
        """
        from dragoman.mcp.connection import Connection

        # Counts as a user meanwhile, so that nobody closes the session.
        self.enter()
        try:
            shared = self._get_session()
            # Two tasks that need the first session must not open two.
            async with shared.lock:
                if shared.connection is None or not shared.connection.alive:
                    if shared.connection is not None:
                        await shared.connection.close()
                    shared.connection = None
                    opened = Connection(self._options, self._name)
                    await opened.open()
                    shared.connection = opened
                connection = shared.connection
            yield connection
        finally:
            await self.leave()

    async def drop(self, connection: Connection) -> None:
        """Closes an MCP session that must not be used any more."""
        shared = self._get_session()
        if shared.connection is connection:
            shared.connection = None
        await connection.close()

    def _get_session(self) -> _SharedSession:
        """Returns the MCP session of this event loop, and forgets closed loops."""
        loop = running_loop()
        if loop not in self._loops:
            for ended in [
                loop_of_another
                for loop_of_another in list(self._loops)
                if loop_of_another.is_closed()
            ]:
                self._loops.pop(ended, None)
            self._loops[loop] = _SharedSession()
        return self._loops[loop]
