"""What a conversation waits for, read off its messages and tools."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Interrupt, Message, Tool, ToolCallPart, ToolResultPart, repair, tool
from dragoman.codec.digest import neutral_digest
from dragoman.errors import HistoryError
from dragoman.message import OURS, MarkPart
from dragoman.orchestration.interrupts import (
    WaitingCall,
    answer_ids,
    find_waiting_calls,
    has_new_prompt,
)
from dragoman.orchestration.seal import Seal
from dragoman.repair import bind_to_call, find_open_calls
from dragoman.tools import tool_map
from dragoman.tools.call_record import InnerRun
from support.model import call


@tool(requires_approval=True)
def delete(path: str = "") -> str:
    return path


@tool
def look() -> str:
    return ""


TOOLS = tool_map([delete, look, Tool("ask")])


def waits(*messages: Message) -> list[tuple[str, str]]:
    return [
        (one.id, one.reason)
        for each in find_waiting_calls(messages, TOOLS, Seal())
        for one in each.interrupts
    ]


def test_calls_of_the_last_round_without_result_wait_for_what_their_tool_says() -> None:
    calls = Message.model(
        call("delete", id="a"),
        call("look", id="b"),
        call("ask", id="c"),
        call("other", id="d"),
        call("delete", id="e"),
    )
    results = Message.user(ToolResultPart("e", "delete", "done"))
    assert waits(Message.user("hi"), calls, results) == [
        ("a", "approval"),
        ("c", "tool"),
        ("d", "tool"),
    ]
    assert waits(Message.user("hi"), calls, Message.model("Well.")) == waits(calls)
    assert waits(calls, repair([calls])[1]) == []
    assert waits(Message.user("hi")) == waits() == []


def test_what_cannot_be_run_and_what_the_provider_runs_waits_for_nobody() -> None:
    cut = ToolCallPart("a", "delete", state="cut", raw="{")
    provider = ToolCallPart("b", "delete", run_by="provider")
    client = ToolCallPart("c", "look", run_by="client")
    assert waits(Message.model(cut, provider, client)) == [("c", "tool")]


def test_an_id_is_the_calls_where_the_conversation_has_it_once() -> None:
    earlier = Message.model(call("delete", id="a"))
    answer = Message.user(ToolResultPart("a", "delete", "x"))
    last = Message.model(call("delete", id="a"))
    assert waits(last) == [("a", "approval")]
    assert waits(earlier, answer, last.replace(id="m2")) == [("a@m2", "approval")]
    assert waits(earlier, answer, last) == [(f"a@{neutral_digest(last)}", "approval")]
    twins = Message.model("Two.", call("delete", id="a"), call("delete", id="a")).replace(id="m")
    assert waits(twins) == [("a@m#1", "approval"), ("a@m#2", "approval")]


@given(st.booleans(), st.booleans())
def test_a_call_keeps_the_ids_of_longer_and_shorter_histories(named: bool, twice: bool) -> None:
    earlier = [
        Message.model(call("delete", id="a")),
        Message.user(ToolResultPart("a", "delete", "x")),
    ]
    last = Message.model(call("delete", id="a")).replace(id="m" if named else None)
    long, short = [*earlier, last] if twice else [last], [last]
    first, *others = answer_ids(long, find_open_calls(long)[0])
    assert {first, *others} == set(answer_ids(short, find_open_calls(short)[0]))


def test_a_mark_tells_what_messages_and_tools_do_not_and_the_latest_counts() -> None:
    last = Message.model(call("look", id="a", x=1))
    (one,) = find_open_calls([last])
    ask = Interrupt("a", "input", one.call, "Which?", {"type": "string"}, metadata={"k": [1]})
    inner = InnerRun((Message.user("hi").replace(id="u"), Message.model("ho")), "ho", True)
    first = WaitingCall(one, (msgspec.structs.replace(ask, message="What?"),))
    second = WaitingCall(one, (ask,), (1, {"b": None}), {"x": 2}, True, (inner,))
    history = [last, Message.user(first.mark()), Message.user(second.mark())]
    stored = [Message.from_json(message.to_json()) for message in history]
    assert find_waiting_calls(stored, TOOLS, Seal()) == [second]
    assert repair(stored)[1].tool_results[0].is_error


@pytest.mark.parametrize(
    "fields",
    [{}, {"call": 1, "turn": 0, "waits": []}, "text", {"call": "a", "turn": 0, "waits": [{}]}],
)
def test_a_mark_that_cannot_be_read_is_an_error_of_the_history(fields: Any) -> None:
    mark = MarkPart("interrupt", {OURS: fields})
    with pytest.raises(HistoryError, match="cannot be read"):
        find_waiting_calls([Message.model(call("look", id="a")), Message.user(mark)], TOOLS, Seal())


def test_marks_of_others_tell_nothing() -> None:
    marks = Message.user(
        MarkPart("interrupt", {"other": {}}), MarkPart("step", {OURS: {}}), MarkPart("interrupt")
    )
    assert waits(Message.model(call("delete", id="a")), marks) == [("a", "approval")]


def test_somebody_speaks_where_more_than_results_and_marks_follow_the_model() -> None:
    before = [Message.user("hi"), Message.model(call("look"))]
    assert not has_new_prompt(before)
    assert not has_new_prompt(
        [*before, Message.user(ToolResultPart("c1", "look", 1), MarkPart("interrupt"))]
    )
    assert has_new_prompt(
        [*before, Message.user(ToolResultPart("c1", "look", 1)), Message.user("Well?")]
    )
    assert not has_new_prompt([*before, Message.system("Be brief.")])


@given(st.permutations(range(4)), st.integers(1, 4))
def test_results_that_say_their_call_find_it_in_any_order(order: list[int], first: int) -> None:
    calls = Message.model(*[call("ask", id="same", n=number) for number in range(4)])
    parts = [bind_to_call(ToolResultPart("same", "ask", number), number) for number in order]
    mended = repair(
        [calls, Message.user(*parts[:first]), *[Message.user(part) for part in parts[first:]]]
    )
    assert [part.result for part in mended[1].tool_results] == [0, 1, 2, 3]
    assert all(part.native is None for part in mended[1].tool_results)
    assert len(mended) == 2
    assert repair(mended) == mended


def test_a_second_result_for_a_call_is_dropped_also_where_it_says_its_call() -> None:
    calls = Message.model(call("ask", id="a"), call("ask", id="a", n=1))
    part = bind_to_call(ToolResultPart("a", "ask", "late"), 1)
    mended = repair([calls, Message.user(part, part)])
    assert [each.is_error for each in mended[1].tool_results] == [True, False]
    strange = bind_to_call(ToolResultPart("a", "ask", "?"), 7)
    assert repair([calls, Message.user(strange)])[1].tool_results[0].result == "?"
