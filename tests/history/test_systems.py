"""System messages of a list: rules M-50 to M-55."""

from __future__ import annotations

import pytest

from dragoman import Message, MessageList, formats
from dragoman.errors import HistoryError
from support.listed import fresh, model, texts, user


def test_m50_system_messages_live_apart() -> None:
    messages = fresh().add([Message.system("s"), "a", model("b")])
    assert texts(messages.get()) == ["a", "b"]
    assert texts(messages.system) == ["s"]
    assert messages.unsaved() == tuple(messages.get())
    assert [message["role"] for message in messages.to_ui_messages()] == ["user", "assistant"]


def test_m51_each_is_there_once_however_it_came() -> None:
    messages = (
        fresh()
        .add_system("s")
        .add_system(Message.system("s"))
        .add_system({"role": "system", "content": "s"})
    )
    messages.add(Message.system("s"), "system").add("s", "system").add(
        [Message.system("s"), "a"], "memory"
    )
    messages.add({"role": "system", "content": "s"}, "response")
    assert texts(messages) == ["s", "a"]
    messages.add_system(["t", "t"])
    assert texts(messages.system) == ["s", "t"]


def test_m51_tags_are_buckets_of_their_own() -> None:
    messages = (
        fresh().add_system("s").add_system("s", "x").add_system("s", "x").add_system("s", "y")
    )
    assert [texts(messages.system_messages(tag)) for tag in (None, "x", "y", "z")] == [
        ["s"],
        ["s"],
        ["s"],
        [],
    ]


def test_m51_of_the_same_length_is_not_the_same() -> None:
    one, other = Message.system("a", "bc"), Message.system("x", "yz")
    assert texts(fresh().add_system([one, other]).system) == ["abc", "xyz"]


def test_m52_a_loaded_system_message_is_kept() -> None:
    assert texts(fresh().add(Message.system("s"), "memory").system) == ["s"]


def test_m53_one_of_a_user_interface_is_read_and_others_are_no_system_messages() -> None:
    assert texts(
        fresh()
        .add_system({"id": "1", "role": "system", "parts": [{"type": "text", "text": "s"}]})
        .system
    ) == ["s"]
    for add in (
        lambda it: it.add_system(user("a")),
        lambda it: it.add(model("a"), "system"),
        lambda it: it.add_system({"role": "user", "content": "a"}),
    ):
        messages = fresh()
        with pytest.raises(HistoryError, match="of the role"):
            add(messages)
        assert len(messages) == 0


def test_m54_untagged_then_tagged_then_the_conversation() -> None:
    messages = fresh().add("a").add_system("t", "tag").add_system("s")
    assert texts(messages.prompt()) == ["s", "t", "a"]
    assert texts(messages) == ["s", "t", "a"]
    assert texts(messages.all_system_messages()) == ["s", "t"]


def test_m55_a_bucket_is_cleared_and_all_are_replaced() -> None:
    messages = fresh().add_system(["s", "t"]).add_system("x", "tag")
    assert texts(messages.clear_system()) == ["s", "t"]
    assert texts(messages) == ["x"]
    assert texts(messages.replace_system("new")) == ["new"]
    assert messages.system_messages("tag") == []
    assert texts(messages.add_system("x", "tag").clear_system("tag")) == ["x"]
    assert texts(messages.add_system("x")) == ["new", "x"]


def test_one_within_a_conversation_stays_there_where_it_is_written() -> None:
    given = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "a"},
        {"role": "system", "content": "late"},
        {"role": "assistant", "content": "b"},
    ]
    messages = fresh().add(given)
    assert messages.export("openai_chat") == given
    assert texts(messages.prompt()) == ["s", "late", "a", "b"]
    assert MessageList.load(messages.dump()).export("openai_chat") == given
    assert formats.get("openai_chat").dump_messages(messages.fork()) == given
