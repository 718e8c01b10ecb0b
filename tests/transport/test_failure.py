"""What is told of failures, what is hidden, what is kept of an exchange: line by line."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from dragoman.errors import (
    DecodeError,
    DragomanError,
    ProviderConnectionError,
    ProviderTimeoutError,
    SettingsError,
    StreamCutError,
)
from dragoman.request import HttpRequest
from dragoman.transport import Exchange, Player, Recorder, Timeouts
from dragoman.transport.base import Bounds, ConnectionLostError
from dragoman.transport.environment import find_proxies, find_proxy, load_certificates
from dragoman.transport.exchange import load_exchange, request_body
from dragoman.transport.failure import host_and_port, translate_error
from dragoman.transport.redaction import (
    find_secrets,
    hide_secrets,
    is_secret,
    public_body,
    public_url,
    redact,
)

pytestmark = pytest.mark.anyio

URL = "https://me:pass@h.test:8/v1/x?key=secret-1"
KEY: Any = SimpleNamespace(host="h", port=8, ssl=True, is_ssl=True)
BROKEN = OSError(61, "Connection refused")
UNTRUSTED = ssl.SSLCertVerificationError("no")
UNTRUSTED.verify_message = "self-signed"
INFO: Any = SimpleNamespace(real_url="http://secret")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (aiohttp.ConnectionTimeoutError(), ProviderTimeoutError, "no connection to h.test:8 within 1.5 s: check the network, or raise Timeouts.connect"),
        (aiohttp.SocketTimeoutError(), ProviderTimeoutError, "nothing came from h.test:8 for 2 s: try again, or raise Timeouts.read"),
        (TimeoutError(), ProviderTimeoutError, "the answer of h.test:8 was not complete within 3 s: try again, or raise Timeouts.total"),
        (aiohttp.InvalidURL("x"), SettingsError, "https://h.test:8/v1/x is no URL that a request can be sent to: check the base URL"),
        (aiohttp.NonHttpUrlClientError("x"), SettingsError, "https://h.test:8/v1/x is no URL that a request can be sent to: check the base URL"),
        (aiohttp.ClientConnectorDNSError(KEY, OSError(8, "Name unknown")), ProviderConnectionError, "the host h.test:8 is not known (Name unknown): check the base URL and the network"),
        (aiohttp.ClientProxyConnectionError(KEY, BROKEN), ProviderConnectionError, "the proxy for h.test:8 cannot be reached (Connection refused): check HTTPS_PROXY, HTTP_PROXY and NO_PROXY"),
        (aiohttp.ClientHttpProxyError(INFO, (), status=407), ProviderConnectionError, "the proxy for h.test:8 refused (HTTP 407): check HTTPS_PROXY and NO_PROXY"),
        (aiohttp.ClientConnectorCertificateError(KEY, UNTRUSTED), ProviderConnectionError, "the certificate of h.test:8 is not trusted (self-signed): name the file of its authority in SSL_CERT_FILE"),
        (aiohttp.ClientConnectorCertificateError(KEY, ValueError("x")), ProviderConnectionError, "the certificate of h.test:8 is not trusted (ValueError): name the file of its authority in SSL_CERT_FILE"),
        (aiohttp.ClientConnectorSSLError(KEY, BROKEN), ProviderConnectionError, "no TLS with h.test:8 (Connection refused): check whether its URL begins with https"),
        (aiohttp.ClientConnectorError(KEY, BROKEN), ProviderConnectionError, "cannot connect to h.test:8 (Connection refused): check that the server is running and that the base URL is right"),
        (aiohttp.ServerDisconnectedError(), ConnectionLostError, "h.test:8 closed the connection without an answer: try again"),
        (aiohttp.ClientPayloadError(), StreamCutError, "the connection to h.test:8 was cut before the answer ended: try again"),
        (aiohttp.ClientResponseError(INFO, ()), ProviderConnectionError, "what h.test:8 answered is not HTTP (ClientResponseError): check the base URL"),
        (aiohttp.ClientOSError(32, "Broken pipe"), ConnectionLostError, "the connection to h.test:8 broke (Broken pipe): try again"),
        (ConnectionResetError(), ConnectionLostError, "the connection to h.test:8 broke (ConnectionResetError): try again"),
        (aiohttp.ClientError("secret"), ProviderConnectionError, "the connection to h.test:8 broke (ClientError): try again"),
        (OSError(9, "Bad file"), ProviderConnectionError, "the connection to h.test:8 broke (Bad file): try again"),
        (ValueError("secret"), SettingsError, "a request to h.test:8 cannot be sent: check the base URL, and that the key and the headers hold no line break"),
    ],
)  # fmt: skip
def test_every_failure_of_the_network_says_what_to_do(
    error: Exception, kind: type[DragomanError], words: str
) -> None:
    made = translate_error(error, URL, Timeouts(connect=1.5, read=2.0, total=3.0))
    assert type(made) is kind
    assert made.message == words
    assert " 0 s" in translate_error(TimeoutError(), URL, Timeouts()).message


def test_what_is_waited_for_and_taken_where_nothing_is_said() -> None:
    assert Timeouts() == Timeouts(connect=10.0, read=600.0, total=None)
    assert Bounds() == Bounds(
        line=67_108_864, body=268_435_456, error_body=262_144, error_seconds=10.0
    )
    for url, host in (
        ("http://h", "h"),
        ("http://a@b@h:1?x", "h:1"),
        ("http://h#y", "h"),
        ("h/x", ""),
    ):
        assert host_and_port(url) == host


@pytest.mark.parametrize(
    "name",
    ["Authorization", "x-oauth", "set-cookie", "my-secret", "credential-id", "x-amz-signature", "session", "x-password", "passwd", "passphrase", "pwd", "private-x", "openai-organization", "organisation", "x-project", "key", "api-key", "x_token", "apikey", "apitoken", "sig", "x-sig", "apisig"],
)  # fmt: skip
def test_names_that_are_secret(name: str) -> None:
    assert is_secret(name)
    assert public_url(f"http://h/?a=1&{name}=x&b") == "http://h/?a=1&b"
    assert find_secrets("http://h", {name: "12345678 short 123456789"}) == {"12345678", "123456789"}


@pytest.mark.parametrize(
    "name", ["monkey", "keys", "tokens", "max_tokens", "signal", "key-id", "design"]
)
def test_names_that_are_not(name: str) -> None:
    assert not is_secret(name)
    assert public_url(f"http://h/?{name}=x") == f"http://h/?{name}=x"


FIELDS = ["authorization", "my_password", "passphrase", "client_secret", "aws_credentials", "api_key", "apikey", "API-Key", "x_api_key", "access_token", "auth_token", "bearer_token", "private_key", "subscription-key", "my-access-key"]  # fmt: skip


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_a_body_that_are_secret(name: str) -> None:
    body = {"a": [{name: "12345678"}], name: {"b": "c"}, "x": 1}
    assert public_body(body) == {"a": [{name: "***"}], name: {"b": "c"}, "x": 1}
    assert public_body({name: 3}) == {name: 3}
    assert find_secrets("", body=body) == {"12345678"}
    assert find_secrets("", body=[[{name: "1234567"}], {name: ["12345678"]}]) == set()


@pytest.mark.parametrize(
    "name", ["signature", "project", "key", "token", "max_tokens", "tokens", "keyword"]
)
def test_fields_of_a_body_that_are_not(name: str) -> None:
    assert public_body({name: "12345678"}) == {name: "12345678"}
    assert public_body(b"x") == b"x"


@pytest.mark.parametrize(
    ("url", "public", "held"),
    [
        ("http://me:password1@h/v1", "http://h/v1", {"password1"}),
        ("http://me:pass%2Fword@h/v1", "http://h/v1", {"pass%2Fword", "pass/word"}),
        ("http://token123@h", "http://h", set()),
        ("http://h/v1/key/abcdefgh/x", "http://h/v1/key/***/x", {"abcdefgh"}),
        ("http://h/my-token/abcdefgh", "http://h/my-token/***", {"abcdefgh"}),
        ("http://h/apikey/abcdefgh", "http://h/apikey/***", {"abcdefgh"}),
        ("http://h/secret/abcdefgh", "http://h/secret/***", {"abcdefgh"}),
        ("http://h/sk-a1bcdefgh/x", "http://h/***/x", {"sk-a1bcdefgh"}),
        ("http://h/gsk_a1bcdefgh", "http://h/***", {"gsk_a1bcdefgh"}),
        ("http://h/sk-abcdefghi", "http://h/sk-abcdefghi", set()),
        ("http://h/sk-a1bcdef", "http://h/sk-a1bcdef", set()),
        ("http://h/AIza" + "x" * 20, "http://h/***", {"AIza" + "x" * 20}),
        ("http://h/AIza" + "x" * 19, "http://h/AIza" + "x" * 19, set()),
        ("http://h/bot12:abcdefgh/send", "http://h/***/send", {"bot12:abcdefgh"}),
        ("http://h/bot12%3Aabcdefgh", "http://h/***", {"bot12%3Aabcdefgh", "bot12:abcdefgh"}),
        ("http://h/?key=a%2Bbcdefg+h2345678&x=1#y", "http://h/?x=1", {"a%2Bbcdefg+h2345678", "a+bcdefg", "h2345678"}),
        ("http://h/keys/abcdefgh", "http://h/keys/abcdefgh", set()),
        ("https://user:p/assword@h/a", "https://h/a", {"p/assword"}),
        ("https://user:p#assword@h/a", "https://h/a", {"p#assword"}),
        ("https://user:p?assword@h/a?x=1", "https://h/a?x=1", {"p?assword"}),
        ("https://u:password@proxy/https://v:another1@h/a", "https://proxy/https://h/a", {"password", "another1"}),
        ("http://h:80/@user/x", "http://h:80/@user/x", set()),
        ("http://[::1]/@user/x", "http://[::1]/@user/x", set()),
        ("no url", "no url", set()),
        ("", "", set()),
    ],
)  # fmt: skip
def test_what_a_url_shows_and_holds(url: str, public: str, held: set[str]) -> None:
    assert public_url(url) == public
    assert find_secrets(url) == held


def test_longer_secrets_are_hidden_first_and_nothing_where_there_are_none() -> None:
    assert hide_secrets(b"abc abcdef", ["abc", "abcdef"]) == b"*** ***"
    assert hide_secrets(b"abc", []) == b"abc"
    assert (
        hide_secrets(rb"a\/b a\\\\/b a%2fb a%2Fb \u0061\u002fb", ["a/b"]) == b"*** *** *** *** ***"
    )
    assert hide_secrets(rb"a\\\\\\\\/b", ["a/b"]) == rb"a\\\\\\\\/b"
    assert hide_secrets(b"A.B AxB", ["A.B"]) == b"*** AxB"
    assert hide_secrets("\u00e9 %C3%A9 \\u00E9".encode(), ["\u00e9"]) == b"*** *** ***"
    assert hide_secrets(b"\xed\xa0\x80 x", ["\ud800"]) == b"*** x"
    error = redact(DragomanError("x \ud800 abc", body=b"abc"), ["abc"])
    assert (error.message, error.args, error.body) == ("x \ud800 ***", ("x \ud800 ***",), b"***")
    assert redact(DragomanError("abc"), ["abc"]).body is None


BODY = bytes(range(10))


@pytest.mark.parametrize(
    ("how", "sizes"),
    [
        ({}, [10]),
        ({"chunks": 4}, [4, 4, 2]),
        ({"chunks": 10}, [10]),
        ({"chunks": [7, 3, 0, 10, 99, 3]}, [3, 4, 3]),
        ({"cut_after": 5}, [5]),
        ({"cut_after": 5, "chunks": 2}, [2, 2, 1]),
        ({"cut_after": 0}, []),
    ],
)
def test_how_a_body_arrives(how: dict[str, Any], sizes: list[int]) -> None:
    pieces = Exchange(body=BODY, **how).split_body()
    assert [len(piece) for piece in pieces] == sizes
    assert b"".join(pieces) == BODY[: how.get("cut_after")]


@pytest.mark.parametrize(
    ("exchange", "fits"),
    [
        (Exchange(), True),
        (Exchange(method="GET"), False),
        (Exchange(url="http://h/x"), True),
        (Exchange(url="http://h/y"), False),
        (Exchange(request_body={"b": 1, "api_key": "other"}), True),
        (Exchange(request_body={"b": 2, "api_key": "other"}), False),
    ],
)
def test_which_request_an_answer_fits(exchange: Exchange, fits: bool) -> None:
    with pytest.raises(AttributeError):
        exchange.status = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        Exchange(200)  # type: ignore[misc]
    assert exchange.fits(HttpRequest("http://h/x?key=1", {}, {"api_key": "k", "b": 1})) is fits


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (None, None),
        (b'{"a": 1}', {"a": 1}),
        ({"a": (1,)}, {"a": [1]}),
        (b"x=1", b"x=1"),
        (b"\xff", b"\xff"),
        (b"", b""),
    ],
)
def test_the_body_of_a_request(body: Any, read: Any) -> None:
    assert request_body(HttpRequest("http://h", {}, body)) == read


def test_a_recorded_file_is_read_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.json"

    def read(request: Mapping[str, Any], response: Mapping[str, Any]) -> Exchange:
        file.write_text(json.dumps({"wire": "x", "request": request, "response": response}))
        return load_exchange(file)

    encoded = base64.b64encode(b"\xff").decode()
    assert read({"url": "http://h/?key=1&a=2", "body": {"a": 1}}, {"status": 201, "headers": {"A": "B"}, "body_text": "é"}) == Exchange(
        status=201, headers={"a": "B"}, body="é".encode(), method="POST", url="http://h/?a=2", request_body={"a": 1}
    )  # fmt: skip
    assert read({"url": None, "method": "GET", "body_base64": encoded}, {"status": 200, "body_base64": encoded, "cut": True}) == Exchange(
        status=200, body=b"\xff", cut_after=1, method="GET", request_body=b"\xff"
    )  # fmt: skip
    both = read({"url": None, "body": {"a": 1}, "body_base64": encoded}, {"status": 200})
    assert (both.request_body, both.body, both.headers) == ({"a": 1}, b"", {})
    for odd in (b"{}", b"x", b"\xff", b'{"request":{"url":3},"response":{"status":200}}'):
        file.write_bytes(odd)
        with pytest.raises(DecodeError, match=r"is no recorded exchange .*: record it again"):
            load_exchange(file)


async def test_a_recording_is_written_whole(tmp_path: Path) -> None:
    stream = {
        "content-type": "text/event-stream; x",
        "Content-Length": "3",
        "x-api-key": "k",
        "x-request-id": "b",
        "x-unheard-of": "c",
    }
    answers = [
        Exchange(status=201, headers=stream, body=b"abc", chunks=1),
        Exchange(headers={"content-type": "application/x-ndjson"}, body=b"\xff"),
        Exchange(body=b"abc", cut_after=2),
        Exchange(body=b"abc", chunks=1),
        Exchange(body=b"token"),
    ]
    recorder = Recorder(Player(answers), tmp_path / "deep" / "er", {"wire": "w", "framing": "x"})
    sent = HttpRequest("http://h/x?key=secret-12", {"Accept": "1", "X-Own": "2", "Authorization": "Bearer secret-12"}, {"a": "secret-12"}, "PUT")  # fmt: skip
    response = await recorder.send(sent)
    assert (response.status, response.headers) == (201, stream)
    assert [await response.read() for _ in range(5)] == [b"a", b"b", b"c", b"", b""]
    await response.close()
    binary = await recorder.send(HttpRequest("http://h", {}, b"\xff"))
    assert [await binary.read(), await binary.read()] == [b"\xff", b""]
    broken = await recorder.send(HttpRequest("http://h", {}, b"text", "POST"))
    assert await broken.read() == b"ab"
    with pytest.raises(StreamCutError):
        await broken.read()
    left = await recorder.send(HttpRequest("http://h", method="GET"))
    await left.read()
    await left.close()
    await left.close()
    secret = await recorder.send(HttpRequest("http://h", secret=True))
    await secret.read()
    files = sorted((tmp_path / "deep" / "er").iterdir())
    assert [file.name for file in files] == ["0001.json", "0002.json", "0003.json", "0004.json"]
    encoded = base64.b64encode(b"\xff").decode()
    assert [json.loads(file.read_text()) for file in files] == [
        {
            "wire": "w",
            "framing": "sse",
            "provenance": "recorded",
            "request": {
                "method": "PUT",
                "url": "http://h/x",
                "headers": {"accept": "1"},
                "body": {"a": "***"},
            },
            "response": {
                "status": 201,
                "headers": {"content-type": "text/event-stream; x", "x-request-id": "b"},
                "body_text": "abc",
            },
        },
        {
            "wire": "w",
            "framing": "ndjson",
            "provenance": "recorded",
            "request": {
                "method": "POST",
                "url": "http://h",
                "headers": {},
                "body": None,
                "body_base64": encoded,
            },
            "response": {
                "status": 200,
                "headers": {"content-type": "application/x-ndjson"},
                "body_text": None,
                "body_base64": encoded,
            },
        },
        {
            "wire": "w",
            "framing": "json",
            "provenance": "recorded",
            "request": {
                "method": "POST",
                "url": "http://h",
                "headers": {},
                "body": None,
                "body_text": "text",
            },
            "response": {"status": 200, "headers": {}, "body_text": "ab", "cut": True},
        },
        {
            "wire": "w",
            "framing": "json",
            "provenance": "recorded",
            "request": {"method": "GET", "url": "http://h", "headers": {}, "body": None},
            "response": {"status": 200, "headers": {}, "body_text": "a", "cut": True},
        },
    ]


async def test_a_player_gives_each_answer_once_and_says_what_is_missing(tmp_path: Path) -> None:
    one, two = Exchange(url="http://h/1", body=b"1"), Exchange(url="http://h/2", body=b"2")
    player = Player([one, two], match="request")
    assert await (await player.send(HttpRequest("http://h/2"))).read() == b"2"
    with pytest.raises(SettingsError) as caught:
        await player.send(HttpRequest("http://h/2?key=1"))
    assert caught.value.message == (
        "no recorded answer is left for POST http://h/2, request 2 (1 recordings do not fit): "
        "record it, or play another recording"
    )
    mixed = Player([ProviderConnectionError("down"), one])
    with pytest.raises(ProviderConnectionError, match="down"):
        await mixed.send(HttpRequest("http://x"))
    response = await mixed.send(HttpRequest("http://x"))
    assert [await response.read(), await response.read()] == [b"1", b""]
    await response.close()
    with pytest.raises(
        ProviderConnectionError, match="the answer was closed before this read: read it first"
    ):
        await response.read()
    for name, text in (("b", "2"), ("a", "1")):
        (tmp_path / f"{name}.json").write_text(
            json.dumps({"request": {"url": None}, "response": {"status": 200, "body_text": text}})
        )
    (tmp_path / "c.txt").write_text("no recording")
    loaded = Player.load(tmp_path, str(tmp_path / "b.json"), match="order")
    bodies = [
        await (await loaded.send(HttpRequest("http://x", method="GET"))).read() for _ in range(3)
    ]
    assert bodies == [b"1", b"2", b"2"]
    by_request = Player.load(tmp_path)
    with pytest.raises(SettingsError, match="2 recordings do not fit"):
        await by_request.send(HttpRequest("http://x", method="GET"))


PROXIES = {"http": "http://p:1", "https": "p:2", "all": "http://a:3"}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://h", "http://p:1"),
        ("https://h", "http://p:2"),
        ("ws://h", "http://a:3"),
        ("http://localhost:8", None),
        ("http://x.localhost", None),
        ("http://127.0.0.2", None),
        ("http://[::1]:8", None),
        ("http://notlocalhost", "http://p:1"),
        ("http://8.8.8.8", "http://p:1"),
    ],
)
def test_which_proxy_a_request_goes_through(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert find_proxy(url, PROXIES) == proxy
    assert find_proxy(url, {}) is None
    assert find_proxy("http://h", {"https": "p:2"}) is None
    monkeypatch.setenv("NO_PROXY", "h.test")
    assert find_proxy("http://me:pw@h.test/x", {"http": "p:1", "no": "h.test"}) is None
    for scheme in ("http", "https"):
        with pytest.raises(SettingsError) as caught:
            find_proxy(f"{scheme}://x", {"all": "socks5://p"})
        assert caught.value.message == (
            "proxies that speak socks5 cannot be used: "
            f"name an HTTP proxy in {scheme.upper()}_PROXY, or the host in NO_PROXY"
        )
    assert find_proxy("http://x", {"http": "https://p"}) == "https://p"
    monkeypatch.setenv("HTTP_PROXY", "http://env:1")
    assert find_proxies()["http"] == "http://env:1"


def test_certificates_that_cannot_be_read_are_a_setting(tmp_path: Path) -> None:
    assert load_certificates({}) is None
    assert (
        load_certificates({"SSL_CERT_FILE": "", "SSL_CERT_DIR": "", "REQUESTS_CA_BUNDLE": ""})
        is None
    )
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
        with pytest.raises(SettingsError) as caught:
            load_certificates({name: f"{tmp_path}/none.pem"})
        assert caught.value.message == (
            f"no certificates could be read from {tmp_path}/none.pem (No such file or directory): "
            "mend SSL_CERT_FILE, SSL_CERT_DIR or REQUESTS_CA_BUNDLE"
        )
    folder = load_certificates({"REQUESTS_CA_BUNDLE": str(tmp_path)})
    assert folder is not None
    own = load_certificates(
        {"SSL_CERT_DIR": str(tmp_path), "REQUESTS_CA_BUNDLE": f"{tmp_path}/none.pem"}
    )
    assert own is not None
