"""The end of a server's process with streams open: each client is told by its own protocol, and the
process ends in time and in order."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman import wires
from dragoman.event import RunError
from support.cli import SRC

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(120)]

ASKED = {"role": "user", "content": "Go on."}
BODIES: dict[str, tuple[str, Any]] = {
    "ag_ui": ("/ag-ui", {"messages": [{"id": "u", **ASKED}]}),
    "ai_sdk": (
        "/ai-sdk",
        {"messages": [{"id": "u", "role": "user", "parts": [{"type": "text", "text": "Go on."}]}]},
    ),
    "a2a": (
        "/a2a/message:stream",
        {"message": {"messageId": "u", "role": "ROLE_USER", "parts": [{"text": "Go on."}]}},
    ),
    "openai_chat": ("/v1/chat/completions", {"model": "m", "stream": True, "messages": [ASKED]}),
    "openai_responses": ("/v1/responses", {"model": "m", "stream": True, "input": "Go on."}),
    "anthropic": (
        "/v1/messages",
        {"model": "m", "stream": True, "max_tokens": 9000, "messages": [ASKED]},
    ),
    "ollama": ("/api/chat", {"model": "m", "messages": [ASKED]}),
    "cohere": ("/v2/chat", {"model": "m", "stream": True, "messages": [ASKED]}),
}
IDS = {"ag_ui": "threadId", "ai_sdk": "id"}
EACH = 25


class Client:
    """A stream that is read to its end."""

    def __init__(self, wire: str, number: int) -> None:
        path, body = BODIES[wire]
        if wire in IDS:
            body = {**body, IDS[wire]: f"{wire}-{number}", "runId": f"run-{number}"}
        self.wire, self.body, self._path, self._asked = wire, b"", path, body
        self.begun = asyncio.Event()

    async def read(self, session: aiohttp.ClientSession, url: str) -> None:
        async with session.post(url + self._path, json=self._asked) as response:
            assert response.status == 200, await response.text()
            async for data in response.content.iter_any():
                self.body += data
                if b"word" in self.body:
                    self.begun.set()

    def last(self) -> Any:
        """The last event, as the client reads the stream."""
        decoder = wires.get(self.wire).decoder()
        return [*decoder.feed(self.body), *decoder.close()][-1]


async def test_two_hundred_streams_are_told_of_the_end() -> None:
    arguments = (
        "serve",
        "ending_app:app",
        "--port",
        "0",
        "--drain",
        "1",
        "-C",
        str(Path(__file__).parent),
    )
    environment = {**os.environ, "PYTHONPATH": SRC, "PYTHONUNBUFFERED": "1"}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "dragoman",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    printed = b""
    while not (found := re.search(rb"http://127\.0\.0\.1:\d+(?=[\s/])", printed)):
        line = await process.stdout.readline()
        assert line, printed
        printed += line
    url = found[0].decode()
    clients = [Client(wire, number) for wire in BODIES for number in range(EACH)]
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        reading = [asyncio.create_task(client.read(session, url)) for client in clients]
        await asyncio.gather(*[client.begun.wait() for client in clients])
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 30) == 0
        await asyncio.gather(*reading)
    for client in clients:
        last = client.last()
        assert isinstance(last, RunError), (client.wire, client.body[-300:])
        assert "the server ends" in last.error.message, (
            client.wire,
            last.error,
            client.body[-300:],
        )
