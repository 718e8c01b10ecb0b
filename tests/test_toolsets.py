"""Agents whose tools come out of sets: entered and left with a run, asked before each model
call."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Self

import anyio
import msgspec
import pytest

from dragoman import (
    Agent,
    Limits,
    Message,
    Resume,
    Settings,
    Tool,
    ToolContext,
    ToolSpec,
    dump_messages,
    load_messages,
    wires,
)
from dragoman.errors import InvalidRequestError, ResumeError, SettingsError, ToolError
from dragoman.event import Event, RunError, RunStarted
from dragoman.message import FinishReason, MarkPart, Role
from dragoman.request import ModelRequest
from dragoman.result import ChatResult
from dragoman.testing import ScriptedServer
from dragoman.tools import Toolset, tool, toolset
from support.model import agent, call, says
from support.net import NAMES as WIRES

pytestmark = pytest.mark.anyio


@tool
def look(place: str = "here") -> str:
    """Looks."""
    return f"nothing {place}"


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"


class Counted(Toolset):
    """A set that notes what is done with it. `lists`: what it gives, one list a step, the last one
    for ever."""

    def __init__(self, *lists: Sequence[Tool] | Exception, name: str = "counted") -> None:
        self.name = name
        self.log: list[str] = []
        self.contexts: list[ToolContext[Any]] = []
        self.inside = 0
        self._lists = list(lists)

    async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
        assert self.inside, "it was not entered"
        self.log.append("list")
        self.contexts.append(context)
        given = self._lists.pop(0) if len(self._lists) > 1 else self._lists[0]
        if isinstance(given, Exception):
            raise given
        return given

    async def __aenter__(self) -> Self:
        self.log.append("enter")
        self.inside += 1
        return self

    async def __aexit__(self, *error: object) -> None:
        await asyncio.sleep(0)
        self.inside -= 1
        self.log.append("leave")


def again(result: ChatResult[Any], *before: Message) -> list[Message]:
    """The history as another process has it."""
    return load_messages(dump_messages([*before, *result.messages]))


def names(request: ModelRequest) -> list[str]:
    return [one.name for one in request.tools]


async def whole(request: ModelRequest, next: Any) -> AsyncIterator[Event]:
    """A middleware that asks for the answer in one piece."""
    async with aclosing(next(request.replace(stream=False))) as events:
        async for event in events:
            yield event


def served(wire: str, *answers: Message, **how: Any) -> tuple[Agent[Any], ScriptedServer]:
    left = list(answers)
    server = ScriptedServer(wires.get(wire), lambda _: left.pop(0) if len(left) > 1 else left[0])
    return Agent(f"{WIRES[wire]}:model", transport=server, api_key="none", **how), server


# a run


async def test_a_set_is_entered_asked_before_each_model_call_and_left() -> None:
    tools = Counted([look])
    a, script = agent(says(call("look", place="there")), says("Done."), tools=[tools])
    result = await a.send("hi")
    assert tools.log == ["enter", "list", "list", "leave"]
    assert [names(request) for request in script.requests] == [["look"], ["look"]]
    assert result.messages[2].tool_results[0].result == "nothing there"
    assert result.output == "Done."


async def test_what_a_list_says_is_offered_in_the_next_step_and_what_was_offered_is_run() -> None:
    @tool(name="look")
    def other() -> str:
        return "another look"

    tools = Counted([look], [other, delete], [delete])
    a, script = agent(
        says(call("look")),
        says(call("look", id="c2")),
        says(call("look", id="c3")),
        says("."),
        tools=[tools],
    )
    result = await a.send("hi")
    assert [names(request) for request in script.requests] == [
        ["look"],
        ["look", "delete"],
        ["delete"],
        ["delete"],
    ]
    results = [part for message in result.messages for part in message.tool_results]
    assert [part.result for part in results[:2]] == ["nothing here", "another look"]
    assert results[2].is_error
    assert "there is no tool named 'look'; the tools are: delete" in results[2].result["error"]


async def test_tools_functions_and_sets_stand_in_their_order_the_sends_after_the_agents() -> None:
    def plain() -> str:
        return "plain"

    client = ToolSpec("client")
    a, script = agent(says("."), tools=[plain, Counted([look])])
    await a.send("hi", tools=[client, Counted([delete])])
    await a.send("hi")
    assert [names(request) for request in script.requests] == [
        ["plain", "look", "client", "delete"],
        ["plain", "look"],
    ]


async def test_a_set_knows_the_run_and_no_call() -> None:
    tools = Counted([look])
    a, _ = agent(says(call("look")), says("."), tools=[tools])
    await a.send(
        "hi", deps=7, run_id="r", thread_id="t", resource_id="me", state={"a": 1}, metadata={"m": 1}
    )
    first, second = tools.contexts
    assert (first.deps, first.run_id, first.thread_id, first.resource_id) == (7, "r", "t", "me")
    assert (first.state.value, first.metadata, first.call.name) == ({"a": 1}, {"m": 1}, "")
    assert [len(context.messages) for context in (first, second)] == [1, 3]


async def test_specs_are_the_same_objects_while_nothing_changes_also_where_tools_are_made_anew() -> (
    None
):
    def make() -> Tool:
        return Tool(
            "look",
            "Looks.",
            lambda place="": place,
            {"type": "object", "properties": {"place": {}}},
        )

    @toolset
    def fresh(context: ToolContext[Any]) -> list[Tool]:
        return [make(), Tool("more" if len(context.messages) > 3 else "other", handler=lambda: 1)]

    a, script = agent(says(call("look")), says(call("look", id="c2")), says("."), tools=[fresh])
    await a.send("hi")
    first, second, third = [request.tools for request in script.requests]
    assert first[0] is second[0] is third[0]
    assert (first[1], third[1].name) == (second[1], "more")


async def test_two_tools_of_one_name_are_an_error_that_says_where_they_come_from() -> None:
    other = Tool("look", handler=lambda: "")
    a, script = agent(says("."), tools=[Counted([look], name="near"), Counted([other], name="far")])
    with pytest.raises(
        ToolError, match="two tools are named 'look', one of near and one of far; give one"
    ):
        await a.send("hi")
    b, _ = agent(says("."), tools=[other, Counted([look], name="near")])
    with pytest.raises(
        ToolError, match="two tools are named 'look', one given by itself and one of near"
    ):
        await b.send("hi")
    assert not script.requests


async def test_a_set_that_cannot_be_listed_ends_the_run_which_names_it_and_has_the_prompt() -> None:
    tools, other = Counted(OSError("no route"), name="far"), Counted([look])
    a, script = agent(says("."), tools=[other, tools])
    with pytest.raises(ToolError, match="the tools of far cannot be listed: no route") as caught:
        await a.send("hi")
    assert caught.value.result is not None
    assert [message.text for message in caught.value.result.messages] == ["hi"]
    assert isinstance(caught.value.__cause__, OSError)
    assert tools.log == other.log == ["enter", "list", "leave"]
    assert not script.requests

    b, _ = agent(says("."))

    class Strange(Toolset):
        async def list_tools(self, context: ToolContext[Any]) -> Any:
            return ["look"]

    with pytest.raises(
        ToolError,
        match=r"the tools of Strange cannot be listed: list_tools\(\)\[0\] must be Tool, not str",
    ):
        await b.send("hi", tools=[Strange()])


async def test_a_set_that_cannot_be_entered_leaves_the_others() -> None:
    class Shut(Counted):
        async def __aenter__(self) -> Self:
            raise OSError("shut")

    first, shut, last = Counted([look]), Shut([], name="the door"), Counted([delete])
    a, _ = agent(says("."), tools=[first, shut, last])
    with pytest.raises(ToolError, match="the toolset the door cannot be entered: shut"):
        await a.send("hi")
    assert (first.log, shut.log, last.log) == (["enter", "leave"], [], [])
    with pytest.raises(ToolError, match="the door"):
        async with a:
            pass
    assert first.inside == 0


async def test_what_a_set_raises_when_it_is_left_is_logged_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Sticky(Counted):
        async def __aexit__(self, *error: object) -> None:
            raise OSError("it sticks")

    other = Counted([delete])
    a, _ = agent(says("Done."), tools=[other, Sticky([look], name="glue")])
    async with a:
        assert (await a.send("hi")).output == "Done."
    assert other.inside == 0
    assert "the toolset glue could not be left: it sticks" in caplog.text


# its end, whatever it is


async def test_a_run_that_is_left_in_the_middle_leaves_the_sets() -> None:
    tools = Counted([look])
    a, _ = agent(says("A long answer."), tools=[tools])
    async with a.run("hi") as run:
        async for event in run:
            if not isinstance(event, RunStarted):
                break
    assert tools.inside == 0
    async with aclosing(a.send_stream("hi")) as stream:
        async for _ in stream:
            break
    assert tools.inside == 0


@pytest.mark.parametrize("where", ["enter", "list", "tool"])
async def test_a_run_that_is_cancelled_leaves_the_sets(where: str) -> None:
    reached = asyncio.Event()

    async def waits() -> None:
        reached.set()
        await asyncio.sleep(60)

    class Slow(Counted):
        async def __aenter__(self) -> Self:
            if where == "enter":
                await waits()
            await super().__aenter__()
            return self

        async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
            if where == "list":
                await waits()
            return await super().list_tools(context)

    first, slow = Counted([Tool("wait", handler=waits)]), Slow([look])
    a, _ = agent(says(call("wait")), tools=[first, slow])
    task = asyncio.create_task(a.send("hi"))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (first.inside, slow.inside, first.log[-1]) == (0, 0, "leave")

    reached.clear()
    async with a.run("hi") as run:
        reading = asyncio.create_task(run.result())
        await reached.wait()
        run.cancel()
        result = await reading
    assert result.finish_reason is FinishReason.cancelled
    assert (first.inside, slow.inside) == (0, 0)


async def test_a_run_in_a_scope_that_is_cancelled_leaves_the_sets() -> None:
    scope = anyio.CancelScope()

    async def stops() -> None:
        scope.cancel()
        await asyncio.sleep(60)

    tools = Counted([Tool("stop", handler=stops)])
    a, _ = agent(says(call("stop")), tools=[tools])
    with scope:
        await a.send("hi")
    assert scope.cancelled_caught
    assert (tools.inside, tools.log[-1]) == (0, "leave")


async def test_a_limit_of_time_ends_a_list_too() -> None:
    class Slow(Counted):
        async def list_tools(self, context: ToolContext[Any]) -> Sequence[Tool]:
            await asyncio.sleep(60)
            return []

    tools = Slow([])
    a, _ = agent(says("."), tools=[tools], limits=Limits(seconds=0.01))
    with pytest.raises(Exception, match="seconds"):
        await a.send("hi")
    assert tools.log == ["enter", "leave"]


# an agent's life


async def test_async_with_agent_holds_its_sets_but_not_those_of_a_send() -> None:
    tools, other = Counted([look]), Counted([delete])
    a, _ = agent(says("."), tools=[tools])
    async with a:
        assert tools.inside == 1
        await a.send("hi", tools=[other])
        assert (tools.inside, other.inside) == (1, 0)
    assert tools.log == ["enter", "enter", "list", "leave", "leave"]


def test_with_agent_holds_its_sets_in_the_loop_of_the_synchronous_calls() -> None:
    loops: list[Any] = []

    class There(Counted):
        async def __aenter__(self) -> Self:
            loops.append(asyncio.get_running_loop())
            await super().__aenter__()
            return self

    tools = There([look])
    a, _ = agent(says("."), tools=[tools])
    with a:
        assert tools.inside == 1
        a.send_sync("hi")
        assert tools.inside == 1
    assert tools.inside == 0
    assert len(set(loops)) == 1
    b, _ = agent(says("."), tools=[look])
    with b:
        assert not b.portal.started


# what waits


async def test_a_call_of_a_sets_tool_that_needs_approval_waits_in_the_history_alone() -> None:
    a, _ = agent(says(call("delete", path="x")), says("Done."), tools=[Counted([delete])])
    first = await a.send("Delete x.")
    assert [(one.id, one.reason) for one in first.pending] == [("c1", "approval")]
    history = again(first)
    assert [part.kind for part in history[-1].content if isinstance(part, MarkPart)] == [
        "interrupt"
    ]
    tools = Counted([delete])
    b, script = agent(says("Done."), tools=[tools])
    assert b.pending(history) == first.pending
    assert tools.log == []
    still = await b.send(None, history=history)
    assert (still.pending, still.messages, script.requests) == (first.pending, (), [])
    second = await b.send(None, history=history, resume=[first.pending[0].approve()])
    assert second.messages[0].tool_results[0].result == "x is deleted"
    assert second.output == "Done."
    assert tools.inside == 0


async def test_a_deferred_call_waits_for_the_client_in_the_history_alone() -> None:
    def deferred() -> Counted:
        return Counted([look, delete])

    a, _ = agent(
        says(call("look", place="there"), call("delete", id="c2", path="x")),
        tools=[deferred().defer()],
    )
    first = await a.send("hi")
    assert [(one.id, one.reason) for one in first.pending] == [("c1", "tool"), ("c2", "tool")]
    history = again(first)
    b, script = agent(says("Done."), tools=[deferred().defer()])
    assert b.pending(history) == first.pending
    answers = [one.answer(f"{number} by the client") for number, one in enumerate(first.pending)]
    second = await b.send(None, history=history, resume=answers)
    assert second.output == "Done."
    assert [part.result for part in script.requests[0].messages[-1].tool_results] == [
        "0 by the client",
        "1 by the client",
    ]


async def test_a_call_of_a_set_that_nobody_ran_is_made_up_for_and_waits_for_nobody() -> None:
    history = [Message.user("hi"), Message.model(call("look"))]
    for tools in ([look], [], [delete]):
        a, script = agent(says("Done."), tools=[Counted(tools)])
        assert a.pending(history) == ()
        result = await a.send("Well?", history=history)
        assert [part.is_error for part in result.messages[0].tool_results] == [True]
        assert [message.role for message in script.requests[0].messages] == [
            Role.USER,
            Role.MODEL,
            Role.USER,
            Role.USER,
        ]
        assert len(result.losses) == 1


async def test_a_tool_that_went_before_its_call_was_allowed_is_an_error_for_the_model() -> None:
    a, _ = agent(says(call("delete", path="x")), tools=[Counted([delete])])
    first = await a.send("Delete x.")
    answer = first.pending[0].approve()
    b, script = agent(says("Oh."), tools=[Counted([look])])
    second = await b.send(None, history=again(first), resume=[answer])
    assert second.output == "Oh."
    result = script.requests[0].messages[-1].tool_results[0]
    assert result.is_error
    assert result.result["error"] == "there is no tool named 'delete'; the tools are: look"
    c, _ = agent(says("Oh."), tools=[look])
    with pytest.raises(ResumeError, match="there is no such tool here any more"):
        await c.send(None, history=again(first), resume=[answer])


async def test_errors_of_answers_are_the_runs_where_a_set_must_be_asked_first_and_else_come_at_once() -> (
    None
):
    a, _ = agent(says("."), tools=[Counted([look])])
    with pytest.raises(InvalidRequestError, match="nothing to send"):
        a.run(None)
    run = a.run("hi", resume=[Resume("c9", "resolved", {"approved": True})])
    async with run:
        events = [event async for event in run]
    assert isinstance(events[0], RunStarted)
    assert isinstance(last := events[-1], RunError)
    assert isinstance(last.error, ResumeError)


async def test_typed_output_needs_its_name_also_where_a_set_has_it() -> None:
    from support.model import FORCING

    a, _ = agent(
        says("."), provider=FORCING, tools=[Counted([Tool("return_result", handler=lambda: "")])]
    )
    with pytest.raises(SettingsError, match="'return_result', which typed output needs"):
        await a.send_for("hi", int)


async def test_a_run_without_sets_pays_for_none() -> None:
    entered: list[str] = []

    def profile(frame: Any, kind: str, _: Any) -> None:
        if kind == "call" and frame.f_code.co_filename.endswith("tools/toolsets.py"):
            entered.append(frame.f_code.co_name)

    a, _ = agent(says(call("look")), says("Done."), tools=[look])
    sys.setprofile(profile)
    try:
        await a.send("hi")
    finally:
        sys.setprofile(None)
    assert [name for name in entered if name != "<listcomp>"] == ["split_tools"]


# on four wires


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("layers", [(), (whole,)], ids=["streamed", "whole"])
async def test_lists_change_between_the_steps_on_every_wire(
    wire: str, layers: tuple[Any, ...]
) -> None:
    tools = Counted([look], [look, delete])
    a, server = served(
        wire, says(call("look", place="there")), says("Done."), tools=[tools], middleware=layers
    )
    result = await a.send("hi")
    assert result.output == "Done."
    assert [names(request) for request in server.requests] == [["look"], ["look", "delete"]]
    assert server.requests[1].messages[-1].tool_results[0].result == "nothing there"


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("layers", [(), (whole,)], ids=["streamed", "whole"])
async def test_an_approval_by_a_set_goes_on_with_another_agent_on_every_wire(
    wire: str, layers: tuple[Any, ...]
) -> None:
    def tools() -> Toolset:
        return toolset(
            [look, tool(lambda path: f"{path} is gone", name="remove")], name="disk"
        ).require_approval(lambda call, _: call.name == "remove")

    a, _ = served(
        wire,
        says(call("remove", path="x"), call("look", id="c2")),
        says("."),
        tools=[tools()],
        middleware=layers,
    )
    first = await a.send("Remove x.")
    (waits,) = msgspec.json.decode(msgspec.json.encode(first.pending), type=tuple[Any, ...])
    assert waits["reason"] == "approval"
    history = again(first)
    b, server = served(wire, says("Done."), tools=[tools()], middleware=layers)
    assert b.pending(history) == first.pending
    second = await b.send(None, history=history, resume=[first.pending[0].approve()])
    assert second.output == "Done."
    sent = [part.result for message in server.requests[0].messages for part in message.tool_results]
    assert sorted(sent) == ["nothing here", "x is gone"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("layers", [(), (whole,)], ids=["streamed", "whole"])
async def test_renamed_and_prefixed_tools_are_called_by_their_new_names_on_every_wire(
    wire: str, layers: tuple[Any, ...]
) -> None:
    seen: list[tuple[str, str | None]] = []

    @tool(name="list files")
    def files(context: ToolContext[Any], where: str) -> str:
        seen.append((context.call.name, where))
        return "none"

    tools = toolset([files, look]).rename({"look": "see"}).prefix("disk.")
    a, _ = served(
        wire,
        says(call("disk.list files", where="/"), call("disk.see", id="c2")),
        says("Done."),
        tools=[tools],
        middleware=layers,
    )
    result = await a.send("hi", settings=Settings(parallel_tool_calls=True))
    assert result.output == "Done."
    assert seen == [("disk.list files", "/")]
    assert [part.name for part in result.messages[2].tool_results] == [
        "disk.list files",
        "disk.see",
    ]
    assert [part.result for part in result.messages[2].tool_results] == ["none", "nothing here"]
