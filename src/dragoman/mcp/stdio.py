"""The transport to an MCP server that is a program: it starts and ends the program, and keeps the
last lines of its standard error for error messages."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import StdioServerParameters, stdio_client

from dragoman.logs import logger
from dragoman.mcp.options import Command, Options

__all__ = ["Tail", "stdio_streams"]

_LOG = logger("mcp")
_LINE = 2000
"""Most characters of a line."""


class Tail:
    """The last lines of a server's standard error."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=5)

    def __str__(self) -> str:
        return " / ".join(self.lines)


@asynccontextmanager
async def stdio_streams(options: Options, name: str, tail: Tail) -> AsyncGenerator[Any, None]:
    """Starts an MCP server and yields its standard streams; it runs until the block ends. It gets
    `env` and a few of this process's variables (PATH, HOME, …).

    Raises:
        OSError: the program cannot be started.
    """
    assert isinstance(options.server, Command)
    program, *arguments = options.server.arguments
    parameters = StdioServerParameters(
        command=program,
        args=arguments,
        env=dict(options.env),
        cwd=None if options.cwd is None else str(options.cwd),
    )
    # The event loop of Windows cannot wait for a pipe.
    if sys.platform == "win32":
        async with stdio_client(parameters) as streams:
            yield streams
        return
    reader, writer = os.pipe()
    try:
        with os.fdopen(writer, "w") as errors:
            async with anyio.create_task_group() as group:
                async with stdio_client(parameters, errlog=errors) as streams:
                    # The program has its own copy: the pipe must end with it.
                    errors.close()
                    group.start_soon(_keep_lines, reader, name, tail)
                    yield streams
                group.cancel_scope.cancel()
    finally:
        os.close(reader)


async def _keep_lines(reader: int, name: str, tail: Tail) -> None:
    """Keeps the last lines of an MCP server's standard error, until it closes the pipe."""
    # A read must never block the event loop.
    os.set_blocking(reader, False)
    pending = b""
    while True:
        await anyio.wait_readable(reader)
        data = os.read(reader, 65536)
        *lines, pending = (pending + data).split(b"\n")
        # A line without an end is cut, so that it cannot fill the memory.
        if not data or len(pending) > _LINE:
            lines, pending = [*lines, pending], b""
        for line in lines:
            if text := line.decode(errors="replace").strip()[:_LINE]:
                tail.lines.append(text)
                _LOG.debug("%s writes: %s", name, text)
        if not data:
            return
