"""`AiohttpTransport` against a server on this machine: reading, timeouts, cuts, closing (rules 2
and 8, pains B5)."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import subprocess
import sys
import time
from typing import Any

import anyio
import pytest

from dragoman.errors import (
    ProviderConnectionError,
    ProviderTimeoutError,
    SettingsError,
    StreamCutError,
)
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport, Response, Timeouts
from dragoman.transport.aiohttp_response import AiohttpResponse
from dragoman.transport.base import ConnectionLostError
from support.socket_server import Do, Server, answer, serving, serving_elsewhere

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

GET = "GET"


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def read_all(response: Response) -> bytes:
    pieces: list[bytes] = []
    while data := await response.read():
        pieces.append(data)
    return b"".join(pieces)


async def test_request_and_answer_pass_unchanged():
    async with serving(
        answer(b'{"a":', b"1}", status=418, headers={"X-Request-ID": "r1"})
    ) as server:
        transport = AiohttpTransport()
        request = HttpRequest(
            f"{server.url}/v1/chat?alt=sse", {"X-Key": "k", "User-Agent": "mine"}, {"é": [1, None]}
        )
        response = await transport.send(request)
        assert (response.status, response.headers["x-request-id"]) == (418, "r1")
        assert await read_all(response) == b'{"a":1}'
        assert await response.read() == b""
        await transport.close()
    received = server.requests[0]
    assert (received.method, received.target) == ("POST", "/v1/chat?alt=sse")
    assert received.body == '{"é":[1,null]}'.encode()
    assert received.headers["content-type"] == "application/json"
    assert (received.headers["x-key"], received.headers["user-agent"]) == ("k", "mine")


async def test_bytes_and_no_body_are_sent_as_they_are():
    async with serving(answer(b"x")) as server:
        transport = AiohttpTransport()
        await read_all(
            await transport.send(
                HttpRequest(server.url, {"Content-Type": "audio/wav"}, b"\x00\xff")
            )
        )
        await read_all(await transport.send(HttpRequest(server.url, method=GET)))
        await transport.close()
    first, second = server.requests
    assert (first.body, first.headers["content-type"]) == (b"\x00\xff", "audio/wav")
    assert (second.method, second.body) == ("GET", b"")


async def test_each_chunk_passes_through_at_once():
    """The server goes on only when the chunk before has been read."""
    gates = [asyncio.Event() for _ in range(3)]
    steps = [step for number, gate in enumerate(gates) for step in (b"chunk %d" % number, gate)]
    async with serving(answer(*steps)) as server:
        transport = AiohttpTransport()
        with anyio.fail_after(10):
            response = await transport.send(HttpRequest(server.url))
            for number, gate in enumerate(gates):
                assert await response.read() == b"chunk %d" % number
                gate.set()
            assert await response.read() == b""
        await transport.close()


async def test_compressed_answers_are_not_asked_for_but_understood():
    packed = gzip.compress(b"hello")
    async with serving(
        answer(packed, length=len(packed), headers={"content-encoding": "gzip"})
    ) as server:
        transport = AiohttpTransport()
        assert await read_all(await transport.send(HttpRequest(server.url))) == b"hello"
        await transport.close()
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_redirects_and_cookies_are_left_alone():
    async with serving(
        answer(status=307, headers={"location": "/elsewhere", "set-cookie": "a=b"})
    ) as server:
        transport = AiohttpTransport()
        for _ in range(2):
            response = await transport.send(HttpRequest(server.url, body={}))
            assert response.status == 307
            await read_all(response)
        await transport.close()
    assert [request.target for request in server.requests] == ["/", "/"]
    assert not any("cookie" in request.headers for request in server.requests)


async def test_refused_connection_names_the_host_and_what_to_do_but_no_key():
    async with serving([]) as server:
        url = f"{server.url}/v1beta?key=sekret"
    transport = AiohttpTransport()
    with pytest.raises(
        ProviderConnectionError, match=r"127\.0\.0\.1:\d+ .*check that the server is running"
    ) as caught:
        await transport.send(HttpRequest(url, {"authorization": "Bearer sekret"}, {}))
    assert "sekret" not in str(caught.value)
    assert caught.value.__cause__ is None
    await transport.close()


@pytest.mark.parametrize(
    "url",
    ["nonsense", "http://", "ftp://host/x", "http://host:port/", "http://[::1", "http://a..b/"],
)
async def test_url_that_is_none_is_a_setting(url: str):
    transport = AiohttpTransport()
    with pytest.raises(SettingsError) as caught:
        await transport.send(HttpRequest(f"{url}?key=sekret"))
    assert "base URL" in str(caught.value)
    assert "sekret" not in str(caught.value)
    await transport.close()


async def test_host_that_nobody_knows(monkeypatch: pytest.MonkeyPatch):
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    transport = AiohttpTransport()
    with pytest.raises(
        ProviderConnectionError, match=r"the host provider\.test is not known \(Name or"
    ):
        await transport.send(HttpRequest("https://provider.test/v1"))
    await transport.close()


async def test_key_with_a_line_break_is_a_setting():
    async with serving(answer()) as server:
        transport = AiohttpTransport()
        with pytest.raises(SettingsError, match="line break") as caught:
            await transport.send(HttpRequest(server.url, {"x-api-key": "sekret\n"}, {}))
        assert "sekret" not in str(caught.value)
        await transport.close()


@pytest.mark.parametrize(
    ("timeouts", "script", "text"),
    [
        (Timeouts(read=0.05), [Do.HANG], r"nothing came from 127\.0\.0\.1:\d+ for 0\.05 s"),
        (Timeouts(total=0.05), [Do.HANG], r"was not complete within 0\.05 s"),
    ],
)
async def test_no_answer_in_time(timeouts: Timeouts, script: list[object], text: str):
    async with serving(script) as server:
        transport = AiohttpTransport(timeouts)
        with pytest.raises(ProviderTimeoutError, match=text):
            await transport.send(HttpRequest(server.url))
        with anyio.fail_after(10):
            await server.left.wait()
        await transport.close()


@pytest.mark.parametrize(
    ("timeouts", "text"),
    [(Timeouts(read=0.1), "nothing came"), (Timeouts(total=0.1), "was not complete")],
)
async def test_body_that_stops_is_delivered_and_then_times_out(timeouts: Timeouts, text: str):
    async with serving(answer(b"some", Do.HANG)) as server:
        transport = AiohttpTransport(timeouts)
        response = await transport.send(HttpRequest(server.url))
        assert await response.read() == b"some"
        with pytest.raises(ProviderTimeoutError, match=text):
            await response.read()
        await response.close()
        with anyio.fail_after(10):
            await server.left.wait()
        await transport.close()


async def test_read_timeout_counts_from_byte_to_byte():
    """A stream may last longer than the time between two of its reads."""
    drips = [step for _ in range(8) for step in (b"x", 0.05)]
    async with serving(answer(*drips)) as server:
        transport = AiohttpTransport(Timeouts(read=0.3))
        assert await read_all(await transport.send(HttpRequest(server.url))) == b"x" * 8
        await transport.close()


async def test_read_timeout_does_not_count_while_nobody_reads():
    gate = asyncio.Event()
    async with serving(answer(b"one", gate, b"two")) as server:
        transport = AiohttpTransport(Timeouts(read=0.1))
        response = await transport.send(HttpRequest(server.url))
        assert await response.read() == b"one"
        await asyncio.sleep(0.3)
        asyncio.get_running_loop().call_later(0.01, gate.set)
        assert await read_all(response) == b"two"
        await transport.close()


async def test_connection_that_never_stands():
    """A TLS server that says nothing: the connection counts as standing when TLS does."""
    async with serving([Do.HANG]) as server:
        transport = AiohttpTransport(Timeouts(connect=0.05))
        with pytest.raises(
            ProviderTimeoutError, match=r"no connection to 127\.0\.0\.1:\d+ within 0\.05 s"
        ):
            await transport.send(HttpRequest(server.url.replace("http:", "https:")))
        await transport.close()


@pytest.mark.parametrize("ending", [Do.CLOSE, Do.RESET])
@pytest.mark.parametrize("length", [None, 100])
async def test_cut_in_the_body_delivers_all_that_came_first(length: int | None, ending: Do):
    """All of it arrives together with the end of the connection, before the first read."""
    async with serving(answer(b"one", b"two", 0.01, ending, length=length)) as server:
        transport = AiohttpTransport()
        response = await transport.send(HttpRequest(server.url))
        await server.idle.wait()
        await asyncio.sleep(0.05)
        got = b""
        with pytest.raises(StreamCutError, match="was cut before the answer ended"):
            while True:
                got += await response.read()
        assert got == b"onetwo"
        with pytest.raises(StreamCutError):
            await response.read()
        await response.close()
        await transport.close()


async def test_cut_while_reading():
    gate = asyncio.Event()
    async with serving(answer(b"one", gate, Do.CLOSE)) as server:
        transport = AiohttpTransport()
        response = await transport.send(HttpRequest(server.url))
        assert await response.read() == b"one"
        gate.set()
        with pytest.raises(StreamCutError):
            await response.read()
        await transport.close()


@pytest.mark.parametrize("ending", [Do.CLOSE, Do.RESET])
async def test_connection_that_ends_without_an_answer(ending: Do):
    async with serving([0.01, ending]) as server:
        transport = AiohttpTransport()
        with pytest.raises(ProviderConnectionError, match=r"127\.0\.0\.1"):
            await transport.send(HttpRequest(server.url, body={}))
        await transport.close()


@pytest.mark.parametrize(
    "reply", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"]
)
async def test_answer_that_is_not_http(reply: bytes):
    async with serving([reply, Do.HANG]) as server:
        transport = AiohttpTransport()
        with anyio.fail_after(10), pytest.raises(ProviderConnectionError, match="not HTTP"):
            await transport.send(HttpRequest(server.url))
        await transport.close()


async def test_body_that_is_not_http():
    """A chunk without a proper size, in the middle of a body, is an error: aiohttp alone would wait
    for ever."""
    gate = asyncio.Event()
    async with serving([*answer(b"one", Do.HANG)[:-1], gate, b"zzz\r\nrest", Do.HANG]) as server:
        transport = AiohttpTransport(Timeouts(read=1.0))
        response = await transport.send(HttpRequest(server.url))
        assert await response.read() == b"one"
        gate.set()
        with anyio.fail_after(10), pytest.raises(StreamCutError):
            await response.read()
        await transport.close()


async def test_closing_early_closes_the_connection_at_once():
    """Pains B5: a provider goes on (and bills) until it sees the connection end."""
    async with serving(answer(b"one", Do.HANG)) as server:
        transport = AiohttpTransport()
        response = await transport.send(HttpRequest(server.url))
        await response.read()
        await response.close()
        with anyio.fail_after(10):
            await server.left.wait()
        with pytest.raises(ProviderConnectionError, match="broke"):
            await response.read()
        await response.close()
        await transport.close()


async def test_what_was_not_read_is_given_up_by_close():
    async with serving(answer(b"one", Do.HANG)) as server:
        transport = AiohttpTransport()
        response = await transport.send(HttpRequest(server.url))
        await asyncio.sleep(0.05)
        await response.close()
        with pytest.raises(ProviderConnectionError):
            await response.read()
        await transport.close()


@pytest.mark.parametrize("script", [[Do.HANG], answer(b"one", Do.HANG)])
async def test_cancellation_closes_the_connection_at_once(script: list[object]):
    """While waiting for the headers, or for the next chunk: `close` works in the scope that is
    being cancelled."""
    async with serving(script) as server:
        transport = AiohttpTransport()

        async def run() -> None:
            response = await transport.send(HttpRequest(server.url))
            try:
                await read_all(response)
            finally:
                await response.close()

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await server.came.wait()
            await asyncio.sleep(0.02)
            group.cancel_scope.cancel()
        with anyio.fail_after(10):
            await server.left.wait()
        await transport.close()


async def test_connections_are_reused_after_an_answer_was_read_to_its_end():
    async with serving(answer(b"one", b"two")) as server:
        transport = AiohttpTransport()
        for _ in range(5):
            response = await transport.send(HttpRequest(server.url, body={}))
            await read_all(response)
            await response.close()
        assert (len(server.requests), server.connections) == (5, 1)
        await transport.close()
        with anyio.fail_after(10):
            await server.idle.wait()


@pytest.mark.parametrize("ending", [Do.CLOSE, Do.RESET])
def test_connections_that_were_closed_while_idle_are_not_used(ending: Do):
    """The server ends each connection after its answer, while the client's loop is at work on
    something else."""
    reply = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

    async def main(server: Server, transport: AiohttpTransport) -> None:
        for number in range(1, 6):
            assert await read_all(await transport.send(HttpRequest(server.url, body={}))) == b"ok"
            while server.ended < number:
                time.sleep(0.001)  # noqa: ASYNC251 - the loop sees nothing of it
        await transport.close()

    with serving_elsewhere([reply, ending]) as server:
        asyncio.run(main(server, AiohttpTransport()))
        assert (len(server.requests), server.connections) == (5, 5)


@pytest.mark.parametrize("ending", [Do.CLOSE, Do.RESET])
async def test_a_connection_that_is_lost_says_so(ending: Do):
    """A retry need not wait then."""
    async with serving([ending]) as server:
        transport = AiohttpTransport()
        with pytest.raises(ConnectionLostError):
            await transport.send(HttpRequest(server.url, body={}))
        await transport.close()
        url = server.url
    with pytest.raises(ProviderConnectionError) as caught:
        await transport.send(HttpRequest(url, body={}))
    assert not isinstance(caught.value, ConnectionLostError)
    await transport.close()


async def test_closing_the_transport_ends_answers_that_are_being_read():
    async with serving(answer(b"one", Do.HANG)) as server:
        transport = AiohttpTransport()
        response = await transport.send(HttpRequest(server.url))
        assert await response.read() == b"one"
        reading = asyncio.ensure_future(response.read())
        await asyncio.sleep(0)
        await transport.close()
        with anyio.fail_after(10), pytest.raises(ProviderConnectionError):
            await reading
        with anyio.fail_after(10):
            await server.left.wait()


async def test_closed_transport_opens_again():
    async with serving(answer(b"one")) as server:
        transport = AiohttpTransport()
        for _ in range(2):
            assert await read_all(await transport.send(HttpRequest(server.url))) == b"one"
            await transport.close()
        assert server.connections == 2
    await transport.close()


def test_import_and_construction_do_not_import_aiohttp():
    """Rule 9."""
    code = "import sys, dragoman.transport as t; t.AiohttpTransport(); sys.exit('aiohttp' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], check=False, env={"PYTHONPATH": os.pathsep.join(sys.path)}
        ).returncode
        == 0
    )


async def test_cookies_are_not_kept() -> None:
    """Requests of two users may go through one pool."""
    async with serving(
        answer(b"a", headers={"set-cookie": "who=1; Path=/"}), answer(b"b")
    ) as server:
        transport = AiohttpTransport()
        for body in (b"a", b"b"):
            response = await transport.send(
                HttpRequest(f"http://localhost:{server.port}/", method=GET)
            )
            assert await read_all(response) == body
        await transport.close()
    assert [request.headers.get("cookie") for request in server.requests] == [None, None]


async def test_the_system_is_asked_to_notice_a_peer_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []

    def noting(opened: socket.socket, *option: Any) -> None:
        asked.append(option)
        as_it_was(opened, *option)

    as_it_was = socket.socket.setsockopt
    monkeypatch.setattr(socket.socket, "setsockopt", noting)
    async with serving(answer(b"a")) as server:
        transport = AiohttpTransport()
        assert await read_all(await transport.send(HttpRequest(server.url, method=GET))) == b"a"
        await transport.close()
    options = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
    known = [
        (getattr(socket, name), value) for name, value in options.items() if hasattr(socket, name)
    ]
    assert {
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
        *[(socket.IPPROTO_TCP, *one) for one in known],
    } <= {*asked}


async def test_the_time_that_nothing_comes_counts_from_the_last_byte() -> None:
    async with serving(answer(b"a", Do.HANG)) as server:
        transport = AiohttpTransport(Timeouts(read=8.0))
        response = await transport.send(HttpRequest(server.url, method=GET))
        assert isinstance(response, AiohttpResponse)
        assert await response.read() == b"a"
        reading = asyncio.ensure_future(response.read())
        await asyncio.sleep(0)
        for _ in range(4):  # the first sees the byte, each further one stands for two seconds
            response.check_progress()
        await asyncio.sleep(0.01)
        assert not reading.done()
        response.check_progress()
        with pytest.raises(ProviderTimeoutError, match="for 8 s"):
            await reading
        await transport.close()
