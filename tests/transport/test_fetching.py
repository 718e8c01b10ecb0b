"""`fetch` and `post` against a server on this machine, which the policy allows by its network.
Nobody asks a name server."""

from __future__ import annotations

import gzip
import socket
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from dragoman import errors
from dragoman.errors import (
    DragomanError,
    InvalidRequestError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    SettingsError,
    StreamCutError,
)
from dragoman.transport import AddressPolicy, fetch, post
from dragoman.transport.checked_connection import open_response
from dragoman.transport.fetching import read_limited
from dragoman.transport.hosts import UrlTarget
from support.socket_server import Do, Server, answer, serving

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("error")]

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
HOST = "files.example.org"


class Names:
    """A name server: each question gets the next answer, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers, self.asked = list(answers), list[str]()

    async def __call__(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def policy(server: Server, *allow: str, names: Any = None, **how: Any) -> AddressPolicy:
    how = {"schemes": ["http"], "ports": [server.port], **how}
    return AddressPolicy(
        [HOST, "127.0.0.0/8", *allow], resolve=names or Names(["127.0.0.1"]), **how
    )


def at(server: Server, path: str = "/cat.png", host: str = HOST) -> str:
    return f"http://{host}:{server.port}{path}"


def file(body: bytes = PNG, kind: str | None = "image/png", **headers: str) -> list[Any]:
    return answer(
        body,
        headers={
            **({"content-type": kind} if kind else {}),
            **{k.replace("_", "-"): v for k, v in headers.items()},
        },
    )


def redirect(to: str, status: int = 302) -> list[Any]:
    return answer(status=status, headers={"location": to}, length=0)


async def test_a_file_is_fetched() -> None:
    async with serving(file()) as server:
        part = await fetch(at(server, "/a/My%20cat.png?sig=x%2Fy&b=%20#top"), policy(server))
    assert (part.data, part.mime_type, part.name) == (PNG, "image/png", "My cat.png")
    asked = server.requests[0]
    assert (asked.method, asked.target) == ("GET", "/a/My%20cat.png?sig=x%2Fy&b=%20")
    assert asked.headers["host"] == f"{HOST}:{server.port}"
    assert not {"authorization", "cookie", "referer"} & asked.headers.keys()


async def test_nothing_of_the_environment_goes_along(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (tmp_path / "netrc").write_text(f"machine {HOST} login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with serving(redirect("/b.png"), file(set_cookie="a=b"), file()) as server:
        await fetch(at(server), policy(server))
        await fetch(at(server), policy(server))
    assert not any({"authorization", "cookie"} & asked.headers.keys() for asked in server.requests)


async def test_the_address_that_was_checked_is_the_one_that_is_used() -> None:
    """A name that is public when it is checked and this machine when it is used (rebinding)."""
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with serving(file(), file()) as server:
        assert (await fetch(at(server), policy(server, names=names))).data == PNG
        assert names.asked == [HOST]
        with pytest.raises(InvalidRequestError, match="no address"):
            await fetch(at(server), policy(server, names=names))
    assert len(server.requests) == 1


async def test_a_redirect_is_checked_as_the_url_was_with_a_look_up_of_its_own() -> None:
    names = Names(["127.0.0.1"], ["10.0.0.1"])
    async with serving(redirect("/other.png"), file()) as server:
        with pytest.raises(InvalidRequestError, match="no address"):
            await fetch(at(server), policy(server, names=names))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "url", ["http://files.example.org@{}/", "http://{}#@files.example.org/", "http://{}"]
)
async def test_a_url_that_the_client_reads_in_another_way_is_refused(url: str) -> None:
    async with serving(file()) as server:
        read = UrlTarget(url.format(f"127.0.0.1:{server.port}"), "http", HOST, server.port, None)
        with pytest.raises(InvalidRequestError, match="cannot be read"):
            async with open_response(policy(server), read, "GET", {}):
                pass
    assert server.connections == 0


async def test_a_connection_is_refused_at_the_last_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where what found the addresses was tricked, the socket is not opened."""
    names = Names(["127.0.0.1"])
    async with serving(file()) as server:
        tricked = policy(server, names=names)

        async def addresses(place: Any) -> Sequence[str]:
            return ["127.0.0.1"]

        monkeypatch.setattr(tricked, "find_addresses", addresses)
        monkeypatch.setattr(tricked, "_networks", ())
        with pytest.raises(DragomanError):
            await fetch(at(server), tricked)
    assert server.connections == 0


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed(status: int) -> None:
    async with serving(redirect("/b.png", status), file()) as server:
        part = await fetch(at(server, "/a"), policy(server))
    assert part.name == "b.png" if not part.name else part.data == PNG
    assert [each.target for each in server.requests] == ["/a", "/b.png"]


@pytest.mark.parametrize(
    "to",
    [
        "http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://intern.corp/", "https://files.example.org/", "file:///etc/passwd", "//intern.corp/x",
        "http://user:secret@files.example.org/", "", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "http://files.example.org:22/", "http://[", "/a b", "/é",
    ],
)  # fmt: skip
async def test_a_redirect_to_elsewhere_is_refused_and_not_named(to: str) -> None:
    async with serving(redirect(to.encode().decode("latin-1") if to else ""), file()) as server:
        with pytest.raises(InvalidRequestError) as caught:
            await fetch(at(server), policy(server))
    shown = str(errors.public(caught.value))
    assert not any(
        word in shown for word in ("10.0.0", "169.254", "intern.corp", "secret", "passwd")
    )
    assert len(server.requests) <= 4


async def test_redirects_come_to_an_end() -> None:
    async with serving(redirect("/again")) as server:
        with pytest.raises(InvalidRequestError, match="more than 3 times"):
            await fetch(at(server), policy(server))
        assert len(server.requests) == 4
        with pytest.raises(InvalidRequestError, match="more than 0 times"):
            await fetch(at(server), policy(server), redirects=0)
    assert len(server.requests) == 5


@pytest.mark.parametrize(
    "script",
    [
        answer(b"x" * 600, b"x" * 600),
        answer(b"x" * 1200, length=1200),
        answer(length=10**12),
        answer(*[b"x" * 1000] * 200, Do.HANG),
        answer(gzip.compress(b"\0" * 10**6, mtime=0), headers={"content-encoding": "gzip"}),
        answer(zlib.compress(b"\0" * 10**6), headers={"content-encoding": "deflate"}),
        answer(*[zlib.compress(b"")[:2] + b"\0\0\0\xff\xff" * 300], headers={"content-encoding": "deflate"}),
    ],
    ids=["chunks", "length", "said", "endless", "gzip", "deflate", "much that says nothing"],
)  # fmt: skip
async def test_no_more_is_taken_than_is_allowed(script: Any) -> None:
    async with serving(script) as server:
        with pytest.raises(InvalidRequestError, match="more than 1000 bytes"):
            await fetch(at(server), policy(server), max_bytes=1000)


async def test_what_is_compressed_is_not_unpacked_beyond_the_bound() -> None:
    bomb = gzip.compress(b"\0" * 2**24, mtime=0)

    async def chunks() -> AsyncIterator[bytes]:
        yield bomb

    tracemalloc.start()
    with pytest.raises(InvalidRequestError, match="more than 100000 bytes"):
        await read_limited(chunks(), "gzip", 100_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20


async def test_a_bound_is_a_bound() -> None:
    async with serving(
        answer(b"x" * 1000),
        answer(gzip.compress(b"y" * 1000, mtime=0), headers={"content-encoding": "gzip"}),
    ) as server:
        assert len((await fetch(at(server), policy(server), max_bytes=1000)).data) == 1000
        assert (await fetch(at(server), policy(server), max_bytes=1000)).data == b"y" * 1000
    assert server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"no gzip", "gzip"), (gzip.compress(b"half", mtime=0)[:-4], "gzip"), (gzip.compress(b"a", mtime=0) + b"more", "gzip"), (b"x", "br"), (b"x", "zstd"), (b"x", "gzip, gzip"),
    ],
)  # fmt: skip
async def test_what_is_compressed_in_another_way_is_refused(body: bytes, encoding: str) -> None:
    async with serving(answer(body, headers={"content-encoding": encoding})) as server:
        with pytest.raises(InvalidRequestError, match="compressed"):
            await fetch(at(server), policy(server))


@pytest.mark.parametrize(
    "script",
    [
        answer(b"x", Do.HANG),
        [Do.HANG],
        [b"HTTP/1.1 200 OK\r\n", Do.HANG],
        [*answer(b"x", length=10)[:1], Do.HANG],
    ],
)
async def test_all_of_it_is_bound_in_time(script: Any) -> None:
    async with serving(script) as server:
        with pytest.raises(ProviderTimeoutError, match=r"0\.05 s"):
            await fetch(at(server), policy(server), seconds=0.05)
        if server.came.is_set():
            await server.left.wait()


async def test_a_slow_name_server_is_bound_in_time() -> None:
    import anyio

    async def never(host: str) -> Sequence[str]:
        await anyio.sleep_forever()
        raise AssertionError

    with pytest.raises(ProviderTimeoutError):
        await fetch(f"https://{HOST}/", AddressPolicy([HOST], resolve=never), seconds=0.01)


@pytest.mark.parametrize(
    "script",
    [answer(b"short", Do.CLOSE, length=10), answer(b"x", Do.CLOSE), answer(b"x", Do.RESET)],
)
async def test_a_file_that_is_cut_is_none(script: Any) -> None:
    async with serving(script) as server:
        with pytest.raises(ProviderConnectionError) as caught:
            await fetch(at(server), policy(server))
    assert isinstance(caught.value, StreamCutError) or "broken" in caught.value.message
    assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (answer(b"no", status=404), InvalidRequestError), (answer(b"no", status=401), InvalidRequestError), (answer(status=304, length=0), InvalidRequestError),
        (answer(b"no", status=500), ProviderError), (answer(b"no", status=429), ProviderError), ([b"nonsense\r\n\r\n", Do.CLOSE], ProviderConnectionError),
        ([Do.CLOSE], ProviderConnectionError), ([Do.RESET], ProviderConnectionError),
        ([b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\n\r\n", Do.CLOSE], ProviderConnectionError),
    ],
)  # fmt: skip
async def test_who_is_at_fault(script: Any, error: type[DragomanError]) -> None:
    async with serving(script) as server:
        with pytest.raises(DragomanError) as caught:
            await fetch(at(server, "/x?key=secret"), policy(server))
    assert type(caught.value) is error
    shown = str(errors.public(caught.value))
    assert shown == caught.value.message, "who wrote the URL reads what is wrong with it"
    assert not any(word in shown for word in ("127.0.0.1", "secret", "\n"))


async def test_nobody_at_the_port_is_said_without_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        asked = AddressPolicy(
            [HOST, "127.0.0.1"], schemes=["http"], ports=[port], resolve=Names(["127.0.0.1"])
        )
        with pytest.raises(ProviderConnectionError) as caught:
            await fetch(f"http://{HOST}:{port}/", asked)
    assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "body", "path", "mime_type"),
    [
        ("image/png", PNG, "/x", "image/png"),
        ("image/png; a=b", PNG, "/x", "image/png"),
        ("IMAGE/PNG", PNG, "/x", "image/png"),
        ("image/jpeg", PNG, "/x", "image/png"),
        ("image/jpg", b"\xff\xd8\xff\xe0", "/x", "image/jpeg"),
        ("application/octet-stream", PNG, "/x", "image/png"),
        (None, PNG, "/x.txt", "image/png"),
        (None, b"hello", "/x.txt", "text/plain"),
        (None, b"hello", "/x", "application/octet-stream"),
        ("nonsense", b"%PDF-1.4", "/x", "application/pdf"),
        ("application/pdf", b"%PDF-1.4", "/x", "application/pdf"),
        ("image/svg+xml", b"<svg/>", "/x", "image/svg+xml"),
        ("image/avif", b"\0\0\0\x1cftypavif", "/x", "image/avif"),
        ("text/html; charset=utf-8", PNG, "/x", "text/html"),
    ],
)
async def test_types(kind: str | None, body: bytes, path: str, mime_type: str) -> None:
    async with serving(file(body, kind)) as server:
        assert (await fetch(at(server, path), policy(server))).mime_type == mime_type


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg", "image/webp", "image/jpg"])
async def test_a_page_that_calls_itself_an_image_is_refused(kind: str) -> None:
    async with serving(file(b"<html>please sign in</html>", kind)) as server:
        with pytest.raises(InvalidRequestError, match="said to be"):
            await fetch(at(server), policy(server))


@pytest.mark.parametrize(
    ("disposition", "path", "name"),
    [
        ('attachment; filename="cat.png"', "/x", "cat.png"),
        ("attachment; filename*=UTF-8''caf%C3%A9.png", "/x", "café.png"),
        ('attachment; filename="../../etc/passwd"', "/x", "passwd"),
        ('attachment; filename="C:\\\\dir\\\\cat.png"', "/x", "cat.png"),
        ("attachment", "/y.png", "y.png"),
        ("attachment; filename*=nonsense''%FF", "/y.png", None),
        ("", "/a/%2e%2e%2fb.png", "b.png"),
        ("", "/" + "n" * 400 + ".png", "n" * 251 + ".png"),
        ("", "/", None),
        ("", "/%00%0a.", None),
    ],
)
async def test_names(disposition: str, path: str, name: str | None) -> None:
    async with serving(file(content_disposition=disposition)) as server:
        part = await fetch(at(server, path), policy(server))
    if name is not None or not disposition:
        assert part.name == name
    assert part.name is None or not set(part.name) & set("/\\\0\n")


async def test_a_refused_url_is_not_opened() -> None:
    async with serving(file()) as server:
        for url in (
            at(server, host="other.example.org"),
            at(server, host="localhost"),
            f"https://{HOST}:{server.port}/",
            f"http://{HOST}/",
        ):
            with pytest.raises(InvalidRequestError):
                await fetch(url, policy(server))
    assert server.connections == 0


# messages to URLs


async def test_a_message_is_sent() -> None:
    async with serving(
        answer(b"ok", status=202), answer(status=429, length=0, headers={"retry-after": "7"})
    ) as server:
        taken = await post(at(server, "/hook"), policy(server), {"é": [1]}, {"x-token": "t"})
        again = await post(
            at(server, "/hook"), policy(server), b"raw", {"content-type": "text/plain"}
        )
    assert (taken.status, taken.retry_after, again.status, again.retry_after) == (
        202,
        None,
        429,
        7.0,
    )
    first, second = server.requests
    assert (first.method, first.target, first.body) == ("POST", "/hook", '{"é":[1]}'.encode())
    assert (first.headers["content-type"], first.headers["x-token"]) == ("application/json", "t")
    assert (second.body, second.headers["content-type"]) == (b"raw", "text/plain")


async def test_a_message_does_not_follow_redirects_or_read_on() -> None:
    async with serving(redirect("http://10.0.0.1/", 307), answer(b"x", Do.HANG)) as server:
        assert (await post(at(server), policy(server), {})).status == 307
        assert (await post(at(server), policy(server), {})).status == 200
        await server.left.wait()  # the connection is given up
    assert len(server.requests) == 2


async def test_what_cannot_be_sent() -> None:
    async with serving([Do.HANG]) as server:
        with pytest.raises(ProviderTimeoutError):
            await post(at(server), policy(server), {}, seconds=0.05)
        with pytest.raises(SettingsError, match="header"):
            await post(at(server), policy(server), {}, {"x": "a\r\nb: c"})
        with pytest.raises(InvalidRequestError):
            await post("http://127.0.0.2:1/", policy(server), {})
