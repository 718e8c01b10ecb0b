"""Checks of what a wire sends of an agent's run: the events that its client may see
(`runs.visible`), as one answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from dragoman.errors import ToolError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from dragoman.fold import fold, unfold
from dragoman.interrupt import Interrupt
from dragoman.message import FinishReason, Message, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.runs import visible
from dragoman.testing.check import require, require_equal
from dragoman.testing.samples import TEXT, USAGE, simplify_messages
from dragoman.testing.wire.bench import WireBench, make_stream_events, round_trip_json, wire_check

__all__ = ["retractions_leave_nothing", "runs_are_one_answer"]

_MINE = ToolCallPart("call_mine", "get_weather", {"city": "Oslo"})
_CLIENTS = ToolCallPart("call_client", "get_time", {"zone": ["Åbo", 1]}, run_by="client")
_FIRST = Message.model(ThinkingPart("First the weather."), "I will look.", _MINE).replace(
    id="kit-first", finish_reason=FinishReason.tool_calls, usage=USAGE
)
_RESULTS = Message.user(ToolResultPart(_MINE.id, _MINE.name, "rain of the kit")).replace(
    id="kit-results"
)
_SECOND = Message.model(TEXT, _CLIENTS).replace(
    id="kit-second", finish_reason=FinishReason.tool_calls, usage=USAGE
)
_VISIBLE = Message.model(
    ThinkingPart("First the weather."), "I will look.", f"\n{TEXT}", _CLIENTS
).replace(finish_reason=FinishReason.tool_calls, usage=USAGE + USAGE)
_VOID = Message.model("Half an answer of the kit.").replace(id="kit-void")
_AGAIN = MessageDropped("kit-void", "the connection broke")
_SAID = Message.model("What an agent in a tool of the kit said.", _MINE, _CLIENTS).replace(
    id="kit-said", usage=USAGE
)
_INNER: list[Event] = [
    RunStarted("kit-inner", parent_run_id="kit-run"),
    StepStarted("one", run_id="kit-inner"),
    *[
        msgspec.structs.replace(event, run_id="kit-inner")
        if isinstance(event, MessageStarted)
        else event
        for event in unfold([_SAID])
    ],
    RunError(ToolError("an error of the kit"), "kit-inner"),
]
"""The events of an agent within a tool."""


@wire_check(
    "stream", "response", look="encoder, dump_response: several messages, calls by who runs them"
)
def runs_are_one_answer(bench: WireBench) -> None:
    """A run of several messages, filtered by `runs.visible`, is one answer, the same streamed and
    whole. It has all texts separated by a line end, only the calls that the client runs, nothing of
    agents within tools, the usage once, and the last finish reason."""
    run = [
        # Retracted before it said anything, so a stream can still continue.
        *[RunStarted("kit-run"), StepStarted("one"), *_start_message(_VOID)[:1], _AGAIN],
        *[
            *unfold([_FIRST]),
            *_INNER,
            *unfold([_RESULTS]),
            StepFinished("one"),
            StepStarted("two"),
            *unfold([_SECOND]),
            StepFinished("two"),
        ],
        RunFinished("kit-run", "pending", USAGE + USAGE, (Interrupt(_CLIENTS.id, call=_CLIENTS),)),
    ]
    for way, read in _WAYS.items():
        loaded = bench.fold_message(read(bench, visible(run)), f"a {way} run")
        wanted = bench.fold_message(read(bench, make_stream_events(_VISIBLE)), f"a {way} answer")
        require_equal(
            # The line end between two texts may be written by the format in its own way.
            loaded.text.replace("\n", ""),
            _VISIBLE.text.replace("\n", ""),
            f"the text of a {way} run",
        )
        calls = [(call.name, call.arguments) for call in loaded.tool_calls]
        require_equal(calls, [(_CLIENTS.name, _CLIENTS.arguments)], f"the calls in a {way} run")
        require_equal(
            simplify_messages([loaded]), simplify_messages([wanted]), f"what a {way} run says"
        )
        require_equal(
            (loaded.finish_reason, loaded.usage),
            (wanted.finish_reason, wanted.usage),
            f"the end of a {way} run",
        )


@wire_check(
    "stream", "response", look="encoder, dump_response: MessageDropped, and an error after text"
)
def retractions_leave_nothing(bench: WireBench) -> None:
    """A message that a run retracts is not in a whole response. A stream cannot take anything back:
    `runs.visible` ends it with an error after the text that was sent, and the new message is not
    sent."""
    events = [*_start_message(_VOID), _AGAIN, *unfold([_SECOND])]
    loaded = bench.fold_message(_read_whole(bench, events), "a response with a retracted message")
    wanted = bench.fold_message(_read_whole(bench, make_stream_events(_SECOND)), "a response")
    require_equal(
        simplify_messages([loaded]),
        simplify_messages([wanted]),
        "a response with a retracted message",
    )
    streamed = _read_stream(bench, visible(events))
    last = streamed[-1] if streamed else None
    require(isinstance(last, RunError), f"a stream that cannot go on ends with {last!r}")
    texts = [message.text for message in fold(streamed)]
    require(
        all(_VOID.text.startswith(text) for text in texts),
        f"what went out before the error is {texts}",
    )
    require(texts and texts[0], "what came before the error is lost")


def _start_message(message: Message) -> list[Event]:
    """Returns the events of a message without its end."""
    return unfold([message])[:-1]


def _read_stream(bench: WireBench, events: Iterable[Event]) -> list[Event]:
    """Returns the events of a stream written and decoded."""
    return bench.decode([bench.encode(events)])


def _read_whole(bench: WireBench, events: Iterable[Event]) -> list[Event]:
    """Returns the events of a whole response written and loaded."""
    body = round_trip_json(bench.wire.dump_response(events, id="r1", model="m"), "dump_response")
    return bench.wire.load_response(body)


_WAYS: dict[str, Callable[[WireBench, Iterable[Event]], list[Event]]] = {
    "streamed": _read_stream,
    "whole": _read_whole,
}
