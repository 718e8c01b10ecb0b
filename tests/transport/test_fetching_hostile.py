"""`fetch` from servers that send anything: an error of ours or a file, within its bounds, and
nothing is left open."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

import pytest

from dragoman.errors import DragomanError
from dragoman.transport import AddressPolicy, fetch
from support.socket_server import Do, answer, serving

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

SEEDS = [
    b"".join(
        answer(
            b"hello",
            b"world",
            headers={
                "content-type": "image/png",
                "content-disposition": 'attachment; filename="a.png"',
            },
        )
    ),
    b"".join(
        answer(
            b"x" * 20,
            length=20,
            headers={"content-encoding": "gzip", "content-type": "text/plain; charset=utf-8"},
        )
    ),
    b"".join(answer(status=302, headers={"location": "/b?c=%20#d"}, length=0)),
]
PIECES = [
    b"\r\n",
    b"\n",
    b"\0",
    b"\xff",
    b": ",
    b"%00",
    b"chunked",
    b"99999999999999999999",
    b"-1",
    b"http://10.0.0.1/",
    b"//",
    b"@",
    b"[::1]",
    b'"',
    b"*=utf-8''%ff",
    b"\xc3\xa9",
]


def mutated(number: int) -> bytes:
    choose = random.Random(number)
    data = bytearray(choose.choice(SEEDS))
    for _ in range(choose.randint(1, 6)):
        at = choose.randrange(len(data) + 1)
        kind = choose.randrange(4)
        if kind == 0:
            data[at : at + 1] = bytes([choose.randrange(256)])
        elif kind == 1:
            data[at:at] = choose.choice(PIECES)
        elif kind == 2:
            del data[at : at + choose.randint(1, 12)]
        else:
            data[at:at] = data[at // 2 : at]
    return bytes(data)


@pytest.mark.parametrize("many", [120, pytest.param(5000, marks=pytest.mark.slow)])
async def test_whatever_comes_is_a_file_or_an_error_of_ours(many: int) -> None:
    async def here(host: str) -> Sequence[str]:
        return ["127.0.0.1"]

    scripts = [[mutated(number), Do.CLOSE] for number in range(many)]
    before = len(asyncio.all_tasks())
    files = 0
    async with serving(*scripts) as server:
        policy = AddressPolicy(
            ["a.test", "127.0.0.1"], schemes=["http"], ports=[server.port], resolve=here
        )
        while len(server.requests) < many:
            try:
                part = await fetch(
                    f"http://a.test:{server.port}/x",
                    policy,
                    max_bytes=1000,
                    seconds=10.0,
                    redirects=1,
                )
            except DragomanError as error:
                assert error.status is None
                assert not any(word in str(error) for word in ("127.0.0.1", "10.0.0.1", "\r", "\n"))
            else:
                files += 1
                assert len(part.data) <= 1000
                assert part.name is None or not set(part.name) & set("/\\\r\n\0")
                assert set(part.mime_type) <= set("abcdefghijklmnopqrstuvwxyz0123456789!#$&^_.+-/")
        await server.idle.wait()
        assert len(asyncio.all_tasks()) <= before + 1  # the server's own
    assert 0 < files < many
