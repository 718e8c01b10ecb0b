"""Calls whose arguments are streamed in pieces."""

from __future__ import annotations

import pytest

from dragoman.errors import DecodeError
from dragoman.event import PartDelta
from dragoman.fold import fold
from dragoman.message import FinishReason
from dragoman.wires import google as wire
from support.google import (
    STREAMED,
    answer,
    chunk,
    decode,
    decode_chunks,
    error_of,
    message,
    piece,
    sse,
    text,
)


def test_a_call_is_told_with_its_arguments_as_a_delta():
    events = wire.load_response(
        chunk({"functionCall": {"name": "f", "args": {"a": 1}}}, finish="STOP")
    )
    assert [event.delta for event in events if isinstance(event, PartDelta)] == ['{"a":1}']


def partial(*pieces, name=None, more=True, **part):
    call = {
        **({"name": name} if name else {}),
        **({"partialArgs": list(pieces)} if pieces else {}),
        **({"willContinue": True} if more else {}),
    }
    return chunk({"functionCall": call, **part})


def test_arguments_that_come_in_pieces():
    read = message(
        partial(name="f", thoughtSignature="AA=="),
        partial(piece("$.towns[0].name", stringValue="Os", more=True)),
        partial(piece("$.towns[0].name", stringValue="lo")),
        partial(
            piece("$.towns[1]['full name']", stringValue="Bergen"),
            piece("$.towns[1].people", numberValue=7.5),
        ),
        partial(piece("$.sure", boolValue=True), piece("$.why", nullValue="NULL_VALUE")),
        partial(more=False),
        partial(name="g"),
        chunk(text("and"), finish="STOP"),
    )
    first, second = read.tool_calls
    assert first.arguments == {
        "towns": [{"name": "Oslo"}, {"full name": "Bergen", "people": 7.5}], "sure": True, "why": None,
    }  # fmt: skip
    assert (first.native["google"]["thoughtSignature"], second.arguments, read.text) == (
        "AA==",
        {},
        "and",
    )
    assert read.finish_reason is FinishReason.tool_calls


def test_arguments_that_come_whole_before_the_pieces():
    start = chunk({"functionCall": {"name": "f", "args": {"a": 1}, "willContinue": True}})
    read = message(start, partial(piece("$.b", numberValue=2), more=False), chunk(finish="STOP"))
    assert read.tool_calls[0].arguments == {"a": 1, "b": 2}


def test_arguments_that_are_cut():
    start = [partial(name="f"), partial(piece("$.a", stringValue="lon", more=True))]
    read = message(*start, chunk(finish="MAX_TOKENS"))
    assert (read.tool_calls[0].state, read.tool_calls[0].raw) == ("cut", '{"a":"lon"}')
    events = decode(sse(*start))
    assert error_of(events).partial.tool_calls[0].state == "cut"


@pytest.mark.parametrize("path", ["", "$", "$[0]", "$.a[99999999]", "$.a.b[0].c"])
def test_a_path_that_is_none_is_an_error_value(path):
    events = decode(
        sse(
            partial(name="f"),
            partial(piece("$.a", stringValue="x")),
            partial(piece(path, stringValue="y")),
        )
    )
    assert isinstance(error_of(events), DecodeError)


def test_a_streamed_call_beside_a_text_stays_whole():
    (message,) = fold(
        decode_chunks(
            answer({**STREAMED, "text": "x"}), answer({"functionCall": {}}, finishReason="STOP")
        )
    )
    assert wire.dump_messages([message])["contents"][0]["parts"][0]["text"] == "x"
