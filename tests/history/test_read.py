"""Formats in and out of a list: rules M-02, M-07 to M-12 and M-93, and what is known again when it
is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import MarkPart, Message, MessageList, Role
from dragoman.errors import HistoryError
from support.listed import START, call, fresh, model, outline, result, results, texts, user

CHAT: list[dict[str, Any]] = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": "q"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "21"},
    {"role": "assistant", "content": "a"},
]
UI: list[dict[str, Any]] = [
    {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "q"}], "metadata": {"x": 1}},
    {
        "id": "a1",
        "role": "assistant",
        "parts": [
            {"type": "step-start"},
            {
                "type": "tool-f",
                "toolCallId": "c1",
                "state": "output-available",
                "input": {"a": 1},
                "output": 21,
            },
            {"type": "step-start"},
            {"type": "text", "text": "a"},
            {"type": "data-weather", "data": {"t": 21}},
        ],
    },
]


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "user"},
        {"role": "user", "content": None},
        {"role": "user", "parts": None},
        {"id": "1", "role": "user"},
    ],
)
def test_m02_a_message_without_content_and_parts_is_an_error(fields: dict[str, Any]) -> None:
    with pytest.raises(HistoryError, match=r"messages\[0\]"):
        fresh().add(fields)


def test_m02_an_empty_text_is_fine() -> None:
    assert outline(
        fresh().add([{"role": "user", "content": ""}, {"role": "assistant", "content": "b"}])
    ) in (
        ["user: ", "model: b"],
        ["model: b"],
    )


def test_m07_a_role_that_a_format_does_not_know_is_an_error_of_that_message() -> None:
    messages = fresh().add(
        [*CHAT, {"role": "signal", "content": "x"}, {"role": "user", "content": "y"}],
        errors="collect",
    )
    assert [problem.index for problem in messages.problems] == [5]
    assert texts(messages)[-1] == "y"


def test_m08_a_message_of_another_conversation_is_refused_unless_it_was_loaded() -> None:
    mine = user("a", native={"ai_sdk": {"threadId": "t", "resourceId": "r"}})
    other = user("b", native={"ai_sdk": {"threadId": "t2"}})
    whose = user("c", native={"ai_sdk": {"threadId": "t", "resourceId": "r2"}})
    messages = fresh(thread_id="t", resource_id="r").add([mine, "plain"])
    with pytest.raises(HistoryError, match=r"^Received input message with wrong threadId"):
        messages.add(["x", other])
    with pytest.raises(HistoryError, match=r"^Received input message with wrong resourceId"):
        messages.add(whose, "response")
    assert texts(messages) == ["a", "plain"]
    assert len(messages.add([other, whose], "memory")) == 4
    assert texts(fresh().add([other, whose])) == ["b", "c"]


def test_m08_rows_name_the_lists_thread_and_resource_where_they_have_none() -> None:
    own = {
        "id": "b",
        "role": "user",
        "createdAt": "2026-01-01T00:00:00.000Z",
        "threadId": "other",
        "content": {"format": 2, "parts": [{"type": "text", "text": "b"}], "content": "b"},
    }
    messages = fresh(thread_id="t", resource_id="r").add(["a", model("c")]).add(own, "memory")
    rows = {
        row["content"]["content"]: (row["threadId"], row["resourceId"])
        for row in messages.export("mastra_v2")
    }
    assert rows == {"a": ("t", "r"), "b": ("other", "r"), "c": ("t", "r")}
    assert all(message.native is None for message in messages.get("input"))
    again = fresh(thread_id="t", resource_id="r").add(messages.export("mastra_v2"), "memory")
    assert texts(again) == texts(messages)


def test_m10_ids_are_kept_else_made() -> None:
    messages = fresh().add([user("a", id="mine"), "b", UI[0]])
    assert [message.id for message in messages] == ["mine", "1", "u1"]
    assert len({message.id for message in MessageList(["a"] * 100)}) == 100


@pytest.mark.parametrize(("given", "becomes"), [({"a": 1}, {"a": 1}), ({}, {})])
def test_m11_metadata_of_a_ui_message_go_there_and_back(
    given: dict[str, Any], becomes: dict[str, Any]
) -> None:
    message = {
        "id": "1",
        "role": "user",
        "parts": [{"type": "text", "text": "q"}],
        "metadata": given,
    }
    messages = fresh().add([message])
    assert messages.get()[0].metadata == becomes
    assert {
        key: value
        for key, value in messages.to_ui_messages(metadata=True)[0]["metadata"].items()
        if key != "dragoman"
    } == becomes


def test_m12_a_string_is_a_text_and_a_step_between_calls_and_texts_comes_back() -> None:
    assert outline(fresh().add({"role": "assistant", "content": "a"}, "response")) == ["model: a"]
    messages = fresh().add(UI)
    assert outline(messages)[1:3] == ["model: <step-start>, call c1", "user: result c1=21"]
    assert messages.to_ui_messages()[1]["parts"] == UI[1]["parts"]


def test_m93_times_are_stored_to_the_microsecond_and_the_list_is_untouched() -> None:
    time = START.replace(microsecond=123_456)
    messages = fresh().add(user("a", created_at=time))
    before = messages.get()
    data = messages.dump()
    assert messages.get() == before
    assert MessageList.load(data).get()[0].created_at == time
    assert b"2026-01-01T00:00:00.123456Z" in data


@pytest.mark.parametrize("payload", [CHAT, UI, {"messages": CHAT}, {"id": "chat", "messages": UI}])
def test_a_conversation_that_is_sent_again_is_known_again(payload: Any) -> None:
    messages = fresh().add(payload)
    before = list(messages)
    assert list(messages.add(payload)) == before
    assert list(messages.add(payload, "memory")) == before


def test_a_client_that_sends_all_and_one_more_adds_one() -> None:
    messages = fresh()
    for length in range(1, len(CHAT) + 1):
        messages.add(CHAT[:length])
    assert messages.export("openai_chat") == CHAT
    messages.add([*CHAT, {"role": "user", "content": "q"}])
    assert messages.export("openai_chat") == [*CHAT, {"role": "user", "content": "q"}]


def test_a_client_that_sends_the_last_messages_adds_what_follows_them() -> None:
    messages = fresh().add(["one", model("two"), "three", model("four")])
    messages.add(
        [
            {"role": "user", "content": "three"},
            {"role": "assistant", "content": "four"},
            {"role": "user", "content": "five"},
        ]
    )
    assert texts(messages) == ["one", "two", "three", "four", "five"]


def test_what_is_said_again_is_not_what_is_sent_again() -> None:
    messages = fresh().add(["yes", model("really?")])
    messages.add("yes").add(model("really?"), "response").add([{"role": "user", "content": "yes"}])
    assert texts(messages) == ["yes", "really?", "yes", "really?", "yes"]


def test_a_list_of_several_formats_is_written_as_each() -> None:
    messages = fresh().add(
        [
            CHAT[1],
            *UI[1:],
            {"role": "user", "content": [{"type": "text", "text": "x"}]},
            model(MarkPart("data-x")),
        ]
    )
    assert outline(messages)[0] == "user: q"
    for name in (
        "openai_chat",
        "anthropic",
        "google",
        "openai_responses",
        "mistral",
        "ollama",
        "cohere",
        "langchain",
        "pydantic_ai",
        "dragoman",
    ):
        again = MessageList().add(messages.export(name), format=name)
        assert [message.text for message in again.get() if message.text] == ["q", "a", "x"], name


def test_a_message_that_says_too_little_has_the_format_of_what_was_there() -> None:
    messages = fresh().add([{"role": "user", "parts": [{"text": "q"}]}])
    messages.add({"role": "model", "parts": [{"text": "a"}]}, "response")
    assert outline(messages) == ["user: q", "model: a"]


def test_lists_that_hold_themselves_and_deep_ones() -> None:
    loop: list[Any] = ["a"]
    loop.append(loop)
    with pytest.raises(HistoryError, match="holds itself"):
        fresh().add(loop)
    deep: Any = "a"
    for _ in range(10_000):
        deep = [deep]
    assert texts(fresh().add(deep)) == ["a"]
    nested: Any = {"role": "user", "content": "a"}
    for _ in range(300):
        nested = {"role": "user", "content": [nested]}
    with pytest.raises(HistoryError):
        fresh().add(nested)


@pytest.mark.parametrize(
    "given",
    [
        7,
        b"x",
        object(),
        {"a": 1},
        {"role": 7},
        [{"role": []}],
        {"messages": 7},
        [[1], {}],
        {"role": "user", "content": 7},
    ],
)
def test_what_is_no_message_is_an_error_of_ours(given: Any) -> None:
    messages = fresh()
    with pytest.raises(HistoryError):
        messages.add(given)
    assert len(messages.add(given, errors="skip")) == 0
    assert messages.problems == []
    assert len(messages.add([given, "a"], errors="collect")) == 1
    assert messages.problems


def test_a_result_that_comes_by_itself_answers_the_call() -> None:
    messages = (
        fresh()
        .add(["q", model(call(), id="m")])
        .add({"role": "tool", "tool_call_id": "c1", "content": "21"}, format="openai_chat")
    )
    assert outline(messages) == ["user: q", "model: call c1", "user: result c1=21"]
    assert [message.role for message in messages.prompt()] == [Role.USER, Role.MODEL, Role.USER]


def test_the_users_last_text() -> None:
    assert fresh().latest_user_content() is None
    assert (
        fresh().add(["a", user("b", "c"), model("d"), results(result())]).latest_user_content()
        == "bc"
    )
    assert isinstance(fresh().add("a").get_messages()[0], Message)
