"""Checks of streams: an answer in pieces, with any chunking, cut anywhere.

Each check encodes the events of an answer with the wire's encoder and decodes the bytes with its
decoder, whole, in small pieces or cut. The events of the pieces are made `compact` before they
are compared, because the size of deltas may depend on the chunks, but nothing else may. Errors
must come as events that end the stream; a decoder never raises them.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import cast

from dragoman.errors import OverloadedError, StreamCutError
from dragoman.event import Event, MessageFinished, MessageStarted, PartDelta, PartStarted, RunError
from dragoman.fold import compact, fold
from dragoman.message import FinishReason, Message, ToolCallPart
from dragoman.testing.check import require, require_equal
from dragoman.testing.samples import ANSWER, TEXT, simplify_messages
from dragoman.testing.wire.bench import (
    WireBench,
    find_fault,
    make_stream_events,
    split_bytes,
    wire_check,
)

__all__ = [
    "arguments_in_pieces_are_complete",
    "chunking_changes_nothing",
    "cut_streams_keep_what_came",
    "errors_in_streams_are_events",
    "streams_return",
    "text_arrives_before_the_end",
]

_STREAM = "decoder, encoder"


@wire_check("stream", look=_STREAM)
def streams_return(bench: WireBench) -> None:
    """A streamed response returns as the same answer, equal to the whole response."""
    loaded = bench.fold_message(
        bench.decode([bench.encode(make_stream_events(ANSWER))]), "a streamed response"
    )
    require_equal(simplify_messages([loaded]), simplify_messages([ANSWER]), "the answer")
    if bench.has("response"):
        whole = bench.fold_message(
            bench.wire.load_response(bench.dump_answer(ANSWER)), "a whole response"
        )
        require_equal(simplify_messages([loaded]), simplify_messages([whole]), "what is streamed")
        require_equal(
            (loaded.finish_reason, loaded.usage),
            (whole.finish_reason, whole.usage),
            "finish reason and usage of the stream",
        )


@wire_check("stream", look="decoder.feed: what it keeps of an unfinished line or sign")
def chunking_changes_nothing(bench: WireBench) -> None:
    """The events are the same for any chunking, also byte by byte and within a UTF-8 character."""
    data = bench.encode(make_stream_events(ANSWER))
    wanted = compact(bench.decode([data]))
    # Sizes that cut UTF-8 characters, line ends and field names at different places.
    for size in (1, 2, 3, 7, 64):
        events = compact(bench.decode(split_bytes(data, size)))
        require_equal(events, wanted, f"what comes in pieces of {size} bytes")
    # A stream of binary frames has no lines.
    if not data.isascii() and b"\0" in data:
        return
    require_equal(
        compact(bench.decode([data.replace(b"\n", b"\r\n")])),
        wanted,
        "what comes with other line ends",
    )


@wire_check("stream", look="decoder.feed, encoder.feed")
def text_arrives_before_the_end(bench: WireBench) -> None:
    """Text is not held back: half of the bytes of a long text already give deltas."""
    data = bench.encode(make_stream_events(Message.model("word " * 60)))
    # A fresh decoder without `close`: what it holds back then is not in the events.
    events = bench.wire.decoder().feed(data[: len(data) // 2])
    deltas = [event for event in events if isinstance(event, PartDelta)]
    require(len(deltas) > 1, f"half of the stream gives {len(deltas)} deltas")
    require(find_fault(bench.decode([data])) is None, "the events are not well-formed")


@wire_check("stream", look=f"{_STREAM}: the arguments of calls")
def arguments_in_pieces_are_complete(bench: WireBench) -> None:
    """Arguments that arrive in pieces, of calls one after another or interleaved, are complete.
    Missing arguments are `{}`."""
    calls = [
        ToolCallPart("one", "get_weather", {"city": TEXT, "n": {"deep": [1, 2, {"x": None}]}}),
        ToolCallPart("two", "get_weather", {"city": "Oslo"}),
        ToolCallPart("three", "get_time", {}),
    ]
    answer = Message.model(*calls).replace(finish_reason=FinishReason.tool_calls)
    in_turn = make_stream_events(answer, piece=1)
    for order, events in (("in turn", in_turn), ("interleaved", _interleave_parts(in_turn))):
        loaded = bench.fold_message(
            bench.decode(split_bytes(bench.encode(events), 5)), f"a stream of calls {order}"
        )
        loaded_calls = [(call.name, call.arguments, call.state) for call in loaded.tool_calls]
        require_equal(
            loaded_calls,
            [(call.name, call.arguments, "complete") for call in calls],
            f"the calls that were streamed {order}",
        )


@wire_check("stream", look="decoder.close")
def cut_streams_keep_what_came(bench: WireBench) -> None:
    """A stream that ends early, anywhere, raises nothing. It ends in a `RunError` with a
    `StreamCutError` that has the partial message, and no incomplete call can run."""
    data = bench.encode(make_stream_events(ANSWER))
    whole = {call.name: call.arguments for call in ANSWER.tool_calls}
    # Some 400 cuts.
    for end in range(0, len(data), max(3, len(data) // 400)):
        events = bench.decode([data[:end]])
        fault = find_fault(events)
        require(
            fault is None,
            f"cut after {end} of {len(data)} bytes, the events are not well-formed: {fault}",
        )
        messages = fold(events)
        last = events[-1] if events else None
        if not isinstance(last, RunError):
            require_equal(
                simplify_messages(messages),
                simplify_messages([ANSWER]),
                f"the complete answer of a stream that was cut after {end} bytes",
            )
            continue
        require(
            isinstance(last.error, StreamCutError), f"the error of a cut stream is {last.error!r}"
        )
        for message in messages:
            require(
                TEXT.startswith(message.text), f"of a cut stream comes the text {message.text!r}"
            )
            require_equal(
                last.error.partial and last.error.partial.content,
                message.content,
                "`partial` of the error",
            )
            broken = [
                call
                for call in message.tool_calls
                if call.state == "complete" and call.arguments != whole[call.name]
            ]
            require(not broken, f"a cut call is reported as complete: {broken}")


@wire_check("stream", look=f"{_STREAM}: errors")
def errors_in_streams_are_events(bench: WireBench) -> None:
    """An error in a stream becomes a `RunError` of its class, after the earlier events, with the
    partial message."""
    begun = [
        event for event in make_stream_events(ANSWER) if not isinstance(event, MessageFinished)
    ][:12]
    events = bench.decode([bench.encode([*begun, RunError(OverloadedError("No capacity."))])])
    last = events[-1] if events else None
    require(isinstance(last, RunError), f"a stream that ends with an error ends with {last!r}")
    error = cast("RunError", last).error
    require(
        isinstance(error, OverloadedError),
        f"an OverloadedError in a stream comes back as {error!r}",
    )
    require("No capacity." in error.message, f"the error's message is lost: {error.message!r}")
    messages = fold(events)
    require(messages and messages[0].content, "what came before the error is lost")
    require_equal(
        error.partial and error.partial.content, messages[0].content, "`partial` of the error"
    )


def _interleave_parts(events: list[Event]) -> list[Event]:
    """Returns the events of a message with all parts open at once: first the starts, then one delta
    of each part in turn, then the ends."""
    starts: list[Event] = []
    ends: list[Event] = []
    deltas_by_part: dict[int, list[PartDelta]] = {}
    for event in events:
        if isinstance(event, PartDelta):
            deltas_by_part.setdefault(event.index, []).append(event)
        elif isinstance(event, MessageStarted | PartStarted):
            starts.append(event)
        else:
            ends.append(event)
    rounds = zip_longest(*deltas_by_part.values())
    deltas = [delta for deltas in rounds for delta in deltas if delta is not None]
    return [*starts, *deltas, *ends]
