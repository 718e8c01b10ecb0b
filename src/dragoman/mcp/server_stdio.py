"""`serve_stdio`: an MCP server on this process's standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager, redirect_stdout
from threading import Thread
from typing import Any, cast

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

__all__ = ["serve_stdio"]

_PIECE = 65536
_WAITING = 16
"""Pieces of input that may wait to be read."""


async def serve_stdio(server: Server[Any]) -> None:
    """Serves one MCP client on standard input and output until it closes the input, or until
    cancellation.

    Standard output carries only the protocol: other output goes to standard error meanwhile, and
    other readers of standard input find it empty.
    """
    with _take_input() as descriptor:
        # The library's own reader cannot be cancelled while it waits for a line.
        lines = _read_lines(descriptor)
        try:
            async with stdio_server(stdin=cast("Any", lines)) as (received, written):
                # Printed text would stay in the buffer and be written between messages of the
                # protocol later.
                with redirect_stdout(sys.stderr):
                    await server.run(received, written, server.create_initialization_options())
        finally:
            await lines.aclose()


@contextmanager
def _take_input() -> Generator[int]:
    """Moves the MCP server's standard input to another descriptor, which it yields. Other readers
    of standard input find it empty."""
    standard_input = sys.stdin.fileno()
    descriptor = os.dup(standard_input)
    # A tool or its child process that reads standard input would take messages of the protocol.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, standard_input)
    os.close(nothing)
    try:
        yield descriptor
    finally:
        os.dup2(descriptor, standard_input)


async def _read_lines(descriptor: int) -> AsyncGenerator[str, None]:
    """Yields the lines of the MCP server's standard input, which a thread reads, without blocking
    the event loop."""
    pieces: asyncio.Queue[bytes] = asyncio.Queue(_WAITING)
    loop = asyncio.get_running_loop()

    def read() -> None:
        """Reads lines of MCP messages from standard input, in a thread."""
        piece = b"-"
        while piece:
            piece = os.read(descriptor, _PIECE)
            try:
                # Waits while the queue is full, so that a fast client cannot fill the memory.
                asyncio.run_coroutine_threadsafe(pieces.put(piece), loop).result()
            except (RuntimeError, asyncio.CancelledError):
                # the loop has ended
                return

    # A daemon thread: nothing can end a read that waits.
    Thread(target=read, name="mcp-stdin", daemon=True).start()
    pending: list[bytes] = []
    while piece := await pieces.get():
        *lines, last = piece.split(b"\n")
        for line in lines:
            yield b"".join((*pending, line)).decode(errors="replace")
            pending.clear()
        pending.append(last)
