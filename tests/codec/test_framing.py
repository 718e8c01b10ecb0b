"""Framing against a slow reference: every chunking, every newline, and bodies that are no
stream."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.codec.framing import EventStream, LineStream, frame_server_event


def reference(data: bytes) -> list[bytes]:
    """The event stream format of the HTML standard, line by line; a last event needs no blank
    line."""
    text = data.lstrip().removeprefix(b"\xef\xbb\xbf").lstrip()
    events: list[list[bytes]] = [[]]
    for line in re.split(rb"\r\n|\n|\r", text):
        name, _, value = line.partition(b":")
        if not line:
            events.append([])
        elif name == b"data":
            events[-1].append(value.removeprefix(b" "))
    return [b"\n".join(event) for event in events if event]


def read(stream: EventStream | LineStream, chunks: list[bytes]) -> list[bytes]:
    return [piece for chunk in chunks for piece in stream.feed(chunk)] + stream.close()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(ends)]


NEWLINE = st.sampled_from([b"\n", b"\r\n", b"\r"])
LINES = [
    b"data: {}",
    b"data:x",
    b"data:  two",
    b"data",
    b"data:",
    b": ping",
    b":",
    b"event: message",
    b"id: 7",
    b"retry: 9",
]
LINES += [
    b"",
    b"unknown: x",
    b"datax: y",
    b"event: data",
    b"data: \xc3\xa4",
    b"data: a data: b",
    b"\xef\xbb\xbfdata: x",
]
LINE = st.sampled_from(LINES)
BEFORE = st.sampled_from(
    [b"", b"\n", b" \r\n\t", b"\xef\xbb\xbf", b"\n\xef\xbb\xbf", b"\xef\xbb\xbf\r"]
)
FIRST = st.sampled_from([b"data: 1", b": hello", b"event: e", b"id:", b"retry: 1", b"data"])
BLANK = st.sampled_from([b"", b"", b"\n", b"\r\n", b"\r", b"\n\n"])
STREAM = st.builds(
    lambda before, first, newline, blocks: (
        before + first + newline.join([newline, *map(b"".join, blocks)])
    ),
    BEFORE,
    FIRST,
    NEWLINE,
    st.lists(
        st.lists(st.tuples(LINE, NEWLINE).map(b"".join) | LINE | BLANK, max_size=3),
        min_size=1,
        max_size=5,
    ),
)
PLACES = st.lists(st.integers(0, 300), max_size=12)


@given(STREAM, PLACES)
@example(b"data: x\r\n\r\ndata: y\r\n\r\n", [8, 9, 10, 10])
@example(b"data: x\r\n\n", [8, 8, 9, 10])
@example(b"data: x\n\ndata: y", [8, 8, 9])
def test_a_stream_in_any_chunking_reads_as_the_standard_says(data: bytes, places: list[int]):
    stream = EventStream()
    assert read(stream, cut(data, places)) == reference(data)
    assert stream.body is None


@given(STREAM)
def test_a_stream_cut_at_every_byte_reads_the_same(data: bytes):
    single = [data[i : i + 1] for i in range(len(data))]
    assert read(EventStream(), single) == reference(data) == read(EventStream(), [data])
    for place in range(len(data)):
        assert read(EventStream(), [data[:place], b"", data[place:]]) == reference(data)


def test_an_event_is_out_with_the_read_that_completes_it():
    stream = EventStream()
    assert stream.feed(b"data: 1\n\ndata: 2\r") == [b"1"]
    assert stream.feed(b"\n\r") == [b"2"], (
        "a blank line ends with its CR; no need to wait for the LF"
    )
    assert stream.feed(b"\ndata: 3\n") == []
    assert stream.feed(b"\n") == [b"3"]
    assert stream.close() == []


@pytest.mark.parametrize(
    ("block", "events"),
    [
        (b"data: x", [b"x"]),
        (b"data:x", [b"x"]),
        (b"data:  x", [b" x"]),
        (b"data: ", [b""]),
        (b"data:", [b""]),
        (b"data", [b""]),
        (b": a comment", []),
        (b"event: data", []),
        (b"datax: y", []),
        (b"event: e\ndata: x", [b"x"]),
        (b"event: e\ndata:x", [b"x"]),
        (b"event: data\ndata: x", [b"x"]),
        (b"data: x\nevent: e", [b"x"]),
        (b"event: e\ndata:\nid: 1", [b""]),
        (b"data: x\ndata: y", [b"x\ny"]),
        (b"data: x\n: a comment\ndata:y\nid: 3", [b"x\ny"]),
        (b"data\ndata: y", [b"\ny"]),
        (b"data\ndata", [b"\n"]),
    ],
)
def test_an_event_is_its_data_lines(block: bytes, events: list[bytes]):
    for before in (b"", b"data: first\n\n"):
        first = [b"first"] if before else []
        assert EventStream().feed(before + block + b"\n\n") == first + events


BODIES = [
    b'{"error": {"message": "no"}}',
    b"<html>\r\n<p>502</p>\r\n\r\n</html>",
    b"Internal Server Error",
    b"[1]",
]
BODIES += [b"error: not a field", b"database is locked", b"internal", b"\xff"]


@pytest.mark.parametrize("body", BODIES)
def test_a_body_in_place_of_a_stream_is_kept_as_it_is(body: bytes):
    for size in range(1, len(body) + 1):
        stream = EventStream()
        assert read(stream, [body[i : i + size] for i in range(0, len(body), size)]) == []
        assert stream.body == body
    late = EventStream()
    assert read(late, [b"\n ", b"\xef", b"\xbb\xbf", b" " + body]) == []
    assert late.body == body


@pytest.mark.parametrize(
    "nothing",
    [b"", b" \r\n ", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n", b"\xef\xbb", b"dat", b"data", b"id"],
)
def test_nothing_or_half_a_field_name_is_neither_events_nor_a_body(nothing: bytes):
    stream = EventStream()
    assert read(stream, [nothing[:1], nothing[1:]]) == []
    assert stream.body is None


def test_what_is_closed_is_empty():
    events, lines = EventStream(), LineStream()
    assert (events.feed(b"data: 1\ndata: 2"), lines.feed(b"1\n2")) == ([], [b"1"])
    assert (len(events.close()), len(lines.close())) == (1, 1)
    assert (events.close(), lines.close()) == ([], [])


def test_lines_that_begin_with_no_json_are_a_body():
    stream = LineStream()
    assert stream.feed(b'\n {\n"a": 1') == []
    assert stream.body == b"{"
    assert stream.feed(b"}\n") == stream.close() == []
    assert stream.body == b'{\n"a": 1}'
    lines = LineStream()
    assert lines.feed(b"1\n{\n") == [b"1", b"{"]
    assert lines.body is None


@given(
    st.lists(st.sampled_from([b'{"a": 1}', b"", b" ", b'{"b": "\xc3\xa4"}\r', b"\r"])),
    PLACES,
    st.booleans(),
)
def test_lines_in_any_chunking(lines: list[bytes], places: list[int], ended: bool):
    data = b"\n".join(lines) + b"\n" * ended
    assert read(LineStream(), cut(data, places)) == [
        line.strip() for line in data.split(b"\n") if line.strip()
    ]


def test_a_long_event_is_not_copied_again_with_every_read():
    """The pieces of an unfinished event wait side by side: what is held is the reads themselves,
    not sums of them."""
    stream = EventStream()
    assert stream.feed(b"data: ") == []
    reads = [bytes([97 + i % 26]) * 100 for i in range(50)]
    for data in reads:
        assert stream.feed(data) == []
    held = stream._lines._rest
    assert [id(data) for data in held[1:]] == [id(data) for data in reads]
    assert stream.feed(b"\n\n") == [b"".join(reads)]
    assert held == []


@given(
    st.binary(max_size=40).filter(lambda data: b"\n" not in data and b"\r" not in data),
    st.sampled_from([None, "e"]),
)
def test_event_bytes_are_read_back(data: bytes, event: str | None):
    assert read(EventStream(), [frame_server_event(data, event)]) == [data]
    assert (
        frame_server_event(data, event)
        == (b"event: e\n" if event else b"") + b"data: " + data + b"\n\n"
    )
