"""What holds at the edges of several wires: an encoder that was closed, ids of other things than
calls."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import Message, unfold, wires
from dragoman.errors import ProviderError
from dragoman.event import RunFinished


@pytest.mark.parametrize("name", wires.names("model"))
def test_an_answer_ends_once(name: str) -> None:
    encoder = wires.get(name).encoder()
    events = unfold([Message.model("hi").replace(id="m")])
    assert b"".join(map(encoder.feed, events)) + encoder.close()
    assert encoder.close() == b""
    assert b"".join(map(encoder.feed, unfold([Message.model("more").replace(id="n")]))) == b""


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
@pytest.mark.parametrize(
    ("told", "again"),
    [
        ({}, {}),
        ({"tool_call_id": None}, {"tool_call_id": None}),
        ({"tool_call_id": "abcdefghi", "id": "x"}, {"tool_call_id": "abcdefghi", "id": "x"}),
        ({"tool_call_id": "abcdefghi", "id": None}, {"tool_call_id": "abcdefghi"}),
        ({"id": "x"}, {}),
    ],
)
def test_an_id_of_a_tool_messages_own_is_not_the_calls(
    name: str, told: dict[str, Any], again: dict[str, Any]
) -> None:
    call = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = {"role": "assistant", "content": "", "tool_calls": [call]}
    messages = wires.get(name).load_messages([asked, {"role": "tool", "content": "1", **told}])
    assert wires.get(name).dump_messages(messages) == [
        asked,
        {"role": "tool", "content": "1", **again},
    ]


@pytest.mark.parametrize("name", ["google", "mistral", "openai_chat", "openai_responses"])
def test_a_record_of_differences_is_not_changed(name: str) -> None:
    quirks = wires.get(name).Quirks()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        quirks.reads = ("another",)


@pytest.mark.parametrize("name", wires.names("model"))
def test_the_end_of_the_run_is_the_end_of_the_answer(name: str) -> None:
    events = unfold([Message.model("hi").replace(id="m")])
    one, other = wires.get(name).encoder(), wires.get(name).encoder()
    data = b"".join(map(one.feed, [*events, RunFinished("r")]))
    assert data + one.close() == b"".join(map(other.feed, events)) + other.close()


@pytest.mark.parametrize("name", ["openai_chat", "mistral"])
@pytest.mark.parametrize(
    ("told", "status"), [(None, 502), (200, 502), (399, 502), (400, 400), (418, 418)]
)
def test_an_errors_own_status_is_told_where_it_is_one_of_an_error(
    name: str, told: int | None, status: int
) -> None:
    error = ProviderError("x", status=told)
    assert wires.get(name).dump_error(error)[0] == status
