"""Clients over real sockets that behave as badly as clients do, before a server whose store is on disk: nothing of them is left."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest

from support.cli import SRC

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(180)]

CLIENTS = 240
AT_ONCE = 40
USER = {"role": "user", "content": "Go on."}
PARTS = [{"type": "text", "text": "Go on."}]


def body(chance: Random) -> tuple[str, dict[str, Any]]:
    """A request of some API, in one of few conversations."""
    thread = f"t{chance.randrange(30)}"
    text = {"messageId": f"m{chance.random()}", "role": "ROLE_USER", "contextId": thread, "parts": [{"text": "Go on."}]}
    return chance.choice(
        [
            ("/ag-ui", {"threadId": thread, "messages": [{"id": f"u{chance.random()}", **USER}]}),
            ("/ai-sdk", {"id": thread, "messages": [{"id": f"u{chance.random()}", "role": "user", "parts": PARTS}]}),
            ("/a2a/message:stream", {"message": text}),
            ("/v1/chat/completions", {"model": "m", "stream": True, "messages": [USER]}),
            ("/v1/responses", {"model": "m", "stream": True, "input": "Go on.", "conversation": thread}),
            ("/v1/responses", {"model": "m", "input": "Go on.", "background": True}),
            ("/v1/messages", {"model": "m", "max_tokens": 99, "messages": [USER]}),
        ]
    )


async def misbehave(port: int, chance: Random) -> None:
    """One client, from its connection to its end."""
    path, asked = body(chance)
    data = json.dumps(asked).encode()
    request = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    way = chance.choice(
        ["leaves", "leaves", "resets", "half", "half and waits", "never reads", "slow", "mutated", "reads"]
    )
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(raw, ("127.0.0.1", port))
        if way == "mutated":
            at = chance.randrange(len(request))
            request = request[:at] + chance.randbytes(3) + request[at + 2 :]
        if way.startswith("half"):
            request = request[: chance.randrange(len(request))]
        try:
            await loop.sock_sendall(raw, request)
            await _read(raw, way, chance)
        except OSError:
            pass
        if way == "resets":
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def _read(raw: socket.socket, way: str, chance: Random) -> None:
    loop = asyncio.get_running_loop()
    if way in ("half and waits", "never reads"):
        await asyncio.sleep(1.5)
        return
    left = {"half": 0, "reads": 1 << 30, "mutated": 1 << 30, "slow": 60}.get(way, chance.randrange(20_000))
    async with asyncio.timeout(3.0):
        while left > 0:
            size = 1 if way == "slow" else 4096
            data = await loop.sock_recv(raw, size)
            if not data:
                return
            left -= len(data)
            if way == "slow":
                await asyncio.sleep(0.01)


def sockets(process: int) -> int:
    links: list[str] = []
    for each in Path(f"/proc/{process}/fd").iterdir():
        with suppress(FileNotFoundError):
            links.append(os.readlink(each))  # noqa: PTH115 a socket is no path
    return sum(link.startswith("socket:") for link in links)


async def test_nothing_is_left_of_clients_that_misbehave(tmp_path: Path) -> None:
    script, store = Path(__file__).with_name("chaos_app.py"), f"sqlite:///{tmp_path}/answers.db"
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), store, stdout=asyncio.subprocess.PIPE, env={**os.environ, "PYTHONPATH": SRC}
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip()
    port = int(url.rpartition(":")[2])

    async def one(at: int) -> None:
        with suppress(TimeoutError):
            await misbehave(port, Random(at))

    async with aiohttp.ClientSession() as session:
        told = {"model": "m", "messages": [USER]}
        async with session.post(f"{url}/v1/chat/completions", json=told) as answer:
            assert answer.status == 200
        before = sockets(process.pid)
        for start in range(0, CLIENTS, AT_ONCE):
            await asyncio.gather(*[one(at) for at in range(start, start + AT_ONCE)])
        async with session.post(f"{url}/v1/chat/completions", json=told) as answer:  # it serves as before
            assert "word" in (await answer.json())["choices"][0]["message"]["content"]
        async with asyncio.timeout(30):
            while True:
                async with session.get(f"{url}/metrics") as answer:
                    text = await answer.text()
                    refused = [
                        float(each)
                        for each in re.findall(r'^dragoman_calls_total\{.*status="5\d\d".*\} (\S+)', text, re.MULTILINE)
                    ]
                    open_now = re.search(r"^dragoman_open_calls (\S+)", text, re.MULTILINE)
                assert open_now is not None, text
                if float(open_now[1]) <= 1 and sockets(process.pid) <= before:
                    break
                await asyncio.sleep(0.1)
        assert sum(refused) == 0
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 30) == 0
