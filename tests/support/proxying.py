"""A proxy between a test's clients and a server of its own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.http_server.listener import open_listener, server_url
from dragoman.proxy.page import page_routes
from dragoman.proxy.recordings import RecordingIndex
from dragoman.proxy.server import Mode, RecordingProxy
from dragoman.proxy.serving import make_app, serve_proxy
from dragoman.proxy.upstreams import find_upstreams
from dragoman.transport.exchange_file import ExchangeFolder


@dataclass
class Proxied:
    """A running proxy."""

    url: str
    proxy: RecordingProxy
    told: list[str] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)

    def of(self, name: str) -> str:
        return f"{self.url}/{name}"


@asynccontextmanager
async def proxying(
    folder: Path,
    *upstreams: str,
    mode: Mode = "record-new",
    is_nearest: bool = False,
    most_bytes: int | None = None,
) -> AsyncIterator[Proxied]:
    """Runs a proxy whose upstreams are `NAME=URL`."""
    told: list[str] = []
    logged: list[str] = []
    proxy = RecordingProxy(
        RecordingIndex(ExchangeFolder(folder, most_bytes)),
        find_upstreams(upstreams, {}),
        mode=mode,
        is_nearest=is_nearest,
        tell=told.append,
        log=logged.append,
    )
    with open_listener("127.0.0.1", 0) as listener:
        app = make_app(proxy, page_routes(proxy.recordings.folder))
        async with proxy.running(), serve_proxy(app, listener):
            yield Proxied(server_url("127.0.0.1", listener), proxy, told, logged)


def records(folder: Path) -> list[dict[str, Any]]:
    """The recordings of a folder, as their files have them."""
    return [json.loads(file.read_bytes()) for file in sorted(folder.glob("*.json"))]
