"""An embeddings model that runs here: each word is a direction, so that texts that share words are
near. It notes what it was asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from math import hypot
from random import Random

from dragoman.capability import Capability
from dragoman.errors import ContextLengthError, InvalidRequestError
from dragoman.result import BatchEmbeddingsResult, EmbeddingsResult

DIMENSIONS = 384
WORD = re.compile(r"[^\W_]+")


def embed(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector of a text: the sum of those of its words, which are nearly orthogonal."""
    total = [0.0] * dimensions
    for word in WORD.findall(text.casefold()):
        random = Random(word)
        total = [number + random.gauss(0, 1) for number in total]
    length = hypot(*total) or 1.0
    return [number / length for number in total]


class WordEmbedder:
    """An `Embedder` in this process."""

    capabilities = frozenset({Capability.embeddings})

    def __init__(
        self,
        model: str = "scripted?embeddings=words",
        *,
        dimensions: int = DIMENSIONS,
        most: int = 1_000_000,
        refuses: str | None = None,
        by_purpose: bool = False,
        seconds: float = 0.0,
        error: Exception | None = None,
    ) -> None:
        """`most`: characters of a text that it takes; `refuses`: a word that it refuses; `seconds`:
        how long it takes for a text; `error`: what it always raises."""
        self.model, self.dimensions = model, dimensions
        self.most, self.refuses, self.seconds, self.error = most, refuses, seconds, error
        self.embeds_by_purpose = by_purpose
        self.queries: list[str] = []
        self.requests: list[list[str]] = []

    @property
    def texts(self) -> list[str]:
        """All texts that it was given to be found."""
        return [text for request in self.requests for text in request]

    async def embed_query(self, text: str) -> EmbeddingsResult:
        self.queries.append(text)
        return EmbeddingsResult((await self._embed([text]))[0])

    async def embed_documents(self, texts: Iterable[str]) -> BatchEmbeddingsResult:
        listed = [*texts]
        self.requests.append(listed)
        return BatchEmbeddingsResult(await self._embed(listed))

    async def _embed(self, texts: Sequence[str]) -> list[list[float]]:
        if self.seconds:
            await asyncio.sleep(self.seconds * len(texts))
        if self.error is not None:
            raise self.error
        if any(len(text) > self.most for text in texts):
            raise ContextLengthError("too long")
        if self.refuses is not None and any(self.refuses in text for text in texts):
            raise InvalidRequestError("refused")
        return [embed(text, self.dimensions) for text in texts]
