"""The UI message stream, held against the library that reads it: what a client makes of a run's
chunks is the run's messages."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import wires
from dragoman.event import Custom, Event, MessageDropped, RunFinished, RunStarted, StateSnapshot
from dragoman.fold import unfold
from dragoman.interrupt import Interrupt
from dragoman.message import (
    FinishReason,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.request import RunRequest
from support.ai_sdk import AiSdk

pytestmark = pytest.mark.service

WIRE: Any = wires.protocol("ai_sdk")
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """The messages of a run: rounds of calls with results, and a last word."""
    made: list[Message] = []
    count = 0
    rounds = draw(st.integers(0, 3))
    for number in range(rounds + 1):
        content: list[Any] = []
        if draw(st.booleans()):
            signature = {"anthropic": {"signature": draw(texts)}} if draw(st.booleans()) else None
            content.append(ThinkingPart(draw(texts), signature))
        if draw(st.booleans()) or (number == rounds and not content):
            content.append(TextPart(draw(texts)))
        results: list[ToolResultPart] = []
        for _ in range(draw(st.integers(1, 3)) if number < rounds else 0):
            count += 1
            call = ToolCallPart(
                f"c{count}",
                draw(st.sampled_from(["add", "find_it"])),
                draw(st.dictionaries(texts, values, max_size=2)),
            )
            content.append(call)
            error = draw(st.booleans())
            result = {"error": draw(texts)} if error else draw(values)
            results.append(ToolResultPart(call.id, call.name, result, is_error=error))
        last = number == rounds
        usage = (
            Usage(input_tokens=1, output_tokens=2, total_tokens=3) if draw(st.booleans()) else None
        )
        reason = FinishReason.stop if last else FinishReason.tool_calls
        made.append(
            Message.model(*content).replace(
                id=f"m{number}", turn="m0", finish_reason=reason, usage=usage
            )
        )
        if results:
            made.append(Message.user(*results).replace(id=f"r{number}", turn="m0"))
    return made


def chunks_of(events: Sequence[Event], **envelope: Any) -> list[dict[str, Any]]:
    encoder = WIRE.encoder(**envelope)
    data = b"".join([*[encoder.feed(event) for event in events], encoder.close()])
    frames = data.decode().split("\n\n")
    assert frames[-2:] == ["data: [DONE]", ""]
    return [json.loads(frame.removeprefix("data: ")) for frame in frames[:-2]]


def run_of(messages: Sequence[Message], **end: Any) -> list[Event]:
    return [RunStarted("r"), *unfold(messages), RunFinished("r", **end)]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(turns())
def test_what_a_client_shows_is_the_run(library: AiSdk, messages: list[Message]) -> None:
    shown = library("show_stream", version=7, chunks=chunks_of(run_of(messages)))
    assert shown["invalid"] == []
    assert WIRE.load_messages([shown["message"]]) == messages


def test_a_step_that_is_taken_back_is_gone(library: AiSdk) -> None:
    first = Message.model("Let me.", ToolCallPart("c1", "add", {})).replace(id="m1", turn="m1")
    result = Message.user(ToolResultPart("c1", "add", 3)).replace(id="r1", turn="m1")
    again = Message.model("Half an answ").replace(id="m2", turn="m1")
    whole = Message.model("An answer.").replace(id="m3", turn="m1", finish_reason=FinishReason.stop)
    retracted = [*unfold([again])[:-1], MessageDropped("m2", "once more")]
    events = [
        RunStarted("r"),
        *unfold([first, result]),
        *retracted,
        *unfold([whole]),
        RunFinished("r"),
    ]
    shown = library("show_stream", version=7, chunks=chunks_of(events))
    assert WIRE.load_messages([shown["message"]]) == [first, result, whole]
    alone = [RunStarted("r"), *retracted, *unfold([whole]), RunFinished("r")]
    shown = library("show_stream", version=7, chunks=chunks_of(alone))
    assert [message.text for message in WIRE.load_messages([shown["message"]])] == ["An answer."]


def test_an_approval_is_asked_and_its_call_goes_on_in_the_same_message(library: AiSdk) -> None:
    call = ToolCallPart("c1", "pay", {"sum": 3})
    asks = Message.model("Shall I?", call).replace(
        id="m1", turn="m1", finish_reason=FinishReason.tool_calls
    )
    interrupt = Interrupt("c1", "approval", call=call, message="3 for tea", signature="sealed")
    waits = run_of([asks], outcome="pending", pending=(interrupt,))
    shown = library("show_stream", version=7, chunks=chunks_of(waits))
    part = shown["message"]["parts"][-1]
    assert part["state"] == "approval-requested"
    assert part["approval"] == {"id": "c1", "requestReason": "3 for tea", "signature": "sealed"}
    assert shown["invalid"] == []
    # the client answers
    part |= {"state": "approval-responded", "approval": {**part["approval"], "approved": True}}
    request = WIRE.load_run(
        {"id": "chat", "messages": [shown["message"]], "trigger": "submit-message"}
    )
    [resume] = request.resume
    assert (resume.interrupt_id, resume.payload, resume.signature) == (
        "c1",
        {"approved": True},
        "sealed",
    )
    result = Message.user(ToolResultPart("c1", "pay", "paid")).replace(id="r1", turn="m1")
    done = Message.model("Done.").replace(id="m2", turn="m1", finish_reason=FinishReason.stop)
    chunks = chunks_of(run_of([result, done]), request=request)
    after = library("show_stream", version=7, chunks=chunks, message=shown["message"])
    assert after["message"]["id"] == "m1"
    told = [
        (message.text, [each.result for each in message.tool_results])
        for message in WIRE.load_messages([after["message"]])
    ]
    assert told == [("Shall I?", []), ("", ["paid"]), ("Done.", [])]


def test_what_is_no_part_of_a_message_is_not_kept_in_it(library: AiSdk) -> None:
    message = Message.model("Yes.").replace(id="m1", turn="m1", finish_reason=FinishReason.stop)
    beside = [
        StateSnapshot({"a": 1}),
        Custom("tool_progress", {"done": 1}),
        Custom("data-chart", {"x": [1]}),
    ]
    chunks = chunks_of([RunStarted("r"), *beside, *unfold([message]), RunFinished("r")])
    shown = library("show_stream", version=7, chunks=chunks)
    assert shown["invalid"] == []
    assert [part["type"] for part in shown["message"]["parts"]] == ["data-chart", "text"]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_older_clients_read_it_too(library: AiSdk, version: int) -> None:
    call = ToolCallPart("c1", "add", {"a": 1})
    messages = [
        Message.model(ThinkingPart("Hm."), "Let me.", call).replace(id="m1", turn="m1"),
        Message.user(ToolResultPart("c1", "add", 3)).replace(id="r1", turn="m1"),
        Message.model("Three.").replace(id="m2", turn="m1", finish_reason=FinishReason.stop),
    ]
    shown = library("show_stream", version=version, chunks=chunks_of(run_of(messages)))
    assert WIRE.load_messages([shown["message"]]) == messages


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_message_that_is_read_again_is_what_it_was(library: AiSdk, version: int) -> None:
    """A run that goes on with a message: to a client that has none of it, in each version that has
    these streams."""
    call = ToolCallPart("c1", "pay", {"sum": 3})
    asks = Message.model("Shall I?", call).replace(
        id="m1", turn="m1", finish_reason=FinishReason.tool_calls
    )
    result = Message.user(ToolResultPart("c1", "pay", "paid")).replace(id="r1", turn="m1")
    done = Message.model("Done.").replace(id="m2", turn="m1", finish_reason=FinishReason.stop)
    question = Message.user("Pay.").replace(id="u1")
    request = RunRequest((question, asks), thread_id="t")
    envelope = WIRE.envelope_again(request, id="r", now=datetime.now(UTC))
    again = library(
        "show_stream", version=version, chunks=chunks_of(run_of([result, done]), **envelope)
    )
    whole = library("show_stream", version=version, chunks=chunks_of(run_of([asks, result, done])))
    assert again["message"]["parts"] == whole["message"]["parts"]
    assert (again["message"]["id"], again["invalid"]) == ("m1", [])


@pytest.mark.parametrize(("version", "status"), [(5, "error"), (6, "error"), (7, "ready")])
def test_what_a_step_taken_back_is_to_each_version(
    library: AiSdk, version: int, status: str
) -> None:
    """Nothing of a request says which version asks, so that all are sent the same."""
    half, whole = (
        Message.model(text).replace(id=id_, turn="m1")
        for text, id_ in (("Par", "m1"), ("Paris.", "m2"))
    )
    events = [
        RunStarted("r"),
        *unfold([half])[:-1],
        MessageDropped("m1", "once more"),
        *unfold([whole]),
        RunFinished("r"),
    ]
    encoder = WIRE.encoder()
    data = b"".join([*[encoder.feed(event) for event in events], encoder.close()])
    found = library("chat", version=version, data=data.decode())
    assert found["asked"] == {
        "headers": {"content-type": "application/json"},
        "fields": ["id", "messages", "trigger"],
    }
    assert found["status"] == status
    texts = [part["text"] for part in found["message"]["parts"] if part["type"] == "text"]
    assert texts == (["Paris."] if status == "ready" else ["Par"])
