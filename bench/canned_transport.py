"""A transport that answers from memory: what a run costs without a network."""

from __future__ import annotations

import msgspec

from dragoman.request import HttpRequest

__all__ = ["CannedTransport"]


class CannedTransport:
    """Answers each request with the same bytes, and keeps the last body as a network would get
    it."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.body = b""

    async def send(self, request: HttpRequest) -> _Answer:
        body = request.body
        self.body = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return _Answer(self.answer)

    async def close(self) -> None:
        pass


class _Answer:
    status, headers = 200, {"content-type": "text/event-stream"}

    def __init__(self, data: bytes) -> None:
        self._left = [data]

    async def read(self) -> bytes:
        return self._left.pop() if self._left else b""

    async def close(self) -> None:
        pass
