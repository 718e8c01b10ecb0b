"""A gateway by hand for `bench/goals.py`: each event is decoded and encoded with msgspec.

python bench/peers/serve_gateway.py PORT UPSTREAM
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route


class Delta(msgspec.Struct, omit_defaults=True):
    role: str | None = None
    content: str | None = None


class Choice(msgspec.Struct):
    delta: Delta
    index: int = 0
    finish_reason: str | None = None


class Chunk(msgspec.Struct):
    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]


class Asked(msgspec.Struct):
    model: str
    messages: list[dict[str, Any]]
    stream: bool = False
    max_tokens: int | None = None
    seed: int | None = None


chunk, asked_for = msgspec.json.Decoder(Chunk).decode, msgspec.json.Decoder(Asked).decode
encode = msgspec.json.encode
HEADERS = {"content-type": "application/json", "authorization": "Bearer none"}


def make_app(upstream: int) -> Starlette:
    url = f"http://127.0.0.1:{upstream}/v1/chat/completions"

    @asynccontextmanager
    async def session(app: Starlette) -> AsyncIterator[dict[str, Any]]:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as made:
            yield {"session": made}

    async def stream(made: aiohttp.ClientSession, body: bytes) -> AsyncIterator[bytes]:
        async with made.post(url, data=body, headers=HEADERS) as response:
            rest = b""
            async for data in response.content.iter_any():
                *complete, rest = (rest + data).split(b"\n\n")
                yield b"".join(
                    [
                        b"data: [DONE]\n\n"
                        if piece == b"data: [DONE]"
                        else b"data: %b\n\n" % encode(chunk(piece[6:]))
                        for piece in complete
                    ]
                )

    async def answer(request: Request) -> Response:
        asked = asked_for(await request.body())
        made, body = request.state.session, encode(asked)
        if asked.stream:
            return StreamingResponse(stream(made, body), media_type="text/event-stream")
        async with made.post(url, data=body, headers=HEADERS) as response:
            whole = msgspec.json.decode(await response.read())
        return Response(encode(whole), media_type="application/json")

    return Starlette(
        routes=[Route("/v1/chat/completions", answer, methods=["POST"])], lifespan=session
    )


if __name__ == "__main__":
    port, upstream_port = map(int, sys.argv[1:])
    app = make_app(upstream_port)
    uvicorn.run(app, port=port, log_level="warning", access_log=False, backlog=4096)
