"""Requests that offer another protocol are answered over HTTP/1.1, body and all; headers are
bounded wherever they come from."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Agent, serve
from dragoman.request import ModelRequest
from dragoman.serve.server import serve_http
from dragoman.testing import ScriptedModel

pytestmark = [pytest.mark.anyio, pytest.mark.mend("1.17")]

BODY = json.dumps(
    {"model": "m", "messages": [{"role": "user", "content": "A river? " + "x" * 200_000}]}
).encode()
OFFER = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
JAVA = """
import java.net.URI;
import java.net.http.*;

public class Client {
    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newHttpClient();
        for (int count = 0; count < 3; count++) {
            var request = HttpRequest.newBuilder(URI.create(arguments[0]))
                .header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(arguments[1])).build();
            var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }
}
"""


def reply(request: ModelRequest) -> str:
    return f"{len(request.messages[-1].text)} characters."


@asynccontextmanager
async def serving() -> AsyncGenerator[int]:
    urls: asyncio.Queue[str] = asyncio.Queue()
    app = serve.app(Agent(ScriptedModel(reply)), store=None)
    task = asyncio.create_task(serve_http(app, port=0, drain_seconds=0, ready=urls.put_nowait))
    try:
        yield int((await urls.get()).rpartition(":")[2])
    finally:
        task.cancel()
        await asyncio.wait([task])


def post(headers: str, *, chunked: bool = False) -> bytes:
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(BODY)}"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY) if chunked else BODY
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{headers}{length}\r\n\r\n"
    return head.encode() + body


async def answers(port: int, data: bytes, count: int = 1, *, step: int = 1 << 20) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for place in range(0, len(data), step):
        writer.write(data[place : place + step])
        await writer.drain()
        await asyncio.sleep(0)
    whole = b""
    async with asyncio.timeout(10):
        while whole.count(b"characters.") < count and (piece := await reader.read(65536)):
            whole += piece
    writer.close()
    return whole


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("step", [1 << 20, 7919])
@pytest.mark.parametrize(
    "offer",
    [
        OFFER,
        "Connection: upgrade, keep-alive\r\nUpgrade: websocket\r\n",
        "Upgrade: TLS/1.2\r\nconnection: UPGRADE\r\n",
    ],
)
async def test_a_body_behind_an_offer_is_read(offer: str, step: int, chunked: bool) -> None:
    async with serving() as port:
        answer = await answers(port, post(offer, chunked=chunked), step=step)
    assert answer.startswith(b"HTTP/1.1 200"), answer[:300]
    assert b"200009 characters." in answer


async def test_the_connection_goes_on_after_an_offer() -> None:
    """Pipelined, with and without an offer, each is answered in order."""
    async with serving() as port:
        answer = await answers(port, post(OFFER) + post("") + post(OFFER, chunked=True), 3)
    assert answer.count(b"HTTP/1.1 200") == 3


async def test_many_offers_in_one_packet() -> None:
    one = f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n{OFFER}\r\n".encode()
    async with serving() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(one * 1500)
        whole = b""
        async with asyncio.timeout(20):
            while whole.count(b"HTTP/1.1 200") < 1500 and (piece := await reader.read(65536)):
                whole += piece
        writer.close()
    assert whole.count(b"HTTP/1.1 200") == 1500


@pytest.mark.parametrize(
    ("size", "status"), [(60_000, b"200"), (70_000, b"431"), (250_000, b"431")]
)
@pytest.mark.parametrize("count", [1, 50])
@pytest.mark.parametrize("step", [1 << 20, 9973])
@pytest.mark.parametrize("offer", ["", OFFER])
async def test_headers_are_bounded(
    size: int, status: bytes, count: int, step: int, offer: str
) -> None:
    more = "".join([f"X-{number}: {'a' * (size // count)}\r\n" for number in range(count)])
    async with serving() as port:
        try:
            answer = await answers(
                port,
                f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n{offer.replace('Connection: ', 'Connection: close, ')}{more}\r\n".encode(),
                step=step,
            )
        except ConnectionError:  # the server closed while the client wrote
            assert status == b"431"
            return
    assert answer.startswith(b"HTTP/1.1 " + status) or (status == b"431" and not answer)


@pytest.mark.service
@pytest.mark.skipif(shutil.which("java") is None, reason="needs java")
async def test_javas_own_client(tmp_path: Path) -> None:
    (tmp_path / "Client.java").write_text(JAVA)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "A river?"}]})
    async with serving() as port:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        process = await asyncio.create_subprocess_exec(
            "java", str(tmp_path / "Client.java"), url, body, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
    assert [line[:3] for line in out.decode().splitlines()] == ["200"] * 3
    assert out.count(b"8 characters.") == 3


@pytest.mark.service
@pytest.mark.timeout(300)
def test_the_newest_uvicorn_that_may_be_installed(tmp_path: Path) -> None:
    """The protocol builds on uvicorn's private classes: these tests again, with the newest that the
    project's bounds allow."""
    import tomllib

    root = Path(__file__).parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    wanted = [each for each in extras["serve"] if each.startswith(("uvicorn", "httptools"))]
    assert any("<" in each for each in wanted if each.startswith("uvicorn"))
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    pip = [str(tmp_path / "venv" / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps"]
    command = [*pip, "--upgrade", "--target", str(tmp_path / "newest"), *wanted]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"packages cannot be installed here: {installed.stderr[-200:]}")
    path = os.pathsep.join([str(tmp_path / "newest"), str(root / "src"), str(root / "tests")])
    again = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "0",
        "-q",
        "-m",
        "not service",
        "--assert=plain",
        str(Path(__file__)),
    ]
    done = subprocess.run(
        again,
        cwd=root,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
