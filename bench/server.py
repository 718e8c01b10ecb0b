"""A server of the canned answers, in a process of its own: `http://127.0.0.1:PORT/WIRE/KIND/…`,
whatever follows."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import canned

__all__ = ["serving"]


def _response(chunks: list[bytes], media_type: bytes) -> bytes:
    """A chunked response, each event or line an HTTP chunk of its own, as providers send them."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n" % media_type
    return (
        head + b"".join([b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]) + b"0\r\n\r\n"
    )


def _answers() -> dict[bytes, bytes]:
    answers: dict[bytes, bytes] = {}
    for wire, stream in canned.WIRES.items():
        media_type = b"application/x-ndjson" if wire == "ollama" else b"text/event-stream"
        answers[f"{wire}/text".encode()] = _response(stream(canned.TEXT), media_type)
        answers[f"{wire}/short".encode()] = _response(stream(canned.words(3)), media_type)
    answers[b"openai_chat/tool"] = _response(canned.tool_round(), b"text/event-stream")
    answers[b"openai_chat/done"] = _response(
        canned.openai_chat(canned.words(50)), b"text/event-stream"
    )
    return answers


class _Connection(asyncio.Protocol):
    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, body = self._buffer.partition(b"\r\n\r\n")
        length = next(
            (
                line[15:]
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ),
            b"0",
        )
        if end and len(body) >= int(length):
            self._buffer = b""
            key = b"/".join(head.split(b" ", 2)[1].split(b"/")[1:3])
            if key == b"openai_chat/tool" and b'"tool_call_id"' in body:
                key = b"openai_chat/done"
            self._transport.write(self._answers[key])


async def _serve(pipe: Connection) -> None:
    answers = _answers()
    server = await asyncio.get_running_loop().create_server(
        lambda: _Connection(answers), "127.0.0.1", 0
    )
    pipe.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _run(pipe: Connection) -> None:
    asyncio.run(_serve(pipe))


@contextmanager
def serving() -> Iterator[str]:
    """The server's base URL, as long as the block lasts."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}"
    finally:
        process.terminate()
        process.join()
