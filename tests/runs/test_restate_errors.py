"""What the engine on Restate says when Restate is not there, or is something else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman.errors import RunLogError, SettingsError
from dragoman.runs import Limit, Runs, restate_engine
from dragoman.runs.memory_log import MemoryLog
from dragoman.runs.restate_engine import RestateEngine
from support.ports import free_port

pytestmark = pytest.mark.anyio

QUEUES = {"default": Limit()}


async def drive(_run_id: str) -> bool:
    raise AssertionError("nothing is enqueued")


@pytest.fixture
async def log() -> AsyncIterator[MemoryLog]:
    async with MemoryLog() as log:
        yield log


async def answering(status: int, body: bytes) -> tuple[asyncio.Server, str]:
    """A server that gives every request the same answer, and its URL."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_server_that_is_not_there_is_named(log: MemoryLog) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    engine = RestateEngine(log, ingress_url=url, admin_url=url, listen="127.0.0.1:0")
    async with Runs(log, engine=engine) as runs:
        with pytest.raises(RunLogError, match=f"Restate cannot be reached at {url}/dragoman-de"):
            await runs.enqueue("a", "Do it.", run_id="r")
        # It is stored all the same: a worker finds it there.
        assert (await runs.status("r")).state == "queued"
    with pytest.raises(RunLogError, match="start it, or set RESTATE_INGRESS_URL and RESTATE_ADMIN"):
        await engine.work(drive, queues=QUEUES)
    await engine.close()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"services": 3}', b'{"services": [{}]}', b""])
async def test_another_server_is_no_restate(log: MemoryLog, body: bytes) -> None:
    server, url = await answering(200, body)
    async with server:
        engine = RestateEngine(log, admin_url=url, listen="127.0.0.1:0")
        with pytest.raises(RunLogError, match="no Restate answers there"):
            await engine.work(drive, queues=QUEUES)
        await engine.close()


async def test_a_refusal_is_told_with_its_reason(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restate_engine, "_REGISTER_SECONDS", 0.0)
    server, url = await answering(400, b'{"message": "cannot discover"}')
    async with server:
        engine = RestateEngine(log, ingress_url=url, admin_url=url, listen="127.0.0.1:0")
        with pytest.raises(RunLogError, match=r"does not take run r \(400\): .*cannot discover"):
            await engine.enqueue("r", queue="default")
        with pytest.raises(
            RunLogError, match=r"cannot use the worker at .*cannot discover.*WORKER"
        ):
            await engine.work(drive, queues=QUEUES)
        await engine.close()


@pytest.mark.parametrize("queue", ["", "a/b", "é", "a b", "a?b", "../x"])
async def test_a_queue_needs_a_name_that_restate_takes(log: MemoryLog, queue: str) -> None:
    engine = RestateEngine(log)
    with pytest.raises(SettingsError, match="is no name for Restate, with"):
        await engine.enqueue("r", queue=queue)
    with pytest.raises(SettingsError, match="is no name for Restate, with"):
        await engine.work(drive, queues={queue: Limit()})


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "http://127.0.0.1:0", "[::1]:0", "localhost:0"])
async def test_where_a_worker_listens(log: MemoryLog, listen: str) -> None:
    server, url = await answering(200, b'{"services": [{"name": "dragoman-default"}]}')
    async with server:
        engine = RestateEngine(log, admin_url=url, listen=listen)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(engine.work(drive, queues=QUEUES), 0.2)
        await engine.close()


@pytest.mark.parametrize(
    "listen",
    ["127.0.0.1:x", "127.0.0.1:99999", "no.such.host.invalid:0", "lb.example", "http://[", ""],
)
async def test_nothing_can_listen_there(log: MemoryLog, listen: str) -> None:
    engine = RestateEngine(log, worker_url="https://lb.example", listen=listen)
    with pytest.raises(SettingsError, match=r"no address to listen at|there is no host"):
        await engine.work(drive, queues=QUEUES)


async def test_settings_come_from_the_environment(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []

    async def send(_self: Any, request: Any) -> Any:
        sent.append(request)
        raise restate_engine.ProviderError("enough")

    monkeypatch.setattr("dragoman.transport.aiohttp.AiohttpTransport.send", send)
    monkeypatch.setenv("RESTATE_INGRESS_URL", "https://restate.example/")
    monkeypatch.setenv("RESTATE_AUTH_TOKEN", "secret")
    monkeypatch.setenv("RESTATE_SERVICE_PREFIX", "acme")
    with pytest.raises(RunLogError) as caught:
        await RestateEngine(log).enqueue("a/é", queue="q")
    assert "secret" not in str(caught.value)
    assert sent[0].path == "https://restate.example/acme-q/drive/send"
    assert sent[0].headers["authorization"] == "Bearer secret"
    assert sent[0].headers["idempotency-key"] == "a%2F%C3%A9"
    assert sent[0].body == '"a/é"'.encode()
