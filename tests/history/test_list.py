"""`MessageList`: what is taken in, and that it is a sequence of messages."""

from __future__ import annotations

import pytest

from dragoman import Agent, Message, MessageList, Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.errors import HistoryError
from dragoman.testing import ScriptedModel


def texts(messages: object) -> list[str]:
    return [message.text for message in messages]  # type: ignore[attr-defined]


def test_m01_strings_messages_lists_of_them_and_bodies_are_taken() -> None:
    mine = Message.model("b")
    messages = MessageList(id_factory=iter("123456789").__next__)
    given = [
        "a",
        [mine, [{"role": "user", "content": "c"}]],
        {"messages": [{"role": "assistant", "content": "d"}]},
        None,
        "",
        [],
        {},
    ]
    assert messages.add(given) is messages
    assert texts(messages) == ["a", "b", "c", "d"]
    assert [message.role for message in messages] == [Role.USER, Role.MODEL, Role.USER, Role.MODEL]
    assert [message.id for message in messages] == ["1", "2", "3", "4"]
    for nothing in (None, "", [], {}, [[], [None]]):
        assert texts(messages.add(nothing)) == ["a", "b", "c", "d"]


def test_m01_several_formats_in_one_list() -> None:
    given = [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "x"}]},
        {"type": "human", "data": {"content": "b", "type": "human"}},
    ]
    messages = MessageList(given)
    assert [type(piece) for message in messages for piece in message.content] == [
        TextPart,
        ToolCallPart,
        ToolResultPart,
        TextPart,
    ]


def test_it_is_a_sequence_whose_messages_stay_the_same_objects() -> None:
    messages = MessageList(["a", "b"]).add_system("s", "tag")
    first = list(messages)
    assert (len(messages), messages[0], messages[-1], messages[1:]) == (
        3,
        first[0],
        first[2],
        tuple(first[1:]),
    )
    assert texts(messages) == ["s", "a", "b"]
    messages.add("c")
    assert all(one is other for one, other in zip(first, messages, strict=False))


def test_system_messages_that_came_first_stand_first() -> None:
    messages = MessageList([{"role": "system", "content": "s"}, {"role": "user", "content": "a"}])
    assert texts(messages) == ["s", "a"]
    assert texts(messages.get()) == ["a"]
    assert messages.export("anthropic")["system"] == "s"


@pytest.mark.anyio
async def test_an_agent_takes_it_as_history() -> None:
    model = ScriptedModel(["Hello."])
    messages = MessageList(
        [{"role": "user", "content": "I am Ann."}, {"role": "assistant", "content": "Hi."}]
    )
    result = await Agent(model).send("Who am I?", history=messages)
    assert result.output == "Hello."
    assert texts(messages) == ["I am Ann.", "Hi.", "Who am I?", "Hello."]
    assert [texts(messages.get(source)) for source in ("input", "response")] == [
        ["I am Ann.", "Hi.", "Who am I?"],
        ["Hello."],
    ]


def test_what_cannot_be_read_is_raised_left_out_or_noted_by_its_index() -> None:
    given = [
        {"role": "user", "content": "a"},
        {"role": "emperor", "content": "b"},
        7,
        {"role": "user", "content": "c"},
    ]
    with pytest.raises(HistoryError, match=r"messages\[1\]"):
        MessageList(given)
    assert texts(MessageList().add(given, errors="skip")) == ["a", "c"]
    messages = MessageList().add(given, errors="collect")
    assert texts(messages) == ["a", "c"]
    assert [problem.index for problem in messages.problems] == [1, 2]


def test_m23_what_is_not_saved_is_given_once() -> None:
    messages = MessageList("m", thread_id="t")
    messages.drain_unsaved()
    messages.add("old", source="memory").add("ask").add(
        Message.model("answer"), source="response"
    ).add("note", source="context")
    assert texts(messages.unsaved()) == ["ask", "answer"]
    assert texts(messages.drain_unsaved()) == ["ask", "answer"]
    assert messages.drain_unsaved() == []
    assert texts(messages) == ["m", "old", "ask", "answer", "note"]


def test_m20_another_source_is_an_error() -> None:
    with pytest.raises(HistoryError, match="not from 'moon'"):
        MessageList().add("a", source="moon")
    assert texts(MessageList().add("a", source="user").get("input")) == ["a"]


def test_what_is_dumped_is_loaded_as_it_was() -> None:
    messages = (
        MessageList("a", thread_id="t", resource_id="r")
        .add_system("s", tag="x")
        .add(Message.model("b"), source="response")
    )
    loaded = MessageList.load(messages.dump())
    assert list(loaded) == list(messages)
    assert loaded.dump() == messages.dump()
    assert (loaded.thread_id, loaded.resource_id, loaded.unsaved()) == (
        "t",
        "r",
        messages.unsaved(),
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"list_version":9,"messages":[],"order":[],"live":[],"origins":[],"sealed":[]}',
    ],
)
def test_what_is_no_stored_list_is_refused(data: bytes) -> None:
    with pytest.raises(HistoryError):
        MessageList.load(data)
