"""Calls of durable runs that may have acted before their process ended: a person is asked."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from dragoman import (
    Agent,
    Interrupt,
    Message,
    RunRequest,
    ToolCallPart,
    ToolContext,
    fold,
    pending_text,
    tool,
)
from dragoman.errors import ResumeError
from dragoman.event import STEP_DONE, Event, PartFinished, RunFinished, is_calls_begun, is_log_mark
from dragoman.interrupt import Resume
from dragoman.mcp import server_forms
from dragoman.message import ToolResultPart
from dragoman.runs import Runs, visible
from dragoman.runs.durable import make_request
from dragoman.runs.memory_log import MemoryLog
from dragoman.wires.a2a import interrupts as a2a
from dragoman.wires.ag_ui import interrupts as ag_ui
from support.durable import RUN, Acts, call, check_laws, check_open, dead_log, durable_agent

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

KEY = "0123456789abcdef0123456789abcdef"
PLAN = (("I write.", call("write", "w1"), call("look", "l1")), ("Done.",))


def make(acts: Acts) -> Agent[Any]:
    return durable_agent(acts, PLAN, on_doubt="ask", approval_key=KEY)[0]


async def gone_on(told: Sequence[Event], request: RunRequest, a: Agent[Any]) -> list[Event]:
    async with MemoryLog() as log, Runs(log, agents={"a": a}, poll_seconds=0.01) as runs:
        await dead_log(log, told, request)
        await runs.drive(RUN)
        return [event async for _, event in runs.attach(RUN)]


async def cut_at_begin(request: RunRequest, a: Agent[Any]) -> list[Event]:
    """The events of a run up to the mark that its calls begin."""
    async with MemoryLog() as log, Runs(log, agents={"a": a}, poll_seconds=0.01) as runs:
        await runs.enqueue("a", request)
        await runs.drive(RUN)
        events = [event async for _, event in runs.attach(RUN)]
    end = next(place for place, event in enumerate(events) if is_calls_begun(event)) + 1
    return events[:end]


async def doubted() -> tuple[list[Message], Interrupt]:
    """A conversation in which a call is in doubt, and what it waits for."""
    request = make_request("Do it.", RUN, "t", None)
    told = await cut_at_begin(request, make(Acts()))
    acts = Acts()
    events = await gone_on(told, request, make(acts))
    check_open(events)
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.outcome == "pending"
    # The tool that is idempotent was run again, the other one was not.
    assert acts.done == ["l1"]
    assert [(each.reason, each.call and each.call.id) for each in last.pending] == [("doubt", "w1")]
    assert "nobody knows" in (last.pending[0].message or "")
    return fold(events), last.pending[0]


@pytest.mark.parametrize(
    ("verdict", "done", "result"),
    [
        (lambda asked: asked.approve(), ["w1"], "did w1"),
        (lambda asked: asked.answer("was written"), [], "was written"),
        (lambda asked: asked.deny(), [], "not carried out"),
        (lambda asked: asked.cancel(), [], "interrupted"),
    ],
)
async def test_a_person_decides_what_becomes_of_a_call_in_doubt(
    verdict: Any, done: list[str], result: str
) -> None:
    history, asked = await doubted()
    acts = Acts()
    answer = await make(acts).send(None, history=history, thread_id="t", resume=[verdict(asked)])
    assert acts.done == done
    assert result in str(answer.messages[0].tool_results[0].result)
    assert answer.output == "Done."


async def test_a_decision_must_be_signed_and_be_one() -> None:
    history, asked = await doubted()
    acts = Acts()
    for answer in (
        Resume(asked.id, payload={"approved": True}, metadata=asked.metadata),
        Resume(asked.id, payload={"maybe": 1}, signature=asked.signature, metadata=asked.metadata),
    ):
        with pytest.raises(ResumeError):
            await make(acts).send(None, history=history, thread_id="t", resume=[answer])
    assert acts.done == []


async def test_an_approved_call_in_doubt_is_asked_about_again() -> None:
    paid: list[str] = []

    @tool(requires_approval=True)
    async def pay(context: ToolContext[Any]) -> str:
        """Pays."""
        paid.append(context.call_id)
        return "paid"

    plan = ((call("pay", "p1"),), ("Paid.",))

    def payer() -> Agent[Any]:
        return durable_agent(Acts(), plan, tools=[pay], on_doubt="ask")[0]

    first = await payer().send("Pay.", thread_id="t")
    request = RunRequest(first.messages, "t", resume=(first.pending[0].approve(),))
    request = make_request(request, RUN, None, None)
    told = await cut_at_begin(request, payer())
    assert paid == ["p1"]
    events = await gone_on(told, request, payer())
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert [each.reason for each in last.pending] == ["doubt"]
    assert paid == ["p1"]
    history = [*first.messages, *fold(events)]
    result = await payer().send(
        None, history=history, thread_id="t", resume=[last.pending[0].approve()]
    )
    assert paid == ["p1", "p1"]
    assert result.output == "Paid."


async def test_a_run_that_takes_itself_over_holds_its_own_claim() -> None:
    """Its process died when the answer was claimed, and before the call began."""
    paid: list[str] = []

    @tool(requires_approval=True)
    async def pay(context: ToolContext[Any]) -> str:
        """Pays."""
        paid.append(context.run_id)
        return "paid"

    a = durable_agent(Acts(), ((call("pay", "p1"),), ("Paid.",)), tools=[pay])[0]
    first = await a.send("Pay.", thread_id="t")
    request = RunRequest(first.messages, "t", resume=(first.pending[0].approve(),))
    request = make_request(request, RUN, None, None)
    told = (await cut_at_begin(request, a))[:-1]
    for holder, result in ((RUN, "paid"), ("another", "outcome unknown")):
        paid.clear()
        async with MemoryLog() as log, Runs(log, agents={"a": a}, poll_seconds=0.01) as runs:
            await log.claim("t", "p1", holder)
            await dead_log(log, told, request)
            await runs.drive(RUN)
            events = [event async for _, event in runs.attach(RUN)]
            assert not await log.claim("t", "p1", "a third one")
        assert paid == ([RUN] if holder == RUN else [])
        (part,) = (part for message in fold(events) for part in message.tool_results)
        assert result in str(part.result)


TWINS = (("I write.", call("write", "t"), call("write", "t")), ("Done.",))


async def test_the_result_of_one_of_two_calls_with_one_id_is_its_own() -> None:
    request = make_request("Do it.", RUN, "t", None)
    async with (
        MemoryLog() as log,
        Runs(log, agents={"a": durable_agent(Acts(), TWINS)[0]}, poll_seconds=0.01) as runs,
    ):
        await runs.enqueue("a", request)
        await runs.drive(RUN)
        told = [event async for _, event in runs.attach(RUN)]
    known_alone = 0
    for end in range(1, len(told)):
        begun = any(is_calls_begun(event) for event in told[:end])
        known = {
            event.index: event.part.result
            for event in told[:end]
            if isinstance(event, PartFinished) and isinstance(event.part, ToolResultPart)
        }
        acts = Acts()
        events = await gone_on(told[:end], request, durable_agent(acts, TWINS)[0])
        (answered,) = [message for message in check_laws(events) if message.tool_results]
        for place, part in enumerate(answered.tool_results):
            if place in known:
                assert part.result == known[place]
            else:
                assert ("outcome unknown" in str(part.result)) is begun
        assert len(acts.done) == (0 if begun else 2)
        known_alone += len(known) == 1
    assert known_alone


async def test_a_step_of_a_tool_is_done_once() -> None:
    done: list[str] = []

    def maker() -> Agent[Any]:
        @tool(idempotent=True)
        async def refund(context: ToolContext[Any]) -> dict[str, Any]:
            """Refunds."""

            async def charge() -> str:
                done.append("charge")
                return "c-1"

            def mail() -> dict[str, str]:
                done.append("mail")
                return {"to": "a@example.org"}

            charged = await context.step("charge", charge)
            return {"charged": charged, "mailed": await context.step("mail", mail)}

        return durable_agent(Acts(), ((call("refund", "f1"),), ("Done.",)), tools=[refund])[0]

    request = make_request("Do it.", RUN, "t", None)
    async with MemoryLog() as log, Runs(log, agents={"a": maker()}, poll_seconds=0.01) as runs:
        await runs.enqueue("a", request)
        await runs.drive(RUN)
        events = [event async for _, event in runs.attach(RUN)]
    assert done == ["charge", "mail"]
    marks = [place for place, event in enumerate(events) if getattr(event, "name", "") == STEP_DONE]
    assert len(marks) == 2
    assert not any(is_log_mark(event) for event in visible(events))
    for end in range(len(events)):
        done.clear()
        again = await gone_on(events[:end], request, maker())
        results = [part for message in fold(again) for part in message.tool_results]
        assert results[0].result == {"charged": "c-1", "mailed": {"to": "a@example.org"}}
        assert ("charge" in done) is (end <= marks[0])
        assert ("mail" in done) is (end <= marks[1])
    # Without a log a step is what it does.
    done.clear()
    assert (await maker().send("hi")).output == "Done."
    assert done == ["charge", "mail"]


async def test_two_steps_of_a_call_cannot_have_one_name() -> None:
    tried: list[str] = []

    @tool(idempotent=True)
    async def refund(context: ToolContext[Any]) -> str:
        """Refunds."""

        def fail() -> None:
            tried.append("charge")
            raise ValueError("busy")

        with suppress(ValueError):
            await context.step("charge", fail)
        await context.step("charge", lambda: tried.append("charged"))
        await context.step("charge", lambda: tried.append("never"))
        return ""

    plan = ((call("refund", "f1"), call("refund", "f2")), ("Done.",))

    def maker() -> Agent[Any]:
        return durable_agent(Acts(), plan, tools=[refund])[0]

    request = make_request("Do it.", RUN, "t", None)
    events = await gone_on([], request, maker())
    # Two calls may use one name, and also when the stored result is used the second one is refused.
    end = [place for place, event in enumerate(events) if getattr(event, "name", "") == STEP_DONE]
    for log in (events, await gone_on(events[: end[-1] + 1], request, maker())):
        results = [part.result for message in fold(log) for part in message.tool_results]
        assert len(results) == 2
        assert all("has a step named 'charge' already" in str(each) for each in results)
    assert sorted(tried) == ["charge", "charge", "charged", "charged"]


DOUBT = Interrupt("w1", "doubt", ToolCallPart("w1", "write", {"a": 1}), message="What did it do?")


def test_a_doubt_goes_through_the_agent_protocols() -> None:
    assert ag_ui.load_interrupt(ag_ui.dump_interrupt(DOUBT), DOUBT.call) == DOUBT
    assert a2a.load_pending(a2a.dump_pending([DOUBT], "m"), "TASK_STATE_INPUT_REQUIRED") == (DOUBT,)
    plain = a2a.dump_pending([DOUBT], "m", extras=False)
    assert a2a.load_pending(plain, "TASK_STATE_INPUT_REQUIRED")[0].reason == "doubt"


def test_a_doubt_is_put_into_words() -> None:
    assert "may have been run already" in pending_text.summarize(DOUBT)
    assert "a decision about write" in server_forms.summarize(DOUBT)
