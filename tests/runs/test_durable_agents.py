"""Durable runs with agents in tools and hand-offs: they go on from every prefix of their log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Agent, RunRequest, ToolContext, fold, tool
from dragoman.event import Event, RunError, RunFinished, RunStarted, is_log_mark
from dragoman.memory import Memory
from dragoman.runs import visible
from dragoman.runs.durable import make_request
from dragoman.tools import handoff
from support.durable import RUN, Acts, begun, call, check_laws, check_open, durable_agent
from support.durable import outcome_unknown as unknown
from support.model import agent, says
from support.prefixes import finished, gone_on, same, stored_results

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

REQUEST = make_request("Do it.", RUN, "t", None)
INNER = (
    ("Inner.", call("look", "l9"), call("write", "w9")),
    ("And again.", call("write", "w8")),
    ("Inner done.",),
)


def runs_of(events: Sequence[Event]) -> list[str]:
    """Ids of the runs in tools, each once."""
    ids = [event.run_id for event in events if isinstance(event, RunStarted)]
    return [run_id for run_id in dict.fromkeys(ids) if run_id != RUN]


def check_acts(told: Sequence[Event], acts: Acts, everything: set[str]) -> None:
    """Each tool acted once, unless its earlier process had begun it, or it is idempotent."""
    did = {*acts.done}
    assert len(acts.done) == len(did)
    assert not stored_results(told) & did
    assert not {name for name in begun(told) if name.startswith("w")} & did
    assert everything <= did | {*begun(told)}


def check_runs(events: Sequence[Event]) -> None:
    """Each run in a tool begins after its end only, and ends."""
    open_runs: set[str] = set()
    for event in events:
        if isinstance(event, RunStarted):
            assert event.run_id not in open_runs
            open_runs.add(event.run_id)
        elif isinstance(event, RunFinished | RunError):
            open_runs.remove(event.run_id or "")
    assert not open_runs


async def test_an_agent_in_a_tool_goes_on_from_every_prefix() -> None:
    def make(acts: Acts) -> tuple[Agent[Any], list[Any]]:
        inner, inner_model = durable_agent(acts, INNER)
        a, model = durable_agent(
            acts,
            (("I ask.", call("ask", "a1", prompt="go"), call("write", "w1")), ("Done.",)),
            tools=[inner.as_tool("ask")],
        )
        return a, [inner_model, model]

    before = await finished(REQUEST, make(Acts())[0])
    assert not any(is_log_mark(event) for event in visible(before))
    for end in range(len(before)):
        told, acts = before[:end], Acts()
        a, models = make(acts)
        events = await gone_on(told, REQUEST, a)
        assert same(events[:end], told)
        messages = check_laws(events)
        check_runs(events)
        check_acts(told, acts, {"w1", "w9", "w8", "l9"})
        # The run keeps its id, by which its tools name what they do.
        (inner,) = runs_of(events)
        if runs_of(told):
            assert runs_of(told) == [inner]
        results = {part.id: part.result for message in messages for part in message.tool_results}
        assert results["a1"] == "Inner.\nAnd again.\nInner done."
        assert {*unknown(messages)} <= {"w1"}
        inside = fold(events, inner)
        assert len(inside) == 6
        doubtful = {*begun(told)} - stored_results(told) - {"l9", "a1"}
        assert {*unknown([*messages, *inside])} == doubtful
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert last.result == "I ask.\nDone."
        assert last.usage is not None
        assert last.usage.total_tokens == 55
        assert sum(model.asked for model in models) <= 5


async def test_agents_in_tools_of_agents_in_tools_go_on() -> None:
    def make(acts: Acts) -> Agent[Any]:
        innermost, _ = durable_agent(acts, INNER)
        plan = (("Middle.", call("deep", "d1", prompt="x"), call("write", "w7")), ("Middle done.",))
        middle, _ = durable_agent(acts, plan, tools=[innermost.as_tool("deep")])
        other, _ = durable_agent(acts, (("Other.", call("write", "w6")), ("Other done.",)))
        return durable_agent(
            Acts(),
            ((call("ask", "a1", prompt="x"), call("also", "a2", prompt="y")), ("Done.",)),
            tools=[middle.as_tool("ask"), other.as_tool("also")],
        )[0]

    before = await finished(REQUEST, make(Acts()))
    for end in range(0, len(before), 2):
        told, acts = before[:end], Acts()
        events = await gone_on(told, REQUEST, make(acts))
        assert same(events[:end], told)
        messages = check_laws(events)
        check_runs(events)
        check_acts(told, acts, {"w9", "w8", "w7", "w6"})
        assert len(runs_of(events)) == 3
        assert runs_of(events)[: len(runs_of(told))] == runs_of(told)
        assert {part.id: part.result for part in messages[2].tool_results} == {
            "a1": "Middle.\nMiddle done.",
            "a2": "Other.\nOther done.",
        }


async def test_a_tool_that_acts_beside_its_agent_is_in_doubt_unless_it_is_idempotent() -> None:
    def make(acts: Acts, idempotent: bool) -> Agent[Any]:
        inner, _ = durable_agent(acts, (("Inner.", call("write", "w9")), ("Inner done.",)))

        @tool(idempotent=idempotent)
        async def ask(context: ToolContext[Any]) -> str:
            """Asks another agent twice."""
            first = await context.send(inner, "go")
            return f"{first.output} {(await context.send(inner, 'go')).output}"

        return durable_agent(Acts(), ((call("ask", "a1"),), ("Done.",)), tools=[ask])[0]

    before = await finished(REQUEST, make(Acts(), False))
    for end in range(0, len(before), 2):
        told = before[:end]
        acts = Acts()
        events = await gone_on(told, REQUEST, make(acts, False))
        check_laws(events)
        assert len(acts.done) == (0 if "a1" in begun(told) else 2)
        acts = Acts()
        events = await gone_on(told, REQUEST, make(acts, True))
        messages = check_laws(events)
        check_runs(events)
        assert len(acts.done) + begun(told).count("w9") == 2
        assert messages[2].tool_results[0].result == "Inner.\nInner done. Inner.\nInner done."


async def test_calls_of_agents_with_one_id_are_in_doubt() -> None:
    def make(acts: Acts) -> Agent[Any]:
        inner, _ = durable_agent(acts, (("Inner.", call("write", "w9")), ("Inner done.",)))
        other, _ = durable_agent(acts, (("Other.", call("write", "w8")), ("Other done.",)))
        plan = ((call("ask", "a1", prompt="x"), call("also", "a1", prompt="y")), ("Done.",))
        tools = [inner.as_tool("ask"), other.as_tool("also")]
        return durable_agent(Acts(), plan, tools=tools)[0]

    before = await finished(REQUEST, make(Acts()))
    for end in range(len(before)):
        told, acts = before[:end], Acts()
        events = await gone_on(told, REQUEST, make(acts))
        messages = check_laws(events)
        if "a1" not in begun(told):
            assert sorted(acts.done) == ["w8", "w9"]
            continue
        assert acts.done == []
        results = messages[2].tool_results
        whole = [part.result for part in results if not part.is_error]
        assert len(whole) + len(unknown(messages)) == 2
        if "a1" in stored_results(told):
            assert whole


async def test_an_agent_that_waits_in_a_tool_goes_on_waiting_and_with_its_answer() -> None:
    paid: list[str] = []

    def make() -> Agent[Any]:
        @tool(requires_approval=True)
        async def pay(context: ToolContext[Any]) -> str:
            """Pays."""
            paid.append(f"{context.run_id}/{context.call_id}")
            return "paid"

        inner, _ = durable_agent(Acts(), (("I pay.", call("pay", "p1")), ("Paid.",)), tools=[pay])
        plan = ((call("ask", "a1", prompt="x"),), ("Done.",))
        return durable_agent(Acts(), plan, tools=[inner.as_tool("ask")])[0]

    before = await finished(REQUEST, make())
    for end in range(len(before)):
        events = await gone_on(before[:end], REQUEST, make())
        check_open(events)
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert [(each.reason, each.call and each.call.name) for each in last.pending] == [
            ("approval", "pay")
        ]
    last = before[-1]
    assert isinstance(last, RunFinished)
    request = RunRequest(
        (*REQUEST.messages, *fold(before)[1:]), "t", resume=(last.pending[0].approve(),)
    )
    request = make_request(request, RUN, None, None)
    whole = await finished(request, make())
    assert len(paid) == 1
    for end in range(len(whole)):
        told = whole[:end]
        paid.clear()
        events = await gone_on(told, request, make())
        check_open(events)
        check_runs(events)
        assert len(paid) == ("p1" not in begun(told))
        assert isinstance(events[-1], RunFinished)
        assert events[-1].result == "Done."


async def test_an_agent_with_a_memory_in_a_tool_keeps_each_message_once() -> None:
    def make(acts: Acts, memory: Memory) -> Agent[Any]:
        inner, _ = durable_agent(acts, INNER, memory=memory)

        @tool(idempotent=True)
        async def ask(context: ToolContext[Any]) -> str:
            """Asks another agent."""
            return (await context.send(inner, "go", thread_id="inner")).output

        return durable_agent(Acts(), ((call("ask", "a1"),), ("Done.",)), tools=[ask])[0]

    before = await finished(REQUEST, make(Acts(), Memory("memory:")))
    for end in range(0, len(before), 2):
        told, acts, memory = before[:end], Acts(), Memory("memory:")
        events = await gone_on(told, REQUEST, make(acts, memory))
        if "a1" in stored_results(told):
            continue
        (inner,) = runs_of(events)
        page = await memory.recall("inner")
        assert [message.id for message in page.items] == [
            message.id for message in fold(events, inner)
        ]


async def test_a_hand_off_goes_on_from_every_prefix() -> None:
    plan = (
        ("I act.", call("write", "w9"), call("look", "l9")),
        ("More.", call("write", "w8")),
        ("Bye.",),
    )

    def make(acts: Acts) -> tuple[Agent[Any], list[Any]]:
        other, other_model = durable_agent(acts, plan, shift=1)
        first = (("To b.", call("transfer_to_b", "t1")),)
        a, model = durable_agent(Acts(), first, tools=[handoff(other, "b")])
        return a, [other_model, model]

    before = await finished(REQUEST, make(Acts())[0])
    for end in range(len(before)):
        told, acts = before[:end], Acts()
        a, models = make(acts)
        events = await gone_on(told, REQUEST, a)
        assert same(events[:end], told)
        messages = check_laws(events)
        check_runs(events)
        check_acts(told, acts, {"w9", "w8", "l9"})
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert last.result == "To b.\nI act.\nMore.\nBye."
        assert messages[-1].text == "I act.\nMore.\nBye."
        assert last.usage is not None
        assert last.usage.total_tokens == 44
        assert sum(model.asked for model in models) <= 4


async def test_a_hand_off_to_an_agent_that_waits_goes_on() -> None:
    paid: list[str] = []

    def make() -> Agent[Any]:
        @tool(requires_approval=True)
        async def pay(context: ToolContext[Any]) -> str:
            """Pays."""
            paid.append(context.call_id)
            return "paid"

        plan = (("I pay.", call("pay", "p1")), ("Paid.",))
        other, _ = durable_agent(Acts(), plan, shift=1, tools=[pay])
        first = (("To b.", call("transfer_to_b", "t1")),)
        return durable_agent(Acts(), first, tools=[handoff(other, "b")])[0]

    before = await finished(REQUEST, make())
    for end in range(len(before)):
        events = await gone_on(before[:end], REQUEST, make())
        check_open(events)
        last = events[-1]
        assert isinstance(last, RunFinished)
        assert [each.reason for each in last.pending] == ["approval"], end
    last = before[-1]
    assert isinstance(last, RunFinished)
    request = RunRequest(
        (*REQUEST.messages, *fold(before)[1:]), "t", resume=(last.pending[0].approve(),)
    )
    request = make_request(request, RUN, None, None)
    whole = await finished(request, make())
    assert paid == ["p1"]
    for end in range(len(whole)):
        told = whole[:end]
        paid.clear()
        events = await gone_on(told, request, make())
        check_open(events)
        check_runs(events)
        assert len(paid) == ("p1" not in begun(told)), end
        assert isinstance(events[-1], RunFinished)
        assert fold(events)[-1].text == "Paid."


def test_agents_whose_processes_die_again_and_again_end() -> None:
    def make(acts: Acts) -> Agent[Any]:
        inner, _ = durable_agent(acts, INNER)
        other, _ = durable_agent(
            acts, (("I act.", call("write", "w7")), ("Bye.",)), shift=2, tools=[]
        )
        plan = (("I ask.", call("ask", "a1", prompt="x")), ("To b.", call("transfer_to_b", "t1")))
        return durable_agent(Acts(), plan, tools=[inner.as_tool("ask"), handoff(other, "b")])[0]

    @given(cuts=st.lists(st.floats(0, 1), min_size=2, max_size=4))
    def die(cuts: list[float]) -> None:
        async def main() -> None:
            events = await finished(REQUEST, make(Acts()))
            for count, cut in enumerate(cuts, 1):
                told, acts = events[: int(cut * (len(events) - 1))], Acts()
                events = await gone_on(told, REQUEST, make(acts), lost=count)
                assert same(events[: len(told)], told)
                check_acts(told, acts, {"w9", "w8", "w7"})
                check_runs(events)
            messages = check_laws(events)
            assert messages[-1].text == "I act.\nBye."
            assert len(runs_of(events)) == 2

        asyncio.run(main())

    die()


async def test_a_sender_that_cannot_go_on_leaves_its_call_in_doubt() -> None:
    inner, _ = agent(says("ok"))

    class Sender:
        display_name = "other"

        def run(self, prompt: Any, **how: Any) -> Any:
            return inner.run(prompt, **how)

    from dragoman.tools.agent_tool import agent_tool

    def make() -> Agent[Any]:
        plan = ((call("other", "a1", prompt="x"),), ("Done.",))
        return durable_agent(Acts(), plan, tools=[agent_tool(Sender())])[0]

    before = await finished(REQUEST, make())
    end = next(place for place, event in enumerate(before) if is_log_mark(event)) + 1
    assert unknown(check_laws(await gone_on(before[:end], REQUEST, make()))) == ["a1"]
