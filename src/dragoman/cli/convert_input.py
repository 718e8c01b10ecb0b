"""What `dragoman convert` reads: files of lines, or of one JSON document, packed or not, cut into chunks."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from dragoman import json_bytes
from dragoman.cli.convert_chunks import Chunk
from dragoman.errors import HistoryError
from dragoman.formats.detection import field_of

__all__ = ["CHUNK", "chunks", "total_size"]

CHUNK = 256 * 1024
"""Bytes after which a chunk ends."""
_BEGINNINGS = (b"[", b"{", b"[{", b"[[")
"""A first line that is no JSON by itself, and begins a document."""


def total_size(files: Sequence[str]) -> int | None:
    """Bytes of all files; `None`: it is not known."""
    return None if "-" in files else sum(Path(file).stat().st_size for file in files)


def chunks(files: Sequence[str], behind: tuple[int, int] = (0, 0)) -> Iterator[Chunk]:
    """The conversations of files, in order. `behind`: place of a file and number of a conversation in it, behind which they begin.

    Raises:
        HistoryError: a packed file is damaged.
        OSError: a file cannot be read.
    """
    before = 0
    for place, file in enumerate(files):
        if place >= behind[0]:
            with _opened(file) as (data, raw):
                done = behind[1] if place == behind[0] else 0
                for lines in _cut((number, line) for number, line in _conversations(data, file) if number > done):
                    yield Chunk(place, _name(file), lines, before + _position(raw))
        before += 0 if file == "-" else Path(file).stat().st_size


def _name(file: str) -> str:
    return "standard input" if file == "-" else file


@contextmanager
def _opened(file: str) -> Generator[tuple[BinaryIO, BinaryIO]]:
    """A file → what is read, and what tells how much of it was."""
    if file == "-":
        yield sys.stdin.buffer, sys.stdin.buffer
        return
    with Path(file).open("rb") as raw:
        if not file.endswith(".gz"):
            yield raw, raw
            return
        with gzip.GzipFile(fileobj=raw) as packed:
            try:
                yield cast("BinaryIO", packed), raw
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise HistoryError(
                    f"{file} is no whole gzip file: {error}; unpack what is left of it by hand"
                ) from error


def _position(raw: BinaryIO) -> int:
    try:
        return raw.tell()
    except OSError:  # a pipe
        return 0


def _cut(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Lines in lists of about the size of a chunk, one line at least."""
    held: list[tuple[int, bytes]] = []
    size = 0
    for number, line in lines:
        held.append((number, line))
        size += len(line)
        if size >= CHUNK:
            yield held
            held, size = [], 0
    if held:
        yield held


def _conversations(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """The conversations of a file, with their numbers: of lines that are not empty, or the elements of a document."""
    lines = ((number, line) for number, line in enumerate(file, start=1) if line.strip())
    first = next(lines, None)
    if first is None:
        return
    number, line = first[0], first[1].removeprefix(b"\xef\xbb\xbf")
    second = next(lines, None)
    begins = line.strip().replace(b" ", b"") in _BEGINNINGS
    if second is None:
        yield from _elements(line)
    elif begins or (name.removesuffix(".gz").endswith(".json") and not _is_json(line)):
        yield from _elements(b"".join([line, second[1], *(rest for _, rest in lines)]))
    else:
        yield from chain([(number, line), second], lines)


def _is_json(line: bytes) -> bool:
    try:
        json_bytes.decode(line)
    except ValueError:
        return False
    return True


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """A document → its conversations: the elements of a list of them, else itself."""
    try:
        json_bytes.bound(data, json_bytes.MOST_DEPTH + 1)
        elements = msgspec.json.decode(data, type=list[msgspec.Raw]) if data.lstrip()[:1] == b"[" else []
        first: Any = msgspec.json.decode(elements[0]) if elements else None
    except ValueError:  # whoever reads it says why
        elements, first = [], None
    if isinstance(first, list) or field_of(first):
        yield from enumerate(map(bytes, elements), start=1)
    else:
        yield 1, data
