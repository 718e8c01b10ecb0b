"""Makes the vectors of texts: cuts long ones, and finds out which text a model refuses.

A model that takes less than a piece has says so (`ContextLengthError`); then the piece is halved. A
text that is refused otherwise gets no vector, and is not tried again, provided that the model took
another one meanwhile: else the refusal is no text's fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.errors import ContextLengthError, InvalidRequestError
from dragoman.memory.recall_settings import Embedder
from dragoman.memory.vectors import Embedded, Unembedded
from dragoman.result import Vector

__all__ = ["BATCH", "embed_bodies", "group_bodies", "split_text"]

BATCH = 64
"""Texts that a recall embeds at most, before it searches."""
_REQUEST = 16
"""Pieces that are embedded, and stored, at a time."""
_PIECE = 1200
"""Characters of a piece: some 300 tokens of English, and nearly always under 512 of any script."""
_MOST_PIECES = 16
"""Pieces of a text that get vectors."""
_LEAST = 16
"""Characters of a piece that is not halved any more."""


def split_text(text: str, size: int = _PIECE) -> list[str]:
    """Returns a text to index in pieces of at most `size` characters, cut at white space. A word
    that is longer is cut; no piece is empty."""
    pieces: list[str] = []
    start = 0
    while start < len(text):
        # Blanks before a piece must not take the room of a word.
        if text[start].isspace():
            start += 1
            continue
        end = start + size
        if end < len(text):
            blank = max(text.rfind(space, start + 1, end + 1) for space in " \n\t")
            end = blank if blank > start else end
        pieces.append(text[start:end].strip())
        start = end
    return pieces


def group_bodies(bodies: Sequence[Unembedded]) -> Iterator[list[Unembedded]]:
    """Yields contents to index in groups whose texts are embedded together."""
    group: list[Unembedded] = []
    pieces = 0
    for body in bodies:
        count = len(split_text(body.text)[:_MOST_PIECES])
        if group and pieces + count > _REQUEST:
            yield group
            group, pieces = [], 0
        group.append(body)
        pieces += count
    if group:
        yield group


async def embed_bodies(
    embedder: Embedder, bodies: Sequence[Unembedded], *, is_proved: bool = False
) -> list[Embedded]:
    """Returns contents to index with the vectors of their texts. `is_proved`: the model has just
    taken another text, so that one that it refuses is refused for what it says.

    Raises:
        DragomanError: the model cannot be asked, or refuses everything.
    """
    pieces = [split_text(body.text)[:_MOST_PIECES] for body in bodies]
    # All pieces in one request: a model takes many texts nearly as fast as one.
    embedding = _Embedding(embedder)
    vectors = await embedding.embed([piece for several in pieces for piece in several])
    if embedding.error is not None and not (is_proved or embedding.has_worked):
        raise embedding.error
    groups = iter(vectors)
    return [
        Embedded(body.key, [vector for _ in several for vector in next(groups)])
        for body, several in zip(bodies, pieces, strict=True)
    ]


class _Embedding:
    """Embeds texts together, and each refused one apart."""

    def __init__(self, embedder: Embedder) -> None:
        """Starts to embed texts for the index."""
        self._embedder = embedder
        self.error: InvalidRequestError | None = None
        """Why a text was refused."""
        self.has_worked = False
        """True once the model took a text."""

    async def embed(self, pieces: Sequence[str]) -> list[list[Vector]]:
        """Returns the vectors of each piece to index: one, several if it was halved, none if it is
        refused."""
        if not pieces:
            return []
        try:
            result = await self._embedder.embed_documents(pieces)
        except InvalidRequestError as error:
            return await self._embed_apart(pieces, error)
        self.has_worked = True
        return [[vector] for vector in result.embeddings]

    async def _embed_apart(
        self, pieces: Sequence[str], error: InvalidRequestError
    ) -> list[list[Vector]]:
        """Embeds the halves of several pieces to index, or of a single one, that were refused
        together."""
        # Halving finds the one that is refused in few requests, also among many.
        middle = len(pieces) // 2
        if middle:
            return [*await self.embed(pieces[:middle]), *await self.embed(pieces[middle:])]
        [piece] = pieces
        if not isinstance(error, ContextLengthError) or len(piece) < 2 * _LEAST:
            self.error = error
            return [[]]
        halves = await self.embed(split_text(piece, (len(piece) + 1) // 2))
        return [[vector for half in halves for vector in half]]
