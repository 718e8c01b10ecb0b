"""Bodies of requests: those that do not come, are too large, or hold what no program may stumble
over."""

from __future__ import annotations

import gzip
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.requests import ClientDisconnect

from dragoman.errors import (
    ContextLengthError,
    InvalidRequestError,
    OverloadedError,
    RequestTooLargeError,
    SettingsError,
)
from dragoman.message import Message
from dragoman.request import ModelRequest, ToolSpec
from dragoman.serve.http.body import BodyTimeoutError, json_object, read_body
from dragoman.serve.http.connection import ConcurrencyGate
from dragoman.serve.http.limits import ServerLimits, check_request
from support.asgi import Exchange
from support.virtual import run
from support.work import calls

SMALL = ServerLimits(body_bytes=100, body_seconds=5, depth=8, values=40)


def read(limits: ServerLimits = SMALL, headers: dict[str, str] = {}, **behaviour: Any) -> bytes:
    return run(read_body(Exchange(**behaviour).receive, headers, limits))


def test_a_body_is_put_together() -> None:
    assert read(pieces=[b"a", b"", b"bc"]) == b"abc"
    assert read(pieces=[b"x" * 100]) == b"x" * 100


@pytest.mark.parametrize("pieces", [[b"x" * 101], [b"x"] * 101, [b"x" * 100, b"y"]])
@pytest.mark.parametrize("unfinished", [False, True])
def test_one_that_grows_too_large_is_read_no_further(pieces: list[bytes], unfinished: bool) -> None:
    with pytest.raises(RequestTooLargeError, match="100 bytes"):
        read(pieces=pieces, unfinished=unfinished)


@pytest.mark.parametrize("length", ["101", " 101 ", "9" * 5000])
def test_one_that_says_so_is_not_read_at_all(length: str) -> None:
    exchange = Exchange([b"x"])
    with pytest.raises(RequestTooLargeError):
        run(read_body(exchange.receive, {"content-length": length}, SMALL))
    assert exchange._body


@pytest.mark.parametrize("length", ["-1", "", "x", "1e9", "٩٩٩٩", "0x999"])
def test_a_length_that_is_none_is_not_believed(length: str) -> None:
    assert read(headers={"content-length": length}, pieces=[b"x"]) == b"x"


def test_half_a_body_is_not_waited_for_for_ever() -> None:
    with pytest.raises(BodyTimeoutError, match="5 seconds"):
        read(pieces=[b"{"], unfinished=True)
    with pytest.raises(BodyTimeoutError):  # drop by drop
        read(pieces=[b"x"] * 50, delay=1)


def test_a_client_that_leaves_in_between_is_gone() -> None:
    with pytest.raises(ClientDisconnect):
        read(pieces=[b"{"], unfinished=True, leaves_after=0)


@pytest.mark.parametrize("name", ["gzip", "GZIP", "br", "identity, gzip", "deflate"])
def test_compressed_bodies_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="compressed"):
        read(headers={"content-encoding": name}, pieces=[gzip.compress(b"{}" * 99)])


def test_all_bodies_together_are_bounded_and_what_is_over_counts_no_more() -> None:
    gate = ConcurrencyGate(ServerLimits(bodies_bytes=150))
    with gate.hold_bytes() as first:
        assert run(read_body(Exchange([b"x" * 100]).receive, {}, SMALL, first))
        with pytest.raises(OverloadedError) as refused, gate.hold_bytes() as second:
            run(read_body(Exchange([b"y" * 30, b"y" * 30]).receive, {}, SMALL, second))
        assert refused.value.retry_after == 1.0
        assert gate.bytes == 100  # what was read of it is given back
        with gate.hold_bytes() as third:
            third(50)
            assert gate.bytes == 150
    assert gate.bytes == 0


def test_limits_can_be_taken_away() -> None:
    free = ServerLimits(body_bytes=None, body_seconds=None, depth=None, values=None)
    assert len(read(free, pieces=[b"x" * 1000] * 3, delay=1e6)) == 3000
    for limits in (free, ServerLimits(depth=1000)):
        with pytest.raises(InvalidRequestError, match="128 levels"):
            json_object(b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", limits)


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"", {}), (b" \n", {}), (b"{}", {}), (b"\xef\xbb\xbf", {}), (b'\xef\xbb\xbf{"a":1}', {"a": 1}), (b' {"a":"\\ud83d\\ude00"} ', {"a": "😀"}),
        (b'{"a":1,"a":2}', {"a": 2}), (b'{"a":' + b"9" * 90 + b"}", {"a": int("9" * 90)}), (b'{"":"\\u0000"}', {"": "\0"}),
        (b'{"a":' + b"[" * 7 + b"]" * 7 + b"}", {"a": [[[[[[[]]]]]]]}), (b'{"a":"' + b"[" * 30 + b'"}', {"a": "[" * 30}),
    ],
)  # fmt: skip
def test_what_is_read(data: bytes, body: object) -> None:
    assert json_object(data, SMALL) == body


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"[]", "object"), (b"null", "object"), (b'"{}"', "object"), (b"0", "object"),
        (b"{", "no JSON"), (b'{"a":1}x', "no JSON"), (b'{"a":NaN}', "no JSON"), (b'{"a":-Infinity}', "no JSON"), (b'{"a":1e999}', "no JSON"),
        (b"{'a':1}", "no JSON"), (b'{"a":1,}', "no JSON"), (b"{}\x00", "no JSON"), (b'{"a":"\n"}', "no JSON"), (b"a=1&b=2", "no JSON"),
        (b'{"a":' + b"1" * 5000 + b"}", "no JSON"), ('{"a":1}'.encode("utf-16"), "no JSON"),
        (b'{"a":"\xff"}', "UTF-8"), (b'{"a":"\xed\xa0\x80"}', "UTF-8"), (b'{"a":"\xc0\xaf"}', "UTF-8"),
        (b'{"a":' + b"[" * 8 + b"]" * 8 + b"}", "8 levels"), (b"[" * 100_000, "brackets"), (b'{"a":' * 30, "8 levels"),
        (b"[" * 20 + b"0" + b"," * 30, "brackets"),
    ],
)  # fmt: skip
def test_what_is_refused_and_in_which_words(data: bytes, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        json_object(data, SMALL)


def test_a_small_body_is_no_more_work_for_the_limits() -> None:
    small, large = b'{"a":[' + b'"x",' * 10 + b"0]}", b'{"a":[' + b'"x",' * 10_000 + b"0]}"
    free = ServerLimits()
    assert calls(lambda: json_object(small, free)) == calls(lambda: json_object(large, free)) < 20


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(st.binary() | VALUES.map(lambda value: repr(value).encode("utf-8", "surrogatepass")))
@example(b"\xef\xbb\xbf\xef\xbb\xbf{}")
def test_whatever_comes_is_an_object_or_an_error_of_ours(data: bytes) -> None:
    try:
        body = json_object(data, SMALL)
    except InvalidRequestError as error:
        assert error.message.isprintable()
        return
    assert isinstance(body, dict)
    assert (
        not data.strip(b"\xef\xbb\xbf \n\r\t\f\v")
        or msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf")) == body
    )


@pytest.mark.parametrize("name", ServerLimits.__struct_fields__)
def test_a_limit_is_a_number_above_zero(name: str) -> None:
    for value in (0, -1, float("nan")):
        with pytest.raises(SettingsError, match=name):
            ServerLimits(**{name: value})
    with pytest.raises(TypeError, match=name):
        ServerLimits(**{name: "1"})  # type: ignore[arg-type]
    assert getattr(ServerLimits(**{name: 1}), name) == 1


def test_conversations_and_tools_are_counted() -> None:
    limits = ServerLimits(messages=2, tools=1)
    tool = ToolSpec("t", "", {})
    check_request(ModelRequest("m", (Message.user("a"),) * 2, (tool,)), limits)
    with pytest.raises(ContextLengthError, match="3 messages"):
        check_request(ModelRequest("m", (Message.user("a"),) * 3), limits)
    with pytest.raises(InvalidRequestError, match="2 tools"):
        check_request(ModelRequest("m", (), (tool, tool)), limits)
