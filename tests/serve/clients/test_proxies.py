"""The configurations of the guide on reverse proxies, run by nginx and Caddy themselves."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cli import SRC
from support.ports import free_port

pytestmark = pytest.mark.service

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "reverse-proxy.md"
APP = Path(__file__).parent / "proxied_app.py"
NAME = "llm.example.com"
KEY = "one-secret-key"
ASK = b'{"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi."}]}'


def blocks(language: str) -> list[str]:
    """The guide's blocks of a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def replaced(text: str, *changes: tuple[str, str]) -> str:
    """A block where its ports and its certificate are those of a test; each change must find its
    place."""
    for old, new in changes:
        assert old in text, f"the guide has no {old!r}"
        text = text.replace(old, new)
    return text


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a server whose model says half, and the rest when it is asked to at `/go`."""
    process = subprocess.Popen(
        [sys.executable, str(APP)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": SRC}
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().decode().strip().rsplit(":", 1)[1])
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def running(command: list[str], port: int) -> Generator[None]:
    """A proxy in the foreground, from when it listens."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for _ in range(200):
            if process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        assert process.poll() is None, process.stdout and process.stdout.read().decode()
        yield
    finally:
        process.terminate()
        process.wait(20)


def program(name: str) -> str:
    """Where a proxy stands; Debian's `sbin` is not on everybody's path."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed: .ci/run installs it")
    return found


def request(
    port: int, path: str, data: bytes | None = None, key: str = KEY
) -> urllib.request.Request:
    headers = {"host": NAME, "authorization": f"Bearer {key}", "content-type": "application/json"}
    return urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)


def status(asked: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def serves(port: int, server: int, prefix: str = "") -> None:
    """Streams come as they are made; keys, hosts and large bodies arrive."""
    with urllib.request.urlopen(
        request(port, f"{prefix}/v1/chat/completions", ASK), timeout=10
    ) as answer:
        seen = b""
        while b"Half" not in seen:
            piece = answer.read1()
            assert piece, seen
            seen += piece
        assert b"whole" not in seen  # the model says it when this has arrived
        assert status(request(server, "/go", b"")) == 204
        rest = answer.read()
    assert b"whole" in rest
    assert rest.rstrip().endswith(b"[DONE]")
    assert status(request(port, f"{prefix}/v1/models", key="another-key")) == 401
    large = ASK.replace(b"Hi.", b"x" * 2_000_000).replace(b"true", b"false")
    assert status(request(port, f"{prefix}/v1/chat/completions", large)) == 200


def nginx(tmp_path: Path, servers: str) -> list[str]:
    places = "".join(
        f"{kind}_temp_path {tmp_path}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;" if os.geteuid() == 0 else ""  # whose workers may write here
    file = tmp_path / "nginx.conf"
    file.write_text(
        f"{user} daemon off; pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {places} {servers} }}"
    )
    return [program("nginx"), "-e", "stderr", "-p", str(tmp_path), "-c", str(file)]


def test_nginx(tmp_path: Path, server: int) -> None:
    port = free_port()
    block = replaced(
        blocks("nginx")[0],
        ("listen 443 ssl;", f"listen 127.0.0.1:{port};"),
        ("http2 on;", ""),  # needs TLS
        ("127.0.0.1:8000", f"127.0.0.1:{server}"),
    )
    with running(nginx(tmp_path, block), port):
        serves(port, server)


def test_nginx_below_a_path(tmp_path: Path, server: int) -> None:
    port = free_port()
    block = replaced(blocks("nginx")[1], ("127.0.0.1:8000", f"127.0.0.1:{server}"))
    whole = f"server {{ listen 127.0.0.1:{port}; {block} }}"
    with running(nginx(tmp_path, whole), port):
        serves(port, server, "/llm")


def test_caddy(tmp_path: Path, server: int) -> None:
    port = free_port()
    found = next(block for block in blocks("text") if "reverse_proxy" in block)
    block = replaced(
        found, (NAME, f"http://{NAME}:{port}"), ("127.0.0.1:8000", f"127.0.0.1:{server}")
    )
    file = tmp_path / "Caddyfile"
    file.write_text(f"{{\n    admin off\n}}\n{block}")
    with running([program("caddy"), "run", "--adapter", "caddyfile", "--config", str(file)], port):
        serves(port, server)
