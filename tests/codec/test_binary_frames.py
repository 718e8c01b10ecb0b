"""Frames of a binary event stream, both ways, against botocore's reader: every chunking, and frames
that are corrupt, cut or too large."""

from __future__ import annotations

import json
from binascii import crc32
from itertools import pairwise
from struct import pack
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.binary_frames import FAULT, BinaryEventStream, frame_binary_event

TYPES = st.sampled_from(["messageStart", "contentBlockDelta", "throttlingException", "ä"])
EVENTS = st.lists(
    st.tuples(TYPES, st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=9))),
    max_size=5,
)
CUTS = st.lists(st.integers(0, 3000), max_size=8)


def read(data: bytes, places: list[int] = []) -> list[Any]:
    stream = BinaryEventStream()
    ends = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    objects = [piece for a, b in pairwise(ends) for piece in stream.feed(data[a:b])]
    return [json.loads(piece) for piece in [*objects, *stream.close()]]


def raw(headers: bytes, payload: bytes = b"{}") -> bytes:
    prelude = pack(">II", len(headers) + len(payload) + 16, len(headers))
    frame = prelude + pack(">I", crc32(prelude)) + headers + payload
    return frame + pack(">I", crc32(frame))


def header(name: str, header_type: int, encoded: bytes) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([header_type]) + encoded


def text(name: str, told: str) -> bytes:
    return header(name, 7, pack(">H", len(told.encode())) + told.encode())


def written(events: list[tuple[str, Any]]) -> bytes:
    return b"".join(frame_binary_event(name, json.dumps(each).encode()) for name, each in events)


@given(EVENTS)
def test_botocore_reads_what_is_written(events: list[tuple[str, Any]]) -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(written(events))
    found = []
    for frame in buffer:
        is_exception = frame.headers[":message-type"] == "exception"
        name = frame.headers[":exception-type" if is_exception else ":event-type"]
        assert is_exception == name.endswith("Exception")
        assert frame.to_response_dict()["status_code"] == (400 if is_exception else 200)
        found.append((name, json.loads(frame.payload)))
    assert found == events


@given(EVENTS, CUTS)
def test_the_chunks_change_nothing(events: list[tuple[str, Any]], places: list[int]) -> None:
    assert read(written(events), places) == [{name: each} for name, each in events]


@given(EVENTS.filter(bool), CUTS, st.integers(0, 5000), st.integers(1, 255))
def test_a_changed_byte_is_a_fault_in_any_chunks(
    events: list[tuple[str, Any]], places: list[int], at: int, by: int
) -> None:
    data = bytearray(written(events))
    data[at % len(data)] ^= by
    found = read(bytes(data), places)
    if data[:1] > b"\x01":
        assert found == [], "no such stream; the body is kept"
        return
    buffer = EventStreamBuffer()
    buffer.add_data(bytes(data))
    whole: list[Any] = []
    try:
        whole.extend(json.loads(frame.payload) for frame in buffer)
    except Exception:
        assert [*found[-1]] == [FAULT]
    assert [next(iter(each.values())) for each in found if FAULT not in each] == whole
    assert found == read(bytes(data))


@given(EVENTS.filter(bool), st.integers(1, 5000))
def test_a_frame_that_is_cut_is_no_event(events: list[tuple[str, Any]], less: int) -> None:
    last = written(events[-1:])
    assert read(written(events)[: -(less % (len(last) - 1) + 1)]) == read(written(events[:-1]))


def test_headers_of_all_types_are_passed_over() -> None:
    headers = b"".join(
        header(f"h{number}", number, b"\0" * size)
        for number, size in {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}.items()
    )
    headers += header("bytes", 6, pack(">H", 3) + b"abc") + text(":event-type", "messageStop")
    buffer = EventStreamBuffer()
    buffer.add_data(raw(headers))
    assert next(buffer).headers[":event-type"] == "messageStop"
    assert read(raw(headers)) == [{"messageStop": {}}]


def test_an_event_without_a_payload_is_an_empty_object() -> None:
    assert read(raw(text(":event-type", "messageStop"), b"")) == [{"messageStop": {}}]


def test_an_error_that_is_no_exception_has_its_code_and_words() -> None:
    headers = (
        text(":message-type", "error")
        + text(":error-code", "InternalFailure")
        + text(":error-message", "It broke.")
    )
    error = {"code": "InternalFailure", "message": "It broke."}
    assert read(raw(headers)) == [{"error": error}]


@pytest.mark.parametrize(
    "data",
    [
        raw(header("x", 10, b"")),
        raw(b"\x05a"),
        raw(header("x", 7, b"\xff\xff")),
        raw(header("x", 4, b"")),
        raw(text(":event-type", "a")[:-1] + b"\xff"),
        # Longer than AWS allows: it is refused before it is waited for.
        (lambda prelude: prelude + pack(">I", crc32(prelude)))(pack(">II", 0x01FFFFFF, 0)),
        (lambda prelude: prelude + pack(">I", crc32(prelude)))(pack(">II", 300_000, 200_000)),
        (lambda prelude: prelude + pack(">I", crc32(prelude)))(pack(">II", 20, 10)),
    ],
)
def test_a_frame_that_cannot_be_read_ends_the_stream(data: bytes) -> None:
    good = written([("messageStart", {})])
    first, fault = read(good + data + good)
    assert (first, [*fault]) == ({"messageStart": {}}, [FAULT])


@given(st.sampled_from([b'{"message": "x"}', b"<html>", b" {}"]), CUTS)
def test_a_body_that_is_no_stream_is_kept(body: bytes, places: list[int]) -> None:
    stream = BinaryEventStream()
    ends = [0, *sorted(place % (len(body) + 1) for place in places), len(body)]
    assert [piece for a, b in pairwise(ends) for piece in stream.feed(body[a:b])] == []
    assert stream.body == body


def test_a_long_stream_takes_time_in_proportion() -> None:
    data = written([("contentBlockDelta", {"text": "x" * 2_000_000})])
    assert len(read(data, [*range(0, len(data), 1000)])) == 1
