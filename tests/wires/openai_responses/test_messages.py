"""The conversation of the openai_responses wire: exact both ways, in order, append-only."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from dragoman.codec.serving import Problem
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import RunError
from dragoman.loss import Loss
from dragoman.message import (
    DataPart,
    LinkPart,
    MarkPart,
    Message,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import openai_responses as wire
from support.responses import (
    CALL_ITEM,
    COMPLETED_HEAD,
    ENCRYPTED,
    MESSAGE_ITEM,
    OPENAI,
    REASONING_ITEM,
    XAI,
    answered,
    items,
    load,
    there_and_back,
)


def test_plain_messages_are_written_in_the_plainest_form():
    history = [Message.user("Hello"), Message.model("Hi"), Message.user("Bye")]
    assert items(*history) == [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {"role": "user", "content": "Bye"},
    ]


def test_decision_20b_system_messages_at_the_head_are_instructions_and_later_ones_stay_where_they_are():
    """Against D-137, which put them all into the input."""
    history = [Message.system("a"), Message.system("b"), Message.user("x"), Message.system("later")]
    assert wire.dump_messages(history) == {
        "instructions": "a\n\nb",
        "input": [{"role": "user", "content": "x"}, {"role": "system", "content": "later"}],
    }


def test_a_system_message_that_is_not_all_text_is_no_instruction():
    image = LinkPart("https://host.test/a.png", "image/png")
    (item,) = items(Message.system("a", image))
    assert item["role"] == "system"
    assert [block["type"] for block in item["content"]] == ["input_text", "input_image"]


def test_d137_system_messages_that_stood_in_the_input_stay_there():
    there_and_back({"role": "system", "content": "a"}, {"role": "user", "content": "x"})
    developer = there_and_back(
        {"role": "developer", "content": [{"type": "input_text", "text": "a"}]}
    )
    assert developer[0].role is Role.SYSTEM
    assert items(*developer, quirks=wire.Quirks(developer=False))[0]["role"] == "system"


def test_an_input_that_is_a_string():
    messages = wire.load_messages({"instructions": "be", "input": "Hello"})
    assert [(m.role, m.text) for m in messages] == [(Role.SYSTEM, "be"), (Role.USER, "Hello")]
    assert wire.dump_messages(messages) == {"instructions": "be", "input": "Hello"}
    longer = wire.dump_messages([*messages, Message.user("more")])
    assert longer["input"] == [
        {"role": "user", "content": "Hello"},
        {"role": "user", "content": "more"},
    ]


@pytest.mark.parametrize(
    "payload",
    [[], {"input": 3}, {"input": ["a"]}, {"input": {"role": "user", "content": "x"}}, "hello"],
)
def test_what_is_no_conversation_is_an_error(payload):
    with pytest.raises(HistoryError):
        wire.load_messages(payload)


def test_what_the_model_did_between_two_others_is_one_message_and_its_answers_another():
    messages = there_and_back(
        {"role": "user", "content": "x"},
        REASONING_ITEM,
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
        {"type": "function_call", "call_id": "b", "name": "g", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "2"},
        {"type": "function_call_output", "call_id": "a", "output": "1"},
        {"role": "assistant", "content": "done"},
    )
    assert [m.role for m in messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert [call.name for call in messages[1].tool_calls] == ["f", "g"]
    assert [(result.id, result.name) for result in messages[2].tool_results] == [
        ("b", "g"),
        ("a", "f"),
    ]


def test_messages_of_the_model_that_follow_each_other_stay_apart():
    easy = {"role": "assistant", "content": "a"}
    (message,) = there_and_back(easy, easy, {**MESSAGE_ITEM, "content": "b"}, easy)
    assert message.text == "aaba"


def test_decision_2_texts_of_one_message_by_hand_stay_apart():
    """As items each: a list of content is of the official types only under an id that the provider
    gave."""
    dumped = [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert items(Message.model("a", "b")) == dumped
    assert [piece.text for piece in load(*dumped)[0].content] == ["a", "b"]


def test_a_server_that_knows_messages_of_the_model_as_lists_only():
    """llama.cpp."""
    (dumped,) = items(Message.model("a"), quirks=wire.Quirks(listed=True))
    assert dumped == {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "a"}],
    }


def test_text_on_both_sides_of_a_call_stays_there():
    kinds = [
        item.get("type", "said") for item in items(Message.model("a", ToolCallPart("c", "f"), "b"))
    ]
    assert kinds == ["said", "function_call", "said"]


def test_decision_12_ids_and_names_that_the_api_does_not_take_are_mapped():
    history = [
        Message.model(ToolCallPart("a:b", "my tool"), ToolCallPart("same", "f")),
        Message.user(ToolResultPart("a:b", "my tool", "1"), ToolResultPart("same", "f", "2")),
        Message.model(ToolCallPart("same", "f")),
        Message.user(ToolResultPart("same", "f", "3")),
    ]
    dumped = items(*history)
    ids = [item["call_id"] for item in dumped]
    assert ids[0] == ids[2] != "a:b" and ids[1] == ids[3] == "same" and ids[4] == ids[5] != "same"
    assert " " not in dumped[0]["name"]


def test_append_only_a_conversation_begins_the_next_one():
    history = [
        Message.user("x"),
        answered(ENCRYPTED, MESSAGE_ITEM, CALL_ITEM),
        Message.user(ToolResultPart("call_1", "f", "1")),
    ]
    longer = [*history, answered({**MESSAGE_ITEM, "id": "msg_2"}), Message.user("more")]
    for target, quirks in ((OPENAI, None), (XAI, None), (OPENAI, wire.Quirks(links=False))):
        short, long = (
            items(*history, target=target, quirks=quirks),
            items(*longer, target=target, quirks=quirks),
        )
        assert long[: len(short)] == short


MARK = MarkPart("step", {"ai_sdk_ui": {"type": "step-start"}})


def test_marks_change_nothing_that_is_sent():
    history = [
        Message.system("Be brief."),
        Message.user("x"),
        answered(ENCRYPTED, MESSAGE_ITEM, CALL_ITEM),
        Message.user(ToolResultPart("call_1", "f", "1")),
        Message.model("one", "two"),
        Message.user(DataPart(b"\xff", "video/mp4", "clip.mp4"), "y"),
    ]
    among = [
        m.replace(content=[p for piece in m.content for p in (MARK, piece)] + [MARK])
        for m in history
    ]
    for target in (None, OPENAI, XAI):
        plain: list[Loss] = []
        losses: list[Loss] = []
        sent = wire.dump_messages(among, target=target, losses=losses)
        assert sent == wire.dump_messages(history, target=target, losses=plain)
        assert losses == [
            replace(loss, part=None if loss.part is None else 2 * loss.part + 1) for loss in plain
        ]
    assert (5, 1, "data") in [(loss.message, loss.part, loss.what) for loss in losses]


def test_a_message_of_marks_alone_is_an_empty_one():
    losses: list[Loss] = []
    assert wire.dump_messages([Message.user("x"), Message.model(MARK)], losses=losses)[
        "input"
    ] == items(Message.user("x"))
    assert losses == [Loss(1, None, "message", "it is empty")]


NESTED = json.loads("[" * 200 + "]" * 200)


@pytest.mark.parametrize(
    "item", [{"role": ["user"]}, {"role": {}}, {"type": {"a": 1}}, {"type": [1], "call_id": "c"}, 5]
)
def test_d7_an_item_of_no_type_or_role_is_refused(item):
    with pytest.raises(HistoryError, match="input"):
        wire.load_messages({"input": [item]})


def test_what_nests_too_deep_is_refused():
    for read in (wire.load_messages, wire.load_request):
        with pytest.raises(HistoryError, match="deeper"):
            read({"input": [{"role": "user", "content": NESTED}]})
    [event] = wire.load_response({**COMPLETED_HEAD, "output": NESTED})
    assert (
        isinstance(event, RunError)
        and isinstance(event.error, DecodeError)
        and "deeper" in event.error.message
    )


def test_with_problems_what_cannot_be_read_is_noted_and_the_rest_is_read():
    good = [{"role": "user", "content": "a"}, CALL_ITEM, {"role": "user", "content": "b"}]
    bad = [5, {"role": ["user"]}, {"type": {}}, {"role": "user", "content": NESTED}]
    payload = {"instructions": "Be brief.", "input": [good[0], bad[0], good[1], *bad[1:], good[2]]}
    wanted = wire.load_messages({"instructions": "Be brief.", "input": good})
    noted = [(1, None), (3, "role"), (4, "type"), (5, None)]
    for read in (
        wire.load_messages,
        lambda given, problems: list(
            wire.load_request({"model": "m", **given}, problems=problems).messages
        ),
    ):
        problems: list[Problem] = []
        found = read(payload, problems=problems)
        assert [message.content for message in found] == [message.content for message in wanted]
        assert [(problem.index, problem.field) for problem in problems] == noted
        assert "must be an object" in problems[0].error and "deeper" in problems[3].error
        with pytest.raises(HistoryError, match="a list of items"):
            read({"input": 5}, problems=[])
    assert wire.load_messages({"input": good}, problems=(none := [])) and none == []


@pytest.mark.parametrize(
    ("item", "sure"),
    [
        ({"role": "user", "content": "hi"}, 1), ({"role": "developer", "content": "hi"}, 1), ({"role": "assistant", "content": "hi", "phase": "commentary"}, 1),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, 1), ({"role": "user", "content": []}, 1), ({"type": "message", "role": "user", "content": "hi"}, 2),
        ({"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, 3), (MESSAGE_ITEM, 3), (REASONING_ITEM, 3), (ENCRYPTED, 3), (CALL_ITEM, 3),
        ({"type": "reasoning", "encrypted_content": "x"}, 2), ({"type": "reasoning", "text": "hm"}, 0), ({"type": "item_reference", "id": "msg_1"}, 3),
        ({"type": "function_call_output", "call_id": "c", "output": "x"}, 3), ({"type": "mcp_approval_response", "approve": True}, 3), ({"type": "web_search_call", "id": "ws"}, 3),
        ({"role": "tool", "tool_call_id": "c", "content": "x"}, 0), ({"role": "assistant", "content": None, "tool_calls": []}, 0), ({"role": "user", "content": "hi", "parts": []}, 0),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}, 0), ({"role": "user", "parts": [{"text": "hi"}]}, 0), ({"type": "human", "content": "hi"}, 0),
        ({"role": "user", "content": [5]}, 0), ({"role": ["user"]}, 0), ({"type": {}}, 0), ({}, 0), (None, 0), ("hi", 0), ([], 0),
    ],
)  # fmt: skip
def test_how_surely_an_item_is_of_this_format(item, sure):
    assert wire.votes(item) == sure


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("role", [Role.USER, Role.MODEL, Role.SYSTEM])
def test_a_message_of_one_text_is_written_the_short_way_as_the_long_way_would_be(role, listed):
    plain = Message(role, (TextPart("hi"),))
    longer = plain.replace(native={"another": {"x": 1}})
    for target in (None, OPENAI):
        short, long = (
            items(Message.user("x"), message, target=target, quirks=wire.Quirks(listed=listed))
            for message in (plain, longer)
        )
        assert short == long and len(short) == 2


def test_texts_of_the_models_that_follow_each_other_are_read_as_before():
    plain = [
        {"role": "assistant", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    longer = [{**item, "type": "message"} for item in plain]
    begun = {"openai_responses:notes": {"item": {}}}
    model, user = wire.load_messages({"input": plain}, origin=OPENAI)
    assert model.content == (TextPart("a"), TextPart("b", begun)) and user.content == (
        TextPart("c"),
    )
    assert (model.role, model.origin, user.role, user.origin) == (
        Role.MODEL,
        OPENAI,
        Role.USER,
        None,
    )
    for items_ in (plain, longer):
        assert wire.dump_messages(wire.load_messages({"input": items_}))["input"] == items_
