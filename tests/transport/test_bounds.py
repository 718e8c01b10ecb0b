"""How much of an answer is taken: a line, a body, an error's body and the time for it; before and
after decompression."""

from __future__ import annotations

import asyncio
import gzip
from itertools import repeat
from typing import Any

import anyio
import pytest

from dragoman import Agent
from dragoman.errors import ProviderError, RateLimitError
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport, Bounds, Response
from support.socket_server import Do, answer, serving

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

SSE = {"content-type": "text/event-stream"}
SMALL = Bounds(line=1000, body=5000, error_body=1000)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def size_of(response: Response) -> int:
    size = 0
    while data := await response.read():
        size += len(data)
    return size


async def taken(*script: list[Any], bounds: Bounds = SMALL) -> int:
    async with serving(*script) as server:
        transport = AiohttpTransport(bounds=bounds)
        try:
            with anyio.fail_after(20):
                return await size_of(await transport.send(HttpRequest(server.url)))
        finally:
            await transport.close()


async def test_a_body_that_is_too_large_is_refused_with_the_bound_to_raise() -> None:
    assert await taken(answer(b"x" * 5000)) == 5000
    with pytest.raises(
        ProviderError, match=r"127\.0\.0\.1:\d+ sent a body of more than 5000 bytes.*Bounds\.body"
    ):
        await taken(answer(*repeat(b"x" * 1000, 6)))
    assert await taken(answer(b"x" * 6000), bounds=Bounds(body=None)) == 6000


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
async def test_a_line_of_a_stream_that_is_too_long_is_refused(end: bytes) -> None:
    line = b"data: " + b"x" * 900 + end
    assert await taken(answer(line, line, line, headers=SSE)) == 3 * len(line)
    with pytest.raises(ProviderError, match=r"a line of more than 1000 bytes.*Bounds\.line"):
        await taken(answer(line, b"x" * 900, b"x" * 900, headers=SSE))


async def test_a_body_that_is_no_stream_may_be_one_line() -> None:
    assert await taken(answer(b"x" * 4000, headers={"content-type": "application/json"})) == 4000


async def test_what_counts_is_the_size_after_decompression() -> None:
    packed = gzip.compress(b"data: " + b"x" * 10_000_000)
    assert len(packed) < 20_000
    script = answer(packed, length=len(packed), headers={"content-encoding": "gzip", **SSE})
    with pytest.raises(ProviderError, match="a line of more than 1000000 bytes"):
        await taken(script, bounds=Bounds(line=1_000_000))


async def test_of_an_errors_body_the_beginning_is_kept() -> None:
    assert await taken(answer(*repeat(b"x" * 300, 10), status=500)) == 1000


async def test_an_errors_body_that_drips_ends() -> None:
    """What has come by then says what the error is."""
    drips = [b'{"error": {"message": "slow down"}}', Do.HANG]
    async with serving(answer(*drips, status=429)) as server:
        transport = AiohttpTransport(bounds=Bounds(error_seconds=0.2))
        with anyio.fail_after(20):
            response = await transport.send(HttpRequest(server.url))
            assert await size_of(response) == len(drips[0])
            assert await response.read() == b""
            agent = Agent("openai", base_url=server.url, api_key="k", transport=transport)
            with pytest.raises(RateLimitError, match="slow down"):
                await agent.send("hi")
            await server.left.wait()
        await transport.close()


async def test_an_error_that_nobody_reads_ends_too() -> None:
    async with serving(answer(b"no", Do.HANG, status=500)) as server:
        transport = AiohttpTransport(bounds=Bounds(error_seconds=0.05))
        with anyio.fail_after(20):
            response = await transport.send(HttpRequest(server.url))
            await server.left.wait()
            assert await response.read() == b""
        await transport.close()


async def test_a_run_says_which_bound_ended_its_answer() -> None:
    """Also where the answer had begun: what there was of it is on the error."""
    chunk = (
        b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}\n\n'
    )
    async with serving(answer(chunk, b"data: " + b"x" * 2000, Do.HANG, headers=SSE)) as server:
        agent = Agent(
            "openai", base_url=server.url, api_key="k", transport=AiohttpTransport(bounds=SMALL)
        )
        with anyio.fail_after(20), pytest.raises(ProviderError, match=r"Bounds\.line") as caught:
            await agent.send("hi")
        assert caught.value.partial is not None
        assert caught.value.partial.text == "Hel"
        await server.left.wait()
        await agent.close()
        await asyncio.sleep(0)


@pytest.mark.slow
async def test_an_errors_body_may_take_its_time_where_no_bound_is_set() -> None:
    slow = answer(b"no", 0.3, b" way", status=500)
    assert await taken(slow, bounds=Bounds(error_seconds=None)) == 6
    assert await taken(answer(b"yes", 0.3, b" go"), bounds=Bounds(error_seconds=0.05)) == 6
