"""Bytes, in any chunking → the pieces that a stream is made of. Sans-I/O, incremental and linear.

`EventStream` reads Server-Sent Events as the HTML standard says and as providers really send them: LF, CRLF and CR,
comments, several data lines, a byte order mark, white space before the first event, no blank line after the last.
`LineStream` reads newline-delimited JSON. A body that is no stream at all (an error, or a whole answer under a stream's
content type) is kept in `body`.
"""

from __future__ import annotations

import re

import msgspec

__all__ = ["EventStream", "LineStream", "event_bytes", "is_json"]

_BOM = b"\xef\xbb\xbf"
_FIELD_NAMES = (b"data", b"event", b"id", b"retry")
_FIRST_FIELD = re.compile(rb"(?:data|event|id|retry)?[:\r\n]")  # no name: a comment


class EventStream:
    """Server-Sent Events → the data of each event."""

    def __init__(self) -> None:
        self._start: bytes | None = b""  # while it is too short to tell what this is
        self._body: bytearray | None = None
        self._blocks = _Pieces(b"\n\n")
        self._after_cr = False

    @property
    def body(self) -> bytes | None:
        """What came instead, where the bytes are no event stream, without white space and byte order mark before it."""
        return None if self._body is None else bytes(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the data of the events that they complete."""
        if self._start is not None:
            data = self._begin(self._start + data)
        elif self._body is not None:
            self._body += data
            return []
        if self._after_cr or b"\r" in data:
            data = self._with_newlines(data)
        out: list[bytes] = []
        for block in self._blocks.feed(data):
            if block[:6] == b"data: " and b"\n" not in block:
                out.append(block[6:])
            elif (payload := _payload(block)) is not None:
                out.append(payload)
        return out

    def close(self) -> list[bytes]:
        """The end of the bytes → the data of a last event that no blank line ended. Half a field's name is nothing."""
        payload = _payload(self._blocks.close())
        return [] if payload is None else [payload]

    def _begin(self, start: bytes) -> bytes:
        """The first bytes → what to read on of them, once they tell whether this is an event stream."""
        start = start.lstrip().removeprefix(_BOM).lstrip()
        if _FIRST_FIELD.match(start):
            self._start = None
            return start
        if any(name.startswith(start) for name in (_BOM, *_FIELD_NAMES)):
            self._start = start
        else:
            self._start, self._body = None, bytearray(start)
        return b""

    def _with_newlines(self, data: bytes) -> bytes:
        """CRLF and CR → LF, also where a CRLF is cut in two."""
        if not data:
            return data
        rest = data.removeprefix(b"\n") if self._after_cr else data
        self._after_cr = data[-1:] == b"\r"
        return rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class LineStream:
    """Newline-delimited JSON → its non-empty lines. A whole JSON body over several lines is the caller's to recognise."""

    def __init__(self) -> None:
        self._lines = _Pieces(b"\n")

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the lines that they complete."""
        return [stripped for line in self._lines.feed(data) if (stripped := line.strip())]

    def close(self) -> list[bytes]:
        """The end of the bytes → a last line that no newline ended."""
        line = self._lines.close().strip()
        return [line] if line else []


def is_json(data: bytes) -> bool:
    """Whether bytes are one whole JSON value; what a cut stream ends with is most often none."""
    try:
        msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def event_bytes(data: bytes, event: str | None = None) -> bytes:
    """One Server-Sent Event as bytes. `data` is one line, as JSON is."""
    return b"data: " + data + b"\n\n" if event is None else b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"


class _Pieces:
    """Bytes → the pieces before each separator (one or two bytes). A piece of many reads is not copied anew with each."""

    __slots__ = ("_rest", "_separator")

    def __init__(self, separator: bytes) -> None:
        self._separator = separator
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        separator, rest = self._separator, self._rest
        if rest and data:
            last = rest[-1]
            rest.append(data)
            if separator not in data and last[-1:] + data[:1] != separator:
                return []
            data = b"".join(rest)
            rest.clear()
        pieces = data.split(separator)
        if tail := pieces.pop():
            rest.append(tail)
        return pieces

    def close(self) -> bytes:
        data = b"".join(self._rest)
        self._rest.clear()
        return data


def _payload(block: bytes) -> bytes | None:
    """The data lines of one event, joined; `None` where it has none."""
    before, _, last = block.rpartition(b"\n")
    if last[:6] == b"data: " and b"data" not in before:
        return last[6:]
    data: list[bytes] = []
    for line in block.split(b"\n"):
        if line[:5] == b"data:":
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            data.append(b"")
    return b"\n".join(data) if data else None
