"""`Player`, `Recorder` and the files between them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DecodeError, ProviderConnectionError, SettingsError, StreamCutError
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport, Exchange, Player, Recorder, Response, Transport
from dragoman.transport.exchange import load_exchange
from dragoman.transport.redaction import is_secret, public_url
from support import traffic
from support.socket_server import Do, answer, serving

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

URL = "https://provider.test/v1/chat"


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def pieces(response: Response) -> list[bytes]:
    out: list[bytes] = []
    while data := await response.read():
        out.append(data)
    return out


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


async def fetch(transport: Transport, request: HttpRequest) -> bytes:
    response = await transport.send(request)
    try:
        return b"".join(await pieces(response))
    finally:
        await response.close()


async def test_answers_in_order_and_keeps_the_requests():
    player = Player(
        [
            Exchange(status=429, headers={"retry-after": "1"}, url="https://elsewhere.test/"),
            ProviderConnectionError("down"),
            Exchange(body=b"x"),
        ]
    )
    requests = [HttpRequest(f"{URL}/{number}") for number in range(4)]
    first = await player.send(requests[0])
    assert (first.status, first.headers["retry-after"], await pieces(first)) == (429, "1", [])
    with pytest.raises(ProviderConnectionError, match="down"):
        await player.send(requests[1])
    assert await fetch(player, requests[2]) == b"x"
    with pytest.raises(
        SettingsError, match=f"no recorded answer is left for POST {URL}/3, request 4"
    ):
        await player.send(requests[3])
    assert player.requests == requests


async def test_answers_by_request_each_once():
    answers = [
        Exchange(url=URL, request_body={"a": 1, "b": 2}, body=b"first"),
        Exchange(url=URL, request_body={"a": 1, "b": 2}, body=b"second"),
        Exchange(url=URL, request_body={"a": 2}, body=b"other"),
        Exchange(method="GET", url=URL, body=b"got"),
    ]
    player = Player(answers, match="request")
    assert await fetch(player, HttpRequest(URL, body={"a": 2})) == b"other"
    assert await fetch(player, HttpRequest(f"{URL}?key=sekret", body={"b": 2, "a": 1})) == b"first"
    assert await fetch(player, HttpRequest(URL, body=b'{"a": 1, "b": 2}')) == b"second"
    assert await fetch(player, HttpRequest(URL, method="GET")) == b"got"
    with pytest.raises(SettingsError, match="no recorded answer is left"):
        await player.send(HttpRequest(URL, body={"a": 1, "b": 2}))


def test_what_fits():
    assert Exchange().fits(HttpRequest(URL, body={"a": 1}))
    assert not Exchange().fits(HttpRequest(URL, method="GET"))
    assert not Exchange(url=URL).fits(HttpRequest(f"{URL}/other"))
    assert not Exchange(request_body={}).fits(HttpRequest(URL, body={"a": 1}))


@given(
    st.binary(max_size=60), st.one_of(st.none(), st.integers(1, 70), st.lists(st.integers(-5, 70)))
)
def test_any_chunking_is_the_same_body_without_empty_chunks(body: bytes, chunks: Any):
    got = Exchange(body=body, chunks=chunks).split_body()
    assert b"".join(got) == body
    assert b"" not in got


def test_chunks_are_where_they_are_asked_for():
    assert Exchange(body=b"abcdefg", chunks=3).split_body() == [b"abc", b"def", b"g"]
    assert Exchange(body=b"abcdefg", chunks=[5, 1]).split_body() == [b"a", b"bcde", b"fg"]
    assert Exchange(body=b"abcdefg", chunks=3, cut_after=4).split_body() == [b"abc", b"d"]


async def test_cut_and_closed_answers():
    response = await Player([Exchange(body=b"abc", cut_after=2)]).send(HttpRequest(URL))
    assert await response.read() == b"ab"
    with pytest.raises(StreamCutError):
        await response.read()
    response = await Player([Exchange(body=b"abc")]).send(HttpRequest(URL))
    await response.close()
    with pytest.raises(ProviderConnectionError, match="closed"):
        await response.read()


def test_recorded_traffic_loads():
    """Every file to what was recorded."""
    for exchange in traffic.exchanges("anthropic", "google", "ollama_native", "openai_responses"):
        loaded = load_exchange(exchange.path)
        assert (loaded.status, loaded.headers, loaded.body) == (
            exchange.status,
            exchange.headers,
            exchange.body,
        )
        assert (loaded.url, loaded.request_body) == (exchange.url, exchange.request)


@pytest.mark.slow
async def test_recorded_traffic_plays():
    """A folder answers the requests that it holds, in whatever order they come."""
    known = [
        exchange for exchange in traffic.exchanges("mistral") if exchange.request and exchange.url
    ]
    player = Player.load(*(exchange.path for exchange in known))
    unlike: dict[str, list[bytes]] = {}
    for exchange in known:
        unlike.setdefault(json.dumps([exchange.url, exchange.request], sort_keys=True), []).append(
            exchange.body
        )
    for exchange in reversed(known):
        request = HttpRequest(exchange.url, {}, exchange.request)
        bodies = unlike[json.dumps([exchange.url, exchange.request], sort_keys=True)]
        assert await fetch(player, request) == bodies.pop(0)


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"request": {"url": 1}, "response": {}}'])
def test_file_that_is_no_recording(tmp_path: Path, content: str):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(DecodeError, match=r"x\.json is no recorded exchange .*record it again"):
        Player.load(tmp_path)


async def test_what_was_recorded_plays(tmp_path: Path):
    folder = tmp_path / "new" / "folder"
    body = {"messages": [{"role": "user", "content": "hé"}]}
    async with serving(
        answer(
            b"data: 1\n\n",
            "data: é\n\n".encode(),
            headers={"Content-Type": "text/event-stream; charset=utf-8"},
        ),
        answer(b"\xff\xfe", status=500, headers={"x-request-id": "r2"}),
        answer(b"half", Do.CLOSE),
        answer(b"more", Do.HANG),
    ) as server:
        recorder = Recorder(AiohttpTransport(), folder, {"wire": "openai_chat", "vendor": "test"})
        assert (
            await fetch(recorder, HttpRequest(server.url, body=body))
            == "data: 1\n\ndata: é\n\n".encode()
        )
        assert await fetch(recorder, HttpRequest(server.url, body=b"\x00\xff")) == b"\xff\xfe"
        with pytest.raises(StreamCutError):
            await fetch(recorder, HttpRequest(f"{server.url}/cut", method="GET"))
        response = await recorder.send(HttpRequest(f"{server.url}/left", body={}))
        assert await response.read() == b"more"
        await response.close()
        await response.close()
        with anyio.fail_after(10):
            await server.left.wait()
        await recorder.close()
    assert names(folder) == ["0001.json", "0002.json", "0003.json", "0004.json"]
    record = json.loads((folder / "0001.json").read_bytes())
    assert (record["wire"], record["framing"], record["request"]["body"]) == (
        "openai_chat",
        "sse",
        body,
    )
    assert record["response"]["body_text"] == "data: 1\n\ndata: é\n\n"
    assert not {"transfer-encoding", "content-length"} & set(record["response"]["headers"])

    player = Player.load(folder)
    assert (
        await fetch(player, HttpRequest(server.url, body=body)) == "data: 1\n\ndata: é\n\n".encode()
    )
    second = await player.send(HttpRequest(server.url, body=b"\x00\xff"))
    assert (second.status, second.headers["x-request-id"], await second.read()) == (
        500,
        "r2",
        b"\xff\xfe",
    )
    third = await player.send(HttpRequest(f"{server.url}/cut", method="GET"))
    assert await third.read() == b"half"
    with pytest.raises(StreamCutError):
        await third.read()


async def test_recording_holds_no_key(tmp_path: Path):
    """Not in headers, not in the URL, and not where a body repeats it."""
    key, cookie = "sk-0123456789", "c00kie-value"
    headers = {
        "Authorization": f"Bearer {key}",
        "X-Api-Key": key,
        "api-key": key,
        "X-Goog-Api-Key": key,
        "Cookie": cookie,
        "anthropic-version": "2023-06-01",
    }
    reply = Exchange(
        status=401,
        headers={
            "set-cookie": cookie,
            "openai-organization": "acme",
            "x-ratelimit-remaining-tokens": "9",
        },
        body=f'{{"error": "wrong key {key}"}}'.encode(),
    )
    recorder = Recorder(Player([reply]), tmp_path)
    url = f"https://user:{key}@provider.test/v1?alt=sse&key={key}&access_token={key}"
    await fetch(recorder, HttpRequest(url, headers, {"m": 1}))
    text = (tmp_path / "0001.json").read_text()
    assert key not in text
    assert cookie not in text
    assert "acme" not in text
    record = json.loads(text)
    assert record["request"]["url"] == "https://provider.test/v1?alt=sse"
    assert record["request"]["headers"] == {"anthropic-version": "2023-06-01"}
    assert record["response"]["headers"] == {"x-ratelimit-remaining-tokens": "9"}
    assert record["response"]["body_text"] == '{"error": "wrong key ***"}'


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "x-api-key",
        "cookie",
        "set-cookie",
        "api-key",
        "x-goog-api-key",
        "key",
        "apikey",
        "X-Amz-Security-Token",
    ],
)
def test_secret_names(name: str):
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "content-type",
        "alt",
        "x-request-id",
        "x-ratelimit-limit-tokens",
        "anthropic-beta",
        "retry-after",
        "max_tokens",
        "pagetoken",
    ],
)
def test_names_that_are_none(name: str):
    assert not is_secret(name)


def test_public_url_keeps_the_rest_as_it_is():
    url = "https://h.test/v1beta/models/a%2Fb:streamGenerateContent?alt=sse&x="
    assert public_url(f"{url}&key=1") == url
    assert public_url(url) == url


async def test_recordings_are_never_written_over(tmp_path: Path):
    (tmp_path / "0002.json").write_text("kept")
    recorder = Recorder(Player([Exchange(body=b"a"), Exchange(body=b"b")]), tmp_path)
    for _ in range(2):
        await fetch(recorder, HttpRequest(URL))
    assert names(tmp_path) == ["0002.json", "0003.json", "0004.json"]
    assert (tmp_path / "0002.json").read_text() == "kept"
