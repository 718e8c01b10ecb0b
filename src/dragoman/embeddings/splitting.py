"""Splits a text into chunks for embedding: paragraphs, or sentences if those are too long, or
windows."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dragoman.errors import InvalidRequestError

__all__ = ["Chunk", "chunks"]

_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_SENTENCE = re.compile(r"\S.*?(?:(?<=[.!?])(?=\s)|\Z)", re.DOTALL)


class Chunk(msgspec.Struct, frozen=True):
    """A piece of a text, with its offset."""

    text: str
    """The piece, as it stands in the whole."""
    offset: int
    """Its start, in characters from the beginning of the text."""


def chunks(text: str, size: int = 512, overlap: int = 100) -> list[Chunk]:
    """Splits a text to embed into chunks of at most `size` characters.

    Paragraphs (blank lines part them) that fit are a chunk each. Of longer ones sentences are
    packed together, joined by a space, as many as fit; a sentence that does not fit is cut into
    windows, of which each repeats the last `overlap` characters of the one before.

    Raises:
        InvalidRequestError: `overlap` is not from 0 to below `size`.
    """
    if not 0 <= overlap < size:
        raise InvalidRequestError(
            f"chunks of {size} characters that overlap by {overlap}: the overlap must be below the size"
        )
    return [
        chunk
        for start, paragraph in _find_paragraphs(text)
        for chunk in _cut_paragraph(paragraph, start, size, overlap)
    ]


def _find_paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yields each paragraph of a text to split, trimmed, after its offset."""
    start = 0
    for end, next_start in [
        *((match.start(), match.end()) for match in _BLANK_LINE.finditer(text)),
        (len(text), len(text)),
    ]:
        piece = text[start:end]
        if paragraph := piece.strip():
            yield start + len(piece) - len(piece.lstrip()), paragraph
        start = next_start


def _cut_paragraph(paragraph: str, start: int, size: int, overlap: int) -> Iterator[Chunk]:
    """Yields the chunks for embedding of one paragraph."""
    if len(paragraph) <= size:
        yield Chunk(paragraph, start)
    else:
        yield from _pack_sentences(paragraph, start, size, overlap)


def _pack_sentences(paragraph: str, start: int, size: int, overlap: int) -> Iterator[Chunk]:
    """Splits a text into chunks of as many whole sentences as fit."""
    packed, offset = "", 0
    for match in _SENTENCE.finditer(paragraph):
        sentence = match[0]
        if packed and len(packed) + 1 + len(sentence) <= size:
            packed += f" {sentence}"
            continue
        if packed:
            yield Chunk(packed, offset)
            packed = ""
        if len(sentence) <= size:
            packed, offset = sentence, start + match.start()
        else:
            yield from _cut_windows(sentence, start + match.start(), size, overlap)
    if packed:
        yield Chunk(packed, offset)


def _cut_windows(sentence: str, start: int, size: int, overlap: int) -> Iterator[Chunk]:
    """Splits a sentence that is too long: yields overlapping windows of it."""
    for position in range(0, len(sentence), size - overlap):
        window = sentence[position : position + size]
        if not window.isspace():
            yield Chunk(window, start + position)
        if position + size >= len(sentence):
            return
