"""The state of a run is kept with its thread, and comes back with the next run (seed 003)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from dragoman import Agent, Message, Tool, ToolCallPart, serve, tool
from dragoman.errors import OverloadedError, StoreError
from dragoman.event import RunFinished, StateDelta, StateSnapshot
from dragoman.memory import Memory, Slot, SlotText, thread_state
from dragoman.memory.memory_store import MemoryStore
from dragoman.testing import ScriptedModel
from dragoman.tools import ToolContext
from support.protocols import events_of, posted

pytestmark = pytest.mark.anyio


@tool
def count(context: ToolContext) -> int:
    """Counts in the shared state."""
    number = (context.state.value or {}).get("count", 0) + 1
    context.state.patch([{"op": "add", "path": "/count", "value": number}])
    return number


def calling(number: int = 0) -> Message:
    return Message.model(ToolCallPart(f"c{number}", "count", {}))


def agent_of(memory: Memory, *answers: Any, tools: Any = (count,)) -> Agent[None]:
    return Agent(ScriptedModel([*answers]), memory=memory, tools=tools)


async def state_of(memory: Memory, thread_id: str = "t") -> SlotText:
    return await memory.store.read_slot(Slot(name="state", thread_id=thread_id))


async def test_it_comes_back_with_the_next_run(url: str) -> None:
    """In another process, too; the reader is told of it before the first step."""
    async with Memory(url) as memory:
        first = await agent_of(memory, calling(), "One.").send(
            "a", thread_id="t", resource_id="ann"
        )
        assert first.state == {"count": 1}
        assert await state_of(memory) == SlotText('{"count":1}', 1)
        async with agent_of(memory, calling(), "Two.").run(
            "b", thread_id="t", resource_id="ann"
        ) as run:
            events = [event async for event in run]
            assert (await run.result()).state == {"count": 2}
        told = [event for event in events if isinstance(event, StateSnapshot | StateDelta)]
        assert told == [
            StateSnapshot({"count": 1}),
            StateDelta(({"op": "add", "path": "/count", "value": 2},)),
        ]
        other = await agent_of(memory, "None.").send("c", thread_id="u", resource_id="ann")
        assert other.state is None


async def test_what_did_not_change_is_not_written() -> None:
    memory = Memory()
    agent = agent_of(memory, "A.", "B.", calling(), "C.", "D.")
    await agent.send("a", thread_id="t")
    assert await state_of(memory) == SlotText("", 0)
    for prompt, version in (("b", 1), ("c", 2), ("d", 2)):
        given = {"state": {"n": 0}} if prompt == "b" else {}
        await agent.send(prompt, thread_id="t", **given)
        assert (await state_of(memory)).version == version
    assert (await state_of(memory)).text == '{"n":0,"count":1}'


async def test_a_state_that_is_given_wins() -> None:
    memory = Memory()
    agent = agent_of(memory, "A.", "B.", "C.")
    await agent.send("a", thread_id="t", state={"mine": 1})
    assert (await agent.send("b", thread_id="t", state={"other": 2})).state == {"other": 2}
    assert (await agent.send("c", thread_id="t", state={})).state == {"other": 2}


@pytest.mark.parametrize("ending", ["fails", "waits", "cancelled", "left"])
async def test_whatever_ends_the_run_it_is_kept(ending: str) -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        """Pays."""
        return "paid"

    answers = {
        "fails": OverloadedError("busy"),
        "waits": Message.model(ToolCallPart("p", "pay", {})),
    }
    memory = Memory()
    agent = agent_of(memory, calling(), answers.get(ending, "Done."), "E.", tools=[count, pay])
    async with agent.run("a", thread_id="t") as run:
        async for event in run:
            if isinstance(event, StateSnapshot) and ending == "left":
                break
            if isinstance(event, StateSnapshot) and ending == "cancelled":
                run.cancel()
    assert (await state_of(memory)).text == '{"count":1}'


async def test_it_can_be_turned_off() -> None:
    store = MemoryStore()
    await agent_of(Memory(store), "A.").send("a", thread_id="t", state={"n": 1})
    for memory in (Memory(store, state=False), Memory(store, read_only=True)):
        result = await agent_of(memory, calling(), "B.").send("b", thread_id="t")
        assert result.state == ({"count": 1} if not memory.keeps_state else {"n": 1, "count": 1})
    assert (await state_of(Memory(store))).text == '{"n":1}'
    with pytest.raises(TypeError, match="state must be bool"):
        Memory(state={})  # type: ignore[arg-type]


async def test_one_that_is_too_large_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(thread_state, "MOST_BYTES", 100)
    memory = Memory()
    agent = agent_of(memory, "A.", "B.", "C.")
    await agent.send("a", thread_id="t", state={"n": 1})
    await agent.send("b", thread_id="t", state={"n": "x" * 100})
    assert "is not kept: it has 108 characters, and 100 are the most" in caplog.text
    assert (await agent.send("c", thread_id="t")).state is None


async def test_a_store_that_cannot_write_it_ends_the_run() -> None:
    """As with messages: it is a part of the record."""

    class Broken(MemoryStore):
        async def write_slot(self, *_: Any) -> Any:
            raise StoreError("gone")

    memory = Memory(Broken())
    with pytest.raises(StoreError, match="gone"):
        await agent_of(memory, "A.").send("a", thread_id="t", state={"n": 1})


async def test_another_resource_reads_and_writes_none() -> None:
    memory = Memory()
    await agent_of(memory, "A.").send("a", thread_id="t", resource_id="ann", state={"secret": 1})
    async with agent_of(memory, "B.").run(
        "b", thread_id="t", resource_id="bob", state={"n": 1}
    ) as run:
        events = [event async for event in run]
    assert "secret" not in str(events)
    assert not isinstance(events[-1], RunFinished)
    assert (await state_of(memory)).text == '{"secret":1}'


async def test_an_agent_within_a_tool_that_shares_the_state_keeps_none() -> None:
    memory = Memory()
    inner = agent_of(memory, calling(), "Inner.")

    async def ask(context: ToolContext) -> str:
        """Asks another agent."""
        result = await context.send(inner, "x", thread_id="inner", share_state=True)
        return result.output

    await agent_of(memory, "Before.").send("a", thread_id="inner", state={"count": 40})
    outer = Agent(ScriptedModel([Message.model(ToolCallPart("a", "ask", {})), "Done."]), tools=[Tool("ask", "", ask)], memory=memory)  # fmt: skip
    result = await outer.send("b", thread_id="outer")
    assert result.state == {"count": 1}
    assert (await state_of(memory, "outer")).text == '{"count":1}'
    assert (await state_of(memory, "inner")).text == '{"count":40}'


async def test_a_clone_has_it_and_its_working_memory(url: str) -> None:
    async with Memory(url) as memory:
        await agent_of(memory, "A.").send("a", thread_id="t", state={"n": 1})
        await memory.store.write_slot(
            Slot(name="working", thread_id="t"), "# A", 0, memory._clock()
        )
        copy = await memory.clone_thread("t")
        assert (await state_of(memory, copy.id)).text == '{"n":1}'
        slot = Slot(name="working", thread_id=copy.id)
        assert (await memory.store.read_slot(slot)).text == "# A"


async def test_a_client_of_ag_ui_that_has_no_state_gets_the_threads() -> None:
    """Its requests say `{}`."""
    memory = Memory()
    app = serve.app(agent_of(memory, calling(), "One.", calling(), "Two."))
    async with app.router.lifespan_context(app):
        told: list[Any] = []
        for number in (1, 2):
            prompt = Message.user(f"q{number}").replace(id=f"u{number}")
            answer = await posted(app, "ag_ui", "t", [prompt], state={})
            told = [
                event for event in events_of("ag_ui", answer) if isinstance(event, StateSnapshot)
            ]
        assert told == [StateSnapshot({}), StateSnapshot({"count": 1})]
    assert (await state_of(memory)).text == '{"count":2}'


async def test_runs_at_once_leave_one_of_their_states() -> None:
    memory = Memory()
    await memory.save_thread("t")
    agents = [agent_of(memory, "A.") for _ in range(5)]
    await asyncio.gather(
        *[agent.send("a", thread_id="t", state={"n": n}) for n, agent in enumerate(agents)]
    )
    assert (await state_of(memory)).text in [f'{{"n":{n}}}' for n in range(5)]
