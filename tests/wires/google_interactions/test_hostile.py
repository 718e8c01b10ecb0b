"""The Interactions wire: streams that break off, lie or say what nobody knows, and histories that do
not fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import (
    ContextLengthError,
    DecodeError,
    HistoryError,
    RateLimitError,
    StreamCutError,
)
from dragoman.event import Event, PartFinished, RunError
from dragoman.fold import fold
from dragoman.loss import Loss, Lost
from dragoman.message import (
    FinishReason,
    Message,
    Origin,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.repair import repair
from dragoman.wires import google_interactions as wire

HERE = Origin("google-interactions", "https://generativelanguage.googleapis.com/v1beta", "gemini-3")
CREATED = {"event_type": "interaction.created", "interaction": {"id": "v1_a", "model": "gemini-3"}}
OVER = {
    "event_type": "interaction.completed",
    "interaction": {"id": "v1_a", "status": "completed"},
}


def start(index: Any, **step: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": step}


def delta(index: Any, **fields: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": fields}


def stop(index: Any) -> dict[str, Any]:
    return {"event_type": "step.stop", "index": index}


def read(*events: Any) -> list[Event]:
    decoder = wire.decoder()
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    return [*decoder.feed(data), *decoder.close()]


def content(*events: Any) -> tuple[Any, ...]:
    return fold(read(CREATED, *events, OVER))[0].content


def error_in(events: list[Event]) -> Any:
    assert isinstance(events[-1], RunError), events[-1]
    return events[-1].error


def test_a_stream_that_ends_early_keeps_its_text_and_cuts_its_call():
    error = error_in(
        read(
            CREATED,
            start(0, type="model_output"),
            delta(0, type="text", text="I lo"),
            start(1, type="function_call", id="c", name="look", arguments={}),
            delta(1, type="arguments_delta", arguments='{"at": "ho'),
        )
    )
    assert isinstance(error, StreamCutError)
    text, call = error.partial.content
    assert text == TextPart("I lo")
    assert (call.state, call.raw, call.arguments) == ("cut", '{"at": "ho', {})


def test_a_limit_cuts_the_call_that_is_open():
    ended = {**OVER, "interaction": {"id": "v1_a", "status": "incomplete"}}
    (message,) = fold(
        read(
            CREATED,
            start(0, type="function_call", id="c", name="look", arguments={}),
            delta(0, type="arguments_delta", arguments='{"at'),
            ended,
        )
    )
    assert message.finish_reason is FinishReason.length
    assert message.tool_calls[0].state == "cut"


def test_what_nobody_knows_is_passed_over_or_kept():
    (kept, text, block) = content(
        {"event_type": "interaction.dreamt", "index": 0, "dream": {"x": 1}},
        start(0, type="dream", depth=1),
        delta(0, type="dream_delta", depth=2, of=["sheep"]),
        delta(0, type="dream_delta", of=["wires"]),
        stop(0),
        start(1, type="model_output"),
        delta(1, type="text", text="Hi", mood="calm"),
        delta(1, type="hologram", data="x"),
        stop(1),
    )
    step = {"type": "dream", "depth": 2, "of": ["sheep", "wires"]}
    assert kept == ProviderPart("dream", {"google_interactions": step})
    assert text == TextPart("Hi", {"google_interactions": {"mood": "calm"}})
    written = wire.dump_messages([Message.model(kept, text, block)])["input"]
    blocks = [{"type": "text", "text": "Hi", "mood": "calm"}, {"type": "hologram", "data": "x"}]
    assert written == [step, {"type": "model_output", "content": blocks}]


def test_a_step_that_never_began_is_taken_for_what_its_delta_says():
    thought, text = content(
        delta(0, type="thought_signature", signature="s"), delta(1, type="text", text="Hi")
    )
    assert thought == ThinkingPart("", {"google_interactions": {"signature": "s"}})
    assert text == TextPart("Hi")


@pytest.mark.parametrize(
    "events",
    [
        [delta(0, type="arguments_delta", arguments="{}")],
        [start(0, type="thought"), start(0, type="thought")],
        [start(0, type="new"), delta(0, type="arguments_delta", arguments="{}")],
        [start(0, type="model_output"), delta(0, type="text", text=5)],
        [start(0, type="thought"), delta(0, type="thought_summary", content={"type": "text", "text": 5})],
        [{"event_type": "step.start", "index": 0, "step": "thought"}],
        [{"event_type": "step.delta", "index": 0, "delta": []}],
        [{"event_type": "interaction.completed", "interaction": None}],
        [{"event_type": 5}],
        [{"hello": "world"}],
        [{**OVER, "interaction": {"status": "completed", "steps": {"type": "thought"}}}],
        [{**OVER, "interaction": {"status": "completed", "steps": ["thought"]}}],
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error_and_no_crash(events: list[Any]):
    assert isinstance(error_in(read(CREATED, *events)), DecodeError)


def test_errors_are_told_in_a_stream_and_by_a_status():
    words = {"code": "resource_exhausted", "message": "Slow down."}
    told = error_in(read(CREATED, {"event_type": "error", "error": words}))
    assert isinstance(told, RateLimitError)
    failed = {"id": "v1_a", "status": "failed", "errors": [words], "usage": {"total_tokens": 3}}
    ended = read(CREATED, {"event_type": "interaction.completed", "interaction": failed})
    assert isinstance(error_in(ended), RateLimitError)
    assert error_in(ended).partial.usage.total_tokens == 3
    assert isinstance(error_in(wire.load_response(failed)), RateLimitError)
    assert isinstance(error_in(wire.load_response({"error": words})), RateLimitError)
    long = {"code": "invalid_request", "message": "The input token count exceeds the maximum"}
    refused = wire.load_error(400, {}, json.dumps({"error": long}).encode())
    assert isinstance(refused, ContextLengthError)
    assert isinstance(wire.load_error(400, {}, json.dumps(wire.dump_error(refused).body).encode()), ContextLengthError)  # fmt: skip


def test_an_answer_in_the_background_is_not_over():
    (message,) = fold(wire.load_response({"id": "v1_a", "status": "in_progress", "model": "m"}))
    assert message.finish_reason is FinishReason.unspecified
    assert message.content == ()
    assert wire.dump_response(wire.load_response({"id": "v1_a", "status": "queued"}))["status"] == "queued"  # fmt: skip


def test_a_signature_goes_to_whom_it_is_from_and_to_nobody_else():
    thought = ThinkingPart("Secret", {"google_interactions": {"signature": "s"}})
    call = ToolCallPart("c", "f", native={"google_interactions": {"signature": "t"}})
    searched = ToolCallPart("s", "google_search", run_by="provider", native={"google_interactions": {"signature": "u"}})  # fmt: skip
    answer = Message.model(thought, searched, "So.", call)
    history = [Message.user("?"), answer, Message.user(ToolResultPart("c", "f", "x"))]

    def sent(origin: Origin | None) -> tuple[list[Any], list[Loss]]:
        losses: list[Loss] = []
        asked, said, *rest = history
        messages = [asked, said.replace(origin=origin), *rest]
        return wire.dump_messages(messages, target=HERE, losses=losses)["input"], losses

    steps, losses = sent(HERE)
    assert [step.get("signature") for step in steps] == [None, "s", "u", None, "t", None]
    assert not losses
    for origin in (
        Origin("google", HERE.endpoint, "gemini-3"),
        Origin("google-interactions", "https://elsewhere.test", "gemini-3"),
        None,
    ):
        steps, losses = sent(origin)
        kinds = [step["type"] for step in steps]
        assert kinds == ["user_input", "model_output", "function_call", "function_result"]
        assert "signature" not in json.dumps(steps) and "Secret" not in json.dumps(steps)
        assert [loss.what for loss in losses] == [Lost.thinking, Lost.tool_call]


def test_a_call_without_a_result_gets_one_before_it_is_sent():
    history = [Message.user("?"), Message.model(ToolCallPart("c", "f")), Message.user("So?")]
    steps = wire.dump_messages(repair(history), target=HERE)["input"]
    kinds = [step["type"] for step in steps]
    assert kinds == ["user_input", "function_call", "function_result", "user_input"]
    assert steps[2]["call_id"] == steps[1]["id"]
    # A result whose call is nowhere is read, and repair drops it before it is sent.
    orphan = wire.load_messages({"input": [{"type": "function_result", "call_id": "z", "result": "x"}]})  # fmt: skip
    assert orphan[0].content == (ToolResultPart("z", "", "x", native=orphan[0].content[0].native),)
    assert not repair(orphan)


@pytest.mark.parametrize(
    ("given_", "field"),
    [
        (5, "input"),
        ({"type": "user_input"}, "input"),
        ([5], "input[0]"),
        ([{"type": 5}], "input[0].type"),
        ([{"type": "user_input", "content": ["Hi."]}], "input[0].type"),
    ],
)
def test_what_is_no_conversation_says_where(given_: Any, field: str):
    with pytest.raises(HistoryError) as caught:
        wire.load_messages({"input": given_})
    assert caught.value.field == field
    with pytest.raises(HistoryError):
        wire.load_messages([given_])


def test_one_step_that_cannot_be_read_costs_itself_alone():
    deep: Any = []
    for _ in range(2000):
        deep = [deep]
    problems: list[Any] = []
    steps = [
        {"type": "user_input", "content": [{"type": "text", "text": "Hi."}]},
        {"type": "user_input", "content": 5},
        {"type": "thought", "summary": deep},
    ]
    (message,) = wire.load_messages({"input": steps}, problems=problems)
    assert message.text == "Hi."
    assert [problem.index for problem in problems] == [1, 2]


@given(st.lists(st.sampled_from([
    CREATED, OVER, stop(0), stop(1), start(0, type="thought"), start(1, type="model_output"),
    start(1, type="function_call", id="c", name="f", arguments={"a": 1}), start(0, type="google_search_call", id="s"),
    delta(0, type="text", text="a"), delta(1, type="text", text="b"), delta(1, type="text_annotation_delta", annotations=[{}]),
    delta(1, type="arguments_delta", arguments="{}"), delta(0, type="thought_summary", content={"type": "text", "text": "c"}),
    delta(1, type="image", data="eA==", mime_type="image/png"), {"event_type": "error", "error": {"message": "x"}},
]), max_size=9))  # fmt: skip
def test_events_in_any_order_are_read_the_same_however_they_are_cut(events: list[Any]):
    data = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    whole = read(*events)
    decoder = wire.decoder()
    pieces = [decoder.feed(data[at : at + 5]) for at in range(0, len(data), 5)]
    assert [event for piece in [*pieces, decoder.close()] for event in piece if not isinstance(event, RunError)] == [event for event in whole if not isinstance(event, RunError)]  # fmt: skip
    started = [event for event in whole if type(event).__name__ == "PartStarted"]
    assert len(started) == len([event for event in whole if isinstance(event, PartFinished)])
