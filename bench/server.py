"""A server of the canned answers, in a process of its own: `http://127.0.0.1:PORT/WIRE/KIND/…`,
whatever follows."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import canned

__all__ = ["serving"]

SLOW_PIECES, SLOW_SECONDS, SLOTS = 200, 0.02, 20
"""A slow stream: its pieces, and the time between them. Streams begin in turn in so many slots, so
that not all are written at once."""
WHOLE = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Paris is the capital."},
            "finish_reason": "stop",
        }
    ],
    "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
}


def _frame(chunk: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(chunk), chunk)


def _response(chunks: list[bytes], media_type: bytes) -> bytes:
    """A chunked response, each event or line an HTTP chunk of its own, as providers send them."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ntransfer-encoding: chunked\r\n\r\n" % media_type
    return head + b"".join(map(_frame, chunks)) + b"0\r\n\r\n"


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
    whole = json.dumps(WHOLE).encode()
    answers[b"openai_chat/whole"] = (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
        % (len(whole), whole)
    )
    return answers


class _Slow:
    """Streams that are written a piece at a time."""

    def __init__(self) -> None:
        pieces = canned.openai_chat(canned.words(SLOW_PIECES))
        head = _response([], b"text/event-stream").removesuffix(b"0\r\n\r\n")
        frames = list(map(_frame, pieces))
        # What comes before the first text and after the last goes with it.
        extra = len(frames) - SLOW_PIECES
        self._writes = [head + frames[0] + frames[1], *frames[2:SLOW_PIECES]]
        self._writes.append(b"".join(frames[SLOW_PIECES:]) + b"0\r\n\r\n")
        assert len(self._writes) == SLOW_PIECES and extra > 0
        self._slots: list[deque[tuple[asyncio.Transport, Iterator[bytes]]]] = [
            deque() for _ in range(SLOTS)
        ]
        self._begun = 0

    def begin(self, transport: asyncio.Transport) -> None:
        self._slots[self._begun % SLOTS].append((transport, iter(self._writes)))
        self._begun += 1

    async def write(self) -> None:
        """Writes for ever the next piece of each stream, slot after slot."""
        loop, at = asyncio.get_running_loop(), 0
        due = loop.time()
        while True:
            slot = self._slots[at % SLOTS]
            for _ in range(len(slot)):
                transport, rest = slot.popleft()
                piece = next(rest, None)
                if piece is not None:
                    transport.write(piece)
                    slot.append((transport, rest))
            at += 1
            due = max(due + SLOW_SECONDS / SLOTS, loop.time())
            await asyncio.sleep(due - loop.time())


class _Connection(asyncio.Protocol):
    def __init__(self, answers: dict[bytes, bytes], slow: _Slow) -> None:
        self._answers, self._slow = answers, slow
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
            if key == b"openai_chat/short" and b'"stream":true' not in body.replace(b" ", b""):
                key = b"openai_chat/whole"
            if key == b"openai_chat/slow":
                self._slow.begin(self._transport)
            else:
                self._transport.write(self._answers[key])


async def _serve(pipe: Connection) -> None:
    answers, slow = _answers(), _Slow()
    server = await asyncio.get_running_loop().create_server(
        lambda: _Connection(answers, slow), "127.0.0.1", 0, backlog=4096
    )
    pipe.send(server.sockets[0].getsockname()[1])
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(slow.write())
        tasks.create_task(server.serve_forever())


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
