"""A transport that answers embeddings requests of any wire with made-up vectors, in whatever order
a test says."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from zlib import crc32

import msgspec

from dragoman import Provider, Usage, wires
from dragoman.request import EmbeddingsRequest, HttpRequest
from dragoman.result import BatchEmbeddingsResult
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player

SIZE = 16


def made_up(text: str, size: int = SIZE) -> list[float]:
    """A vector of unit length that is the text's own; texts that share words are near each
    other."""
    vector = [0.0] * size
    for word in text.lower().split() or [text]:
        vector[crc32(word.strip(".,?!").encode()) % size] += 1.0
    length = math.hypot(*vector)
    return [number / length for number in vector]


async def _at_once(_: EmbeddingsRequest) -> None:
    pass


class Embedder:
    """The transport. `before`: awaited before an answer is given; what it raises is raised."""

    def __init__(
        self,
        provider: Provider,
        before: Callable[[EmbeddingsRequest], Awaitable[Any]] = _at_once,
        edit: Callable[[BatchEmbeddingsResult], BatchEmbeddingsResult] = lambda result: result,
    ) -> None:
        wire = wires.embeddings(provider.wire)
        assert wire is not None
        self.wire = wire
        self.requests: list[EmbeddingsRequest] = []
        self.sent: list[HttpRequest] = []
        self.under_way = 0
        self.most = 0
        self.before = before
        self.edit = edit

    async def send(self, request: HttpRequest) -> Any:
        assert isinstance(request.body, dict)
        self.sent.append(request)
        asked = self.wire.load_request(request.body, path=request.path)
        self.requests.append(asked)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.before(asked)
        finally:
            self.under_way -= 1
        vectors = [made_up(text, asked.dimensions or SIZE) for text in asked.texts]
        tokens = sum(len(text.split()) for text in asked.texts)
        result = BatchEmbeddingsResult(
            vectors, Usage(input_tokens=tokens, output_tokens=0, total_tokens=tokens)
        )
        body = msgspec.json.encode(self.wire.dump_response(self.edit(result), request=asked))
        return await Player([Exchange(body=body, chunks=1000)]).send(request)

    async def close(self) -> None:
        pass


def texts_of(requests: Sequence[EmbeddingsRequest]) -> list[str]:
    """All texts, in the order in which they were asked for."""
    return [text for request in requests for text in request.texts]
