"""Checks of a wire's responses, whole and streamed: what a model answers → a body, and back; what
is no answer."""

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
from dragoman.testing.check import attempt, demand, same
from dragoman.testing.samples import ANSWER, USAGE, comparable
from dragoman.testing.wire.bench import OWN, WireBench, cut_into, events_of, fault_of, wire_check

__all__ = [
    "answers_know_their_origin",
    "finish_reasons_survive",
    "garbage_is_never_raised",
    "ids_are_minted_and_distinct",
    "responses_return",
    "usage_survives_and_adds_up",
    "whole_answers_are_read_in_place_of_streams",
]

_GARBAGE = (
    b"\xff\xfe\x00\x01", b"<html><body>Bad gateway</body></html>", b"{", b'{"a":', b"null", b"[]", b"5", b'""', b"{}",
    b"data: {\n\n", b"data: null\n\n", b"data: []\n\n", b"data: 5\n\n", b"data: {}\n\n", b"data: \xff\n\n",
    b"event: error\ndata: 5\n\n", b'data: {"error":5}\n\n', b'{"error":[]}', b"{}\n{}\n", b"[" * 20_000, b"data: " + b"[" * 20_000,
)  # fmt: skip


@wire_check("response", look="load_response, dump_response")
def responses_return(bench: WireBench) -> None:
    """A whole response comes back as the answer that it was: thinking, text, calls with their
    arguments, in order."""
    loaded = bench.message_of(bench.read_whole(ANSWER), "a whole response")
    same(comparable([loaded]), comparable([ANSWER]), "the answer")
    again = bench.wire.load_response(msgspec.json.encode(bench.whole(ANSWER)))
    same(comparable(fold(again)), comparable([ANSWER]), "the answer, read from bytes,")


@wire_check("stream", "response", look="decoder, load_response: what they take for granted")
def garbage_is_never_raised(bench: WireBench) -> None:
    """Nothing that a provider sends makes a decoder raise. Bytes that are no answer end in a
    `RunError`."""
    for data in _GARBAGE:
        for pieces in ([data], list(cut_into(data, 3))[:400]):
            events = _events(bench, pieces)
            demand(
                events and isinstance(events[-1], RunError),
                f"{data[:60]!r} is no answer, and no RunError tells",
            )
    stream = bench.stream(events_of(ANSWER))
    for position in range(0, len(stream), max(5, len(stream) // 200)):
        for wrong in (b"", b"\x00", b"}", b'"', b"\n\n"):
            fault = fault_of(
                _events(bench, [stream[:position] + wrong + stream[position + 1 :]]), spoilt=True
            )
            demand(
                fault is None,
                f"with {wrong!r} as byte {position} the events are not well-formed: {fault}",
            )
    for data in map(msgspec.json.encode, _spoilt(bench.whole(ANSWER))):
        whole = attempt(
            lambda data=data: bench.wire.load_response(data), f"the response {data[:300]!r}"
        )
        for events in (whole or [], _events(bench, [data])):
            fault = fault_of(events, spoilt=True)
            demand(fault is None, f"the events of {data[:300]!r} are not well-formed: {fault}")


@wire_check("stream", "response", look="decoder: a body that begins with a brace")
def whole_answers_are_read_in_place_of_streams(bench: WireBench) -> None:
    """A decoder of streams also reads a whole response, or the body of an error, that a server
    sends in place of one."""
    body = msgspec.json.encode(bench.whole(ANSWER))
    loaded = bench.message_of(
        bench.decode(cut_into(body, 11)), "a whole response sent in place of a stream"
    )
    same(comparable([loaded]), comparable([ANSWER]), "the answer")
    if bench.has("error"):
        error = bench.wire.dump_error(OverloadedError("No capacity."))
        events = bench.decode([msgspec.json.encode(error.body)])
        demand(
            events and isinstance(events[-1], RunError),
            f"the body of an error in place of a stream gives {events}",
        )


@wire_check("response", "stream", look="the finish reason, both ways")
def finish_reasons_survive(bench: WireBench) -> None:
    """`stop`, `length` and `tool_calls` survive; what the format has no word for becomes one that
    it has, the same streamed and whole, and is not mistaken for calls."""
    certain = {FinishReason.stop, FinishReason.length, FinishReason.tool_calls}
    for reason in FinishReason:
        calls = [ToolCallPart("one", "get_time", {})] if reason is FinishReason.tool_calls else []
        answer = Message.model("So.", *calls).replace(finish_reason=reason)
        streamed = bench.message_of(bench.read_stream(answer), "a stream").finish_reason
        whole = bench.message_of(bench.read_whole(answer), "a response").finish_reason
        same(streamed, whole, f"the finish reason of a stream that ended by {reason!r}")
        if reason in certain:
            same(whole, reason, "the finish reason")
        again = bench.message_of(
            bench.read_whole(answer.replace(finish_reason=whole)), "a response"
        )
        same(again.finish_reason, whole, "a finish reason that this wire told before")
        demand(
            calls or whole is not FinishReason.tool_calls,
            f"{reason!r} becomes tool_calls where there are none",
        )


@wire_check("response", "stream", look="usage, both ways")
def usage_survives_and_adds_up(bench: WireBench) -> None:
    """Tokens of prompt and answer survive and are the whole (the cache's and reasoning's are parts
    of them, not more); a count that the format has no place for is `None`, never another number."""
    for what, events in (
        ("whole", bench.read_whole(ANSWER)),
        ("streamed", bench.read_stream(ANSWER)),
    ):
        usages = [
            event.usage for event in events if isinstance(event, MessageFinished) and event.usage
        ]
        same(len(usages), 1, f"how often the usage of a {what} response is told")
        usage = usages[0]
        same(_sums(usage), _sums(USAGE), f"the tokens of a {what} response")
        for name in USAGE.__struct_fields__:
            value = getattr(usage, name)
            demand(
                value in (None, getattr(USAGE, name)),
                f"{name} is {value} and must be {getattr(USAGE, name)} or None",
            )
    silent = bench.message_of(bench.read_stream(ANSWER.replace(usage=None)), "a stream")
    demand(
        silent.usage is None or not any(_sums(silent.usage)),
        f"usage is made up where none was told: {silent.usage}",
    )


@wire_check("response", "stream", look="new_id, and the ids of calls")
def ids_are_minted_and_distinct(bench: WireBench) -> None:
    """Ids of messages come from `new_id`; those of calls are distinct and not empty, also for calls
    that are the same twice."""
    calls = (ToolCallPart("one", "get_time", {}), ToolCallPart("two", "get_time", {}))
    answer = Message.model(*calls).replace(finish_reason=FinishReason.tool_calls)
    for what in ("whole", "streamed"):
        numbers = count()
        minted: list[str] = []

        def new_id(numbers: Any = numbers, minted: list[str] = minted) -> str:
            minted.append(f"minted-{next(numbers)}")
            return minted[-1]

        read = bench.read_whole if what == "whole" else bench.read_stream
        events = read(answer, new_id=new_id)
        starts = [event.message_id for event in events if isinstance(event, MessageStarted)]
        demand(
            set(starts) <= set(minted),
            f"the ids of messages, {starts}, are not those of new_id, {minted}",
        )
        ids = [call.id for message in fold(events) for call in message.tool_calls]
        demand(
            len(ids) == len(set(ids)) == 2 and all(ids), f"the ids of two {what} calls are {ids}"
        )


@wire_check("response", "stream", look="origin=")
def answers_know_their_origin(bench: WireBench) -> None:
    """An answer has the origin that the caller gave, with its digest of what stood before, and what
    the response adds to it."""
    origin = msgspec.structs.replace(OWN, prefix="f" * 32)
    for what, events in (
        ("whole", bench.read_whole(ANSWER, origin=origin)),
        ("streamed", bench.read_stream(ANSWER, origin=origin)),
    ):
        loaded = fold(events)[0].origin
        demand(loaded is not None, f"a {what} answer has no origin")
        for name in ("provider", "endpoint", "model", "prefix"):
            same(
                getattr(loaded, name),
                getattr(origin, name),
                f"`{name}` of the origin of a {what} answer",
            )


def _sums(usage: Usage) -> tuple[int | None, int | None, int | None]:
    return usage.input_tokens, usage.output_tokens, usage.total_tokens


def _events(bench: WireBench, pieces: Sequence[bytes]) -> list[Event]:
    """Returns the events of bytes for which nothing may be raised, whatever they are."""
    excerpt = b"".join(pieces)[:300]
    return (
        attempt(lambda: bench.decode(pieces), f"{excerpt!r}: a decoder tells it as a RunError;")
        or []
    )


def _spoilt(body: Any) -> list[Any]:
    """Returns a body with one value at a time, at any depth, replaced by what should not be
    there."""
    spoilt: list[Any] = [None, 5, "text", [], {}, [None], -1.5]
    if isinstance(body, dict):
        fields = cast("Json", body)
        for key, value in fields.items():
            spoilt += [{**fields, key: bad} for bad in _spoilt(value)]
            spoilt.append({name: kept_value for name, kept_value in fields.items() if name != key})
    elif isinstance(body, list):
        entries = cast("list[Any]", body)
        for index, value in enumerate(entries):
            spoilt += [[*entries[:index], bad, *entries[index + 1 :]] for bad in _spoilt(value)]
    return spoilt
