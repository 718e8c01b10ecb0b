"""Proxies and certificate authorities come from the environment; errors of TLS and proxies say what
to do."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path
from shutil import which

import anyio
import pytest

from dragoman.errors import ProviderConnectionError, SettingsError
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport
from dragoman.transport.environment import find_proxies, find_proxy
from support.socket_server import Do, answer, proxying, serving

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE")


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in (*NAMES, *(name.lower() for name in NAMES), *CERTIFICATES):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A key and a certificate for `provider.test` and this machine, its own authority."""
    if which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = folder / "key.pem", folder / "cert.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=provider.test"
    names = "subjectAltName=DNS:provider.test,DNS:localhost,IP:127.0.0.1"
    subprocess.run(
        [*command.split(), "-addext", names, "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    return key, cert


@pytest.fixture
def tls(certificate: tuple[Path, Path]) -> ssl.SSLContext:
    key, cert = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return context


async def fetch(url: str) -> bytes:
    transport = AiohttpTransport()
    try:
        response = await transport.send(HttpRequest(url, {"authorization": "Bearer sekret"}, {}))
        return await response.read()
    finally:
        await transport.close()


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_plain_requests_go_through_the_proxy(environment: pytest.MonkeyPatch, name: str):
    async with serving(answer(b"hello")) as server, proxying(server) as asked:
        environment.setenv(name, f"http://user:pa%20ss@127.0.0.1:{asked.port}")
        assert await fetch("http://provider.test/v1?a=b") == b"hello"
    assert asked[0].target == "http://provider.test/v1?a=b"
    assert asked[0].headers["proxy-authorization"] == "Basic dXNlcjpwYSBzcw=="


async def test_proxy_without_a_scheme(environment: pytest.MonkeyPatch):
    async with serving(answer(b"hello")) as server, proxying(server) as asked:
        environment.setenv("HTTP_PROXY", f"127.0.0.1:{asked.port}")
        assert await fetch("http://provider.test/") == b"hello"


async def test_tls_goes_through_a_tunnel_that_sees_no_key(
    environment: pytest.MonkeyPatch, certificate: tuple[Path, Path], tls: ssl.SSLContext
):
    async with serving(answer(b"hello"), tls=tls) as server, proxying(server) as asked:
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{asked.port}")
        environment.setenv("SSL_CERT_FILE", str(certificate[1]))
        assert await fetch("https://provider.test/v1") == b"hello"
    assert (asked[0].method, asked[0].target) == ("CONNECT", "provider.test:443")
    assert "authorization" not in asked[0].headers


@pytest.mark.parametrize(
    ("url", "through"),
    [
        ("http://provider.test/", False),
        ("https://a.provider.test/v1", False),
        ("https://another-provider.test/", True),
    ],
)
def test_no_proxy_is_heeded(environment: pytest.MonkeyPatch, url: str, through: bool):
    environment.setenv("ALL_PROXY", "http://proxy.test:3128")
    environment.setenv("NO_PROXY", "example.org, provider.test")
    assert find_proxy(url, find_proxies()) == ("http://proxy.test:3128" if through else None)


async def test_this_machine_is_never_reached_through_a_proxy(environment: pytest.MonkeyPatch):
    """Else the embedded model would not work where a proxy is set."""
    async with serving(answer(b"direct")) as server, proxying(server) as asked:
        environment.setenv("ALL_PROXY", f"http://127.0.0.1:{asked.port}")
        assert await fetch(server.url) == b"direct"
        assert await fetch(server.url.replace("127.0.0.1", "localhost")) == b"direct"
    assert asked == []


async def test_proxy_errors_name_the_variable(environment: pytest.MonkeyPatch):
    async with serving([]) as server:
        port = server.port
    environment.setenv("HTTP_PROXY", f"http://user:sekret@127.0.0.1:{port}")
    with pytest.raises(
        ProviderConnectionError, match=r"the proxy for provider\.test cannot be reached.*HTTP_PROXY"
    ) as caught:
        await fetch("http://provider.test/")
    assert "sekret" not in str(caught.value)
    async with serving(answer(status=407, length=0)) as server:
        environment.setenv("HTTPS_PROXY", server.url)
        with pytest.raises(
            ProviderConnectionError, match=r"the proxy for provider\.test refused \(HTTP 407\)"
        ):
            await fetch("https://provider.test/")
    environment.setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(
        SettingsError, match="speak socks5 cannot be used: name an HTTP proxy in HTTP_PROXY"
    ):
        await fetch("http://provider.test/")


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
async def test_authority_from_the_environment(
    environment: pytest.MonkeyPatch, certificate: tuple[Path, Path], tls: ssl.SSLContext, name: str
):
    async with serving(answer(b"hello"), tls=tls) as server:
        with pytest.raises(
            ProviderConnectionError,
            match=r"certificate of 127\.0\.0\.1:\d+ is not trusted \(self.signed.*SSL_CERT_FILE",
        ):
            await fetch(server.url)
        environment.setenv(name, str(certificate[1]))
        assert await fetch(server.url) == b"hello"


@pytest.mark.parametrize("name", ["SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"])
async def test_authority_from_a_folder(
    environment: pytest.MonkeyPatch,
    certificate: tuple[Path, Path],
    tls: ssl.SSLContext,
    name: str,
    tmp_path: Path,
):
    subprocess_hash = subprocess.run(  # noqa: ASYNC221 - a few milliseconds, in a test
        ["openssl", "x509", "-hash", "-noout", "-in", certificate[1]],
        check=True,
        capture_output=True,
        text=True,
    )
    (tmp_path / f"{subprocess_hash.stdout.strip()}.0").write_bytes(certificate[1].read_bytes())
    environment.setenv(name, str(tmp_path))
    async with serving(answer(b"hello"), tls=tls) as server:
        assert await fetch(server.url) == b"hello"


async def test_certificate_file_that_cannot_be_used_is_a_setting(
    environment: pytest.MonkeyPatch, tmp_path: Path
):
    for file, content in (("absent.pem", None), ("empty.pem", "nothing here")):
        if content is not None:
            (tmp_path / file).write_text(content)
        environment.setenv("SSL_CERT_FILE", str(tmp_path / file))
        with pytest.raises(SettingsError, match=f"{file}.*mend SSL_CERT_FILE"):
            await fetch("https://provider.test/")


async def test_tls_to_a_server_without_it():
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    listener = await asyncio.start_server(greet, "127.0.0.1", 0)
    with pytest.raises(ProviderConnectionError, match="begins with https"):
        await fetch(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
    listener.close()
    await listener.wait_closed()


async def test_closing_early_over_tls_does_not_wait_for_the_server(
    environment: pytest.MonkeyPatch, certificate: tuple[Path, Path], tls: ssl.SSLContext
):
    """Between the two, nothing is passed on any more: the server cannot agree to end TLS, and the
    connection ends."""
    environment.setenv("SSL_CERT_FILE", str(certificate[1]))
    ended, deaf = asyncio.Event(), asyncio.Event()

    async def between(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", server.port)

        async def back() -> None:
            while data := await there_reader.read(65536):
                writer.write(data)

        passing = asyncio.ensure_future(back())
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                if not deaf.is_set():
                    there_writer.write(data)
        ended.set()
        passing.cancel()
        writer.close()
        there_writer.close()

    async with serving(answer(b"one", Do.HANG), tls=tls) as server:
        listener = await asyncio.start_server(between, "127.0.0.1", 0)
        transport = AiohttpTransport()
        response = await transport.send(
            HttpRequest(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}")
        )
        assert await response.read() == b"one"
        deaf.set()
        await response.close()
        with anyio.fail_after(10):
            await ended.wait()
        await transport.close()
        listener.close()
