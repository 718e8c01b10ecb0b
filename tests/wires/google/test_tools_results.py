"""Results of tools on Google's wire, and what the provider ran itself: rule D-121, decisions 5 and
22."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.message import DataPart, Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires import google as wire
from support.google import (
    GOOGLE,
    NEWER_GOOGLE,
    OLDER,
    call,
    contents,
    json_values,
    load_parts,
    same_parts,
    same_request,
)
from support.profiles import quirks_of


def result(value, name="f", id_="1", **how):
    (part,) = contents(Message.user(ToolResultPart(id_, name, value, **how)))[0]["parts"]
    return part["functionResponse"]["response"]


def test_d121_a_response_is_an_object():
    assert result('{"a": 1}') == {"a": 1}
    assert result("{}") == {}
    assert result("[1]") == {"result": "[1]"}
    assert result({"a": 1}) == {"a": 1}
    assert result([1]) == {"result": [1]}
    assert result(None) == {"result": None}
    assert result("") == {"result": ""}
    assert result("{broken") == {"result": "{broken"}


def test_decision_5_a_failed_tool_says_error():
    assert result("boom", is_error=True) == {"error": "boom"}
    assert result({"error": "boom"}, is_error=True) == {"error": "boom"}
    assert result({"why": 1}, is_error=True) == {"error": {"why": 1}}
    assert result((DataPart(b"1", "image/png"),), is_error=True) == {"error": ""}
    assert result((DataPart(b"1", "image/png"),)) == {}
    (piece,) = load_parts(
        {"functionResponse": {"name": "f", "id": "1", "response": {"error": "boom"}}}
    )
    assert (piece.result, piece.is_error) == ({"error": "boom"}, True)


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ({"result": "rain"}, "rain"),
        ({"result": 3}, 3),
        ({"result": None}, None),
        ({"result": {"a": 1}}, {"result": {"a": 1}}),
        ({"result": '{"a": 1}'}, {"result": '{"a": 1}'}),
        ({"output": "x"}, {"output": "x"}),
        ({}, {}),
    ],
)
def test_d121_a_response_is_read_so_that_it_is_written_again(response, value):
    (piece,) = same_parts({"functionResponse": {"name": "f", "id": "1", "response": response}})
    assert piece.result == value


def test_d121_consecutive_messages_of_results_are_one_content():
    answers = [Message.user(ToolResultPart(id_, "f", id_)) for id_ in ("1", "2")]
    out = contents(Message.model(call(id_="1"), call(id_="2")), *answers, Message.user("go on"))
    assert [len(content["parts"]) for content in out] == [2, 2, 1]
    recorded = {"contents": contents(Message.model(call()), answers[0]) + contents(answers[1])}
    assert wire.dump_messages(wire.load_messages(recorded)) == recorded


@pytest.mark.parametrize("inner", [
    {"name": "f"},
    {"name": "f", "response": None},
    {"name": "f", "response": {"a": 1}, "scheduling": "SILENT", "willContinue": True},
    {"response": {"a": 1}},
    {"name": "f", "response": {}, "parts": [{"text": "?"}]},
    {"name": "f", "response": {"a": {"$ref": "x"}}, "parts": [{"inlineData": {"mimeType": "a/b", "data": "AAAA", "displayName": "x"}}]},
    {"name": "f", "response": {"result": ""}, "parts": [{"inlineData": {"mimeType": "a/b", "data": "AAAA"}}]},
    {"name": "f", "response": {"error": "x"}, "parts": [{"file_data": {"file_uri": "gs://a", "mime_type": "a/b"}}]},
])  # fmt: skip
def test_every_result_stays_as_it_was(inner):
    same_parts({"functionResponse": inner})


@pytest.mark.parametrize("parts", [[], None, 5, {"a": 1}, "x"])
def test_a_result_whose_media_are_none_is_its_response(parts):
    inner = {"name": "f", "id": "1", "response": {"result": "x"}, "parts": parts}
    (piece,) = same_parts({"functionResponse": inner})
    assert piece.result == "x"


def test_nothing_of_a_result_is_stored_twice():
    media = {"inlineData": {"mimeType": "a/b", "data": "AAAA"}}
    inner = {"name": "f", "id": "1", "response": {"result": "x"}, "parts": [media]}
    assert load_parts({"functionResponse": inner})[0].native == {
        "google:notes": {"spelling": {"parts": "inside"}}
    }
    ran = load_parts(
        {"executableCode": {"code": "1", "id": "2"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "id": "2"}},
    )
    assert [(p.id, p.native) for p in ran] == [("2", {"google": {}}), ("2", {"google": {}})]
    assert (ran[0].arguments, ran[1].result) == ({"code": "1"}, {"outcome": "OUTCOME_OK"})
    same_parts(
        {"toolResponse": {"toolType": "X", "response": {}, "id": "1", "more": 1}}, role="model"
    )


def test_media_in_a_result():
    image = DataPart(b"123", "image/png")
    (piece,) = same_parts(
        {"functionResponse": {"name": "f", "id": "1", "response": {"result": "look"},
                              "parts": [{"inlineData": {"mimeType": "image/png", "data": "MTIz"}}]}}
    )  # fmt: skip
    assert piece.result == (TextPart("look"), image)
    answer = Message.user(ToolResultPart("1", "f", (TextPart("look"), image)), "and?")
    (inside,) = contents(answer, target=NEWER_GOOGLE)
    assert inside["parts"][0]["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "MTIz"}}
    ]
    losses = []
    (beside,) = contents(
        answer, target=GOOGLE, quirks=quirks_of("google", GOOGLE.model), losses=losses
    )
    assert [next(iter(part)) for part in beside["parts"]] == [
        "functionResponse",
        "text",
        "text",
        "inlineData",
    ]
    assert beside["parts"][0]["functionResponse"]["response"] == {"result": "look"}
    assert [loss.what for loss in losses] == ["media"]


def test_what_another_provider_ran_is_left_out():
    losses = []
    mine = Message.model(
        "a",
        ToolCallPart("1", "web_search", {}, run_by="provider"),
        ToolResultPart("1", "web_search", 1, run_by="provider"),
    )
    assert contents(mine, losses=losses)[0]["parts"] == [{"text": "a"}]
    assert len(losses) == 2


@given(st.text(max_size=12) | json_values, st.booleans())
def test_d121_any_result_is_an_object_and_is_read_as_one_that_is_written_alike(value, is_error):
    response = result(value, is_error=is_error)
    assert isinstance(response, dict)
    (piece,) = load_parts({"functionResponse": {"name": "f", "id": "1", "response": response}})
    assert result(piece.result, is_error=piece.is_error) == response


def test_media_recorded_inside_a_response_stays_there_whatever_the_model():
    media = {"inlineData": {"mimeType": "a/b", "data": "AAAA"}}
    part = {
        "functionResponse": {"name": "f", "id": "1", "response": {"result": "x"}, "parts": [media]}
    }
    same_request(
        {"contents": [{"role": "user", "parts": [part]}]}, path=f"/models/{OLDER}:generateContent"
    )
