"""The decoder's shell with a framing that a provider has for itself: a binary event stream, as
Amazon Bedrock sends it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.framing import Framing
from dragoman.errors import DecodeError, RateLimitError, StreamCutError
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.message import FinishReason
from dragoman.wires.anthropic.decode import Decoder


def framed(headers: dict[str, str], payload: bytes) -> bytes:
    """One frame: lengths, their checksum, headers (name, type, value), payload, checksum of all."""
    packed = b"".join(
        struct.pack(f">B{len(name)}sBH", len(name), name.encode(), 7, len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(packed) + len(payload), len(packed))
    frame = prelude + struct.pack(">I", crc32(prelude)) + packed + payload
    return frame + struct.pack(">I", crc32(frame))


class BinaryEvents:
    """Frames of a binary event stream → their payloads. An exception is named by a header, and
    becomes an error's JSON."""

    body = None

    def __init__(self) -> None:
        self._left = b""

    def feed(self, data: bytes) -> list[bytes]:
        self._left += data
        payloads: list[bytes] = []
        while len(self._left) >= 8 and len(self._left) >= (size := self._size()):
            payloads.append(self._payload(self._left[:size]))
            self._left = self._left[size:]
        return payloads

    def close(self) -> list[bytes]:
        return []

    def _size(self) -> int:
        return struct.unpack_from(">I", self._left)[0]

    def _payload(self, frame: bytes) -> bytes:
        (length,) = struct.unpack_from(">I", frame, 4)
        headers: dict[str, str] = {}
        place = 12
        while place < 12 + length:
            name_end = place + 1 + frame[place]
            (size,) = struct.unpack_from(">H", frame, name_end + 1)
            headers[frame[place + 1 : name_end].decode()] = frame[
                name_end + 3 : name_end + 3 + size
            ].decode()
            place = name_end + 3 + size
        payload = frame[place:-4]
        if headers.get(":message-type") != "exception":
            return payload
        error = {"type": headers[":exception-type"], "message": json.loads(payload)["message"]}
        return json.dumps({"type": "error", "error": error}).encode()


class BedrockDecoder(Decoder):
    """Anthropic's events in Bedrock's frames."""

    FRAMES: ClassVar[type[Framing]] = BinaryEvents


def event(**fields: Any) -> bytes:
    headers = {
        ":message-type": "event",
        ":event-type": "chunk",
        ":content-type": "application/json",
    }
    return framed(headers, json.dumps(fields).encode())


START = event(
    type="message_start",
    message={"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}},
) + event(type="content_block_start", index=0, content_block={"type": "text", "text": ""})  # fmt: skip
TEXT = b"".join(
    event(type="content_block_delta", index=0, delta={"type": "text_delta", "text": text})
    for text in ("Hel", "lo", "\n\n", "data: x")
)
END = (
    event(type="content_block_stop", index=0)
    + event(type="message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 4})
    + event(type="message_stop")
)
EXCEPTION = framed(
    {":message-type": "exception", ":exception-type": "rate_limit_error"},
    b'{"message": "too many"}',
)


def decoded(data: bytes, cuts: Iterable[int]) -> list[Event]:
    decoder = BedrockDecoder.create()
    places = [0, *sorted(cuts), len(data)]
    events = [event for start, end in pairwise(places) for event in decoder.feed(data[start:end])]
    return [*events, *decoder.close()]


@given(st.sets(st.integers(0, len(START + TEXT + END)), max_size=12))
def test_a_binary_stream_is_read_in_any_chunking(cuts: set[int]) -> None:
    (message,) = fold(decoded(START + TEXT + END, cuts))
    assert message.text == "Hello\n\ndata: x"
    assert message.finish_reason is FinishReason.stop
    assert message.usage is not None and message.usage.output_tokens == 4


def test_one_byte_at_a_time_is_the_same_as_all_at_once() -> None:
    data = START + TEXT + END
    assert fold(decoded(data, range(1, len(data)))) == fold(decoded(data, ()))


@given(st.sets(st.integers(0, len(START + TEXT + EXCEPTION)), max_size=12))
def test_an_exception_in_the_headers_of_a_frame_ends_the_answer(cuts: set[int]) -> None:
    last = decoded(START + TEXT + EXCEPTION, cuts)[-1]
    assert isinstance(last, RunError)
    assert isinstance(last.error, RateLimitError)
    assert "too many" in last.error.message
    assert last.error.partial is not None and last.error.partial.text.startswith("Hello")


@pytest.mark.parametrize("left", [0, 5, 40])
def test_a_stream_that_ends_too_early_was_cut(left: int) -> None:
    last = decoded(START + TEXT + END[:left], ())[-1]
    assert isinstance(last, RunError)
    assert isinstance(last.error, StreamCutError)


def test_a_payload_that_is_no_json_is_an_error() -> None:
    last = decoded(framed({":message-type": "event"}, b"no json"), ())[-1]
    assert isinstance(last, RunError)
    assert isinstance(last.error, DecodeError)
