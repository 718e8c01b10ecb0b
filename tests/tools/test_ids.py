"""Ids of tool calls (seed 003, tool_id_coordination_test)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dragoman.message import Message, TextPart, ToolCallPart, ToolResultPart
from dragoman.tools import (
    ToolIdCoordinator,
    assign_tool_call_ids,
    check_tool_ids,
    generate_tool_call_id,
    is_valid_tool_call_id,
)


def test_generated_ids_are_unique_and_valid() -> None:
    ids = {generate_tool_call_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(map(is_valid_tool_call_id, ids))
    assert not is_valid_tool_call_id("")
    assert not is_valid_tool_call_id(None)


def test_only_missing_ids_are_assigned() -> None:
    content = (
        TextPart("x"),
        ToolCallPart("kept", "a"),
        ToolCallPart("", "a", {"n": 1}),
        ToolCallPart("", "a", {"n": 1}),
    )
    assert assign_tool_call_ids(content, iter(["new", "newer"]).__next__) == (
        TextPart("x"),
        ToolCallPart("kept", "a"),
        ToolCallPart("new", "a", {"n": 1}),
        ToolCallPart("newer", "a", {"n": 1}),
    )
    assert len({call.id for call in assign_tool_call_ids([ToolCallPart("", "a")] * 5)}) == 5


def test_a_coordinator_registers_validates_and_clears() -> None:
    coordinator = ToolIdCoordinator()
    coordinator.register(ToolCallPart("1", "weather"))
    coordinator.register(ToolCallPart("2", "time"))
    assert coordinator.name("1") == "weather"
    assert coordinator.name("3") is None
    assert coordinator.validate(ToolResultPart("1", "weather"))
    assert not coordinator.validate(ToolResultPart("1", "weather"))
    assert not coordinator.validate(ToolResultPart("3", "weather"))
    assert coordinator.unmatched() == ["2"]
    coordinator.clear()
    assert (coordinator.unmatched(), coordinator.name("1")) == ([], None)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abcd")))
def test_repeated_ids_count_each(calls: list[str], results: list[str]) -> None:
    """D-31: providers repeat ids; nothing stops for it."""
    coordinator = ToolIdCoordinator()
    for call in calls:
        coordinator.register(ToolCallPart(call, "t"))
    matched = [result for result in results if coordinator.validate(ToolResultPart(result, "t"))]
    assert sorted(matched + coordinator.unmatched()) == sorted(calls)


def test_a_sound_conversation_has_no_faults() -> None:
    assert (
        check_tool_ids(
            [
                Message.user("hi"),
                Message.model(
                    ToolCallPart("1", "t"),
                    ToolCallPart("2", "t"),
                    ToolCallPart("s", "search", run_by="provider"),
                ),
                Message.user(ToolResultPart("2", "t"), ToolResultPart("1", "t")),
                Message.model(
                    "so", ToolCallPart("1", "t")
                ),  # a provider's id, used again in another round
                Message.user(ToolResultPart("1", "t")),
                Message.model(ToolCallPart("3", "t")),
            ]
        )
        == []
    )


def test_faults_of_a_conversation_are_told_with_their_place() -> None:
    assert check_tool_ids(
        [
            Message.user(ToolResultPart("0", "t")),
            Message.model(ToolCallPart("", "t"), ToolCallPart("1", "t"), ToolCallPart("1", "t")),
            Message.user(
                ToolResultPart("1", "t"),
                ToolResultPart("1", "t"),
                ToolResultPart("", "t"),
                ToolResultPart("9", "t"),
            ),
            Message.model(ToolCallPart("4", "t")),
            Message.user("never mind"),
            Message.model("well"),
            Message.user(ToolResultPart("4", "t")),
        ]
    ) == [
        "Message 0: Tool result '0' has no matching tool call",
        "Message 1: Tool call to 't' has no id",
        "Message 1: Tool call id '1' is used twice",
        "Message 2: Tool result '9' has no matching tool call",
        "Message 5: Tool call '4' before it has no result",
        "Message 6: Tool result '4' has no matching tool call",
    ]
