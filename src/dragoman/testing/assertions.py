"""What tests of agents look at: the events of a run, and the calls of tools in whatever has messages."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.arguments import expect_each
from dragoman.event import Event
from dragoman.message import ToolCallPart
from dragoman.run import Run
from dragoman.testing.outline import Source, messages_of

__all__ = ["assert_calls", "events_of"]


async def events_of(run: Run[Any]) -> list[Event]:
    """All events of a run that is not yet begun: `await events_of(agent.run("Hi"))`. One that fails ends with a `RunError`."""
    async with run:
        return [event async for event in run]


def assert_calls(source: Source, *calls: ToolCallPart, any_order: bool = False) -> None:
    """Asserts which tools the model called, by name and arguments: `assert_calls(result, call("get_weather", city="Oslo"))`.

    Raises:
        AssertionError: it called others, or in another order, where `any_order` does not allow that.
    """
    __tracebackhide__ = True
    made = [_line(each) for message in messages_of(source) for each in message.tool_calls]
    wanted = [_line(each) for each in expect_each("calls", calls, ToolCallPart)]
    if any_order:
        made, wanted = sorted(made), sorted(wanted)
    if made != wanted:
        raise AssertionError(f"the calls are\n  {_lines(made)}\nand must be\n  {_lines(wanted)}")


def _line(call: ToolCallPart) -> str:
    arguments = msgspec.json.encode(call.arguments, order="sorted").decode()
    return f"{call.name} {arguments if call.state == 'complete' else f'{call.state}: {call.raw}'}"


def _lines(calls: list[str]) -> str:
    return "\n  ".join(calls) or "none"
