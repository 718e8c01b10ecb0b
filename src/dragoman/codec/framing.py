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
_D = b"data"[0]
# No name: a comment.
_FIRST_FIELD = re.compile(rb"(?:data|event|id|retry)?[:\r\n]")


class Framing(Protocol):
    """Cuts a stream into the payloads of its frames. A provider with a framing of its own (a binary
    event stream) implements this; a frame's headers that matter go into the payload as JSON
    fields."""

    @property
    def body(self) -> bytes | None:
        """Returns the whole body if the bytes are no stream, or None if they are one or too few to
        tell."""
        ...

    def feed(self, data: bytes) -> list[bytes]:
        """Reads more bytes and returns the payloads that they complete."""
        ...

    def close(self) -> list[bytes]:
        """Ends the stream and returns the last payloads, perhaps incomplete."""
        ...


class EventStream:
    """Server-Sent Events → the data of each event."""

    def __init__(self) -> None:
        """Creates the reader of a stream of server-sent events."""
        # While it is too short to tell what this is.
        self._start: bytes | None = b""
        self._body: bytearray | None = None
        self._lines = _Lines(bytes.splitlines, (b"\n", b"\r"))
        self._after_cr = False
        # The latest data line of the event that is being read, and those before it.
        self._last: bytes | None = None
        self._before: list[bytes] = []

    @property
    def body(self) -> bytes | None:
        """Returns the whole body if the bytes are no event stream, without white space and byte
        order mark before it."""
        return None if self._body is None else bytes(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """Reads more framed bytes and returns the data of the events that they complete."""
        if self._start is not None:
            data = self._detect_event_stream(self._start + data)
        elif self._body is not None:
            self._body += data
            return []
        # A CRLF that was cut in two is one end of a line.
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        if data[-1:] == b"\r":
            self._after_cr = True
        return self._read_lines(self._lines.feed(data))

    def close(self) -> list[bytes]:
        """Ends the stream and returns the data of a last event that no blank line ended. Half a
        field's name is ignored."""
        return self._read_lines([self._lines.close(), b""])

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        """Reads frames: returns the data of the server-sent events that these lines complete."""
        out: list[bytes] = []
        last, before = self._last, self._before
        for line in lines:
            if not line:
                if before and last is not None:
                    last = b"\n".join([*before, last])
                    before.clear()
                if last is not None:
                    out.append(last)
                    last = None
            # The names of events begin otherwise: one byte tells them apart.
            elif line[0] != _D:
                continue
            elif last is None and line[:6] == b"data: ":
                last = line[6:]
            elif line[:5] == b"data:" or line == b"data":
                if last is not None:
                    before.append(last)
                last = line[5:].removeprefix(b" ")
        self._last = last
        return out

    def _detect_event_stream(self, start: bytes) -> bytes:
        """Decides by the first bytes whether this is an event stream. Returns those of them that
        belong to one."""
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
        """Returns the whole body if the first line is no JSON: one value over several lines, or
        something else."""
        return None if self._body is None else b"\n".join(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """Reads more bytes and returns the lines that they complete."""
        return self._read_lines(self._lines.feed(data))

    def close(self) -> list[bytes]:
        """Ends the stream and returns a last line that no newline ended."""
        return self._read_lines([self._lines.close()])

    def _read_lines(self, lines: list[bytes]) -> list[bytes]:
        """Returns the frames (JSON lines) among these, or collects them as a body."""
        lines = [stripped for line in lines if (stripped := line.strip())]
        if lines and not self._begun:
            self._begun = True
            self._body = None if is_json(lines[0]) else []
        if self._body is None:
            return lines
        self._body += lines
        return []


def is_json(data: bytes) -> bool:
    """True if a frame's bytes are one complete JSON value. A stream that was cut hardly ever ends
    in one."""
    try:
        json_bytes.decode(data)
    except ValueError:
        return False
    return True


def is_cut(data: bytes) -> bool:
    """True if a frame's bytes are an incomplete JSON value, as at the end of a stream that was
    cut."""
    try:
        json_bytes.decode(data)
    except ValueError as error:
        return "truncated" in str(error)
    return False


def frame_server_event(data: bytes, event: str | None = None) -> bytes:
    """Returns one Server-Sent Event as bytes. `data` must be one line, as JSON is."""
    if event is None:
        return b"data: " + data + b"\n\n"
    return b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"


class _Lines:
    """Bytes → the lines that they complete. A line of many reads is not copied anew with each."""

    __slots__ = ("_ends", "_rest", "_split")

    def __init__(self, split: Callable[[bytes], list[bytes]], ends: tuple[bytes, ...]) -> None:
        """Starts to cut a stream into lines. `split`: returns the lines of bytes, the last perhaps
        unfinished. `ends`: the bytes that end a line."""
        self._split = split
        self._ends = ends
        self._rest: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines (frames) that more bytes complete."""
        unfinished = self._rest
        if unfinished:
            unfinished.append(data)
            if not any(end in data for end in self._ends):
                return []
            data = b"".join(unfinished)
            unfinished.clear()
        lines = self._split(data)
        if lines and data[-1:] not in self._ends:
            unfinished.append(lines.pop())
        return lines

    def close(self) -> bytes:
        data = b"".join(self._rest)
        self._rest.clear()
        return data


def _at_newlines(data: bytes) -> list[bytes]:
    """Returns the lines (frames) of `data`, split at LF alone."""
    lines = data.split(b"\n")
    if not lines[-1]:
        del lines[-1]
    return lines
