"""`fetch` over TLS and through a proxy: the certificate is for the name, whatever the address; a
proxy is used only where it is named."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from dragoman.errors import InvalidRequestError, ProviderConnectionError
from dragoman.transport import AddressPolicy, fetch
from support.socket_server import Server, answer, proxying, serving

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

HOST = "files.example.org"


async def here(host: str) -> Sequence[str]:
    return ["127.0.0.1"]


def made(folder: Path) -> tuple[Path, Path]:
    """A key, and its certificate for the name, its own authority."""
    if which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    key, file = folder / "key.pem", folder / "certificate.pem"
    command = f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN={HOST}"
    names = f"subjectAltName=DNS:{HOST}"
    subprocess.run(
        [*command.split(), "-addext", names, "-keyout", key, "-out", file],
        check=True,
        capture_output=True,
    )
    return key, file


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return made(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[1]))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate[1], certificate[0])
    return context


def policy(server: Server, **how: Any) -> AddressPolicy:
    return AddressPolicy(
        [HOST, "other.example.org", "127.0.0.0/8"], ports=[server.port], resolve=here, **how
    )


async def test_the_certificate_is_checked_for_the_name(tls: ssl.SSLContext) -> None:
    names: list[str | None] = []
    tls.sni_callback = lambda connection, name, context: names.append(name)
    async with serving(answer(b"hello"), tls=tls) as server:
        assert (await fetch(f"https://{HOST}:{server.port}/", policy(server))).data == b"hello"
        for host in ("other.example.org", "127.0.0.1"):
            with pytest.raises(ProviderConnectionError, match="certificate"):
                await fetch(f"https://{host}:{server.port}/", policy(server))
    assert names == [HOST, "other.example.org", None]
    assert len(server.requests) == 1


async def test_a_certificate_that_nobody_trusts(
    tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(made(tmp_path)[1]))
    async with serving(answer(b"hello"), tls=tls) as server:
        with pytest.raises(ProviderConnectionError, match="certificate"):
            await fetch(f"https://{HOST}:{server.port}/", policy(server))
    assert server.requests == []


async def test_no_redirect_leaves_tls(tls: ssl.SSLContext) -> None:
    async with serving(answer(b"plain")) as plain:
        gone = answer(status=302, headers={"location": f"http://{HOST}:{plain.port}/"}, length=0)
        async with serving(gone, tls=tls) as server:
            both = AddressPolicy(
                [HOST, "127.0.0.1"],
                schemes=["https", "http"],
                ports=[server.port, plain.port],
                resolve=here,
            )
            with pytest.raises(InvalidRequestError, match="without TLS"):
                await fetch(f"https://{HOST}:{server.port}/", both)
    assert plain.connections == 0


async def test_a_proxy_that_is_named_finds_the_addresses(tls: ssl.SSLContext) -> None:
    async def nobody(host: str) -> Sequence[str]:
        raise AssertionError("the proxy looks names up")

    async with serving(answer(b"hello"), tls=tls) as server, proxying(server) as asked:
        through = AddressPolicy(
            [HOST], ports=[server.port], resolve=nobody, proxy=f"http://127.0.0.1:{asked.port}"
        )
        assert (await fetch(f"https://{HOST}:{server.port}/", through)).data == b"hello"
        assert [(each.method, each.target) for each in asked] == [
            ("CONNECT", f"{HOST}:{server.port}")
        ]
        with pytest.raises(InvalidRequestError):
            await fetch(f"https://elsewhere.example.org:{server.port}/", through)
    assert len(asked) == 1
