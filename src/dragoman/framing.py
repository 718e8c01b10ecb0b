"""Bytes, in any chunking → the pieces that a stream is made of. Sans-I/O and incremental.

`EventStream` reads Server-Sent Events as the HTML standard says and as providers really send them: LF, CRLF and CR,
comments, several data lines, a byte order mark, white space before the first event, no blank line after the last.
`LineStream` reads newline-delimited JSON. A body that is no stream at all (an error, or a whole answer under a stream's
content type) is kept in `body`.
"""

from __future__ import annotations

__all__ = ["EventStream", "LineStream", "event_bytes"]

_BOM = b"\xef\xbb\xbf"
_FIELD_STARTS = b":deir"  # comment, data, event, id, retry


class EventStream:
    """Server-Sent Events → the data of each event. `body`: what came instead, where the bytes are no event stream."""

    def __init__(self) -> None:
        self.body: bytes | None = None
        self._buffer = b""
        self._began = False
        self._skip_newline = False

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the data of the events that they complete."""
        if self.body is not None:
            self.body += data
            return []
        if b"\r" in data or self._skip_newline:
            data = self._with_newlines(data)
        buffer = self._buffer + data
        if not self._began:
            buffer = buffer.lstrip()
            if not buffer or (len(buffer) < 3 and _BOM.startswith(buffer)):
                self._buffer = buffer
                return []
            buffer = buffer.removeprefix(_BOM).lstrip()
            if not buffer:
                return []
            if buffer[0] not in _FIELD_STARTS:
                self.body = buffer
                return []
            self._began = True
        *blocks, self._buffer = buffer.split(b"\n\n")
        out: list[bytes] = []
        for block in blocks:
            if block[:6] == b"data: " and b"\n" not in block:
                out.append(block[6:])
            elif (payload := _payload(block)) is not None:
                out.append(payload)
        return out

    def close(self) -> list[bytes]:
        """The end of the bytes → the data of a last event that no blank line ended."""
        block, self._buffer = self._buffer, b""
        payload = _payload(block) if self._began else None
        return [] if payload is None else [payload]

    def _with_newlines(self, data: bytes) -> bytes:
        if self._skip_newline and data[:1] == b"\n":
            data = data[1:]
        self._skip_newline = data[-1:] == b"\r" if data else self._skip_newline
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class LineStream:
    """Newline-delimited JSON → its non-empty lines. A whole JSON body over several lines is the caller's to recognise."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[bytes]:
        """More bytes → the lines that they complete."""
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        return [stripped for line in lines if (stripped := line.strip())]

    def close(self) -> list[bytes]:
        """The end of the bytes → a last line that no newline ended."""
        line, self._buffer = self._buffer.strip(), b""
        return [line] if line else []


def event_bytes(data: bytes, event: str | None = None) -> bytes:
    """One Server-Sent Event as bytes. `data` is one line, as JSON is."""
    return b"data: " + data + b"\n\n" if event is None else b"event: " + event.encode() + b"\ndata: " + data + b"\n\n"


def _payload(block: bytes) -> bytes | None:
    """The data lines of one event, joined; `None` where it has none."""
    data: list[bytes] = []
    for line in block.split(b"\n"):
        if line[:5] == b"data:":
            data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            data.append(b"")
    return b"\n".join(data) if data else None
