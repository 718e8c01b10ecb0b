"""Checks of what a wire sends of an agent's run: what its client may see (`runs.visible`), as one
answer."""

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
from dragoman.testing.check import demand, same
from dragoman.testing.samples import TEXT, USAGE, comparable
from dragoman.testing.wire.bench import WireBench, events_of, json_of, wire_check

__all__ = ["retracted_answers_leave_nothing", "runs_are_one_answer"]

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
"""A run of an agent within a tool."""


@wire_check(
    "stream", "response", look="encoder, dump_response: several messages, calls by who runs them"
)
def runs_are_one_answer(bench: WireBench) -> None:
    """A run of several messages, of which `runs.visible` makes what a client may see, is one
    answer, the same streamed and whole: all texts with a line's end between them, calls that the
    client runs and none that the agent ran, nothing of an agent within a tool, usage once, and the
    last finish reason."""
    run = [
        *[RunStarted("kit-run"), StepStarted("one"), *_begin(_VOID)[:1], _AGAIN],
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
        loaded = bench.message_of(read(bench, visible(run)), f"a {way} run")
        wanted = bench.message_of(read(bench, events_of(_VISIBLE)), f"a {way} answer")
        same(
            loaded.text.replace("\n", ""),
            _VISIBLE.text.replace("\n", ""),
            f"the text of a {way} run",
        )
        calls = [(call.name, call.arguments) for call in loaded.tool_calls]
        same(calls, [(_CLIENTS.name, _CLIENTS.arguments)], f"the calls in a {way} run")
        same(comparable([loaded]), comparable([wanted]), f"what a {way} run says")
        same(
            (loaded.finish_reason, loaded.usage),
            (wanted.finish_reason, wanted.usage),
            f"the end of a {way} run",
        )


@wire_check(
    "stream", "response", look="encoder, dump_response: MessageDropped, and an error after text"
)
def retracted_answers_leave_nothing(bench: WireBench) -> None:
    """A retracted message is not in a whole response. Of a stream nothing can be taken back:
    `runs.visible` ends it with an error instead, which is told behind the text that went out, and
    what the model said anew is not sent."""
    events = [*_begin(_VOID), _AGAIN, *unfold([_SECOND])]
    loaded = bench.message_of(_whole(bench, events), "a response with a retracted message")
    wanted = bench.message_of(_whole(bench, events_of(_SECOND)), "a response")
    same(comparable([loaded]), comparable([wanted]), "a response with a retracted message")
    streamed = _read_stream(bench, visible(events))
    last = streamed[-1] if streamed else None
    demand(isinstance(last, RunError), f"a stream that cannot go on ends with {last!r}")
    texts = [message.text for message in fold(streamed)]
    demand(
        all(_VOID.text.startswith(text) for text in texts),
        f"what went out before the error is {texts}",
    )
    demand(texts and texts[0], "what came before the error is lost")


def _begin(message: Message) -> list[Event]:
    """Returns the events of a message that has no end."""
    return unfold([message])[:-1]


def _read_stream(bench: WireBench, events: Iterable[Event]) -> list[Event]:
    return bench.decode([bench.stream(events)])


def _whole(bench: WireBench, events: Iterable[Event]) -> list[Event]:
    body = json_of(bench.wire.dump_response(events, id="r1", model="m"), "dump_response")
    return bench.wire.load_response(body)


_WAYS: dict[str, Callable[[WireBench, Iterable[Event]], list[Event]]] = {
    "streamed": _read_stream,
    "whole": _whole,
}
