"""The cohere wire: tools, calls and results."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman.errors import DecodeError
from dragoman.message import Message, ToolResultPart
from dragoman.request import ModelRequest, ServerTool, Settings, ToolSpec
from dragoman.wires import cohere as wire
from dragoman.wires import embeddings


def test_a_single_document_is_its_data_and_may_be_changed():
    payload = {
        "role": "tool",
        "tool_call_id": "1",
        "content": [{"type": "document", "document": {"data": {"a": 1}}}],
    }
    (message,) = wire.load_messages([payload])
    (result,) = message.tool_results
    assert result.result == {"a": 1}
    changed = msgspec.structs.replace(result, result={"a": 2})
    (dumped,) = wire.dump_messages([message.replace(content=(changed,))])
    assert dumped["content"] == [{"type": "document", "document": {"data": {"a": 2}}}]


def test_settings_and_tools_that_the_api_does_not_know_are_losses():
    losses = []
    settings = Settings(tool_choice="f", parallel_tool_calls=True)
    request = ModelRequest("m", tools=(ToolSpec("f"), ServerTool("web_search")), settings=settings)
    body = wire.dump_request(request, losses=losses)
    assert body["tool_choice"] == "REQUIRED"
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
        }
    ]
    assert [(loss.what, loss.which) for loss in losses] == [
        ("tool", "web_search"),
        ("setting", "tool_choice"),
        ("setting", "parallel_tool_calls"),
    ]


def test_half_a_pair_of_surrogates_is_told_as_json():
    (result,) = wire.dump_messages([Message.user(ToolResultPart("a", "f", {"x": "\ud800"}))])
    assert json.loads(result["content"]) == {"x": "\ud800"}
    with pytest.raises(DecodeError):
        own = embeddings("cohere")
        assert own is not None
        own.load_response({"embeddings": {"float": [["\ud800"]]}})


@pytest.mark.parametrize(
    "type_", [{}, {"type": "function"}, {"type": "absent"}, {"type": None}, {"type": "custom"}]
)
@pytest.mark.parametrize(
    "arguments",
    [{}, *({"arguments": given} for given in ("absent", "", None, "{}", " {}", "[]", 5))],
)
def test_decision_27_calls_come_back_as_they_were_whatever_they_hold(
    type_: dict[str, Any], arguments: dict[str, Any]
):
    call = {"id": "c", **type_, "function": {"name": "f", **arguments}}
    message = {"role": "assistant", "tool_calls": [call]}
    messages = wire.load_messages([message])
    assert wire.dump_messages(messages) == [message]
    (part,) = messages[0].tool_calls
    edited = messages[0].replace(
        content=(msgspec.structs.replace(part, arguments={"x": 1}, state="complete", raw=None),)
    )
    assert wire.dump_messages([edited])[0]["tool_calls"][0]["function"] == {
        "name": "f",
        "arguments": '{"x":1}',
    }
