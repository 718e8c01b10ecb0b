"""Running tool calls: order, errors, time, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import SettingsError
from dragoman.message import Message, ToolCallPart
from dragoman.tools import ParallelToolExecutor, Tool, ToolContext, ToolExecutor, tool
from support.tools import EXECUTORS, batch, call, outcome, raising


class Stop(BaseException):
    """No Exception."""


@EXECUTORS
def test_what_is_no_exception_passes(executor: ToolExecutor) -> None:
    """Decision 5."""
    stop, wait = Tool("stop", handler=raising(Stop())), Tool("wait", handler=asyncio.Event().wait)
    with pytest.raises(Stop):
        batch(executor, [call("stop"), call("wait")], stop, wait)


@pytest.mark.parametrize("calls", [["wait", "stop"], ["wait", "wait", "stop", "stop"]])
def test_what_is_no_exception_ends_the_calls_beside_it(calls: list[str]) -> None:
    stop, wait = Tool("stop", handler=raising(Stop())), Tool("wait", handler=asyncio.Event().wait)
    with pytest.raises(Stop):
        batch(ParallelToolExecutor(), [call(name) for name in calls], stop, wait)


@EXECUTORS
def test_one_failure_does_not_stop_the_others(executor: ToolExecutor) -> None:
    """D-37, D-39, section 7.4 case 4."""
    fine, fails = (
        Tool("fine", handler=lambda: "ok"),
        Tool("fails", handler=raising(ValueError("no"))),
    )
    results = batch(
        executor,
        [call("fine", "a"), call("unknown", "b"), call("fails", "c"), call("fine", "d")],
        fine,
        fails,
    )
    assert [(each.part.id, each.part.name, each.error) for each in results] == [
        ("a", "fine", None),
        ("b", "unknown", "there is no tool named 'unknown'; the tools are: fine, fails"),
        ("c", "fails", "no"),
        ("d", "fine", None),
    ]
    assert [each.tool_call.id for each in results] == ["a", "b", "c", "d"]
    assert batch(executor, []) == []


@EXECUTORS
def test_repeated_and_missing_ids_do_not_stop_execution(executor: ToolExecutor) -> None:
    """D-31."""
    ran: list[int] = []
    batch(
        executor,
        [call("add", "", n=1), call("add", "x", n=2), call("add", "x", n=3)],
        Tool("add", handler=ran_into(ran)),
    )
    assert sorted(ran) == [1, 2, 3]


def ran_into(ran: list[int]) -> Callable[..., None]:
    def add(n: int) -> None:
        ran.append(n)

    return add


@pytest.mark.parametrize(("state", "text"), [("cut", "truncated"), ("invalid", "not valid JSON")])
def test_a_call_that_cannot_be_read_is_never_run(state: Any, text: str) -> None:
    broken = ToolCallPart("1", "it", raw='{"n": 1', state=state)
    (result,) = batch(
        ToolExecutor(), [broken], Tool("it", handler=lambda: pytest.fail("it was run"))
    )
    assert text in str(result.error)


def test_what_the_provider_ran_is_never_run() -> None:
    """Decision 22."""
    theirs = ToolCallPart("1", "it", run_by="provider")
    (result,) = batch(
        ToolExecutor(), [theirs], Tool("it", handler=lambda: pytest.fail("it was run"))
    )
    assert "run by the provider" in str(result.error)


def test_null_arguments_are_none_at_all() -> None:
    """D-42, and D-44: who takes nothing is given nothing."""
    empty = ToolCallPart("1", "it", None)  # as a careless caller makes it
    (result,) = batch(ToolExecutor(), [empty], Tool("it", handler=lambda: "ran"))
    assert result.result == "ran"


def test_arguments_that_do_not_fit_are_answered_with_what_is_expected() -> None:
    """Decision 6."""

    @tool
    def double(n: int) -> int:
        return 2 * n

    good, bad = batch(ToolExecutor(), [call("double", n="4"), call("double", n="four")], double)
    assert good.part.result == 8
    assert str(bad.error).startswith("invalid arguments: n: Input should be a valid integer")
    assert bad.part.is_error


RAW = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "n": {"type": ["number", "null"]},
        "s": {"type": "string"},
        "b": {"type": "boolean"},
        "a": {"type": "array"},
        "o": {"type": "object"},
        "any": {},
        "odd": {"type": "date"},
        "bool": True,
    },
    "required": ["i"],
}


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (
            {
                "i": 1,
                "n": 2,
                "s": "",
                "b": True,
                "a": [],
                "o": {},
                "any": object,
                "odd": 1,
                "bool": 0,
                "more": 1,
            },
            None,
        ),
        ({"i": 1.0, "n": None}, None),
        ({}, "i: is required, but was not given"),
        ({"i": 1.5}, "i: should be integer, got 1.5"),
        ({"i": True}, "i: should be integer, got True"),
        ({"i": 1, "n": "x"}, "n: should be number or null, got 'x'"),
        ({"i": 1, "b": 0}, "b: should be boolean, got 0"),
        ({"i": 1, "odd": True}, None),
    ],
)
def test_a_raw_schema_is_checked_lightly_and_converts_nothing(
    arguments: dict[str, Any], fault: str | None
) -> None:
    arguments = {name: value for name, value in arguments.items() if value is not object}
    (result,) = batch(
        ToolExecutor(),
        [call("it", **arguments)],
        Tool("it", handler=lambda **given: given, input_schema=RAW),
    )
    assert result.error == (None if fault is None else f"invalid arguments: {fault}")
    assert fault is not None or result.part.result == arguments


@EXECUTORS
def test_the_context_holds_the_call_and_the_run(executor: ToolExecutor) -> None:
    @tool
    async def look(ctx: ToolContext[str], n: int) -> list[Any]:
        return [ctx.deps, ctx.run_id, len(ctx.messages), ctx.call.id, n]

    calls = [call("look", "a", n=1), call("look", "b", n=2)]
    results = batch(executor, calls, look, deps="d", run_id="r", messages=(Message.user("hi"),))
    assert [each.part.result for each in results] == [["d", "r", 1, "a", 1], ["d", "r", 1, "b", 2]]


def test_plain_functions_run_in_a_thread_with_the_callers_context() -> None:
    seen = contextvars.ContextVar("seen", default="nothing")

    async def go() -> tuple[Any, Any]:
        seen.set("this")
        handler = Tool(
            "it",
            handler=lambda: [seen.get(), threading.current_thread() is threading.main_thread()],
        )
        result = await ToolExecutor().execute_single(call("it"), {"it": handler})
        return result.part.result

    assert asyncio.run(go()) == ["this", False]


def test_a_coroutine_function_runs_in_the_callers_loop() -> None:
    async def loop() -> bool:
        return threading.current_thread() is threading.main_thread()

    assert outcome(loop).part.result is True


def test_a_tool_that_takes_too_long_is_an_error() -> None:
    """Decision 5: also a thread that cannot be stopped."""
    release = threading.Event()
    for handler in (lambda: release.wait(5), asyncio.Event().wait):
        assert outcome(handler, timeout=0.01).error == "it did not finish within 0.01 seconds"
    release.set()
    assert outcome(lambda: "quick", timeout=10).result == "quick"


def test_parallel_calls_really_run_side_by_side_and_keep_their_order() -> None:
    """Decision 7: each call waits for the one after it, so they finish in the opposite order."""
    finished: list[int] = []

    async def go() -> list[Any]:
        done = [asyncio.Event() for _ in range(6)]
        done[5].set()

        async def wait(n: int) -> int:
            await done[n + 1].wait()
            finished.append(n)
            done[n].set()
            return n

        results = await ParallelToolExecutor().execute_batch(
            [call("wait", n=n) for n in range(5)], {"wait": Tool("wait", handler=wait)}
        )
        return [each.part.result for each in results]

    assert asyncio.run(go()) == [0, 1, 2, 3, 4]
    assert finished == [4, 3, 2, 1, 0]


@given(st.integers(1, 4), st.lists(st.booleans(), max_size=12))
def test_concurrency_is_bounded_and_sequential_tools_are_barriers(
    most: int, pattern: list[bool]
) -> None:
    """Decision 7."""
    running: set[int] = set()
    peaks: list[int] = []
    ended: list[int] = []

    async def free(n: int) -> int:
        running.add(n)
        for _ in range(3):
            peaks.append(len(running))
            await anyio.lowlevel.checkpoint()
        running.remove(n)
        ended.append(n)
        return n

    async def alone(n: int) -> int:
        assert not running
        assert sorted(ended) == list(range(n))
        return await free(n)

    tools = (Tool("free", handler=free), Tool("alone", handler=alone, sequential=True))
    calls = [call("alone" if barrier else "free", n=n) for n, barrier in enumerate(pattern)]
    results = batch(ParallelToolExecutor(most), calls, *tools)
    assert [each.part.result for each in results] == list(range(len(pattern)))
    assert max(peaks, default=0) <= most
    assert max(peaks, default=0) >= min(
        most, max(map(len, "".join("x" if b else "-" for b in pattern).split("x")))
    )


def test_at_least_one_call_must_be_able_to_run() -> None:
    with pytest.raises(SettingsError, match="max_concurrency is 0"):
        ParallelToolExecutor(0)


@EXECUTORS
@pytest.mark.parametrize("timeout", [None, 60.0])
def test_cancelling_the_caller_cancels_and_awaits_every_call(
    executor: ToolExecutor, timeout: float | None
) -> None:
    """Decision 5: cancellation passes, and no task outlives the batch."""
    begun: list[int] = []
    cleaned: list[int] = []

    async def go() -> None:
        all_begun = asyncio.Event()

        async def hang(n: int) -> None:
            begun.append(n)
            if len(begun) == (1 if type(executor) is ToolExecutor else 3):
                all_begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                with anyio.CancelScope(shield=True):
                    await asyncio.sleep(0)
                cleaned.append(n)

        tools = {"hang": Tool("hang", handler=hang, timeout=timeout)}
        task = asyncio.create_task(
            executor.execute_batch([call("hang", n=n) for n in range(3)], tools)
        )
        await all_begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(cleaned) == sorted(begun)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())


@pytest.mark.parametrize("cancels", [1, 2])
def test_a_tool_that_swallows_a_cancellation_is_cancelled_again(
    monkeypatch: pytest.MonkeyPatch, cancels: int
) -> None:
    """After a while, or when the caller is."""
    monkeypatch.setattr("dragoman.tools.executor._CANCELLED_AGAIN", 0.01 if cancels == 1 else 60)

    async def go() -> None:
        begun, swallowed = asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            begun.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            swallowed.set()
            await asyncio.Event().wait()

        tools = {"stubborn": Tool("stubborn", handler=stubborn)}
        task = asyncio.create_task(
            ParallelToolExecutor().execute_batch([call("stubborn"), call("stubborn")], tools)
        )
        for ready in (begun, swallowed)[:cancels]:
            await ready.wait()
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(go())


def test_a_tool_that_is_cancelled_may_clean_up() -> None:
    cleaned: list[str] = []

    async def go() -> None:
        begun = asyncio.Event()

        async def hang() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0.001)
                cleaned.append("hang")

        tools = {"hang": Tool("hang", handler=hang)}
        task = asyncio.create_task(
            ParallelToolExecutor().execute_batch([call("hang"), call("hang")], tools)
        )
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert cleaned == ["hang", "hang"]


@EXECUTORS
def test_a_tool_that_is_cancelled_from_within_is_an_error(executor: ToolExecutor) -> None:
    """Nobody cancelled the run, so it goes on."""

    async def inner() -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    results = batch(
        executor,
        [call("inner"), call("fine"), call("inner")],
        Tool("inner", handler=inner),
        Tool("fine", handler=lambda: 1),
    )
    assert [each.error for each in results] == [
        "inner was cancelled from within",
        None,
        "inner was cancelled from within",
    ]


def test_many_calls_leave_no_task() -> None:
    async def go() -> set[Any]:
        tools = {"it": Tool("it", handler=lambda n: n)}
        for _ in range(20):
            await ParallelToolExecutor(3).execute_batch([call("it", n=n) for n in range(7)], tools)
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert asyncio.run(go()) == set()
