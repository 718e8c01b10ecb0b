"""Clients of bare sockets: half requests, endless ones, answers that nobody reads. No request, task
or socket is left."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from dragoman.event import Event, MessageStarted, OpenText, PartDelta, PartStarted
from dragoman.message import Message, Role
from dragoman.serve.http.limits import ServerLimits
from support.serving import asking, served
from support.sockets import Listening, everything, listening, wait

pytestmark = pytest.mark.service

BEGIN: list[Event] = [MessageStarted("1", Role.MODEL), PartStarted("1", 0, OpenText())]
HUGE = PartDelta("1", 0, "x" * 100_000)
LIMITS = ServerLimits(body_seconds=0.2, write_seconds=0.2, ping_seconds=0.1, body_bytes=1_000_000)
HOST = b"Host: 127.0.0.1\r\n"


def post(body: bytes, path: str, *headers: bytes) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return (
        b"POST "
        + path.encode()
        + b" HTTP/1.1\r\n"
        + HOST
        + length
        + b"".join(headers)
        + b"\r\n"
        + body
    )


def chat(*, stream: bool) -> bytes:
    path, body = asking("openai_chat", stream=stream)
    return post(msgspec.json.encode(body), path)


@contextlib.contextmanager
def server(
    *steps: Any, seconds: float = 0.3, limits: ServerLimits = LIMITS, loop: str = "auto", **how: Any
) -> Generator[Listening]:
    app, backend = served(*steps, limits=limits, **how)
    with listening(app, loop=loop, header_seconds=seconds, keep_alive=0.1) as there:
        yield there
        there.idle()
        assert (backend.running, app.state.service.gate.open) == (0, 0)


@pytest.mark.parametrize(
    "data", [b"", b"POST", b"GET / HTTP/1.1\r\n" + HOST, b"GET / HTTP/1.1\r\nX: "]
)
def test_a_request_that_never_comes_whole(data: bytes) -> None:
    with server() as there:
        assert everything(there.connect(data)) == b""


def test_a_request_that_comes_drop_by_drop() -> None:
    with server() as there, there.connect(b"GET / HTTP/1.1\r\nX: ") as client:
        with contextlib.suppress(OSError):
            for _ in range(10_000):
                client.sendall(b"x")
                wait(lambda: True)
                if not there.connections:
                    break
        assert everything(client) == b""


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (b"GET / HTTP/1.1\r\nX: ", b"x" * 10_000),
        (b"GET / HTTP/1.1\r\n", b"X-Y: z\r\n" * 1000),
        (b"GET /", b"x" * 10_000),
        (
            b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
            b"X-Y: z\r\n" * 1000,
        ),
        (
            b"POST /v1/chat/completions HTTP/1.1\r\n"
            + HOST
            + b"Transfer-Encoding: chunked\r\n\r\n1;",
            b"x" * 10_000,
        ),
    ],
)
def test_headers_that_never_end(start: bytes, more: bytes) -> None:
    with server(seconds=30, limits=ServerLimits()) as there, there.connect(start) as client:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < 100_000_000:
                client.sendall(more)
                sent += len(more)
        assert sent < 20_000_000  # of which most waits in the buffers between
        assert everything(client)[:12] in (
            b"",
            b"HTTP/1.1 431",
            b"HTTP/1.1 404",
            b"HTTP/1.1 405",
            b"HTTP/1.1 400",
        )


def test_half_a_body() -> None:
    with server() as there:
        whole = chat(stream=False)
        answer = everything(there.connect(whole[:-5]))
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"did not come whole" in answer


@pytest.mark.parametrize("length", [10_000, 10_000_000])
def test_half_a_body_that_nobody_wants(length: int) -> None:
    head = (
        b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n{" % length
    )
    with server(auth="sk-0123456789") as there, there.connect(head) as client:
        with contextlib.suppress(OSError):
            for _ in range(10_000):
                client.sendall(b" ")
                if not there.connections:
                    break
        assert everything(client)[:12] in (
            b"HTTP/1.1 401",
            b"",
        )  # lost where more was sent than was read


@pytest.mark.parametrize("reads", [0, 1, 1000])
def test_a_stream_that_nobody_reads(reads: int) -> None:
    with (
        server(*BEGIN, *[HUGE] * 1000) as there,
        there.connect(chat(stream=True), buffer=4096) as client,
    ):
        if reads:
            client.recv(reads)
        there.idle()


def test_a_whole_answer_that_nobody_reads() -> None:
    with (
        server(Message.model("x" * 30_000_000)) as there,
        there.connect(chat(stream=False), buffer=4096),
    ):
        there.idle()


def test_a_client_that_leaves_in_the_middle() -> None:
    with server(*BEGIN, HUGE, 600, limits=ServerLimits(ping_seconds=600)) as there:
        for stream in (True, False):
            client = there.connect(chat(stream=stream))
            wait(lambda: there.tasks == 1)
            client.close()
            there.idle()


@pytest.mark.parametrize("loop", ["asyncio", "auto"])
@pytest.mark.parametrize("seen", [0, 20])
def test_a_client_that_sends_two_requests_and_leaves(seen: int, loop: str) -> None:
    with server(*BEGIN, *[HUGE, 0.05] * 10_000, limits=ServerLimits(), loop=loop) as there:
        client = there.connect(chat(stream=True) * 2)
        wait(lambda: there.tasks == 1)
        if seen:
            client.recv(seen)
        client.close()
        there.idle()


def test_requests_one_after_the_other_in_one_go_are_answered_in_their_order() -> None:
    with (
        server(Message.model("Hello.")) as there,
        there.connect(
            chat(stream=False) + chat(stream=True) + b"GET /v1/models HTTP/1.1\r\n" + HOST + b"\r\n"
        ) as client,
    ):
        answers = everything(client)
    assert [
        answers.count(each) for each in (b"HTTP/1.1 200", b'"Hello."', b"[DONE]", b'"list"')
    ] == [3, 2, 1, 1]
    assert answers.index(b'chat.completion"') < answers.index(b"[DONE]") < answers.index(b'"list"')


def test_small_chunks_and_pauses_between_requests_are_no_attack() -> None:
    path, body = asking("openai_chat", stream=False)
    data = msgspec.json.encode({**body, "messages": [{"role": "user", "content": "x" * 200_000}]})
    head = (
        b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    )
    chunks = (
        b"".join([b"1\r\n" + data[place : place + 1] + b"\r\n" for place in range(len(data))])
        + b"0\r\n\r\n"
    )
    # 200,000 chunks take a while on a busy machine; how soon a body must be there has other tests.
    limits = ServerLimits(body_seconds=10, body_bytes=1_000_000)
    with server(Message.model("Hello."), limits=limits) as there, there.connect() as client:
        for _ in range(3):
            client.sendall(head + chunks)
            seen = b""
            while not seen.endswith(b"}"):
                seen += client.recv(65536)
            assert seen.startswith(b"HTTP/1.1 200")


def test_a_client_that_reads_slowly_gets_all() -> None:
    limits = ServerLimits(write_seconds=30)
    with (
        server(*BEGIN, *[HUGE] * 50, limits=limits) as there,
        there.connect(chat(stream=True), buffer=4096) as client,
    ):
        assert everything(client).count(b"x") >= 5_000_000
