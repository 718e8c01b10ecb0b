"""A server with scripted agents and the page, in a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path

from support.ports import free_port

__all__ = ["CHROMIUM", "ROOT", "SHOTS", "Relay", "free_port", "served", "wait_until_served"]

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SHOTS = Path(os.environ.get("DRAGOMAN_SHOTS", ROOT / ".cache" / "page" / "shots"))
"""Where the pictures of a test run are kept."""


@contextmanager
def served(port: int, *keys: str, **environment: str) -> Iterator[str]:
    """Serves the agents in a process of their own, which is killed at the end."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "page" / "page_agents.py"), str(port), *keys],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_served(url, process)
        yield url
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def wait_until_served(url: str, process: subprocess.Popen[bytes]) -> None:
    """Waits until a server answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{url}/page/session").close()
            break
        except OSError:
            if process.poll() is not None:
                raise RuntimeError("the server has ended") from None
            time.sleep(0.1)


class Relay:
    """A port that leads to other ones, to each in turn, and can be cut like a cable."""

    def __init__(self, *ports: int) -> None:
        self._targets = cycle(ports)
        self._count = len(ports)
        self._is_cut = False
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Ends all connections, and those that come."""
        self._is_cut = True
        for held in self._open:
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self._is_cut:
                near.close()
                continue
            if (far := self._connect()) is None:
                near.close()
                continue
            self._open += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _connect(self) -> socket.socket | None:
        """A connection to the next port that takes one."""
        for _ in range(self._count):
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", next(self._targets)))
        return None

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for held in (source, sink):
            with suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()
