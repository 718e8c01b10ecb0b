"""Reads the input of `dragoman convert`: files of lines or of one JSON document, compressed or not,
in chunks.

Memory holds one conversation and one chunk, however large a file is: a list of conversations is
split at the commas between its elements, without decoding it. Each conversation has a size limit,
since a compressed file of a megabyte may hold a line of a gigabyte.
"""

from __future__ import annotations

import gzip
import re
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, cast

from dragoman import json_bytes
from dragoman.cli.convert_chunks import InputChunk
from dragoman.errors import HistoryError
from dragoman.formats.detection import field_of

__all__ = ["CHUNK", "MOST_LINE", "read_chunks", "sum_sizes"]

MOST_LINE = 64 * 2**20
"""Default for the most bytes of one conversation."""

CHUNK = 256 * 1024
"""Bytes after which a chunk ends."""
_BEGINNINGS = (b"[", b"{", b"[{", b"[[")
"""First lines that are no JSON alone but start a document of several lines."""
_SHOWN = 100
_BLOCK = 64 * 1024
"""Bytes per read."""
_BOM = b"\xef\xbb\xbf"
_SIGNS = re.compile(rb'\\.|["{}\[\],]|\\\Z', re.DOTALL)


def sum_sizes(files: Sequence[str]) -> int | None:
    """Returns the bytes of all files, or None if standard input is among them."""
    if "-" in files:
        return None
    return sum(Path(file).stat().st_size for file in files)


def read_chunks(
    files: Sequence[str], behind: tuple[int, int] = (0, 0), *, most: int = MOST_LINE
) -> Iterator[InputChunk]:
    """Yields the conversations of the input files in order.

    Args:
        files: paths; `-` is standard input.
        behind: the index of a file and the number of a conversation in it, after which to start.
        most: most bytes of one conversation.

    Raises:
        HistoryError: a compressed file is damaged, or a conversation is too large.
        OSError: a file cannot be read.
    """
    before = 0
    for index, file in enumerate(files):
        if index >= behind[0]:
            with _open_input(file) as (data, raw):
                done = behind[1] if index == behind[0] else 0
                # Numbers count all conversations, also those that a resumed run skips.
                for lines in _group_lines(
                    (number, line)
                    for number, line in _read_conversations(data, file, most)
                    if number > done
                ):
                    yield InputChunk(index, _name_input(file), lines, before + _tell_position(raw))
        before += 0 if file == "-" else Path(file).stat().st_size


def _name_input(file: str) -> str:
    return "standard input" if file == "-" else file


@contextmanager
def _open_input(file: str) -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Opens a file, and yields the stream of its content and the stream whose position tells the
    progress."""
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


def _tell_position(raw: BinaryIO) -> int:
    """Returns the position of an input stream in bytes, or 0 for a pipe."""
    try:
        return raw.tell()
    except OSError:  # a pipe
        return 0


def _group_lines(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    """Yields lists of input lines of about the size of a chunk, with at least one line each."""
    batch: list[tuple[int, bytes]] = []
    size = 0
    for number, line in lines:
        batch.append((number, line))
        size += len(line)
        if size >= CHUNK:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_conversations(file: BinaryIO, name: str, most: int) -> Iterator[tuple[int, bytes]]:
    """Yields the conversations of an input file with their numbers: nonempty lines, or elements of
    a document."""
    bound = _SizeLimit(_name_input(name), most)
    number, line = _read_first_line(file, most)
    line = line.removeprefix(_BOM)
    if not line:
        return
    blocks = chain([line], iter(lambda: file.read(_BLOCK), b""))
    # A longer first line is not read to its end: only a list can still be read, in elements.
    if len(line) > most:
        if line.lstrip()[:1] != b"[":
            raise bound.error(f"line {number}")
        yield from _read_elements(blocks, bound)
    # A first line that is JSON alone means a file of lines, whatever its name.
    elif line.strip().replace(b" ", b"") in _BEGINNINGS or (
        _is_document(name) and not _is_json(line)
    ):
        yield from _read_elements(blocks, bound)
    else:
        lines = _read_lines(file, number, bound)
        # A single line may be a list of conversations.
        second = next(lines, None)
        if second is None:
            yield from _read_elements(iter([line]), bound)
        else:
            yield from chain([(number, line), second], lines)


class _SizeLimit:
    """The most bytes of one conversation of a file."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self.most = most

    def check(self, size: int, where: str) -> None:
        """Raises `HistoryError` if a conversation of `size` bytes is too large."""
        if size > self.most:
            raise self.error(where)

    def error(self, where: str) -> HistoryError:
        """Returns the error for an input conversation that is too large."""
        return HistoryError(
            f"{self._name}, {where}: it has more than {self.most:,} bytes; if that is what you mean to read, "
            "give --max-line a larger number"
        )


def _read_first_line(file: BinaryIO, most: int) -> tuple[int, bytes]:
    """Returns the first line of an input file that is not blank, with its number. A line that is
    longer than `most` bytes is cut after `most + 1`. At the end of the file the line is empty."""
    number = 0
    while line := file.readline(most + 1):
        number += 1
        if line.strip() or len(line) > most:
            return number, line
    return number, b""


def _read_lines(file: BinaryIO, number: int, bound: _SizeLimit) -> Iterator[tuple[int, bytes]]:
    """Yields the nonempty input lines after line `number`."""
    while line := file.readline(bound.most + 1):
        number += 1
        bound.check(len(line), f"line {number}")
        if line.strip():
            yield number, line


def _is_document(name: str) -> bool:
    return name.removesuffix(".gz").endswith(".json")


def _is_json(line: bytes) -> bool:
    """Returns whether a line of the input of `dragoman convert` is JSON."""
    try:
        json_bytes.decode(line)
    except ValueError:
        return False
    return True


def _read_elements(blocks: Iterator[bytes], bound: _SizeLimit) -> Iterator[tuple[int, bytes]]:
    """Yields the conversations of an input document: the elements of a list of conversations, or
    the whole document."""
    first_block = next(blocks, b"")
    blocks = chain([first_block], blocks)
    if first_block.lstrip()[:1] != b"[":
        yield 1, b"".join(_check_sizes(blocks, bound))
        return
    elements = _split_elements(blocks, bound)
    first = next(elements, b"")
    if _is_conversation(first):
        yield from enumerate(chain([first], elements), start=1)
    elif first:
        yield 1, b"[" + b",".join(_check_sizes(chain([first], elements), bound)) + b"]"
    else:
        yield 1, b"[]"


def _is_conversation(element: bytes) -> bool:
    """True if an element of an input list is a conversation and not a message of one."""
    try:
        value: Any = json_bytes.decode(element)
    except ValueError:
        # Whoever reads it says why.
        return False
    # A message is an object too, but has no field with a conversation.
    return isinstance(value, list) or bool(field_of(value))


def _check_sizes(pieces: Iterable[bytes], bound: _SizeLimit) -> Iterator[bytes]:
    """Yields the pieces of an input document while it is small enough."""
    size = 0
    for piece in pieces:
        size += len(piece)
        bound.check(size, "the document")
        yield piece


def _join_pieces(pieces: Sequence[bytes], number: int, bound: _SizeLimit) -> bytes:
    """Returns the bytes of an input element if it is small enough."""
    element = b"".join(pieces)
    bound.check(len(element), f"conversation {number}")
    return element


def _split_elements(blocks: Iterable[bytes], bound: _SizeLimit) -> Iterator[bytes]:
    """Yields the elements of an input list (JSON) as bytes, split at the commas between them.

    Errors within an element are found when it is decoded. A list without an end, or with something
    after it, gives a last element that is not JSON.
    """
    depth, number, size = 0, 1, 0
    in_string = escapes_next = False
    piece: list[bytes] = []
    blocks = iter(blocks)
    for block in blocks:
        start = 0
        position, escapes_next = int(escapes_next), False
        for match in _SIGNS.finditer(block, position):
            sign = match[0]
            if sign == b'"':
                in_string = not in_string
            # A backslash at the end of a block escapes the first byte of the next one.
            elif sign[:1] == b"\\":
                escapes_next = len(sign) == 1
            elif in_string:
                continue
            elif sign in b"[{":
                depth += 1
                start = match.end() if depth == 1 else start
            elif sign == b"," and depth == 1:
                yield _join_pieces([*piece, block[start : match.start()]], number, bound)
                piece, size, start, number = [], 0, match.end(), number + 1
            elif sign in b"]}":
                depth -= 1
                if depth == 0:
                    last = _join_pieces([*piece, block[start : match.start()]], number, bound)
                    # Text after the list makes the document invalid. It becomes an element that no
                    # JSON parser accepts.
                    behind = block[match.end() :].strip() or next(
                        (more.strip() for more in blocks if more.strip()), b""
                    )
                    if last.strip() or number > 1:
                        yield last
                    if behind:
                        yield b"[" + behind[:_SHOWN]
                    return
        piece.append(block[start:])
        size += len(block) - start
        bound.check(size, f"conversation {number}")
    yield b"[" + b"".join(piece)
