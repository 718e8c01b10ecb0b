"""Reads and writes the frames of `application/vnd.amazon.eventstream`, in any chunking. Sans-I/O.

A frame is a prelude (its length, that of its headers, a CRC-32 of both), headers, a payload, and a
CRC-32 of all before it; numbers are big-endian. The type of an event stands in a header, so a frame
becomes the JSON object `{type: payload}`, as does one that tells of an exception. A frame that is
corrupt becomes the last object, `{FAULT: why}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error
from zlib import crc32

from dragoman import json_bytes

__all__ = ["FAULT", "STREAM_TYPE", "BinaryEventStream", "frame_binary_event"]

STREAM_TYPE = "application/vnd.amazon.eventstream"
"""The media type of such a stream."""
FAULT = ":fault"
"""Type of the object that says why a frame cannot be read. No header can name it as an event."""

_PRELUDE, _NUMBER, _LENGTH = Struct(">III"), Struct(">I"), Struct(">H")
_AROUND = _PRELUDE.size + _NUMBER.size
_MOST_HEADERS = 128 * 1024
_MOST_PAYLOAD = 24 * 1024 * 1024
"""Bytes of a frame's parts at most, as AWS bounds them."""
_TEXT = 7
_SIZES: Mapping[int, int] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Type of a header → the bytes of its value. Types 6 and 7, bytes and texts, tell their length."""
_TYPES = (":event-type", ":exception-type")


class _CorruptError(Exception):
    """A frame cannot be read; the message says why."""


class BinaryEventStream:
    """Frames of a binary event stream → their payloads with their types, as JSON objects."""

    def __init__(self) -> None:
        """Creates the reader of a binary event stream."""
        self._unread = bytearray()
        self._body: bytearray | None = None
        self._ended = False

    @property
    def body(self) -> bytes | None:
        """Returns the whole body if the bytes are no binary event stream, such as one JSON
        object."""
        return None if self._body is None else bytes(self._body)

    def feed(self, data: bytes) -> list[bytes]:
        """Reads more bytes and returns the JSON objects of the frames that they complete."""
        if self._body is not None:
            self._body += data
            return []
        if self._ended:
            return []
        self._unread += data
        # The first byte of a frame is that of its length, which no text begins with.
        if self._unread[:1] > b"\x01":
            self._body, self._unread = self._unread, bytearray()
            return []
        return self._read_frames()

    def close(self) -> list[bytes]:
        """Ends the stream. Half a frame at its end is no event."""
        return []

    def _read_frames(self) -> list[bytes]:
        """Returns the JSON objects of the frames that are complete, and drops their bytes."""
        objects: list[bytes] = []
        view = self._unread
        start = 0
        try:
            while (end := _find_end(view, start)) is not None:
                objects.append(_read_frame(bytes(view[start:end])))
                start = end
        except _CorruptError as fault:
            self._ended = True
            objects.append(json_bytes.encode({FAULT: str(fault)}))
            start = len(view)
        del view[:start]
        return objects


def frame_binary_event(event_type: str, payload: bytes) -> bytes:
    """Returns one frame of a binary event stream with a JSON payload: an event, or an exception if
    its type says so."""
    is_exception = event_type.endswith("Exception")
    headers = {
        _TYPES[is_exception]: event_type,
        ":content-type": "application/json",
        ":message-type": "exception" if is_exception else "event",
    }
    encoded = b"".join([_write_header(name, text) for name, text in headers.items()])
    lengths = _PRELUDE.pack(_AROUND + len(encoded) + len(payload), len(encoded), 0)[:8]
    frame = lengths + _NUMBER.pack(crc32(lengths)) + encoded + payload
    return frame + _NUMBER.pack(crc32(frame))


def _write_header(name: str, text: str) -> bytes:
    """Returns a header of a binary frame whose value is a text."""
    encoded = text.encode()
    return (
        bytes([len(name)]) + name.encode() + bytes([_TEXT]) + _LENGTH.pack(len(encoded)) + encoded
    )


def _find_end(data: bytearray, start: int) -> int | None:
    """Returns where the binary frame that begins at `start` ends; None if it is incomplete.

    Raises:
        _CorruptError: its prelude is corrupt.
    """
    if len(data) - start < _PRELUDE.size:
        return None
    length, header_length, checksum = _PRELUDE.unpack_from(data, start)
    if crc32(data[start : start + 8]) != checksum:
        raise _CorruptError("the checksum of a frame's prelude is wrong")
    payload_length = length - header_length - _AROUND
    if header_length > _MOST_HEADERS or not 0 <= payload_length <= _MOST_PAYLOAD:
        raise _CorruptError(f"a frame of {length} bytes with {header_length} of headers is refused")
    return start + length if len(data) - start >= length else None


def _read_frame(frame: bytes) -> bytes:
    """Returns the JSON object of a whole binary frame.

    Raises:
        _CorruptError: the frame is corrupt.
    """
    checked = frame[: -_NUMBER.size]
    if crc32(checked) != _NUMBER.unpack_from(frame, len(checked))[0]:
        raise _CorruptError("the checksum of a frame is wrong")
    header_end = _PRELUDE.size + _PRELUDE.unpack_from(frame)[1]
    headers = _read_headers(checked[_PRELUDE.size : header_end])
    payload = checked[header_end:] or b"{}"
    if headers.get(":message-type") == "error":
        details = {"code": headers.get(":error-code"), "message": headers.get(":error-message")}
        return json_bytes.encode({"error": details})
    event_type = next((headers[name] for name in _TYPES if name in headers), "")
    return b"{" + json_bytes.encode(event_type.lstrip(":")) + b":" + payload + b"}"


def _read_headers(data: bytes) -> dict[str, str]:
    """Returns the headers of a binary frame whose values are texts.

    Raises:
        _CorruptError: the headers are corrupt.
    """
    headers: dict[str, str] = {}
    position = 0
    try:
        while position < len(data):
            start = position + 1
            end = start + data[position]
            name, header_type = data[start:end].decode(), data[end]
            start = end + 1
            if header_type in _SIZES:
                position = start + _SIZES[header_type]
                continue
            if header_type not in (_TEXT, _TEXT - 1):
                raise _CorruptError(f"a frame has a header of the unknown type {header_type}")
            (length,) = _LENGTH.unpack_from(data, start)
            position = start + 2 + length
            if header_type == _TEXT:
                headers[name] = data[start + 2 : position].decode()
    except (LookupError, ValueError, struct_error) as error:
        raise _CorruptError("the headers of a frame cannot be read") from error
    if position > len(data):
        raise _CorruptError("the headers of a frame end in the middle of one")
    return headers
