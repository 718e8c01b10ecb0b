"""Which recording answers a request (`proxy/recordings.py`), what an unknown request gets, and that
no key is in any file."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.proxy.recordings import RecordingIndex, path_key
from dragoman.transport import Player
from dragoman.transport.exchange_file import ExchangeFolder
from dragoman.transport.matching import explain_difference, find_nearest
from dragoman.transport.redaction import hide_secrets
from support.cli import SRC
from support.proxying import Proxied, proxying, records
from support.socket_server import Do, Server, answer, serving

pytestmark = pytest.mark.anyio
CHAT = "/v1/chat/completions"
KEY = "sk-proj-0123456789abcdefghij"


def said(text: str, status: int = 200) -> list[Any]:
    body = json.dumps({"text": text}).encode()
    return answer(
        body, status=status, length=len(body), headers={"content-type": "application/json"}
    )


def question(text: str, **fields: object) -> bytes:
    return json.dumps(
        {"model": "m", **fields, "messages": [{"role": "user", "content": text}]}
    ).encode()


@asynccontextmanager
async def recorded(
    folder: Path, *answers: Any, **options: Any
) -> AsyncIterator[tuple[Proxied, Server, httpx.AsyncClient]]:
    async with (
        serving(*answers) as server,
        proxying(folder, f"x={server.url}", **options) as proxied,
        httpx.AsyncClient(base_url=proxied.of("x")) as client,
    ):
        yield proxied, server, client


def read_files(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(folder.iterdir())]


async def record(folder: Path, *questions: bytes) -> None:
    """Records these questions, answered 1, 2, and on."""
    answers = [said(str(number)) for number, _ in enumerate(questions, 1)]
    async with recorded(folder, *answers, mode="record") as (_, _, client):
        for body in questions:
            await client.post(CHAT, content=body)


async def test_only_what_is_new_is_asked(tmp_path: Path) -> None:
    async with recorded(tmp_path, said("1"), said("2")) as (proxied, server, client):
        replies = [await client.post(CHAT, content=question(text)) for text in "abab"]
    assert [reply.json()["text"] for reply in replies] == ["1", "2", "1", "2"]
    assert len(server.requests) == 2
    assert proxied.proxy.counts == {"recorded": 2, "replayed": 2}
    assert [line.split()[0] for line in proxied.logged] == ["recorded"] * 2 + ["replayed"] * 2


async def test_host_order_of_keys_and_secrets_do_not_count(tmp_path: Path) -> None:
    await record(tmp_path, question("a", api_key="one", n=1))
    async with recorded(tmp_path, mode="replay") as (_, _, client):
        body = json.dumps(
            {"n": 1, "messages": [{"content": "a", "role": "user"}], "api_key": "two", "model": "m"}
        )
        reply = await client.post(
            f"{CHAT}?key=other", content=body, headers={"authorization": "Bearer z"}
        )
        assert reply.json() == {"text": "1"}


async def test_the_same_question_gets_its_answers_in_turn(tmp_path: Path) -> None:
    await record(tmp_path, *[question("a")] * 3)
    async with recorded(tmp_path, mode="replay") as (_, _, client):
        replies = [
            (await client.post(CHAT, content=question("a"))).json()["text"] for _ in range(5)
        ]
    assert replies == ["1", "2", "3", "3", "3"]


@pytest.mark.parametrize("mode", ["record-new", "replay"])
async def test_a_refusal_that_was_tried_again_is_not_given_again(mode: Any, tmp_path: Path) -> None:
    async with recorded(tmp_path, said("busy", 429), said("1")) as (_, server, client):
        assert (await client.post(CHAT, content=question("a"))).status_code == 429
        assert (await client.post(CHAT, content=question("a"))).json() == {"text": "1"}
        assert len(server.requests) == 2
    async with recorded(tmp_path, mode=mode) as (_, _, client):
        assert (await client.post(CHAT, content=question("a"))).json() == {"text": "1"}


async def test_a_refusal_alone_is_given_once_and_for_all(tmp_path: Path) -> None:
    async with recorded(tmp_path, said("busy", 429)) as (_, _, client):
        await client.post(CHAT, content=question("a"))
    async with recorded(tmp_path, mode="replay") as (_, _, client):
        reply = await client.post(CHAT, content=question("a"))
    assert (reply.status_code, reply.headers["x-should-retry"]) == (429, "false")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (CHAT, lambda body: body["error"]["message"]),
        ("/v1/messages", lambda body: body["error"]["message"]),
        ("/v1beta/models/m:generateContent", lambda body: body["error"]["message"]),
        ("/v2/chat", lambda body: body["message"]),
        ("/api/chat", lambda body: body["error"]),
        ("/v1/files", lambda body: body["error"]["message"]),
    ],
)
async def test_an_unknown_request_is_an_error_of_its_api(
    path: str, message: Any, tmp_path: Path
) -> None:
    await record(tmp_path, question("what is a river?"))
    async with recorded(tmp_path, mode="replay") as (proxied, server, client):
        reply = await client.post(path, content=question("what is a lake?"))
        assert server.requests == []
    assert 400 <= reply.status_code < 409
    assert "is not recorded" in message(reply.json())
    assert proxied.proxy.counts["unknown"] == 1
    if path == CHAT:
        told = "\n".join(proxied.told)
        assert "the nearest recording is 0001" in told
        assert '-      "content": "what is a river?"' in told
        assert '+      "content": "what is a lake?"' in told


async def test_the_nearest_answer_says_that_it_is_another(tmp_path: Path) -> None:
    await record(tmp_path, question("far away", temperature=1), question("what is a river?"))
    async with recorded(tmp_path, mode="replay", is_nearest=True) as (proxied, _, client):
        reply = await client.post(CHAT, content=question("what is a lake?"))
        assert reply.json() == {"text": "2"}
        assert (reply.headers["dragoman-exchange"], reply.headers["dragoman-nearest"]) == (
            "0002",
            "2 lines differ",
        )
        assert "answered as another request" in proxied.told[0]
        exact = await client.post(CHAT, content=question("what is a river?"))
        assert "dragoman-nearest" not in exact.headers
        assert (await client.post("/v1/other", content=b"{}")).status_code == 400


@pytest.mark.parametrize(
    ("url", "headers", "fields"),
    [
        (CHAT, {"authorization": f"Bearer {KEY}"}, {}),
        (CHAT, {"x-api-key": KEY, "cookie": f"session={KEY}"}, {}),
        (f"{CHAT}?key={KEY}&alt=sse", {"x-goog-api-key": KEY}, {}),
        (f"{CHAT}?api_key={KEY}", {"api-key": KEY, "x-any-other": KEY}, {"authorization": KEY}),
        (
            CHAT,
            {"openai-organization": KEY},
            {"tools": [{"type": "mcp", "headers": {"X-Api-Key": KEY}}]},
        ),
    ],
)
async def test_no_key_is_stored(
    url: str, headers: Mapping[str, str], fields: dict[str, Any], tmp_path: Path
) -> None:
    echo = json.dumps({"error": f"wrong key {KEY}", "again": [KEY]}).encode()
    leaky = answer(
        echo,
        status=401,
        length=len(echo),
        headers={
            "set-cookie": KEY,
            "x-echo": KEY,
            "content-type": "application/json",
            "x-request-id": "r1",
        },
    )
    async with recorded(tmp_path, leaky) as (proxied, server, client):
        reply = await client.post(url, content=question("a", **fields), headers=headers)
        # The client and the provider have everything.
        assert reply.content == echo
        assert KEY in str(
            [server.requests[0].headers, server.requests[0].target, server.requests[0].body]
        )
        listed = await client.get(f"{proxied.url}/page/exchanges")
        shown = await client.get(f"{proxied.url}/page/exchanges/0001")
    encoded = base64.b64encode(KEY.encode())
    for text in (
        *read_files(tmp_path),
        listed.content,
        shown.content,
    ):
        assert KEY.encode() not in text
        assert encoded not in text
    assert KEY not in str([proxied.told, proxied.logged])
    assert shown.json()["headers"] == {"content-type": "application/json", "x-request-id": "r1"}


async def test_a_key_that_an_answer_hands_out_is_not_stored(tmp_path: Path) -> None:
    body = json.dumps({"access_token": KEY, "expires_in": 10}).encode()
    async with recorded(tmp_path, answer(body, length=len(body))) as (_, _, client):
        assert (await client.post("/token")).content == body
    assert KEY not in (tmp_path / "0001.json").read_text()


async def test_recordings_and_those_of_tests_are_the_same(tmp_path: Path) -> None:
    """One format: what the proxy recorded answers a test, see `Player`."""
    await record(tmp_path, question("a"))
    player = Player.load(tmp_path, match="order")
    assert len(player._left) == 1
    assert records(tmp_path)[0]["provenance"] == "recorded"


async def test_a_form_with_files_is_found_again_under_another_boundary(tmp_path: Path) -> None:
    files = {"file": ("a.wav", b"\x00\xffRIFF", "audio/wav")}
    async with recorded(tmp_path, said("1")) as (_, server, client):
        for _ in range(2):
            reply = await client.post("/v1/audio/transcriptions", files=files, data={"model": "m"})
            assert reply.json() == {"text": "1"}
        assert len(server.requests) == 1


async def test_a_compressed_request_is_compared_by_what_is_in_it(tmp_path: Path) -> None:
    async with recorded(tmp_path, said("1")) as (_, server, client):
        for level in (1, 9):
            packed = gzip.compress(question("a"), level, mtime=level)
            await client.post(CHAT, content=packed, headers={"content-encoding": "gzip"})
            assert server.requests[0].headers["content-encoding"] == "gzip"
        assert len(server.requests) == 1
    assert records(tmp_path)[0]["request"]["body"]["model"] == "m"


async def test_a_damaged_file_is_left_out_and_told_of(tmp_path: Path) -> None:
    await record(tmp_path, question("a"))
    (tmp_path / "0002.json").write_text('{"request":')
    (tmp_path / "0003.json").write_bytes(b"[" * 100_000)
    (tmp_path / "0004.json").mkdir()
    recordings = RecordingIndex(ExchangeFolder(tmp_path))
    assert len(recordings.problems) == 3
    async with recorded(tmp_path, mode="replay") as (_, _, client):
        assert (await client.post(CHAT, content=question("a"))).json() == {"text": "1"}


async def test_a_file_that_is_gone_meanwhile_is_an_error_and_no_crash(tmp_path: Path) -> None:
    await record(tmp_path, question("a"))
    async with recorded(tmp_path, mode="replay") as (proxied, _, client):
        (tmp_path / "0001.json").unlink()
        reply = await client.post(CHAT, content=question("a"))
        assert reply.status_code >= 400
        assert "cannot be read" in proxied.told[0]


def test_two_processes_write_to_one_folder_and_a_killed_one_leaves_whole_files(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from dragoman.transport.exchange_file import *; from dragoman.request import HttpRequest\n"
        "folder = ExchangeFolder(sys.argv[1])\n"
        "text = format_exchange(HttpRequest('http://h/v1', {}, {'a': 'x' * 200_000}), 200, {}, b'y' * 200_000)\n"
        "print('ready', flush=True)\n"
        "for _ in range(int(sys.argv[2])): folder.add(text)\n"
    )
    environment = {**os.environ, "PYTHONPATH": SRC}

    def start(count: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, str(tmp_path), str(count)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)

    with start(20) as first, start(20) as second, start(100_000) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        assert (first.wait(30), second.wait(30)) == (0, 0)
        killed.send_signal(signal.SIGKILL)
        killed.wait(30)
    files = ExchangeFolder(tmp_path).files()
    assert len(files) >= 40
    assert not RecordingIndex(ExchangeFolder(tmp_path)).problems


def test_a_file_system_without_links_has_whole_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", refuse)
    (tmp_path / "0002.json").write_text("kept")
    folder = ExchangeFolder(tmp_path)
    for text in (b"one", b"two", b"three"):
        folder.add(text)
    assert [file.read_bytes() for file in folder.files()] == [b"kept", b"one", b"two", b"three"]


@given(
    st.text("aZ09-_/.+é ", min_size=8, max_size=12),
    st.lists(st.sampled_from(["raw", "json", "percent", "escaped"]), max_size=4),
)
def test_a_secret_is_hidden_however_it_is_escaped(secret: str, spellings: list[str]) -> None:
    ways = {
        "raw": secret,
        "json": json.dumps(json.dumps(secret))[3:-3],
        "percent": quote(secret, safe=""),
        "escaped": "".join(f"\\u{ord(sign):04x}" for sign in secret),
    }
    data = "<>".join(["x", *(ways[way] for way in spellings), "y"]).encode()
    hidden = "<>".join(["x", *["***"] * len(spellings), "y"]).encode()
    assert hide_secrets(data, [secret]) == hidden


async def test_a_cancelled_proxy_closes_its_connections(tmp_path: Path) -> None:
    async with serving(answer(b"data: 1\n\n", Do.HANG)) as server, httpx.AsyncClient() as client:

        async def serve() -> None:
            async with proxying(tmp_path, f"x={server.url}") as proxied:
                asked = asyncio.create_task(client.post(proxied.of("x") + CHAT, content=b"{}"))
                with pytest.raises(httpx.HTTPError):
                    await asked

        task = asyncio.create_task(serve())
        await asyncio.wait_for(server.came.wait(), 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 20)
        await asyncio.wait_for(server.left.wait(), 10)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=4), min_size=1, max_size=6)
)
def test_each_recorded_request_is_its_own_nearest(bodies: list[dict[str, Any]]) -> None:
    lines = [path_key("POST", "http://h/v1?b=1&a=2", body).format_lines() for body in bodies]
    for body, wanted in zip(bodies, lines, strict=True):
        nearest = lines[find_nearest(wanted, lines)]
        assert sorted(nearest) == sorted(wanted)
        assert path_key("POST", "https://other/v1?a=2&b=1", body).format_lines() == wanted
    assert explain_difference(lines[0], lines[0]) == []


def test_nearest_of_none_is_none() -> None:
    assert find_nearest(["a"], []) == -1


def test_a_difference_of_large_requests_is_bounded() -> None:
    one, two = ([f"{side} {number}" for number in range(100_000)] for side in "ab")
    assert len(explain_difference(one, two)) == 41
