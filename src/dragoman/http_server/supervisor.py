"""Runs several processes that serve one port, and starts those again that die.

This process alone listens. It hands each connection to the next process that has room:
measured against one socket for each process (`SO_REUSEPORT`) and against a shared one, this alone
spreads a few connections that are kept open, on every system, and a process that hangs gets no more
than `_MOST_WAITING`. A connection is closed here once its process has taken it; if the process dies before that,
another one gets it. See `server_process` for the messages.

The first process is started alone: if the application cannot start, that is told once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from tempfile import TemporaryFile
from time import monotonic

from dragoman import json_bytes
from dragoman.http_server.listener import handle_signals
from dragoman.http_server.server_process import CONNECT, DRAIN, STOP, VARIABLE, ServerProcess
from dragoman.logs import logger

__all__ = ["Supervisor"]

_LOG = logger("serve")
_MOST_WAITING = 8
"""Connections that a process has not taken yet. Few, since others cannot have them: a process
that hangs gets no more than these. If all have so many, the port's queue grows."""
_MOST_DEATHS = 5
"""How often in a row a process may die soon after its start."""
_SHORT_LIFE = 30.0
"""Seconds: a process that lived for less died soon."""
_FIRST_PAUSE = 0.5
"""Seconds before a process is started again that died twice in a row; doubled each time."""
_GRACE_SECONDS = 10.0
"""Seconds that a process has to end itself after its calls were ended, before it is killed."""
_ENDED_ORDERLY = (0, -signal.SIGTERM)


class _Slot:
    """The place of one of the processes, which are replaced when they die."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.process: asyncio.subprocess.Process | None = None
        self.channel: socket.socket | None = None
        self.waiting: deque[socket.socket] = deque()
        """Connections that were handed over and not taken yet."""
        self.is_ready = False
        self.received = b""
        self.turn = 0
        """When it got a connection last."""
        self.deaths = 0
        """How often in a row its process died soon."""


class Supervisor:
    """Supervises the processes that serve one port."""

    def __init__(
        self,
        command: Sequence[str],
        count: int,
        listener: socket.socket,
        url: str,
        *,
        count_bytes: int,
        drain_seconds: float,
        ready: Callable[[str], object],
    ) -> None:
        """Creates a supervisor that runs nothing yet.

        Args:
            command: the command line of each process, which reads `ServerProcess.from_environment`.
            count: number of processes.
            listener: a socket that listens; it stays the caller's.
            url: URL of the server.
            count_bytes: size of the memory in which each process counts.
            drain_seconds: time that a process takes to end at most.
            ready: called once all can serve, with the text that they gave.
        """
        self._command, self._url, self._listener = command, url, listener
        self._count_bytes, self._drain_seconds, self._ready = count_bytes, drain_seconds, ready
        self._slots = [_Slot(index) for index in range(count)]
        self._not_ready = {slot.index for slot in self._slots}
        """The places whose first process is not ready yet."""
        self._counts: list[int] = []
        self._begun, self._stopping = asyncio.Event(), asyncio.Event()
        self._unplaced: deque[socket.socket] = deque()
        """Connections of processes that died before they took them."""
        self._is_accepting = False
        self._turn = self._exit_code = 0

    async def run(self) -> int:
        """Runs the processes until this one is asked to end. Returns the exit code: 0, that of the
        first process if it could not start, or 1 if a process dies again and again or had to be
        killed."""
        loop = asyncio.get_running_loop()
        self._listener.setblocking(False)
        with ExitStack() as files, handle_signals(self._drain, self._stop):
            for _ in self._slots:
                # The files have no name, so that nothing is left of them if this process is killed.
                file = files.enter_context(TemporaryFile())
                file.truncate(self._count_bytes)
                self._counts.append(file.fileno())
            try:
                async with asyncio.TaskGroup() as tasks:
                    for slot in self._slots:
                        tasks.create_task(self._keep_running(slot))
            finally:
                loop.remove_reader(self._listener)
                for connection in self._unplaced:
                    connection.close()
        return self._exit_code

    async def _keep_running(self, slot: _Slot) -> None:
        """Runs the processes of a place, one after the other, until the server ends."""
        if slot.index:
            await self._begun.wait()
        while not self._stopping.is_set():
            began_at = monotonic()
            code = await self._run_process(slot)
            if self._stopping.is_set():
                if code not in _ENDED_ORDERLY:
                    _LOG.error("process %d %s while it was to end", slot.index, _describe_end(code))
                    self._exit_code = 1
            elif not self._begun.is_set():
                # It has said why.
                self._end(code if code > 0 else 1)
            else:
                await self._wait_after_death(slot, code, monotonic() - began_at)

    async def _wait_after_death(self, slot: _Slot, code: int, lived: float) -> None:
        """Waits before a process is started again, or ends the server if it died too often."""
        slot.deaths = slot.deaths + 1 if lived < _SHORT_LIFE else 1
        if slot.deaths >= _MOST_DEATHS:
            _LOG.error(
                "process %d %s, %d times in a row within %g seconds of its start: the server ends",
                *(slot.index, _describe_end(code), slot.deaths, _SHORT_LIFE),
            )
            self._end(1)
            return
        pause = _FIRST_PAUSE * 2 ** (slot.deaths - 2) if slot.deaths > 1 else 0.0
        _LOG.warning(
            "process %d %s; it is started again%s",
            *(slot.index, _describe_end(code), f" in {pause:g} seconds" if pause else ""),
        )
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), pause)

    async def _run_process(self, slot: _Slot) -> int:
        """Runs one process. Returns its exit code, negative for a signal."""
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                record = ServerProcess(slot.index, self._url, theirs.fileno(), self._counts)
                try:
                    # A session of its own: Ctrl-C is for this process, which passes it on.
                    process = await asyncio.create_subprocess_exec(
                        *self._command,
                        stdin=asyncio.subprocess.DEVNULL,
                        pass_fds=(theirs.fileno(), *self._counts),
                        env={**os.environ, VARIABLE: json_bytes.encode(record).decode()},
                        start_new_session=True,
                    )
                except OSError as error:
                    _LOG.error("process %d cannot be started: %s", slot.index, error.strerror)
                    return 1
            ours.setblocking(False)
            slot.process, slot.channel, slot.received = process, ours, b""
            loop = asyncio.get_running_loop()
            loop.add_reader(ours, self._receive, slot)
            try:
                if self._stopping.is_set():
                    process.terminate()
                return await process.wait()
            finally:
                loop.remove_reader(ours)
                if process.returncode is None:
                    process.kill()
                self._remove_process(slot)

    def _remove_process(self, slot: _Slot) -> None:
        """Gives the connections that a process has not taken to others."""
        slot.process, slot.channel, slot.is_ready = None, None, False
        self._unplaced += slot.waiting
        slot.waiting.clear()
        self._place_connections()

    def _receive(self, slot: _Slot) -> None:
        """Reads what a process says."""
        assert slot.channel is not None
        try:
            data = slot.channel.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            slot.is_ready = False
            asyncio.get_running_loop().remove_reader(slot.channel)
            return
        if not slot.is_ready:
            slot.received += data
            text, newline, data = slot.received.partition(b"\n")
            if not newline:
                return
            self._note_ready(slot, json_bytes.decode(text))
        for _ in data[: len(slot.waiting)]:
            slot.waiting.popleft().close()
        if self._unplaced or not self._is_accepting:
            self._place_connections()

    def _note_ready(self, slot: _Slot, text: str) -> None:
        """Lets a process have connections. Once all of them can, the server is ready."""
        slot.is_ready = True
        self._begun.set()
        if self._stopping.is_set():
            self._order(slot, DRAIN)
        if slot.index in self._not_ready:
            self._not_ready.remove(slot.index)
            if not self._not_ready:
                self._ready(text)

    def _accept(self) -> None:
        """Accepts connections, as many as processes have room for."""
        while True:
            if (slot := self._choose()) is None:
                self._is_accepting = False
                asyncio.get_running_loop().remove_reader(self._listener)
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                _LOG.error("no connection can be accepted: %s", error.strerror)
                self._is_accepting = False
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener)
                loop.call_later(1.0, self._place_connections)
                return
            self._hand_over(connection, slot)

    def _hand_over(self, connection: socket.socket, slot: _Slot) -> None:
        """Hands a connection to a process, or keeps it for another one if that has just died."""
        assert slot.channel is not None
        try:
            socket.send_fds(slot.channel, [CONNECT], [connection.fileno()])
        except OSError:
            # Its end is handled where it is waited for.
            slot.is_ready = False
            self._unplaced.append(connection)
            return
        self._turn += 1
        slot.turn = self._turn
        slot.waiting.append(connection)

    def _place_connections(self) -> None:
        """Hands over the connections that have no process, and accepts more if there is room."""
        while self._unplaced and (slot := self._choose()) is not None:
            self._hand_over(self._unplaced.popleft(), slot)
        if not self._is_accepting and self._choose() is not None:
            self._is_accepting = True
            asyncio.get_running_loop().add_reader(self._listener, self._accept)

    def _choose(self) -> _Slot | None:
        """Returns the process that gets the next connection, or None if none has room."""
        ready = [
            slot for slot in self._slots if slot.is_ready and len(slot.waiting) < _MOST_WAITING
        ]
        return min(ready, key=lambda slot: slot.turn, default=None)

    def _drain(self) -> None:
        """Asks every process to end after the calls that run, and kills those that do not."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._begun.set()
        for slot in self._slots:
            self._order(slot, DRAIN)
        loop = asyncio.get_running_loop()
        loop.call_later(self._drain_seconds + _GRACE_SECONDS, self._kill)

    def _stop(self) -> None:
        """Asks every process to end now."""
        for slot in self._slots:
            self._order(slot, STOP)

    def _end(self, code: int) -> None:
        """Ends the server with an exit code."""
        self._exit_code = code
        self._drain()

    def _order(self, slot: _Slot, order: bytes) -> None:
        """Sends a message to a process. One that does not serve yet gets the signal."""
        if slot.process is None or slot.channel is None:
            return
        # Not by a signal: a service manager may have signalled the process too, and a second
        # signal ends it at once.
        with suppress(OSError):
            if slot.is_ready:
                slot.channel.send(order)
            else:
                slot.process.terminate()

    def _kill(self) -> None:
        """Kills the processes that have not ended."""
        for slot in self._slots:
            if slot.process is not None:
                slot.process.kill()


def _describe_end(code: int) -> str:
    """Describes how a process ended."""
    if code >= 0:
        return f"ended with {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
