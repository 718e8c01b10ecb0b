"""Bytes, in any chunking → the pieces that a stream is made of. Sans-I/O, incremental and linear.

`EventStream` reads Server-Sent Events as the HTML standard says and as providers really send them:
LF, CRLF and CR, comments, several data lines, a byte order mark, white space before the first
event, no blank line after the last. `LineStream` reads newline-delimited JSON. A body that is no
stream at all (an error, or a whole answer under a stream's content type) is kept in `body` by both.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from dragoman import json_bytes

__all__ = ["EventStream", "Framing", "LineStream", "frame_server_event", "is_cut", "is_json"]

_BOM = b"\xef\xbb\xbf"
_FIELD_NAMES = (b"data", b"event", b"id", b"retry")
_FIRST_FIELD = re.compile(rb"(?:data|event|id|retry)?[:\r\n]")  # no name: a comment


class Framing(Protocol):
    """Cuts a stream into the payloads of its frames. A provider with a framing of its own (a binary
    event stream) implements this; a frame's headers that matter go into the payload as JSON
    fields."""

    @property
    def body(self) -> bytes | None:
        """What came in place of a stream; `None`: this is one, or too little has come to tell."""
        ...

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the payloads that they complete."""
        ...

    def close(self) -> list[bytes]:
        """The end of the bytes → the last payloads, perhaps incomplete."""
        ...


class EventStream:
    """Server-Sent Events → the data of each event."""

    def __init__(self) -> None:
        self._start: bytes | None = b""  # while it is too short to tell what this is
        self._body: bytearray | None = None
        self._lines = _Lines(bytes.splitlines, (b"\n", b"\r"))
        self._after_cr = False
        self._last: bytes | None = (
            None  # the latest data line of the event that is being read, and those before it
        )
        self._before: list[bytes] = []

    @property
    def body(self) -> bytes | None:
        """What came instead, where the bytes are no event stream, without white space and byte
        order mark before it."""
        return None if self._body is None else bytes(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the data of the events that they complete."""
        if self._start is not None:
            data = self._begin(self._start + data)
        elif self._body is not None:
            self._body += data
            return []
        if self._after_cr and data:  # a CRLF that was cut in two is one end of a line
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if data[-1:] == b"\r":
            self._after_cr = True
        return self._read(self._lines.feed(data))

    def close(self) -> list[bytes]:
        """The end of the bytes → the data of a last event that no blank line ended. Half a field's
        name is nothing."""
        return self._read([self._lines.close(), b""])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        out: list[bytes] = []
        last = self._last
        for line in lines:
            if not line:
                if last is not None:
                    out.append(b"\n".join([*self._before, last]) if self._before else last)
                    self._before.clear()
                    last = None
            elif last is None and line[:6] == b"data: ":
                last = line[6:]
            elif line[:5] == b"data:" or line == b"data":
                if last is not None:
                    self._before.append(last)
                last = line[5:].removeprefix(b" ")
        self._last = last
        return out

    def _begin(self, start: bytes) -> bytes:
        """The first bytes → what to read on of them, once they tell whether this is an event
        stream."""
        start = start.lstrip().removeprefix(_BOM).lstrip()
        if _FIRST_FIELD.match(start):
            self._start = None
            return start
        if any(name.startswith(start) for name in (_BOM, *_FIELD_NAMES)):
            self._start = start
        else:
            self._start, self._body = None, bytearray(start)
        return b""


class LineStream:
    """Newline-delimited JSON → its non-empty lines."""

    def __init__(self) -> None:
        self._lines = _Lines(_at_newlines, (b"\n",))
        self._begun = False
        self._body: list[bytes] | None = None

    @property
    def body(self) -> bytes | None:
        """What came instead, where the first line is no JSON: one value over several lines, or
        something else."""
        return None if self._body is None else b"\n".join(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the lines that they complete."""
        return self._read(self._lines.feed(data))

    def close(self) -> list[bytes]:
        """The end of the bytes → a last line that no newline ended."""
        return self._read([self._lines.close()])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        lines = [stripped for line in lines if (stripped := line.strip())]
        if lines and not self._begun:
            self._begun = True
            self._body = None if is_json(lines[0]) else []
        if self._body is None:
            return lines
        self._body += lines
        return []


def is_json(data: bytes) -> bool:
    """Whether bytes are one whole JSON value; what a cut stream ends with is most often none."""
    try:
        json_bytes.decode(data)
    except ValueError:
        return False
    return True


def is_cut(data: bytes) -> bool:
    """Whether bytes are the beginning of a JSON value, and no more."""
    try:
        json_bytes.decode(data)
    except ValueError as error:
        return "truncated" in str(error)
    return False


def frame_server_event(data: bytes, event: str | None = None) -> bytes:
    """One Server-Sent Event as bytes. `data` is one line, as JSON is."""
    return (
        b"data: " + data + b"\n\n"
        if event is None
        else b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"
    )


class _Lines:
    """Bytes → the lines that they complete. A line of many reads is not copied anew with each."""

    __slots__ = ("_ends", "_rest", "_split")

    def __init__(self, split: Callable[[bytes], list[bytes]], ends: tuple[bytes, ...]) -> None:
        """`split`: bytes → their lines, an unfinished last one among them. `ends`: what ends a
        line."""
        self._split = split
        self._ends = ends
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        rest = self._rest
        if rest:
            rest.append(data)
            if not any(end in data for end in self._ends):
                return []
            data = b"".join(rest)
            rest.clear()
        lines = self._split(data)
        if lines and data[-1:] not in self._ends:
            rest.append(lines.pop())
        return lines

    def close(self) -> bytes:
        data = b"".join(self._rest)
        self._rest.clear()
        return data


def _at_newlines(data: bytes) -> list[bytes]:
    """What `splitlines` does, at LF alone."""
    lines = data.split(b"\n")
    if not lines[-1]:
        del lines[-1]
    return lines
