"""What a tool may say of itself, without a run: it goes nowhere, and does no harm."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.errors import ToolError
from dragoman.event import Custom, MessageDropped, StateDelta, StateSnapshot
from dragoman.message import ToolCallPart
from dragoman.tools import Outbox, SharedState, ToolContext, ToolExecutor, tool
from support.tools import batch, call

pytestmark = pytest.mark.anyio


def test_a_tool_that_emits_works_in_an_executor_alone() -> None:
    @tool
    async def work(ctx: ToolContext) -> Any:
        await ctx.emit("begun")
        ctx.progress(1, 2)
        await ctx.state.patch([{"op": "add", "path": "/n", "value": 1}])
        return ctx.state.value

    @tool
    def grow() -> Any:
        yield 1
        yield 2

    results = batch(ToolExecutor(), [call("work"), call("grow")], work, grow)
    assert [each.part.result for each in results] == [{"n": 1}, 2]


def told(context: ToolContext[None]) -> list[Any]:
    return context.outbox.take()


def context(state: Any = None) -> ToolContext[None]:
    outbox = Outbox()
    return ToolContext(
        None, call=ToolCallPart("c1", "t"), state=SharedState(state, outbox), outbox=outbox
    )


def test_what_is_emitted_is_json_as_it_was_then() -> None:
    ctx, value = context(), [1]
    ctx.emit("list", value)
    ctx.emit(Custom("tuple", (1, 2), {"ag_ui": {"x": 1}}))
    value.append(2)
    assert told(ctx) == [Custom("list", [1]), Custom("tuple", [1, 2], {"ag_ui": {"x": 1}})]


@pytest.mark.parametrize("wrong", [float("nan"), {(1, 2): 3}])
def test_what_json_has_not_is_refused(wrong: Any) -> None:
    ctx = context()
    with pytest.raises(ToolError):
        ctx.emit("x", wrong)
    with pytest.raises(ToolError):
        ctx.state.replace(wrong)
    assert told(ctx) == []


def test_an_event_of_a_message_is_refused_in_words() -> None:
    with pytest.raises(
        ToolError,
        match="a tool cannot emit MessageDropped: events of runs, steps and messages are the run's own",
    ):
        context().emit(MessageDropped("m"))


def test_the_state_changes_by_patches_and_by_events_of_states() -> None:
    ctx = context({"a": [1]})
    ctx.state.value["a"].append(2)  # a copy
    ctx.state.patch([{"op": "add", "path": "/a/-", "value": 3}])
    assert ctx.state.value == {"a": [1, 3]}
    ctx.emit(StateDelta(({"op": "remove", "path": "/a"},)))
    assert ctx.state.value == {}
    ctx.emit(StateSnapshot([]))
    assert ctx.state.value == []
    events = told(ctx)
    events[-1].state.append("what a reader does to an event")
    assert ctx.state.value == []
    assert [*events[:-1], StateSnapshot([])] == [
        StateDelta(({"op": "add", "path": "/a/-", "value": 3},)),
        StateDelta(({"op": "remove", "path": "/a"},)),
        StateSnapshot([]),
    ]


def test_the_first_patch_of_no_state_makes_one() -> None:
    ctx = context()
    ctx.state.patch([{"op": "add", "path": "/a", "value": 1}])
    assert told(ctx) == [StateSnapshot({"a": 1})]


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "/b", "value": 1}, {"op": "test", "path": "/a", "value": 2}],
        [{"op": "move", "path": "/x"}],
        [{"op": "no such"}],
        [{}],
        ["text"],
    ],
)
def test_a_patch_is_applied_whole_or_not_at_all(operations: Any) -> None:
    ctx = context({"a": 1})
    with pytest.raises(ToolError, match="the shared state cannot be patched by"):
        ctx.state.patch(operations)
    assert ctx.state.value == {"a": 1}
    assert told(ctx) == []
