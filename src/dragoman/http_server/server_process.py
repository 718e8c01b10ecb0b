"""One of several processes that serve one port: what it has from the process that supervises it.

The supervising process (`supervisor`) accepts every connection and hands it over by a channel, a
pair of sockets. Each message is one byte, and with `CONNECT` comes the connection's file descriptor.
The process answers with a line when it can serve, and then with one byte for each connection that it
took. If the supervising process is gone, the channel ends, and so does this process.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress

import msgspec

from dragoman import json_bytes
from dragoman.errors import SettingsError

__all__ = ["CONNECT", "DRAIN", "STOP", "TAKEN", "VARIABLE", "ConnectionInbox", "ServerProcess"]

CONNECT, DRAIN, STOP = b"c", b"d", b"s"
"""Messages to a process: take a connection, end after the calls that run, end now."""
TAKEN = b"."
"""The answer to `CONNECT`."""
VARIABLE = "DRAGOMAN_SERVER_PROCESS"
"""The environment variable that holds a `ServerProcess` as JSON."""
_MOST_CONNECTIONS = 64
"""Connections that are taken at a time."""


class ServerProcess(msgspec.Struct, frozen=True):
    """What a process has from the one that supervises it."""

    index: int
    """Its number, from 0. The process that replaces it has the same."""
    url: str
    """The URL of the server."""
    channel: int
    """File descriptor of its end of the channel."""
    counts: list[int]
    """File descriptors of the memory in which each process counts, by index."""

    @classmethod
    def from_environment(cls) -> ServerProcess | None:
        """Returns what the supervising process handed over, or None if there is no such process.
        The variable is removed, and child processes do not inherit the descriptors.

        Raises:
            SettingsError: the variable was set by something else.
        """
        text = os.environ.pop(VARIABLE, None)
        if text is None:
            return None
        try:
            process = msgspec.json.decode(text, type=ServerProcess)
            for descriptor in (process.channel, *process.counts):
                os.set_inheritable(descriptor, False)
        except (msgspec.MsgspecError, OSError) as error:
            raise SettingsError(
                f"{VARIABLE} is only for processes of `dragoman serve --processes`; unset it"
            ) from error
        return process


class ConnectionInbox:
    """Takes the connections of a process from its channel."""

    def __init__(
        self, channel: socket.socket, *, drain: Callable[[], object], stop: Callable[[], object]
    ) -> None:
        """Creates the inbox. `drain` and `stop` are called if the process is asked to end; `drain`
        also if the supervising process is gone."""
        channel.setblocking(False)
        self._channel = channel
        self._orders = {DRAIN: drain, STOP: stop}
        self._make_protocol: Callable[[], asyncio.BaseProtocol] | None = None
        self._connecting: set[asyncio.Task[None]] = set()

    def open(self, make_protocol: Callable[[], asyncio.BaseProtocol], ready: str) -> None:
        """Says that the process can serve, with a text for the supervising process, and takes
        connections from now on."""
        self._make_protocol = make_protocol
        with suppress(OSError):  # Its end is read below.
            self._channel.send(json_bytes.encode(ready) + b"\n")
        asyncio.get_running_loop().add_reader(self._channel, self._receive)

    def close(self) -> None:
        """Takes no more connections."""
        asyncio.get_running_loop().remove_reader(self._channel)
        self._channel.close()

    def _receive(self) -> None:
        """Reads messages of the supervising process."""
        try:
            orders, descriptors, _, _ = socket.recv_fds(
                self._channel, _MOST_CONNECTIONS, _MOST_CONNECTIONS
            )
        except BlockingIOError:
            return
        except OSError:
            orders, descriptors = b"", []
        if not orders:
            asyncio.get_running_loop().remove_reader(self._channel)
            self._orders[DRAIN]()
            return
        for descriptor in descriptors:
            task = asyncio.create_task(self._connect(socket.socket(fileno=descriptor)))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
        # A connection that this process has no descriptor left for counts as taken: the
        # supervising process then closes it.
        if taken := orders.count(CONNECT):
            with suppress(OSError):
                self._channel.send(TAKEN * taken)
        for order, act in self._orders.items():
            if order in orders:
                act()

    async def _connect(self, connection: socket.socket) -> None:
        """Serves a connection."""
        assert self._make_protocol is not None
        connection.setblocking(False)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make_protocol, connection
            )
        except OSError:  # The client has left already.
            connection.close()
