"""A client of an ASGI application, in this process, that behaves as badly as a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

__all__ = ["Exchange", "exchange", "scope_of"]


def scope_of(
    method: str = "GET",
    path: str = "/",
    headers: Iterable[tuple[str | bytes, str | bytes]] = (),
    *,
    host: str | None = "127.0.0.1",
) -> dict[str, Any]:
    """The scope of a request. `path`: with its query."""
    plain, _, query = path.partition("?")
    raw = [(_bytes(name).lower(), _bytes(value)) for name, value in headers]
    return {
        "type": "http",
        "method": method,
        "path": plain,
        "raw_path": plain.encode(),
        "query_string": query.encode(),
        "headers": raw if host is None else [(b"host", host.encode()), *raw],
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 9),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "state": {},
    }


class Exchange:
    """One request and what came back. Give it to an application with `exchange`."""

    def __init__(
        self,
        pieces: Iterable[bytes] = (b"",),
        *,
        unfinished: bool = False,
        leaves_after: int | None = None,
        reads: int | None = None,
        fails_after: int | None = None,
        delay: float = 0.0,
    ) -> None:
        """Args: pieces: of the request's body. unfinished: the body's end never comes.
        leaves_after: the client leaves after so many messages of the response; 0: at once. reads:
        so many messages are taken; the next waits for ever. fails_after: so many messages are
        taken; the next raises `OSError`, as ASGI allows a server whose client is gone. delay:
        seconds before each piece of the body.
        """
        pieces = list(pieces)
        self._body = [
            (piece, unfinished or place < len(pieces) - 1) for place, piece in enumerate(pieces)
        ]
        self._leaves_after, self._reads, self._fails_after, self._delay = (
            leaves_after,
            reads,
            fails_after,
            delay,
        )
        self._is_broken = False
        self._left = asyncio.Event()
        if leaves_after == 0:
            self._left.set()
        self.sent: list[Mapping[str, Any]] = []
        """Messages of the response."""
        self.times: list[float] = []
        """When each came, on the loop's clock."""

    async def receive(self) -> dict[str, Any]:
        """See ASGI."""
        if self._body:
            if self._delay:
                await asyncio.sleep(self._delay)
            piece, more = self._body.pop(0)
            return {"type": "http.request", "body": piece, "more_body": more}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        """See ASGI."""
        if self.is_complete or (message["type"] == "http.response.start") is bool(self.sent):
            self._is_broken = True  # seen also where the sender is a task that nobody looks after
            raise AssertionError(f"{message} is out of turn")
        if self._reads is not None and len(self.sent) >= self._reads:
            await asyncio.Event().wait()
        if self._fails_after is not None and len(self.sent) >= self._fails_after:
            raise OSError("the client is gone")
        self.sent.append(message)
        self.times.append(asyncio.get_running_loop().time())
        if self._leaves_after is not None and len(self.sent) >= self._leaves_after:
            self.leave()

    def leave(self) -> None:
        """The client leaves."""
        self._left.set()

    @property
    def is_complete(self) -> bool:
        """Whether the response came to its end, and nothing behind it."""
        return (
            not self._is_broken
            and bool(self.sent)
            and self.sent[-1].get("more_body", True) is False
        )

    @property
    def status(self) -> int:
        """Of the response."""
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        """Of the response."""
        return {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in self.sent[0]["headers"]
        }

    @property
    def body(self) -> bytes:
        """Of the response, as far as it came."""
        return b"".join([message.get("body", b"") for message in self.sent[1:]])

    @property
    def json(self) -> Any:
        """The body's."""
        return msgspec.json.decode(self.body)


async def exchange(
    app: Any,
    method: str,
    path: str,
    body: object = b"",
    *,
    headers: Mapping[str, str] | Sequence[tuple[str | bytes, str | bytes]] = (),
    host: str | None = "127.0.0.1",
    **behaviour: Any,
) -> Exchange:
    """Sends a request to an application, until that returns. `body`: bytes, or what becomes JSON;
    `behaviour`: of the `Exchange`."""
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    made = Exchange(**{"pieces": [data], **behaviour})  # pyright: ignore[reportArgumentType]
    pairs: list[tuple[str | bytes, str | bytes]] = (
        list(headers.items()) if isinstance(headers, Mapping) else [*headers]
    )
    await app(scope_of(method, path, pairs, host=host), made.receive, made.send)
    return made


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
