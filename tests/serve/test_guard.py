"""Which hosts a request may be for, and which web pages may send one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman.http_server.guard import HostGuard
from dragoman.runtime import is_loopback
from support.asgi import Exchange, exchange


async def app(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"retry-after", b"1")]})
    await send({"type": "http.response.body", "body": b"ok"})


def sent(
    *headers: tuple[str, str], host: str | None = "localhost", method: str = "POST", **how: Any
) -> Exchange:
    return asyncio.run(exchange(HostGuard(app, **how), method, "/", headers=headers, host=host))


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:80",
        "127.0.0.1",
        "127.0.0.1:8000",
        "[::1]",
        "[::1]:8000",
        "own.example:1",
        "port.example:8443",
    ],
)
def test_a_server_answers_to_its_own_names(host: str) -> None:
    assert sent(host=host, hosts=["Own.example", "port.example:8443"]).status == 200


@pytest.mark.parametrize(
    "host",
    [
        None, "", "evil.example", "localhost.evil.example", "evil.example:80", "localhost@evil.example", "127.0.0.1.nip.io", "[::1", "::1",
        "localhost:80:80", "localhost:x", "localhost/", "localhost\t", "own.example.", "xown.example", "port.example", "port.example:80", "\xff",
        "localhost:123456", "[evil.example]",
    ],
)  # fmt: skip
def test_it_answers_to_no_other(host: str | None) -> None:
    assert sent(host=host, hosts=["own.example", "port.example:8443"]).status == 421


def test_two_hosts_are_none() -> None:
    assert sent(("host", "localhost")).status == 421
    assert sent(("host", "evil.example"), hosts=["*"]).status == 421


def test_any_host_where_that_is_wanted_and_even_then_only_a_host() -> None:
    assert sent(host="any.example", hosts=["*"]).status == 200
    assert sent(host="a b", hosts=["*"]).status == 421


@pytest.mark.parametrize(
    ("origin", "how"),
    [
        ("http://localhost", {}),
        ("https://chat.example", {"origins": ["https://chat.example/"]}),
        ("HTTPS://Chat.Example", {"origins": ["https://chat.example"]}),
        ("http://localhost:5173", {"origins": ["http://localhost:*"]}),
        ("http://[::1]:5173", {"origins": ["http://[::1]:*"]}),
        ("http://localhost", {"origins": ["http://localhost:*"], "host": "127.0.0.1"}),
        ("null", {"origins": ["*"]}),
    ],
)
def test_pages_that_may_use_it(origin: str, how: dict[str, Any]) -> None:
    seen = sent(("origin", origin), **how)
    assert (seen.status, seen.headers["access-control-allow-origin"], seen.headers["vary"]) == (
        200,
        origin,
        "Origin",
    )
    assert "retry-after" in seen.headers["access-control-expose-headers"]
    assert "access-control-allow-credentials" not in seen.headers


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example", "null", "", "http://localhost:5173", "https://localhost", "http://localhost.evil.example", "file://",
        "https://chat.example.evil", "https://chat.example:444", "http://chat.example", "https://chat.example@evil.example", "\xff",
        "https://ports.example:80x", "https://ports.example:", "https://ports.example.evil:80",
    ],
)  # fmt: skip
def test_other_pages_may_not(origin: str, method: str) -> None:
    preflight = ("access-control-request-method", "POST")
    seen = sent(
        ("origin", origin),
        preflight,
        method=method,
        origins=["https://chat.example", "https://ports.example:*"],
    )
    assert (seen.status, "access-control-allow-origin" in seen.headers) == (403, False)


def test_two_origins_are_one_too_many() -> None:
    assert sent(("origin", "http://localhost"), ("origin", "http://localhost")).status == 403


def test_a_preflight_is_answered_for_pages_that_may() -> None:
    asks = [("origin", "https://chat.example"), ("access-control-request-method", "POST")]
    wanted = ("access-control-request-headers", "authorization, content-type")
    seen = sent(*asks, wanted, method="OPTIONS", origins=["https://chat.example"])
    assert (seen.status, seen.body) == (204, b"")
    assert seen.headers["access-control-allow-headers"] == wanted[1]
    assert "POST" in seen.headers["access-control-allow-methods"]
    strange = ("access-control-request-headers", "x\r\nset-cookie: a=b")
    assert (
        "access-control-allow-headers"
        not in sent(*asks, strange, method="OPTIONS", origins=["*"]).headers
    )


def test_without_a_page_nothing_is_added() -> None:
    assert sent().headers == {"retry-after": "1"}


@pytest.mark.parametrize(
    ("host", "is_so"),
    [
        ("localhost", True), ("LocalHost", True), ("a.localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("[::1]", True),
        ("0.0.0.0", False), ("::", False), ("192.168.0.1", False), ("localhost.evil.example", False), ("", False), ("xlocalhost", False),
    ],
)  # fmt: skip
def test_what_is_this_machine(host: str, is_so: bool) -> None:
    assert is_loopback(host) is is_so
