"""Calls and results of Ollama's wire (D-132, decisions 12 and 27)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.message import Message, ToolResultPart
from dragoman.wires import ollama as wire
from support.ollama import call


def test_d132_a_call_without_an_id_gets_one_and_goes_back_without():
    payload = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [call("f"), call("g"), call("f", {"n": 2})],
        },
        {"role": "tool", "content": "2", "tool_name": "g"},
        {"role": "tool", "content": "1", "tool_name": "f"},
        {"role": "tool", "content": "3", "tool_name": "f"},
    ]
    model, results = wire.load_messages(payload)
    assert [c.id for c in model.tool_calls] == ["call-0", "call-1", "call-2"]
    assert [(r.id, r.name) for r in results.tool_results] == [
        ("call-1", "g"),
        ("call-0", "f"),
        ("call-2", "f"),
    ]
    assert wire.dump_messages([model, results]) == payload
    answer = Message.user(ToolResultPart("call-0", "f", "1"))
    assert wire.dump_messages([model, answer])[1] == payload[2]


def test_decision_12_an_id_that_the_provider_gave_stays_and_pairs():
    payload = [
        {"role": "assistant", "content": "", "tool_calls": [call(id="c9"), call(id="c8")]},
        {"role": "tool", "content": "8", "tool_name": "f", "tool_call_id": "c8"},
    ]
    model, results = wire.load_messages(payload)
    assert results.tool_results[0].id == "c8" and [c.id for c in model.tool_calls] == ["c9", "c8"]
    assert wire.dump_messages([model, results]) == payload


def test_an_edited_call_is_sent_as_edited():
    entry = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "f", "arguments": '{"a": 1}'}}],
    }
    (message,) = wire.load_messages([entry])
    edited = msgspec.structs.replace(message.tool_calls[0], arguments={"a": 2})
    (dumped,) = wire.dump_messages([message.replace(content=(edited,))])
    assert dumped["tool_calls"][0]["function"]["arguments"] == {"a": 2}


@pytest.mark.parametrize(
    "arguments", [{}, *({"arguments": given} for given in ("absent", "", None, "{}", {}, "[]", 5))]
)
def test_decision_27_calls_come_back_as_they_were_whatever_they_hold(arguments: dict[str, Any]):
    message = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"function": {"name": "f", **arguments}}],
    }
    messages = wire.load_messages([message])
    assert wire.dump_messages(messages) == [message]
    (part,) = messages[0].tool_calls
    edited = messages[0].replace(
        content=(msgspec.structs.replace(part, arguments={"x": 1}, state="complete", raw=None),)
    )
    assert wire.dump_messages([edited])[0]["tool_calls"][0]["function"] == {
        "name": "f",
        "arguments": {"x": 1},
    }


def test_results_find_their_calls_in_any_order_and_each_call_once():
    calls = [{"id": f"c{n}", "function": {"name": f"f{n % 2}", "arguments": {}}} for n in range(4)]
    results = [{"role": "tool", "content": "x", **named} for named in (
        {"tool_call_id": "c2"}, {"tool_name": "f0"}, {"tool_name": "f0"}, {}, {"tool_name": "f1"}, {"tool_call_id": "c3"},
    )]  # fmt: skip
    _, answered = wire.load_messages(
        [{"role": "assistant", "content": "", "tool_calls": calls}, *results]
    )
    assert [part.id for part in answered.tool_results] == ["c2", "c0", "call-0", "c1", "c3", "c3"]
