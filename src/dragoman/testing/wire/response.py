"""Checks of responses, whole and streamed: a model's answer → a body, and back; and of bytes that
are no answer."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, cast

import msgspec

from dragoman.errors import OverloadedError
from dragoman.event import Event, MessageFinished, MessageStarted, RunError
from dragoman.fold import fold
from dragoman.json_bytes import Json
from dragoman.message import FinishReason, Message, ToolCallPart, Usage
from dragoman.testing.check import attempt, require, require_equal
from dragoman.testing.mutation import JsonValue
from dragoman.testing.samples import ANSWER, USAGE, simplify_messages
from dragoman.testing.wire.bench import (
    ORIGIN,
    WireBench,
    find_fault,
    make_stream_events,
    split_bytes,
    wire_check,
)

__all__ = [
    "answers_know_their_origin",
    "finish_reasons_survive",
    "garbage_raises_nothing",
    "ids_are_minted_and_distinct",
    "responses_return",
    "usage_survives_and_adds_up",
    "whole_answers_are_read_as_streams",
]

_GARBAGE = (
    b"\xff\xfe\x00\x01", b"<html><body>Bad gateway</body></html>", b"{", b'{"a":', b"null", b"[]", b"5", b'""', b"{}",
    b"data: {\n\n", b"data: null\n\n", b"data: []\n\n", b"data: 5\n\n", b"data: {}\n\n", b"data: \xff\n\n",
    b"event: error\ndata: 5\n\n", b'data: {"error":5}\n\n', b'{"error":[]}', b"{}\n{}\n", b"[" * 20_000, b"data: " + b"[" * 20_000,
)  # fmt: skip


@wire_check("response", look="load_response, dump_response")
def responses_return(bench: WireBench) -> None:
    """A whole response returns as the same answer: thinking, text and calls with arguments, in
    order."""
    loaded = bench.fold_message(bench.read_answer(ANSWER), "a whole response")
    require_equal(simplify_messages([loaded]), simplify_messages([ANSWER]), "the answer")
    again = bench.wire.load_response(msgspec.json.encode(bench.dump_answer(ANSWER)))
    require_equal(
        simplify_messages(fold(again)), simplify_messages([ANSWER]), "the answer, read from bytes,"
    )


@wire_check("stream", "response", look="decoder, load_response: what they take for granted")
def garbage_raises_nothing(bench: WireBench) -> None:
    """A decoder raises for no bytes. Bytes that are not an answer end in a `RunError`."""
    for data in _GARBAGE:
        for pieces in ([data], list(split_bytes(data, 3))[:400]):
            events = _decode_anything(bench, pieces)
            require(
                events and isinstance(events[-1], RunError),
                f"{data[:60]!r} is no answer, and no RunError tells",
            )
    stream = bench.encode(make_stream_events(ANSWER))
    # Some 200 positions of a stream, so that the check takes about a second.
    for position in range(0, len(stream), max(5, len(stream) // 200)):
        for wrong in (b"", b"\x00", b"}", b'"', b"\n\n"):
            fault = find_fault(
                _decode_anything(bench, [stream[:position] + wrong + stream[position + 1 :]]),
                corrupt=True,
            )
            require(
                fault is None,
                f"with {wrong!r} as byte {position} the events are not well-formed: {fault}",
            )
    for data in map(msgspec.json.encode, _corrupt_body(bench.dump_answer(ANSWER))):
        whole = attempt(
            lambda data=data: bench.wire.load_response(data), f"the response {data[:300]!r}"
        )
        for events in (whole or [], _decode_anything(bench, [data])):
            fault = find_fault(events, corrupt=True)
            require(fault is None, f"the events of {data[:300]!r} are not well-formed: {fault}")


@wire_check("stream", "response", look="decoder: a body that begins with a brace")
def whole_answers_are_read_as_streams(bench: WireBench) -> None:
    """A stream decoder also reads a whole response, or an error body, that a server sends in place
    of a stream."""
    body = msgspec.json.encode(bench.dump_answer(ANSWER))
    loaded = bench.fold_message(
        bench.decode(split_bytes(body, 11)), "a whole response sent in place of a stream"
    )
    require_equal(simplify_messages([loaded]), simplify_messages([ANSWER]), "the answer")
    if bench.has("error"):
        error = bench.wire.dump_error(OverloadedError("No capacity."))
        events = bench.decode([msgspec.json.encode(error.body)])
        require(
            events and isinstance(events[-1], RunError),
            f"the body of an error in place of a stream gives {events}",
        )


@wire_check("response", "stream", look="the finish reason, both ways")
def finish_reasons_survive(bench: WireBench) -> None:
    """`stop`, `length` and `tool_calls` survive. Other reasons become one that the format has, the
    same streamed and whole, and never `tool_calls`."""
    certain = {FinishReason.stop, FinishReason.length, FinishReason.tool_calls}
    for reason in FinishReason:
        calls = [ToolCallPart("one", "get_time", {})] if reason is FinishReason.tool_calls else []
        answer = Message.model("So.", *calls).replace(finish_reason=reason)
        streamed = bench.fold_message(bench.read_stream(answer), "a stream").finish_reason
        whole = bench.fold_message(bench.read_answer(answer), "a response").finish_reason
        require_equal(streamed, whole, f"the finish reason of a stream that ended by {reason!r}")
        if reason in certain:
            require_equal(whole, reason, "the finish reason")
        # A reason that the format had for another one must be stable from then on.
        again = bench.fold_message(
            bench.read_answer(answer.replace(finish_reason=whole)), "a response"
        )
        require_equal(again.finish_reason, whole, "a finish reason that this wire told before")
        require(
            calls or whole is not FinishReason.tool_calls,
            f"{reason!r} becomes tool_calls where there are none",
        )


@wire_check("response", "stream", look="usage, both ways")
def usage_survives_and_adds_up(bench: WireBench) -> None:
    """Input and output tokens survive and are totals, with cache and reasoning tokens as parts of
    them. A count that the format lacks is `None`, never another number."""
    for what, events in (
        ("whole", bench.read_answer(ANSWER)),
        ("streamed", bench.read_stream(ANSWER)),
    ):
        usages = [
            event.usage for event in events if isinstance(event, MessageFinished) and event.usage
        ]
        require_equal(len(usages), 1, f"how often the usage of a {what} response is reported")
        usage = usages[0]
        require_equal(_get_totals(usage), _get_totals(USAGE), f"the tokens of a {what} response")
        for name in USAGE.__struct_fields__:
            value = getattr(usage, name)
            require(
                value in (None, getattr(USAGE, name)),
                f"{name} is {value} and must be {getattr(USAGE, name)} or None",
            )
    # Formats with mandatory counts write zeros.
    silent = bench.fold_message(bench.read_stream(ANSWER.replace(usage=None)), "a stream")
    require(
        silent.usage is None or not any(_get_totals(silent.usage)),
        f"usage is made up where none was told: {silent.usage}",
    )


@wire_check("response", "stream", look="new_id, and the ids of calls")
def ids_are_minted_and_distinct(bench: WireBench) -> None:
    """Message ids come from `new_id`. Ids of calls are distinct and not empty, also for two
    identical calls."""
    calls = (ToolCallPart("one", "get_time", {}), ToolCallPart("two", "get_time", {}))
    answer = Message.model(*calls).replace(finish_reason=FinishReason.tool_calls)
    for what in ("whole", "streamed"):
        numbers = count()
        minted: list[str] = []

        def new_id(numbers: Any = numbers, minted: list[str] = minted) -> str:
            minted.append(f"minted-{next(numbers)}")
            return minted[-1]

        read = bench.read_answer if what == "whole" else bench.read_stream
        events = read(answer, new_id=new_id)
        starts = [event.message_id for event in events if isinstance(event, MessageStarted)]
        require(
            set(starts) <= set(minted),
            f"the ids of messages, {starts}, are not those of new_id, {minted}",
        )
        ids = [call.id for message in fold(events) for call in message.tool_calls]
        require(
            len(ids) == len(set(ids)) == 2 and all(ids), f"the ids of two {what} calls are {ids}"
        )


@wire_check("response", "stream", look="origin=")
def answers_know_their_origin(bench: WireBench) -> None:
    """An answer has the origin that the caller passed, with its digest of earlier messages and the
    response's own fields."""
    origin = msgspec.structs.replace(ORIGIN, prefix="f" * 32)
    for what, events in (
        ("whole", bench.read_answer(ANSWER, origin=origin)),
        ("streamed", bench.read_stream(ANSWER, origin=origin)),
    ):
        loaded = fold(events)[0].origin
        require(loaded is not None, f"a {what} answer has no origin")
        for name in ("provider", "endpoint", "model", "prefix"):
            require_equal(
                getattr(loaded, name),
                getattr(origin, name),
                f"`{name}` of the origin of a {what} answer",
            )


def _get_totals(usage: Usage) -> tuple[int | None, int | None, int | None]:
    """Returns the input, output and total tokens."""
    return usage.input_tokens, usage.output_tokens, usage.total_tokens


def _decode_anything(bench: WireBench, pieces: Sequence[bytes]) -> list[Event]:
    """Returns the events of any bytes, and fails the check if the decoder raises."""
    excerpt = b"".join(pieces)[:300]
    return (
        attempt(lambda: bench.decode(pieces), f"{excerpt!r}: a decoder tells it as a RunError;")
        or []
    )


def _corrupt_body(body: JsonValue) -> list[JsonValue]:
    """Returns copies of a body, each with one value at any depth replaced or removed."""
    spoilt: list[JsonValue] = [None, 5, "text", [], {}, [None], -1.5]
    if isinstance(body, dict):
        fields = cast("Json", body)
        for key, value in fields.items():
            spoilt += [{**fields, key: bad} for bad in _corrupt_body(value)]
            spoilt.append({name: kept_value for name, kept_value in fields.items() if name != key})
    elif isinstance(body, list):
        entries = cast("list[Any]", body)
        for index, value in enumerate(entries):
            spoilt += [
                [*entries[:index], bad, *entries[index + 1 :]] for bad in _corrupt_body(value)
            ]
    return spoilt
