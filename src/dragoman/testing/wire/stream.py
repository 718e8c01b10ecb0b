"""Checks of a wire's streams: an answer in pieces, in any chunking, cut anywhere."""

from __future__ import annotations

from typing import cast

from dragoman.errors import OverloadedError, StreamCutError
from dragoman.event import MessageFinished, PartDelta, RunError
from dragoman.fold import compact, fold
from dragoman.message import FinishReason, Message, ToolCallPart
from dragoman.testing.check import demand, same
from dragoman.testing.samples import ANSWER, TEXT, comparable
from dragoman.testing.wire.bench import WireBench, cut_into, events_of, fault_of, wire_check

__all__ = [
    "arguments_in_pieces_are_whole",
    "chunking_changes_nothing",
    "cut_streams_keep_what_came",
    "errors_within_a_stream_are_told",
    "streams_return",
    "text_arrives_before_the_end",
]

_STREAM = "decoder, encoder"


@wire_check("stream", look=_STREAM)
def streams_return(bench: WireBench) -> None:
    """A streamed response comes back as the answer that it was, and as the whole response says
    it."""
    loaded = bench.message_of(
        bench.decode([bench.stream(events_of(ANSWER))]), "a streamed response"
    )
    same(comparable([loaded]), comparable([ANSWER]), "the answer")
    if bench.has("response"):
        whole = bench.message_of(bench.wire.load_response(bench.whole(ANSWER)), "a whole response")
        same(comparable([loaded]), comparable([whole]), "what is streamed")
        same(
            (loaded.finish_reason, loaded.usage),
            (whole.finish_reason, whole.usage),
            "finish reason and usage of the stream",
        )


@wire_check("stream", look="decoder.feed: what it keeps of an unfinished line or sign")
def chunking_changes_nothing(bench: WireBench) -> None:
    """However the bytes are cut, also byte by byte and within a sign of UTF-8, the events say the
    same."""
    data = bench.stream(events_of(ANSWER))
    wanted = compact(bench.decode([data]))
    for size in (1, 2, 3, 7, 64):
        events = compact(bench.decode(cut_into(data, size)))
        same(events, wanted, f"what comes in pieces of {size} bytes")
    same(
        compact(bench.decode([data.replace(b"\n", b"\r\n")])),
        wanted,
        "what comes with other line ends",
    )


@wire_check("stream", look="decoder.feed, encoder.feed")
def text_arrives_before_the_end(bench: WireBench) -> None:
    """Text is told when it comes and not held back: after half of the bytes of a long text there
    are deltas."""
    data = bench.stream(events_of(Message.model("word " * 60)))
    events = bench.wire.decoder().feed(data[: len(data) // 2])
    deltas = [event for event in events if isinstance(event, PartDelta)]
    demand(len(deltas) > 1, f"half of the stream gives {len(deltas)} deltas")
    demand(fault_of(bench.decode([data])) is None, "the events are not well-formed")


@wire_check("stream", look=f"{_STREAM}: the arguments of calls")
def arguments_in_pieces_are_whole(bench: WireBench) -> None:
    """Arguments that come in pieces, of calls one after the other or side by side, are those that
    were sent; none are `{}`."""
    calls = [
        ToolCallPart("one", "get_weather", {"city": TEXT, "n": {"deep": [1, 2, {"x": None}]}}),
        ToolCallPart("two", "get_weather", {"city": "Oslo"}),
        ToolCallPart("three", "get_time", {}),
    ]
    answer = Message.model(*calls).replace(finish_reason=FinishReason.tool_calls)
    in_turn = events_of(answer, piece=1)
    aside = [event for event in in_turn if isinstance(event, PartDelta)]
    others = [event for event in in_turn if not isinstance(event, PartDelta)]
    begun = [event for event in others if type(event).__name__ in ("MessageStarted", "PartStarted")]
    ended = [event for event in others if event not in begun]
    side_by_side = [*begun, *[event for group in _dealt(aside) for event in group], *ended]
    for order, events in (("in turn", in_turn), ("side by side", side_by_side)):
        loaded = bench.message_of(
            bench.decode(cut_into(bench.stream(events), 5)), f"a stream of calls {order}"
        )
        messages = [(call.name, call.arguments, call.state) for call in loaded.tool_calls]
        same(
            messages,
            [(call.name, call.arguments, "complete") for call in calls],
            f"the calls that were streamed {order}",
        )


@wire_check("stream", look="decoder.close")
def cut_streams_keep_what_came(bench: WireBench) -> None:
    """A stream that ends too early, anywhere, raises nothing: it ends in a `RunError` with a
    `StreamCutError` that has all of the message that had come, and no call is left to be run that
    was not whole."""
    data = bench.stream(events_of(ANSWER))
    whole = {call.name: call.arguments for call in ANSWER.tool_calls}
    for end in range(0, len(data), max(3, len(data) // 400)):
        events = bench.decode([data[:end]])
        fault = fault_of(events)
        demand(
            fault is None,
            f"cut after {end} of {len(data)} bytes, the events are not well-formed: {fault}",
        )
        messages = fold(events)
        last = events[-1] if events else None
        if not isinstance(last, RunError):
            same(
                comparable(messages),
                comparable([ANSWER]),
                f"what is told as whole though it was cut after {end} bytes",
            )
            continue
        demand(
            isinstance(last.error, StreamCutError), f"the error of a cut stream is {last.error!r}"
        )
        for message in messages:
            demand(
                TEXT.startswith(message.text), f"of a cut stream comes the text {message.text!r}"
            )
            same(
                last.error.partial and last.error.partial.content,
                message.content,
                "`partial` of the error",
            )
            broken = [
                call
                for call in message.tool_calls
                if call.state == "complete" and call.arguments != whole[call.name]
            ]
            demand(not broken, f"a call that was cut is told as complete: {broken}")


@wire_check("stream", look=f"{_STREAM}: errors")
def errors_within_a_stream_are_told(bench: WireBench) -> None:
    """An error in the middle of a stream is a `RunError` of its class, after what came before,
    which it has as `partial`."""
    begun = [event for event in events_of(ANSWER) if not isinstance(event, MessageFinished)][:12]
    events = bench.decode([bench.stream([*begun, RunError(OverloadedError("No capacity."))])])
    last = events[-1] if events else None
    demand(isinstance(last, RunError), f"a stream that ends with an error ends with {last!r}")
    error = cast("RunError", last).error
    demand(
        isinstance(error, OverloadedError),
        f"an OverloadedError in a stream comes back as {error!r}",
    )
    demand("No capacity." in error.message, f"the error's message is lost: {error.message!r}")
    messages = fold(events)
    demand(messages and messages[0].content, "what came before the error is lost")
    same(error.partial and error.partial.content, messages[0].content, "`partial` of the error")


def _dealt(deltas: list[PartDelta]) -> list[list[PartDelta]]:
    """Returns deltas of several parts, one of each in turn."""
    by_part: dict[int, list[PartDelta]] = {}
    for delta in deltas:
        by_part.setdefault(delta.index, []).append(delta)
    longest = max(map(len, by_part.values()))
    return [
        [part[turn] for part in by_part.values() if turn < len(part)] for turn in range(longest)
    ]
