"""Lists of messages that no JSON made: deep, endless, not JSON at all, with odd times and ids; from
several threads at once."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from threading import Thread
from typing import Any

import pytest

from dragoman import formats
from dragoman.errors import HistoryError
from dragoman.history import MessageList
from dragoman.loss import Loss
from dragoman.message import Message, ThinkingPart, ToolCallPart, ToolResultPart

DEEP = 10**5


def nested(depth: int, inner: Any = None) -> list[Any]:
    made: list[Any] = [] if inner is None else [inner]
    for _ in range(depth):
        made = [made]
    return made


def called(arguments: Any, result: Any) -> list[Message]:
    call = ToolCallPart("c", "f", arguments)
    return [Message.user("q"), Message.model(call), Message.user(ToolResultPart("c", "f", result))]


def written(messages: MessageList, *, stored: bool = True) -> None:
    """As every format has it, planned, stored and cut. `stored`: whether our own JSON can hold
    it."""
    for name in formats.names():
        if stored or name != "dragoman":
            messages.export(name, losses=list[Loss]())
            messages.plan(name)
    if stored:
        assert [message.role for message in MessageList.load(messages.dump())] == [
            message.role for message in messages
        ]
    else:
        for refused in (messages.dump, lambda: messages.export("dragoman")):
            with pytest.raises(HistoryError, match="cannot be stored as JSON"):
                refused()
    messages.prompt()
    messages.fork().trim(tokens=1)


@pytest.mark.slow
def test_lists_in_lists_are_read_however_deep() -> None:
    assert [message.text for message in MessageList().add(nested(DEEP, "a"))] == ["a"]
    shared = ["b"]
    assert len(MessageList().add([shared, [shared]])) == 2
    shared.append(shared)  # type: ignore[arg-type]
    with pytest.raises(HistoryError, match="holds itself"):
        MessageList().add(shared)


@pytest.mark.parametrize("name", formats.names())
@pytest.mark.slow
def test_a_deep_payload_of_a_format_is_refused(name: str) -> None:
    with pytest.raises(HistoryError):
        formats.get(name).load_messages(nested(DEEP, 1))


@pytest.mark.parametrize("odd", [nested(DEEP), object(), {1, 2}, {(1, 2): 3}, {1: [lambda: 0]}])
def test_what_is_no_json_in_a_message_is_named(odd: Any) -> None:
    for talk, position in ((called({"a": odd}, 1), 1), (called({}, odd), 2)):
        messages = MessageList(talk)
        failed = 0
        for name in formats.names():
            for write in (messages.export, messages.plan):
                try:
                    write(name)
                except HistoryError as error:
                    failed += 1
                    assert f"messages[{position}] cannot be written as JSON" in error.message
        assert failed
        with suppress(HistoryError):  # what is no JSON may have a size
            messages.trim(tokens=1)


def test_what_is_no_json_is_named_where_it_is_added_again() -> None:
    messages = MessageList(called({"a": object()}, 1))
    before = list(messages)
    with pytest.raises(HistoryError, match=r"messages\[1\] cannot be written as JSON"):
        messages.add(called({"a": object()}, 1))
    assert list(messages) == before


def test_an_error_of_our_own_is_not_taken_for_the_messages() -> None:
    with pytest.raises(TypeError, match="unexpected"):
        MessageList(["a"]).export("openai_chat", unexpected=1)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 10**400, "\ud800", {"\udc00": ["\udfff"]}]
)
def test_numbers_and_texts_that_json_hardly_has_are_written(value: Any) -> None:
    """Halves of characters are replaced where they enter (1.16)."""
    written(MessageList(called({"a": value}, value)), stored=True)


def test_half_pairs_of_surrogates_everywhere() -> None:
    model = Message.model(ThinkingPart("\udfff"), ToolCallPart("\ud801", "\ud802", {})).replace(
        id="\ud804"
    )
    written(
        MessageList(
            [
                Message.user("\ud800"),
                model,
                Message.user(ToolResultPart("\ud801", "\ud802", "\ud805")),
            ]
        ),
        stored=True,
    )


@pytest.mark.parametrize("source", ["input", "response", "memory"])
def test_times_without_a_zone_and_at_the_ends_of_the_calendar(source: Any) -> None:
    early, late = timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))
    times = [
        datetime(2020, 1, 1), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999), datetime(2020, 1, 1, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=early), datetime(9999, 12, 31, 23, tzinfo=late),
    ]  # fmt: skip
    talk = [Message.user(str(at)).replace(created_at=time) for at, time in enumerate(times)]
    written(MessageList().add(talk, source))


@pytest.mark.parametrize("odd", [None, True, 1, 1.5, [], {}, object(), b"", "", "null", b"[]"])
def test_what_is_no_stored_list_is_refused(odd: Any) -> None:
    with pytest.raises(HistoryError):
        MessageList.load(odd)


def test_native_of_another_type_is_passed_over() -> None:
    native: Any = {
        "openai_chat": 5,
        "ai_sdk": [1],
        "ai_sdk:notes": 3,
        "langchain": "x",
        "pydantic_ai:notes": [],
    }
    written(
        MessageList(
            [Message.user("q").replace(native=native), Message.model("a").replace(native=native)]
        )
    )


def test_ids_of_a_megabyte_and_one_id_for_all_roles() -> None:
    long = "i" * 10**6
    talk = called({}, 1)
    written(MessageList([message.replace(id=long + str(at)) for at, message in enumerate(talk)]))
    same = [Message.user("q"), Message.model("b"), Message.system("s"), Message.user("c")]
    messages = MessageList([message.replace(id="a") for message in same])
    assert {message.text for message in messages} >= {"s", "c"}
    written(messages)


def test_a_list_may_grow_while_it_is_read() -> None:
    messages = MessageList(["a", "b"])
    seen = [
        message.text
        for message, _ in zip(messages, range(50), strict=False)
        if len(messages.add("c", merge=False))
    ]
    assert seen[:2] == ["a", "b"]
    assert len(messages) >= 2 + len(seen)
    itself = MessageList(["a", Message.model("b")])
    assert len(itself.add(itself)) == 2


def test_lists_of_their_own_in_threads_are_whole() -> None:
    """Formats, digests and detection share what is remembered."""
    found: list[int] = []

    def work(number: int) -> None:
        messages = MessageList()
        for at in range(60):
            messages.add({"role": "user", "content": f"{number} {at}"}).add(
                Message.model(str(at)), "response"
            )
        found.append(len(MessageList().add(messages.export("ai_sdk_ui"))))

    threads = [Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [120] * 4
