"""The anthropic wire: the conversation (D-105, D-106, decisions 4, 12 and 20b)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.codec.digest import compute_prefix
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.fold import unfold
from dragoman.loss import Loss
from dragoman.message import (
    MarkPart,
    Message,
    Origin,
    ProviderPart,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires import anthropic as wire
from support.anthropic import HERE, SIGNED, deep, dump, losses, payload_of, there_and_back
from support.histories import NEUTRAL
from support.profiles import quirks_of


def test_d105_system_messages_at_the_head_become_system():
    payload = wire.dump_messages([Message.system("Be brief."), Message.user("Hi")])
    assert payload == {"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}
    payload = wire.dump_messages(
        [Message.system("One."), Message.system("Two."), Message.user("Hi")]
    )
    assert payload["system"] == [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]
    assert "system" not in wire.dump_messages([Message.user("Hi")])


def test_d105_decision_20b_a_later_system_message_becomes_a_marked_user_text():
    talk = [Message.user("Hi"), Message.system("Now in French.")]
    assert dump(*talk)[1] == {"role": "user", "content": "<system>\nNow in French.\n</system>"}
    assert losses(*talk) == [(1, None, "system message")]


def test_decision_20b_a_later_system_message_stays_where_the_model_takes_it():
    talk = [Message.user("Hi"), Message.system("Now in French.")]
    where = {
        "target": Origin("anthropic", model="claude-opus-4-8"),
        "quirks": quirks_of("anthropic", "claude-opus-4-8"),
    }
    assert dump(*talk, **where)[1] == {"role": "system", "content": "Now in French."}
    assert losses(*talk, **where) == []


def test_a_system_message_that_only_changes_settings_survives():
    there_and_back(
        {"role": "user", "content": "Hi"}, {"role": "system", "output_config": {"effort": "low"}}
    )


def test_system_messages_of_every_spelling_survive():
    there_and_back({"role": "user", "content": "Hi"}, system="Be brief.")
    marked = [
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "x"},
    ]
    there_and_back({"role": "user", "content": "Hi"}, system=marked)
    later = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "system", "content": "c"},
    ]
    assert [m.role for m in there_and_back(*later)] == [Role.USER, Role.SYSTEM, Role.SYSTEM]
    there_and_back(
        {"role": "system", "content": "first, but not in its place"},
        {"role": "user", "content": "b"},
    )


def result(id_, value="ok", **more):
    return ToolResultPart(id_, "f", value, **more)


def test_d106_consecutive_messages_of_results_are_one_message_and_keep_their_text():
    talk = [
        Message.model(ToolCallPart("a", "f"), ToolCallPart("b", "f")),
        Message.user(result("a"), "by the way"),
        Message.user(result("b")),
    ]
    assert dump(*talk)[1:] == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "ok"},
                {"type": "tool_result", "tool_use_id": "b", "content": "ok"},
                {"type": "text", "text": "by the way"},
            ],
        }
    ]
    assert losses(*talk) == [(2, None, "order")]


def test_d106_results_stand_before_text_and_plain_user_messages_stay_apart():
    talk = [
        Message.model(ToolCallPart("a", "f")),
        Message.user("look:", result("a")),
        Message.user("more"),
        Message.user("!"),
    ]
    assert [b["type"] for b in dump(*talk)[1]["content"]] == ["tool_result", "text"]
    assert len(dump(*talk)) == 4


def test_what_was_recorded_apart_or_in_another_order_stays_so():
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in "ab"],
    }
    answers = [{"type": "tool_result", "tool_use_id": i, "content": "ok"} for i in "ab"]
    there_and_back(
        call, {"role": "user", "content": answers[:1]}, {"role": "user", "content": answers[1:]}
    )
    there_and_back(call, {"role": "user", "content": [{"type": "text", "text": "first"}, *answers]})


@pytest.mark.parametrize(
    ("origin", "target"),
    [
        (None, HERE),
        (Origin("minimax", model="m2"), HERE),
        (HERE, Origin("anthropic", "https://eu.example/v1")),
        (Origin("anthropic", prefix="changed"), HERE),
    ],
)
def test_decision_4_what_another_origin_signed_is_left_out_and_said(origin, target):
    own = {"anthropic": {"caller": {"type": "direct"}, "cache_control": {"type": "ephemeral"}}}
    search = ToolCallPart(
        "s", "web_search", run_by="provider", native={"anthropic": {"type": "server_tool_use"}}
    )
    model = Message.model(
        SIGNED, "Yes", search, ProviderPart("compaction", {"anthropic": {"type": "compaction"}})
    )
    model = model.replace(
        content=(*model.content, ToolCallPart("a", "f", native=own)), origin=origin
    )
    talk = [Message.user("Hi"), model]
    assert dump(*talk, target=target)[1]["content"] == [
        {"type": "text", "text": "Yes"},
        {
            "type": "tool_use",
            "id": "a",
            "name": "f",
            "input": {},
            "cache_control": {"type": "ephemeral"},
        },
    ]
    assert [(message, part) for message, part, _ in losses(*talk, target=target)] == [
        (1, 0),
        (1, 2),
        (1, 3),
    ]


def test_decision_4_a_quirk_lets_a_target_read_another_provider_and_the_prefix_must_match():
    user = Message.user("Hi")
    before = compute_prefix([user], "w")
    model = Message.model(SIGNED).replace(origin=Origin("vertex", prefix=before))
    assert (
        dump(user, model, target=HERE, quirks=wire.Quirks(reads=("vertex",)))[1]["content"][0][
            "signature"
        ]
        == "c2lnbmVk"
    )
    assert (
        len(dump(Message.user("Bye"), model, target=HERE, quirks=wire.Quirks(reads=("vertex",))))
        == 1
    )


def test_d108_an_empty_message_is_left_out_and_said():
    talk = [Message.user("Hi"), Message.model(), Message.user("there")]
    assert dump(*talk) == [{"role": "user", "content": "Hi"}, {"role": "user", "content": "there"}]
    assert losses(*talk) == [(1, None, "message")]


MARK = MarkPart("step", {"ui": {"n": 1}})


def test_marks_are_passed_over():
    call, answer = ToolCallPart("my call", "f"), result("my call")
    plain = [
        Message.system("s"),
        Message.user("a"),
        Message.model("x", call).replace(origin=HERE),
        Message.user(answer),
        Message.model(),
        Message.user("b", result("other")),
    ]
    marked = [message.replace(content=(MARK, *message.content, MARK)) for message in plain]
    for target in (None, HERE):
        without, among = list[Loss](), list[Loss]()
        written = wire.dump_messages(plain, target=target, losses=without)
        assert wire.dump_messages(marked, target=target, losses=among) == written
        assert among == without


def test_a_loss_behind_a_mark_names_its_place():
    talk = [Message.user("a"), Message.model(MARK, "x", MARK, ThinkingPart("hm"))]
    assert losses(*talk, target=HERE) == [(1, 3, "thinking")]
    assert losses(Message.user(MARK, "a", MARK, " ")) == [(0, 3, "text")]


CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}


def test_decision_12_ids_and_names_that_the_api_does_not_take_are_mapped():
    talk = [
        Message.user("x"),
        Message.model(ToolCallPart("call:1", "my tool"), ToolCallPart("x" * 70, "f")),
        Message.user(result("call:1"), result("x" * 70)),
        Message.model(ToolCallPart("call:1", "my tool")),
        Message.user(result("call:1")),
    ]
    written = dump(*talk)
    one, two = written[1]["content"]
    (again,) = written[3]["content"]
    assert [b["tool_use_id"] for b in written[2]["content"]] == [one["id"], two["id"]]
    assert written[4]["content"][0]["tool_use_id"] == again["id"]
    assert len({one["id"], two["id"], again["id"]}) == 3
    assert one["name"] == again["name"] != "my tool"
    assert all(len(b["id"]) <= 64 and b["id"].replace("_", "").isalnum() for b in (one, two, again))


def test_recorded_ids_and_names_are_sent_as_they_are():
    call = {"type": "tool_use", "id": "call:1", "name": "my tool", "input": {}}
    answer = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "call:1", "content": "x"}],
    }
    there_and_back(*([{"role": "assistant", "content": [call]}, answer] * 2))
    there_and_back(
        *([CALL, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}] * 2)
    )
    there_and_back(answer)


def test_recorded_ids_and_names_are_mapped_for_a_target():
    call = {"type": "tool_use", "id": "call:1", "name": "my tool", "input": {}}
    opening, entry = dump(*there_and_back({"role": "assistant", "content": [call]}), target=HERE)
    assert opening == {"role": "user", "content": wire.Quirks().opening}
    (sent,) = entry["content"]
    assert sent["id"] != "call:1"
    assert sent["name"] != "my tool"


def test_rule_6_a_longer_conversation_begins_with_the_shorter():
    talk = [
        Message.system("s"),
        Message.user("a"),
        Message.model(SIGNED, "b", ToolCallPart("1!", "f")).replace(origin=HERE),
        Message.user(result("1!")),
        Message.model("c").replace(origin=HERE),
        Message.user("d"),
        Message.model(ToolCallPart("1!", "f")).replace(origin=HERE),
        Message.user(result("1!", {"x": 1})),
    ]
    whole = dump(*talk, target=HERE)
    for length in (2, 4, 6, 8):
        assert whole[: length - 1] == dump(*talk[:length], target=HERE)


def test_the_origin_is_given_to_the_models_messages():
    messages = wire.load_messages(
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
        origin=HERE,
    )
    assert [message.origin for message in messages] == [None, HERE]


@pytest.mark.parametrize(
    "payload",
    [
        [],
        {"messages": {}},
        {"messages": ["x"]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": ["user"], "content": "x"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": ["x"]}]},
    ],
)
def test_what_is_no_conversation_is_refused_with_its_place(payload):
    with pytest.raises(HistoryError, match="messages"):
        wire.load_messages(payload)


@pytest.mark.parametrize("load", [wire.load_messages, wire.load_request])
@pytest.mark.parametrize(
    "payload", [payload_of(deep(2000)), {**payload_of("x"), "a": deep(2000)}, [], None, 5]
)
def test_what_is_no_conversation_or_nests_too_deep_is_refused(load: Any, payload: Any):
    with pytest.raises(HistoryError):
        load(payload)


@pytest.mark.parametrize(
    "own",
    [
        "x",
        5,
        [],
        {"type": 5},
        {"citations": 5},
        {"citations": "ab", "signature": 5},
        {"content": 5},
    ],
)
@pytest.mark.parametrize(
    "notes",
    [
        "x",
        {"spelling": 5},
        {"spelling": {"content": {}}, "response": {"usage": 5, "delta": 1, "type": 0}},
    ],
)
@pytest.mark.parametrize(
    "piece",
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "text": "a"},
        {"type": "tool_call", "id": "a", "name": "f"},
        {"type": "tool_call", "id": "a", "name": "f", "run_by": "provider"},
        {"type": "tool_result", "id": "a", "name": "f", "result": 1, "run_by": "provider"},
        {"type": "provider", "kind": "compaction"},
        {"type": "data", "data": "YQ==", "mime_type": "image/png"},
    ],
)
def test_d8_a_stored_native_of_any_shape_can_be_dumped(piece: dict[str, Any], notes: Any, own: Any):
    native = {"anthropic": own, "anthropic:notes": notes}
    stored = {
        "v": 2,
        "role": "model",
        "content": [{**piece, "native": native}, piece],
        "native": native,
    }
    message = Message.from_json(json.dumps(stored))
    for target in (None, HERE):
        wire.dump_messages([Message.user("a"), message], target=target)
    wire.dump_response(unfold([message]))
    encoder = wire.encoder()
    written = b"".join(map(encoder.feed, unfold([message]))) + encoder.close()
    assert b"message_stop" in written


@pytest.mark.parametrize("text", ["a", " a\n", " ", "\ud800"])
def test_plain_messages_are_written_like_any_other(text: str):
    origin = Origin("other", prefix="x")
    plain = [
        Message.system(text),
        Message.user(text),
        Message.model(text).replace(origin=origin),
        Message.system(text),
    ]
    noted = [message.replace(native={"ui": {"n": 1}}) for message in plain]
    for target in (None, HERE, Origin("anthropic", model="claude-opus-4-8")):
        losses_ = {name: list[Loss]() for name in ("plain", "noted")}
        written = wire.dump_messages(plain, target=target, losses=losses_["plain"])
        assert wire.dump_messages(noted, target=target, losses=losses_["noted"]) == written
        assert losses_["plain"] == losses_["noted"]


@pytest.mark.parametrize("text", ["a", " a\n", " ", "", "\ud800"])
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_plain_entries_are_read_like_any_other(role: str, text: str):
    entry = {"role": role, "content": text}
    (plain,) = wire.load_messages({"messages": [entry]}, origin=HERE)
    (more,) = wire.load_messages({"messages": [{**entry, "x": 1}]}, origin=HERE)
    own = {key: value for key, value in (more.native or {}).items() if key != "anthropic"}
    assert plain == more.replace(native=own or None)


def test_what_cannot_be_read_is_noted_by_its_place_and_the_rest_is_read():
    entries = [
        {"role": "user", "content": "a"},
        "b",
        {"role": "tool", "content": "c"},
        {"role": ["user"], "content": "d"},
        {"role": "assistant", "content": [{"type": "text", "text": "e"}, "f"]},
        {"role": "user"},
        {"role": "user", "content": "g", "x": deep(2000)},
        {"role": "assistant", "content": "h"},
    ]
    problems = list[Problem]()
    messages = wire.load_messages(
        {"system": 5, "messages": entries}, origin=HERE, problems=problems
    )
    assert messages == [Message.user("a"), Message.model("h").replace(origin=HERE)]
    assert [(problem.index, problem.field) for problem in problems] == [
        (-1, "system"), (1, None), (2, "role"), (3, "role"), (4, "content"), (5, "content"), (6, None),
    ]  # fmt: skip
    assert problems[4].error == '"messages[4].content[1]" must be an object, a content block'
    again = list[Problem]()
    body = {"model": "m", "max_tokens": 5, "system": 5, "messages": entries}
    assert wire.load_request(body, origin=HERE, problems=again).messages == tuple(messages)
    assert again == problems


@pytest.mark.parametrize("load", [wire.load_messages, wire.load_request])
@pytest.mark.parametrize("payload", [[], {"messages": "x"}, None])
def test_what_is_no_conversation_is_refused_though_problems_are_noted(load: Any, payload: Any):
    with pytest.raises(HistoryError):
        load(payload, problems=[])
    with pytest.raises(HistoryError):
        wire.load_request({"messages": [], "x": deep(2000)}, problems=[])


@pytest.mark.parametrize(
    ("message", "votes"),
    [
        ({"role": "user", "content": "hi"}, 1),
        ({"role": "system", "content": "hi"}, 1),
        ({"role": "assistant", "content": []}, 1),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, 1),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}],
            },
            2,
        ),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]}, 2),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}],
            },
            3,
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}],
            },
            3,
        ),
        ({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a"}]}, 3),
        (
            {
                "role": "assistant",
                "content": [{"type": "web_search_tool_result", "tool_use_id": "a", "content": []}],
            },
            3,
        ),
        (
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "url", "url": "https://x"}}],
            },
            3,
        ),
        ({"role": "system", "output_config": {"effort": "low"}}, 3),
        ({"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}, 3),
        (
            {
                "role": "user",
                "content": [{"type": "new"}, {"type": "tool_result", "tool_use_id": "a"}],
            },
            3,
        ),
        ({"role": "user", "content": [{"type": "new"}, {"type": "text", "text": "hi"}]}, 0),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}]},
            0,
        ),
        ({"role": "user", "content": [{"type": "image", "image": "https://x"}]}, 0),
        (
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}],
            },
            0,
        ),
        ({"role": "user", "content": [{"type": ["text"]}, 5]}, 0),
        ({"role": "assistant", "content": "x", "tool_calls": []}, 0),
        ({"role": "tool", "content": "x"}, 0),
        ({"role": ["user"], "content": "x"}, 0),
        ({"role": "user", "content": None}, 0),
        ({"role": "system"}, 0),
        ({"role": "user", "parts": [{"text": "hi"}]}, 0),
        ({}, 0),
        ([], 0),
        ("hi", 0),
        (None, 0),
    ],
)
def test_how_surely_a_message_is_of_this_format(message: Any, votes: int):
    assert wire.votes(message) == votes


def test_all_that_is_written_could_be_of_this_format():
    entries = [entry for talk in NEUTRAL.values() for entry in dump(*talk)]
    assert {wire.votes(entry) for entry in entries} == {1, 3}
