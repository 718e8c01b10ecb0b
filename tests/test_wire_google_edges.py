"""The google wire at the edges: models named twice, references without end, calls of others."""

from __future__ import annotations

import pytest

from dragoman.message import Message, ToolCallPart, ToolResultPart
from dragoman.wires import google as wire
from dragoman.wires.google.schema import lower

CONTENTS = [{"role": "user", "parts": [{"text": "hi"}]}]


@pytest.mark.parametrize(
    ("named", "path", "model"),
    [
        ("models/a", "/v1beta/models/a:generateContent", "a"),
        ("models/b", "/v1beta/models/a:generateContent", "a"),
        ("models/a", "", "a"),
    ],
)
def test_a_model_that_the_body_names_goes_back_as_it_was(named: str, path: str, model: str) -> None:
    """The path's wins: it is the one that answers."""
    body = {"model": named, "contents": CONTENTS}
    request = wire.load_request(body, path=path)
    assert request.model == model
    assert wire.dump_request(request) == body


@pytest.mark.parametrize(("references", "last"), [(1000, "STRING"), (1001, "OBJECT")])
def test_references_are_replaced_up_to_a_thousand(references: int, last: str) -> None:
    properties = {f"p{number}": {"$ref": "#/$defs/A"} for number in range(references)}
    lowered = lower({"type": "object", "properties": properties, "$defs": {"A": {"type": "string"}}})
    types = [each["type"] for each in lowered["properties"].values()]
    assert types == ["STRING"] * (references - 1) + [last]


def test_a_result_has_the_name_of_the_call_that_was_ours_where_a_provider_had_the_same_id() -> None:
    history = [
        Message.user("hi"),
        Message.model(ToolCallPart("c1", "look", {"x": 1})),
        Message.user(ToolResultPart("c1", "", "7")),
        Message.model(ToolCallPart("c1", "web_search", {}, run_by="provider"), "done"),
    ]
    assert wire.dump_messages(history)["contents"] == [
        {"role": "user", "parts": [{"text": "hi"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {"x": 1}, "id": "c1"}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "look", "id": "c1", "response": {"result": "7"}}}]},
        {"role": "model", "parts": [{"text": "done"}]},
    ]
