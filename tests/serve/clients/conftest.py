"""One server for the tests of all clients: an agent, and gateways before providers of other
wires."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cli import SRC

APP = Path(__file__).parent / "scripted_app.py"
BEHIND = (
    "agent anthropic",
    "agent openai_chat",
    *(
        f"gateway {wire}"
        for wire in (
            "openai_chat",
            "openai_responses",
            "anthropic",
            "google",
            "mistral",
            "ollama",
            "cohere",
        )
    ),
)


@pytest.fixture(scope="session", params=BEHIND)
def behind(request: pytest.FixtureRequest) -> str:
    """What the server stands before."""
    return request.param


@pytest.fixture(scope="session")
def url(behind: str) -> Iterator[str]:
    """The root of a server that needs a key."""
    with _running(*behind.split()) as root:
        yield root


@pytest.fixture(scope="session")
def open_url(behind: str) -> Iterator[str]:
    """The root of one that needs none."""
    with _running(*behind.split(), "open") as root:
        yield root


@pytest.fixture(scope="session", params=["anthropic", "google"])
def sealing_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The root of a gateway that keeps nothing, and seals what its provider signed."""
    with _running("sealing", request.param, "open") as root:
        yield root


@contextmanager
def _running(*arguments: str) -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(APP), *arguments],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC},
    )
    assert process.stdout is not None
    line = process.stdout.readline().decode().strip()
    assert line.startswith("http://"), "the server does not begin"
    yield line
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
