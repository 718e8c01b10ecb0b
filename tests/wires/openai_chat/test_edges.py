"""The openai_chat wire at the edges of its tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.event import Event, MessageFinished
from dragoman.fold import unfold
from dragoman.loss import Loss
from dragoman.message import FinishReason, Message, Origin, ToolCallPart, ToolResultPart
from dragoman.wires import openai_chat as wire
from dragoman.wires.openai_chat.quirks import Quirks

GROQ = Origin("groq", None, "compound")


@pytest.mark.parametrize("taken", [True, False])
def test_what_a_vendor_ran_goes_back_to_one_that_takes_it(taken: bool) -> None:
    call = ToolCallPart("c1", "python", {"code": "1"}, run_by="provider")
    result = ToolResultPart("c1", "python", "1", run_by="provider")
    message = Message.model(call, result, "done").replace(origin=GROQ)
    losses: list[Loss] = []
    messages = wire.dump_messages(
        [message], target=GROQ, quirks=Quirks(executed_tools=taken), losses=losses
    )
    executed = [{"index": 0, "type": "python", "arguments": '{"code":"1"}', "output": "1"}]
    plain: dict[str, Any] = {"role": "assistant", "content": "done"}
    assert messages == [{**plain, "executed_tools": executed} if taken else plain]
    assert (
        [loss.why for loss in losses] == []
        if taken
        else ["the vendor takes no record of tools that it ran"] * 2
    )


def test_reasoning_that_is_told_twice_is_read_once_and_goes_back_as_it_was() -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "reasoning_effort": "low",
        "reasoning": {"effort": "high"},
    }
    request = wire.load_request(body)
    assert request.settings.reasoning == "low"
    assert wire.dump_request(request) == body


def streamed(*choices: tuple[dict[str, Any], str | None]) -> list[Event]:
    chunks = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in choices
    ]
    decoder = wire.decoder()
    return (
        decoder.feed(b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks))
        + decoder.close()
    )


@pytest.mark.parametrize(
    ("reasons", "reason"),
    [
        (["stop", "tool_calls"], FinishReason.tool_calls),
        (["", "length"], FinishReason.length),
        (["length", ""], FinishReason.length),
    ],
)
def test_of_several_reasons_to_stop_the_last_counts(
    reasons: list[str], reason: FinishReason
) -> None:
    finish = streamed(({"content": "a"}, None), *[({}, each) for each in reasons])[-1]
    assert isinstance(finish, MessageFinished)
    assert finish.finish_reason is reason


def test_stored_entries_that_are_no_objects_go_out_as_they_are() -> None:
    message = Message.model("a").replace(
        native={"openai_chat": {"annotations": ["x", {"type": "t"}]}}
    )
    response = wire.dump_response(unfold([message]))
    assert response["choices"][0]["message"]["annotations"] == ["x", {"type": "t"}]


def test_an_answer_of_which_nothing_was_told_is_a_message_all_the_same() -> None:
    [choice] = wire.dump_response([])["choices"]
    assert choice["message"] == {"role": "assistant", "content": None, "refusal": None}
