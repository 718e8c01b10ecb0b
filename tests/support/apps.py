"""A transport to applications in this process: each host is one, and answers stream as they are
made."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.request import HttpRequest
from support.asgi import scope_of

__all__ = ["AppTransport"]


class _Answer:
    def __init__(
        self,
        task: asyncio.Task[None],
        messages: asyncio.Queue[Mapping[str, Any]],
        left: asyncio.Event,
    ) -> None:
        self._task, self._messages, self._left = task, messages, left
        self._more = True
        self.status = 0
        self.headers: dict[str, str] = {}

    async def start(self) -> None:
        message = await self._messages.get()
        self.status = message["status"]
        self.headers = {name.decode(): value.decode() for name, value in message["headers"]}

    async def read(self) -> bytes:
        while self._more:
            message = await self._messages.get()
            self._more = message.get("more_body", False)
            if body := message.get("body", b""):
                return body
        return b""

    async def close(self) -> None:
        self._left.set()


class AppTransport:
    """Sends requests to applications by their hosts, and notes them."""

    def __init__(self, apps: Mapping[str, Any]) -> None:
        self.apps = apps
        """Host → application."""
        self.requests: list[HttpRequest] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def send(self, request: HttpRequest) -> _Answer:
        self.requests.append(request)
        url = urlsplit(request.path)
        body = request.body if isinstance(request.body, bytes) else b""
        if request.body is not None and not isinstance(request.body, bytes):
            body = msgspec.json.encode(request.body)
        pieces = [{"type": "http.request", "body": body, "more_body": False}]
        messages: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        left = asyncio.Event()

        async def receive() -> Mapping[str, Any]:
            if pieces:
                return pieces.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        path = (url.path or "/") + (f"?{url.query}" if url.query else "")
        scope = scope_of(request.method, path, list(request.headers.items()), host=url.hostname)
        task = asyncio.create_task(self.apps[url.hostname or ""](scope, receive, messages.put))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        answer = _Answer(task, messages, left)
        await answer.start()
        return answer

    async def close(self) -> None:
        for task in list(self._tasks):
            await task
