"""What passes through the proxy (`proxy/forward.py`, `server.py`): every byte, as it arrives."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import zlib
from pathlib import Path

import httpx
import pytest

from dragoman.errors import DecodeError
from dragoman.proxy.forward import decompress
from support.proxying import proxying, records
from support.socket_server import Do, answer, serving
from support.until import until

pytestmark = pytest.mark.anyio
BODY = b'{"model": "m",  "messages": [{"role": "user", "content": "h\xc3\xa9"}]}'
CHAT = "/v1/chat/completions"
WHOLE = b'{"id":"1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}'
JSON = {"content-type": "application/json"}


def names(folder: Path) -> list[str]:
    return [file.name for file in sorted(folder.iterdir())]


def whole(body: bytes = WHOLE, **headers: str) -> list[object]:
    return answer(body, length=len(body), headers={**JSON, **headers})


async def test_a_request_passes_byte_for_byte(tmp_path: Path) -> None:
    async with serving(whole()) as server, proxying(tmp_path, f"x={server.url}/deep") as proxied:
        path = "/v1/models/a%2Fb:generate;x?alt=sse&key=a%20b&empty=&x=%C3%A9"
        async with httpx.AsyncClient() as client:
            reply = await client.request(
                "PATCH",
                proxied.of("x") + path,
                content=BODY,
                headers={"X-Own": "1", "accept-encoding": "br, zstd"},
            )
    sent = server.requests[0]
    assert (sent.method, sent.target, sent.body) == ("PATCH", path, BODY)
    assert sent.headers["host"] == f"127.0.0.1:{server.port}"
    assert (sent.headers["x-own"], sent.headers["accept-encoding"]) == ("1", "identity")
    assert (reply.content, reply.headers["content-type"]) == (WHOLE, "application/json")


async def test_a_stream_arrives_before_its_end_is_sent(tmp_path: Path) -> None:
    rest = asyncio.Event()
    stream = answer(
        b"data: 1\n\n", rest, b"data: 2\n\n", headers={"content-type": "text/event-stream"}
    )
    async with (
        serving(stream) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
        httpx.AsyncClient() as client,
        client.stream("POST", proxied.of("x") + CHAT, content=BODY) as reply,
    ):
        pieces = reply.aiter_raw()
        assert await anext(pieces) == b"data: 1\n\n"
        assert records(tmp_path) == []
        rest.set()
        assert b"".join([piece async for piece in pieces]) == b"data: 2\n\n"
    assert records(tmp_path)[0]["response"]["body_text"] == "data: 1\n\ndata: 2\n\n"
    assert records(tmp_path)[0]["framing"] == "sse"


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_compression_passes_and_is_recorded_without(encoding: str, tmp_path: Path) -> None:
    packed = gzip.compress(WHOLE) if encoding == "gzip" else zlib.compress(WHOLE)
    async with (
        serving(whole(packed, **{"content-encoding": encoding})) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
        httpx.AsyncClient() as client,
    ):
        headers = {"accept-encoding": "gzip, br"}
        async with client.stream(
            "POST", proxied.of("x") + CHAT, content=BODY, headers=headers
        ) as reply:
            assert b"".join([piece async for piece in reply.aiter_raw()]) == packed
            assert reply.headers["content-encoding"] == encoding
        again = await client.post(proxied.of("x") + CHAT, content=BODY)
        assert (again.content, again.headers["dragoman-exchange"]) == (WHOLE, "0001")
    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"
    assert records(tmp_path)[0]["response"]["body_text"] == WHOLE.decode()


async def test_one_connection_carries_many_requests(tmp_path: Path) -> None:
    async with (
        serving(whole()) as server,
        proxying(tmp_path, f"x={server.url}", mode="record") as proxied,
    ):
        async with httpx.AsyncClient() as client:
            for _ in range(5):
                assert (await client.post(proxied.of("x") + CHAT, content=BODY)).status_code == 200
        assert server.connections == 1
    assert len(records(tmp_path)) == 5


async def test_a_broken_stream_breaks_for_the_client(tmp_path: Path) -> None:
    async with (
        serving(answer(b"data: 1\n\n", Do.CLOSE)) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
        httpx.AsyncClient() as client,
    ):
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(proxied.of("x") + CHAT, content=BODY)
    assert records(tmp_path)[0]["response"]["cut"] is True
    # Played, it breaks at the same place.
    async with (
        proxying(tmp_path, f"x={server.url}", mode="replay") as proxied,
        httpx.AsyncClient() as client,
        client.stream("POST", proxied.of("x") + CHAT, content=BODY) as reply,
    ):
        pieces = reply.aiter_raw()
        assert await anext(pieces) == b"data: 1\n\n"
        with pytest.raises(httpx.RemoteProtocolError):
            await anext(pieces)


async def test_a_client_that_leaves_ends_the_providers_answer(tmp_path: Path) -> None:
    async with (
        serving(answer(b"data: 1\n\n", Do.HANG)) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
    ):
        async with (
            httpx.AsyncClient() as client,
            client.stream("POST", proxied.of("x") + CHAT, content=BODY) as reply,
        ):
            await anext(reply.aiter_raw())
        await asyncio.wait_for(server.left.wait(), 10)
        await until(lambda: len(records(tmp_path)) == 1)
    assert records(tmp_path)[0]["response"]["cut"] is True


async def test_a_provider_that_is_not_there_is_an_error_of_the_api(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with (
        proxying(tmp_path, f"x=http://127.0.0.1:{port}") as proxied,
        httpx.AsyncClient() as client,
    ):
        reply = await client.post(proxied.of("x") + "/v1/messages", content=BODY)
    assert reply.status_code == 502
    assert reply.json()["type"] == "error"
    assert "cannot connect" in reply.json()["error"]["message"]
    assert records(tmp_path) == []


async def test_unknown_hosts_are_not_reached(tmp_path: Path) -> None:
    async with proxying(tmp_path) as proxied, httpx.AsyncClient() as client:
        for path in (
            "/evil.example/v1/chat/completions",
            "//evil.example/v1",
            "/v1/chat/completions",
        ):
            reply = await client.post(proxied.url + path, content=BODY)
            assert reply.status_code == 404
            assert "no upstream is named" in reply.text
        foreign = await client.get(proxied.url, headers={"host": "evil.example"})
        assert foreign.status_code == 421
        page = await client.post(
            proxied.of("openai") + CHAT, headers={"origin": "https://evil.example"}
        )
        assert page.status_code == 403


async def test_connection_headers_do_not_pass(tmp_path: Path) -> None:
    async with (
        serving(whole(connection="x-hop", **{"x-hop": "1", "keep-alive": "timeout=5"})) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
        httpx.AsyncClient() as client,
    ):
        headers = {"connection": "keep-alive, x-mine", "x-mine": "1", "te": "trailers"}
        reply = await client.post(proxied.of("x") + CHAT, content=BODY, headers=headers)
        assert not {"x-mine", "te"} & set(server.requests[0].headers)
        assert not {"x-hop", "keep-alive"} & set(reply.headers)


async def test_an_answer_without_a_body_passes(tmp_path: Path) -> None:
    async with (
        serving(answer(status=204, length=0), answer(status=200, length=0)) as server,
        proxying(tmp_path, f"x={server.url}", mode="record") as proxied,
        httpx.AsyncClient() as client,
    ):
        assert (await client.delete(proxied.of("x") + "/v1/files/1")).status_code == 204
        assert (await client.get(proxied.of("x") + "/")).content == b""
    assert server.requests[0].body == b""
    assert [record["response"]["status"] for record in records(tmp_path)] == [204, 200]


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (gzip.compress(b"x" * 2_000_000), "gzip"),
        (zlib.compress(b"x" * 2_000_000), "deflate"),
        (b"no gzip", "gzip"),
        (b"", "br"),
    ],
)
def test_what_cannot_be_unpacked_within_bounds_is_refused(body: bytes, encoding: str) -> None:
    with pytest.raises(DecodeError, match="cannot be"):
        decompress(body, encoding, 1_000_000)


async def test_a_bomb_passes_and_is_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.proxy.server._MOST_BODY", 10_000)
    bomb = gzip.compress(b" " * 50_000)
    async with (
        serving(whole(bomb, **{"content-encoding": "gzip"})) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
        httpx.AsyncClient() as client,
    ):
        reply = await client.post(proxied.of("x") + CHAT, content=BODY)
        assert len(reply.content) == 50_000
        large = await client.post(proxied.of("x") + CHAT, content=b"x" * 20_000)
        assert large.status_code == 413
    assert records(tmp_path) == []
    assert "is not recorded: a body of more than 10000 bytes" in proxied.told[0]
    assert proxied.proxy.counts == {"passed": 1, "failed": 1}


async def test_a_full_store_never_fails_a_request(tmp_path: Path) -> None:
    async with (
        serving(whole()) as server,
        proxying(tmp_path, f"x={server.url}", mode="record", most_bytes=1200) as proxied,
        httpx.AsyncClient() as client,
    ):
        for _ in range(3):
            assert (await client.post(proxied.of("x") + CHAT, content=BODY)).content == WHOLE
    assert 1 <= len(records(tmp_path)) < 3
    assert "over its limit of 1200" in proxied.told[-1]


async def test_requests_at_the_same_time_have_their_own_answers(tmp_path: Path) -> None:
    async with (
        serving(whole()) as server,
        proxying(tmp_path, f"x={server.url}") as proxied,
        httpx.AsyncClient() as client,
    ):

        async def ask(number: int) -> None:
            body = json.dumps({"model": "m", "n": number}).encode()
            assert (await client.post(proxied.of("x") + CHAT, content=body)).content == WHOLE

        await asyncio.gather(*map(ask, range(30)))
    assert sorted(record["request"]["body"]["n"] for record in records(tmp_path)) == list(range(30))
    assert names(tmp_path) == [f"{number:04d}.json" for number in range(1, 31)]
