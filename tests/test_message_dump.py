"""A whole history as JSON and back, by functions and by pydantic."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from pydantic import BaseModel, TypeAdapter, ValidationError

from dragoman import Message, dump_messages, load_messages
from dragoman.errors import HistoryError
from support import strategies as some

HISTORIES = TypeAdapter(list[Message])


@given(some.histories)
def test_a_history_is_read_as_it_was(history: list[Message]):
    saved = dump_messages(history)
    assert load_messages(saved) == load_messages(saved.decode()) == history
    assert json.loads(saved) == [json.loads(message.to_json()) for message in history]
    assert HISTORIES.validate_json(saved) == HISTORIES.validate_python(history) == history
    assert json.loads(HISTORIES.dump_json(history)) == json.loads(saved)
    assert HISTORIES.dump_python(history) == history
    assert HISTORIES.validate_python(HISTORIES.dump_python(history, mode="json")) == history


def test_versions_may_be_mixed():
    assert [
        m.text
        for m in load_messages(
            '[{"v":1,"role":"user","content":[{"type":"text","text":"a"}]},{"v":2,"role":"model"}]'
        )
    ] == ["a", ""]


@pytest.mark.parametrize(
    "bad", ["", "{}", "[1]", '[{"v":2,"role":"user"},{"v":9}]', b"\xff", "[" * 5000, '"\ud800"']
)
def test_what_is_none_says_where(bad: str | bytes):
    with pytest.raises(
        HistoryError, match=r"messages\[[01]\]: not a stored message|not a saved history"
    ):
        load_messages(bad)


def test_what_json_cannot_hold_says_where():
    with pytest.raises(HistoryError, match=r"messages\[1\]: a message cannot be stored"):
        dump_messages([Message.user("a"), Message.user("\ud800")])


def test_a_message_is_a_field_of_a_pydantic_model():
    class Saved(BaseModel):
        messages: list[Message] = []

    saved = Saved(messages=[Message.user("a")])
    assert Saved.model_validate_json(saved.model_dump_json()) == saved
    assert Saved.model_json_schema()["properties"]["messages"]["items"] == {
        "additionalProperties": True,
        "type": "object",
    }
    for bad in ({"v": 9, "role": "user"}, 1, {"v": 2, "role": object()}):
        with pytest.raises(ValidationError, match=r"messages\.0"):
            Saved.model_validate({"messages": [bad]})
    assert msgspec.json.decode(saved.model_dump_json())["messages"][0]["v"] == 2
