"""The conversation of Google's wire: rules D-120…D-122, decisions 2, 20b and 27."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import wires
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.fold import fold, unfold
from dragoman.loss import Loss
from dragoman.message import (
    MarkPart,
    Message,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import google as wire
from support.google import (
    CONTENTS,
    GOOGLE,
    NESTED,
    answer,
    call,
    contents,
    decode_chunks,
    json_values,
)


def test_the_most_ordinary_spelling():
    payload = wire.dump_messages(
        [Message.system("be brief"), Message.user("hi"), Message.model("ho")]
    )
    assert payload == {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"text": "ho"}]},
        ],
    }


def test_d120_all_system_messages_at_the_head_are_parts_of_the_instruction():
    payload = wire.dump_messages(
        [Message.system("a", "b"), Message.system("c"), Message.user("hi")]
    )
    assert payload["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}


def test_decision_20b_a_later_system_message_is_a_marked_user_text_and_a_loss():
    losses = []
    payload = wire.dump_messages([Message.user("hi"), Message.system("be brief")], losses=losses)
    assert "systemInstruction" not in payload
    assert payload["contents"][1] == {
        "role": "user",
        "parts": [{"text": "<system>\nbe brief\n</system>"}],
    }
    assert [(loss.message, loss.what) for loss in losses] == [(1, "system message")]


def test_the_instructions_role_is_kept():
    payload = {
        "system_instruction": {"role": "model", "parts": [{"text": "a", "thought": False}]},
        "contents": [],
    }
    (message,) = wire.load_messages(payload)
    assert (message.role, message.text) == (Role.SYSTEM, "a")
    assert wire.dump_messages([message])["systemInstruction"] == payload["system_instruction"]


@pytest.mark.parametrize("content", [{"parts": [{"text": "hi"}]}, {"role": "function", "parts": [{"text": "hi"}]},
                                     {"role": None, "parts": [{"text": "hi"}]}, {"role": "model"},
                                     {"role": "user", "parts": []}, {"role": "model", "parts": None}])  # fmt: skip
def test_contents_without_the_usual_role_or_parts_stay_so(content):
    messages = wire.load_messages({"contents": [content]})
    assert contents(*messages) == [content]


def test_an_instruction_without_parts_stays_so():
    payload = {"systemInstruction": {"parts": []}, "contents": []}
    assert wire.dump_messages(wire.load_messages(payload)) == payload
    assert wire.dump_messages([Message.system(), Message.user("a")]).keys() == {"contents"}


def test_a_single_content_may_stand_for_the_list():
    assert wire.load_messages({"contents": {"parts": [{"text": "hi"}]}})[0].text == "hi"


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"contents": "hi"},
        {"contents": ["hi"]},
        {"contents": [{"role": "assistant"}]},
        {"contents": [{"parts": ["a"]}]},
    ],
)
def test_what_is_no_conversation_is_refused(payload):
    with pytest.raises(HistoryError):
        wire.load_messages(payload)


def test_a_message_of_which_nothing_can_be_sent_is_left_out_and_told():
    losses = []
    assert contents(Message.user("a"), Message.model(), Message.user("b"), losses=losses)[1][
        "parts"
    ] == [{"text": "b"}]
    assert [loss.message for loss in losses] == [1]


def test_decision_2_order_is_kept_and_separate_texts_stay_separate():
    pieces = ("a", call("f", "1"), "b", "c", call("g", "2"))
    (content,) = contents(Message.model(*pieces))
    assert [part.get("text") or part["functionCall"]["name"] for part in content["parts"]] == [
        "a",
        "f",
        "b",
        "c",
        "g",
    ]


words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)


sent_parts = st.one_of(
    st.builds(
        lambda text, extra: {"text": text, **extra},
        words,
        st.sampled_from([{}, {"thought": True}, {"thoughtSignature": "AA=="}]),
    ),
    st.builds(
        lambda name, args: {"functionCall": {"name": name, "args": args}},
        st.sampled_from("fg"),
        st.dictionaries(words, json_values, max_size=2),
    ),
    st.builds(
        lambda name, value: {"functionResponse": {"name": name, "response": value}},
        st.sampled_from("fg"),
        st.dictionaries(words, json_values, max_size=2),
    ),
    st.builds(
        lambda value: {"functionResponse": {"name": "f", "response": {"result": value}}},
        json_values,
    ),
    st.builds(
        lambda data: {
            "inlineData": {"mimeType": "a/b", "data": base64.urlsafe_b64encode(data).decode()}
        },
        st.binary(max_size=6),
    ),
    st.builds(lambda code: {"executableCode": {"code": code, "language": "PYTHON"}}, words),
    st.builds(lambda key, value: {key: value}, words, json_values),
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["user", "model"]),
                "parts": st.lists(sent_parts, min_size=1, max_size=3),
            }
        ),
        max_size=4,
    )
)
def test_any_conversation_is_written_as_it_was_read_also_through_storage(some):
    messages = [
        Message.from_json(message.to_json()) for message in wire.load_messages({"contents": some})
    ]
    assert wire.dump_messages(messages) == {"contents": some}


@pytest.mark.parametrize("role", [[0], {"a": 1}, 5, True, "x"])
def test_a_role_that_is_none_is_refused(role):
    with pytest.raises(HistoryError, match="role"):
        wire.load_messages({"contents": [{"role": role, "parts": [{"text": "a"}]}]})


def everywhere(messages):
    """Every wire writes them, with a target and without, as a conversation and as an answer."""
    for name in wires.names("model"):
        for target in (None, Origin("google", model="gemini-3-pro"), Origin("other")):
            wires.get(name).dump_messages(messages, target=target)
    events = unfold([message.replace(role=Role.MODEL) for message in messages])
    wire.dump_response(events)
    encoder = wire.encoder()
    return b"".join(map(encoder.feed, events)) + encoder.close()


@pytest.mark.parametrize("name", ["spelling", "response", "native", "snake", "id"])
def test_fields_with_the_names_of_our_notes_come_back(name):
    part = {"functionCall": {"name": "f", "args": {}, "id": "c1"}, name: "x"}
    body = {"contents": [*CONTENTS, {"role": "model", "parts": [part], name: "x"}]}
    assert wire.dump_messages(wire.load_messages(body)) == body
    (message,) = fold(decode_chunks(answer(part, finishReason="STOP", **{name: "x"})))
    assert wire.dump_messages([message])["contents"][0]["parts"] == [part]
    everywhere([message])


NOTES = [
    "x", 5, [], {"spelling": "x"}, {"response": 5}, {"response": {"usageMetadata": "x", "promptFeedback": 5}},
    {"response": {"usageMetadata": {"toolUsePromptTokenCount": "x"}, "finishReason": {}}},
    {"spelling": {"snake": 5, "mimeType": [], "parts": "absent", "role": {}, "args": 1, "name": [], "text": 5}},
]  # fmt: skip


@pytest.mark.parametrize("notes", NOTES)
@pytest.mark.parametrize(
    "fields", ["x", [1], {"id": {}, "thoughtSignature": 5, "functionCall": "x"}]
)
def test_d8_stored_messages_may_hold_anything(notes, fields):
    native = {"google": fields, "google:notes": notes}
    pieces = [
        {"type": "text", "text": "a"}, {"type": "thinking"}, {"type": "provider", "kind": "x"}, {"type": "data", "data": "AA==", "mime_type": "image/png"},
        {"type": "tool_call", "id": "c", "name": "f"}, {"type": "tool_call", "id": "c", "name": "codeExecution", "run_by": "provider"},
        {"type": "tool_result", "id": "c", "name": "codeExecution", "run_by": "provider", "result": "x"}, {"type": "link", "url": "https://a.test/*"},
    ]  # fmt: skip
    stored = {
        "v": 2,
        "role": "model",
        "native": native,
        "content": [{**piece, "native": native} for piece in pieces],
    }
    model = Message.from_json(json.dumps(stored))
    result = {
        "v": 2,
        "role": "user",
        "content": [{"type": "tool_result", "id": "c", "name": "f", "native": native}],
    }
    user = Message.from_json(json.dumps({**result, "native": native}))
    everywhere([model, user, user])


def test_half_a_pair_of_surrogates_is_written():
    assert b"\\ud800" in everywhere(
        wire.load_messages({"contents": [{"role": "model", "parts": [{"text": "\ud800"}]}]})
    )
    assert isinstance(wire.load_response(answer({"text": "a"}, x="\ud800")), list)


@pytest.mark.parametrize("odd", [{"parts": "absent"}, {"parts": None}, {"parts": []}, {}])
def test_decision_27_no_text_in_the_place_of_parts_is_taken_for_their_absence(
    odd: dict[str, Any],
) -> None:
    payload = {"contents": [{"role": "model", **odd}]}
    assert wire.dump_messages(wire.load_messages(payload)) == payload


MARK = MarkPart("step", {"ui": {"n": 1}})
HERE = Origin("google", "https://g", "gemini-3-flash")


def test_marks_are_passed_over():
    plain = [
        Message.system("s"),
        Message.user("a"),
        Message.model(
            ThinkingPart("hm"), "x", ToolCallPart("c", "f"), ToolCallPart("d", "f")
        ).replace(origin=HERE),
        Message.user(ToolResultPart("d", "f", 1)),
        Message.user(ToolResultPart("c", "f", 2)),
        Message.model(),
        Message.system("later"),
    ]
    marked = [message.replace(content=(MARK, *message.content, MARK)) for message in plain]
    for target in (None, HERE, GOOGLE):
        without, among = list[Loss](), list[Loss]()
        written = wire.dump_messages(plain, target=target, losses=without)
        assert wire.dump_messages(marked, target=target, losses=among) == written
        assert [(loss.message, loss.what) for loss in among] == [
            (loss.message, loss.what) for loss in without
        ]


def test_a_loss_behind_a_mark_names_its_place():
    losses = list[Loss]()
    talk = [Message.user("a"), Message.model(MARK, "x", MARK, ThinkingPart("hm"))]
    wire.dump_messages(talk, target=HERE, losses=losses)
    assert [(loss.message, loss.part, loss.what) for loss in losses] == [(1, 3, "thinking")]


@pytest.mark.parametrize(
    ("message", "sure"),
    [
        ({"role": "user", "parts": [{"text": "hi"}]}, 3),
        ({"parts": [{"text": "hi"}]}, 3),
        ({"role": "model", "parts": [{"function_call": {"name": "f"}}]}, 3),
        ({"role": "function", "parts": [{"functionResponse": {"name": "f"}}]}, 3),
        ({"role": "user", "parts": [{"brandNew": 1}, {"inlineData": {}}]}, 3),
        ({"role": "model", "parts": [{"brandNew": 1}]}, 2),
        ({"role": "model", "parts": []}, 2),
        ({"role": "model"}, 0),
        ({"role": "user", "parts": [{"brandNew": 1}]}, 1),
        ({"role": "user", "parts": None}, 1),
        ({"role": "user", "content": "hi"}, 0),
        ({"type": "message", "role": "user"}, 0),
        ({"call_id": "1", "output": "x"}, 0),
        ({"role": "model", "content": [{"type": "text", "text": "hi"}], "v": 2}, 0),
        ({"role": "assistant", "parts": [{"text": "hi"}]}, 0),
        ({"id": "1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}, 0),
        ({"role": "user", "parts": ["hi"]}, 0),
        ({"role": "user", "parts": {"text": "hi"}}, 0),
        *[
            (odd, 0)
            for odd in (
                None,
                5,
                "user",
                [],
                {},
                [{"role": "user"}],
                {"role": ["user"]},
                {"role": {}},
            )
        ],
    ],
)
def test_how_surely_a_message_is_of_this_format(message, sure):
    assert wire.votes(message) == sure


def test_what_cannot_be_read_is_noted_and_the_rest_is_read():
    contents = [
        {"role": "user", "parts": [{"text": "a"}]},
        5,
        {"role": "model", "parts": [{"functionCall": {"name": "f", "id": "1"}}]},
        {"role": "narrator", "parts": []},
        {"role": "user", "parts": [{"functionResponse": {"name": "f"}}, "x"]},
        {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"result": 1}}}]},
        {"role": "user", "parts": [{"text": "deep", "more": NESTED}]},
    ]
    good = [contents[place] for place in (0, 2, 5)]
    expected = wire.load_messages({"contents": good}, origin=HERE)
    payload = {"systemInstruction": {"parts": [{"text": "s"}]}, "contents": contents}
    problems = list[Problem]()
    assert wire.load_messages(payload, origin=HERE, problems=problems) == [
        Message.system("s"),
        *expected,
    ]
    assert [(each.index, each.field) for each in problems] == [
        (1, None),
        (3, "role"),
        (4, "parts"),
        (6, None),
    ]
    assert "narrator" in problems[1].error
    noted = list[Problem]()
    request = wire.load_request(payload, origin=HERE, problems=noted)
    assert (request.messages, noted) == ((Message.system("s"), *expected), problems)
    with pytest.raises(HistoryError):
        wire.load_messages(payload)
    with pytest.raises(HistoryError):
        wire.load_messages({"contents": "hi"}, problems=[])


def test_plain_texts_are_messages_of_nothing_else():
    talk = [
        {"role": role, "parts": [{"text": text}]}
        for role, text in (("user", "a"), ("model", " "), ("user", "b"))
    ]
    messages = [Message.user("a"), Message.model(" ").replace(origin=HERE), Message.user("b")]
    assert wire.load_messages({"contents": talk}, origin=HERE) == messages
    losses = list[Loss]()
    assert wire.dump_messages(messages, target=GOOGLE, losses=losses) == {"contents": talk}
    assert not losses


@pytest.mark.parametrize("more", [{}, {"x": 1}])
def test_an_answer_of_plain_text_ends_the_round_of_calls_before_it(more):
    def answered(*between):
        first = {"role": "model", "parts": [{"functionCall": {"name": "f"}}]}
        last = {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {}}}]}
        messages = wire.load_messages({"contents": [first, *between, last]})
        return messages[-1].content[0].id == messages[0].content[0].id

    question = {"role": "user", "parts": [{"text": "a"}], **more}
    answer = {"role": "model", "parts": [{"text": "b"}], **more}
    assert answered(question)
    assert answered(answer)
    assert not answered(question, answer)
