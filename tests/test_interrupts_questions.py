"""Tools that ask a person, signatures, claims, and agents within tools: over two and more sends,
with nothing but the history."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from dragoman import (
    Agent,
    Interrupt,
    Message,
    Resume,
    Tool,
    ToolCallPart,
    ToolContext,
    dump_messages,
    fold,
    load_messages,
    tool,
)
from dragoman.errors import ResumeError
from dragoman.event import RunFinished, RunStarted
from dragoman.message import MarkPart
from dragoman.orchestration import DefaultStreamingOrchestrator, StreamingState
from dragoman.tools import AskUser, SignIn
from support.model import agent, call, says

pytestmark = pytest.mark.anyio


def stored(*messages: Message) -> list[Message]:
    """The history as another process has it."""
    return load_messages(dump_messages(messages))


def moved(interrupt: Interrupt) -> Interrupt:
    """An interrupt as a client has it that got JSON."""
    return msgspec.json.decode(msgspec.json.encode(interrupt), type=Interrupt)


@tool
def book(ctx: ToolContext[Any], city: str) -> str:
    """Books a room."""
    nights = ctx.ask("How many nights?", {"type": "integer"})
    breakfast = ctx.ask(f"Breakfast in {city}?", {"type": "boolean"})
    return f"{nights} nights in {city}, {'with' if breakfast else 'without'} breakfast"


async def test_a_tool_asks_and_is_run_again_with_the_answers() -> None:
    a, _ = agent(says(call("book", city="Oslo")), tools=[book])
    first = await a.send("Book.")
    (nights,) = first.pending
    assert (nights.reason, nights.message, nights.schema) == (
        "input",
        "How many nights?",
        {"type": "integer"},
    )
    assert isinstance(first.messages[-1].content[0], MarkPart)
    history = stored(*first.messages)
    b, script = agent(says("Booked."), tools=[book])
    with pytest.raises(
        ResumeError, match="is not what was asked for: the value: should be integer"
    ):
        await b.send(None, history=history, resume=[nights.answer("two")])
    second = await b.send(None, history=history, resume=[moved(nights).answer(2)])
    (breakfast,) = second.pending
    assert breakfast.message == "Breakfast in Oslo?"
    assert not script.requests
    history = stored(*history, *second.messages)
    assert (await b.send(None, history=history)).pending == (breakfast,)
    with pytest.raises(ResumeError, match=r"nothing waits|answered already"):
        await b.send(None, history=history, resume=[nights.answer(True)])
    third = await b.send(None, history=history, resume=[breakfast.answer(True)])
    assert third.output == "Booked."
    assert third.messages[0].tool_results[0].result == "2 nights in Oslo, with breakfast"


async def test_answers_can_be_read_and_a_person_may_decline() -> None:
    @tool
    async def name(ctx: ToolContext[Any]) -> str:
        if not ctx.answers:
            raise AskUser("Your name?", metadata={"field": "name"})
        return ctx.answers[0]

    a, script = agent(says(call("name")), says("Hi."), tools=[name])
    first = await a.send("hi")
    assert first.pending[0].metadata["field"] == "name"
    assert (
        await a.send(None, history=first.messages, resume=[first.pending[0].answer("Ada")])
    ).output == "Hi."
    assert script.requests[1].messages[-1].tool_results[0].result == "Ada"
    await a.send(
        None, history=first.messages, resume=[first.pending[0].deny("none of your business")]
    )
    assert script.requests[2].messages[-1].tool_results[0].denied


async def test_a_sign_in_waits_with_its_address_and_comes_too_late() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]

    @tool
    def mail(ctx: ToolContext[Any]) -> str:
        if not ctx.answers:
            raise SignIn("https://example.com/sign-in", expires_at=now[0] + timedelta(hours=1))
        return "3 letters"

    a, _ = agent(says(call("mail")), says("Three."), tools=[mail], clock=lambda: now[0])
    first = await a.send("Mail?")
    (wait,) = first.pending
    assert (wait.reason, wait.metadata["url"]) == ("auth", "https://example.com/sign-in")
    now[0] += timedelta(hours=2)
    with pytest.raises(ResumeError, match="has expired"):
        await a.send(None, history=stored(*first.messages), resume=[wait.answer("ok")])
    assert (
        await a.send(None, history=stored(*first.messages), resume=[wait.cancel()])
    ).output == "Three."


async def test_a_function_decides_what_needs_approval_and_is_asked_again_before_it_is_run() -> None:
    forbidden: list[str] = []
    ran: list[int] = []

    async def large(one: ToolCallPart, ctx: ToolContext[Any]) -> bool:
        assert ctx.call is one
        if forbidden:
            raise PermissionError(forbidden[0])
        return one.arguments["cents"] > 100

    @tool(requires_approval=large, approval_expires=timedelta(minutes=5))
    def pay(cents: int) -> str:
        ran.append(cents)
        return f"paid {cents}"

    a, script = agent(
        says(call("pay", cents=5), call("pay", id="c2", cents=500)), says("Done."), tools=[pay]
    )
    first = await a.send("Pay.")
    (wait,) = first.pending
    assert (wait.id, ran) == ("c2", [5])
    assert wait.expires_at is not None
    history = stored(*first.messages)
    assert (await a.send(None, history=history)).pending == (wait,)
    forbidden.append("not today")
    second = await a.send(None, history=history, resume=[wait.approve()])
    assert second.messages[0].tool_results[0].result == {"error": "not today"}
    assert ran == [5]
    forbidden.clear()
    third = await a.send(None, history=history, resume=[wait.approve()])
    assert (third.messages[0].tool_results[0].result, ran) == ("paid 500", [5, 500])
    assert len(script.requests) == 3


async def test_an_expired_approval_can_be_denied_and_nothing_else() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]

    @tool(requires_approval=True, approval_expires=60)
    def delete(path: str) -> str:
        raise AssertionError(path)

    a, _ = agent(
        says(call("delete", path="x")), says("Fine."), tools=[delete], clock=lambda: now[0]
    )
    first = await a.send("hi")
    history = stored(*first.messages)
    now[0] += timedelta(seconds=61)
    with pytest.raises(ResumeError, match="'c1' has expired"):
        await a.send(None, history=history, resume=[first.pending[0].approve()])
    assert (await a.send(None, history=history, resume=[first.pending[0].deny()])).output == "Fine."


def guarded(**how: Any) -> tuple[Agent[Any], Any, list[str]]:
    ran: list[str] = []

    @tool(requires_approval=True, approval_expires=60, editable=True)
    def delete(path: str) -> str:
        ran.append(path)
        return f"{path} is deleted"

    return *agent(says(call("delete", path="x")), says("Done."), tools=[delete], **how), ran


async def test_a_signed_approval_counts_for_what_was_to_be_approved_alone() -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    a, _, ran = guarded(approval_key="secret" * 6, clock=lambda: now[0])
    first = await a.send("hi", thread_id="t1")
    wait = moved(first.pending[0])
    assert wait.signature
    history = stored(*first.messages)
    other = [*history[:-2], history[-2].replace(content=(call("delete", path="/"),)), history[-1]]
    stripped = [*history[:-1]]
    unsigned = msgspec.structs.replace(wait.approve(), signature=None)
    late = msgspec.structs.replace(
        wait.approve(), signature=str(wait.signature).replace(".1767", ".9767", 1)
    )
    for resume, messages, thread in [
        (unsigned, history, "t1"),
        (wait.approve(), other, "t1"),
        (wait.approve(), history, "t2"),
        (wait.approve(), history, None),
        (late, stripped, "t1"),
        (Resume("c1", payload={"approved": True}, signature="1..00"), stripped, "t1"),
    ]:
        with pytest.raises(ResumeError, match=r"signature|other call|of another"):
            await a.send(None, history=messages, resume=[resume], thread_id=thread)
    assert not ran
    now[0] += timedelta(seconds=61)
    with pytest.raises(
        ResumeError, match="has expired"
    ):  # the token tells it where the mark is lost
        await a.send(None, history=stripped, resume=[wait.approve()], thread_id="t1")
    now[0] -= timedelta(seconds=61)
    assert (
        await a.send(None, history=stripped, resume=[wait.approve()], thread_id="t1")
    ).output == "Done."
    assert ran == ["x"]
    denied = await a.send(
        None, history=history, resume=[Resume("c1", payload={"approved": False})], thread_id="t1"
    )
    assert denied.output == "Done."
    b, _, ran_by_b = guarded(approval_key=b"another key")
    with pytest.raises(ResumeError, match="another approval_key"):
        await b.send(None, history=history, resume=[wait.approve()], thread_id="t1")
    assert not ran_by_b


async def test_a_history_from_a_client_needs_a_key() -> None:
    a, _, ran = guarded()
    first = await a.send("hi")
    wait = first.pending[0]
    with pytest.raises(ResumeError, match="approval_key"):
        await a.send(None, history=first.messages, resume=[wait.approve()], trusted_history=False)
    await a.send(None, history=first.messages, resume=[wait.deny()], trusted_history=False)
    assert not ran
    b, _, ran = guarded(approval_key="key")
    first = await b.send("hi")
    await b.send(
        None, history=first.messages, resume=[first.pending[0].approve()], trusted_history=False
    )
    assert ran == ["x"]


async def test_a_claimed_call_is_not_run_twice_unless_that_does_no_harm() -> None:
    claimed: set[tuple[str, str]] = set()

    async def claim(thread: str, interrupt: str, run: str) -> bool:
        assert run
        known = (thread, interrupt) in claimed
        claimed.add((thread, interrupt))
        return not known

    ran: list[str] = []

    @tool(requires_approval=True)
    def once() -> str:
        ran.append("once")
        return "ok"

    @tool(requires_approval=True, idempotent=True)
    def often() -> str:
        ran.append("often")
        return "ok"

    a, _ = agent(says(call("once"), call("often", id="c2")), says("Done."), tools=[once, often])
    first = await a.send("hi", thread_id="t")
    answers = [each.approve() for each in first.pending]
    results = [
        await a.send(None, history=first.messages, resume=answers, thread_id="t", claim=claim)
        for _ in range(2)
    ]
    assert [[part.is_error for part in each.messages[0].tool_results] for each in results] == [
        [False, False],
        [True, False],
    ]
    assert "outcome unknown" in results[1].messages[0].tool_results[0].result["error"]
    assert sorted(ran) == ["often", "often", "once"]  # they are run in threads


def nested(depth: int, ran: list[str]) -> tuple[Agent[Any], list[Any]]:
    """An agent that has an agent in its tool, and so on; the innermost must be allowed something
    and asks something."""

    @tool(requires_approval=True)
    def act(ctx: ToolContext[Any], what: str) -> str:
        ran.append(f"{what} for {ctx.deps}")
        return f"did {what}"

    @tool
    def ask(ctx: ToolContext[Any]) -> str:
        return ctx.ask("Which?")

    inner, script = agent(
        says(call("act", id="i1", what="this"), call("ask", id="i2")),
        says("Inner done."),
        tools=[act, ask],
    )
    scripts = [script]
    for level in range(depth):

        @tool
        async def delegate(ctx: ToolContext[Any], agent: Any = inner) -> str:
            ran.append("begun")
            result = await ctx.send(agent, "Do it.")
            return f"it said: {result.output}"

        run = Tool(
            "delegate", "Has another do it.", delegate.handler, {"type": "object", "properties": {}}
        )
        inner, script = agent(
            says(call("delegate", id=f"o{level}")), says(f"Level {level} done."), tools=[run]
        )
        scripts.append(script)
    return inner, scripts


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_what_an_agent_in_a_tool_waits_for_is_waited_for_outside_and_goes_on_inside(
    depth: int,
) -> None:
    ran: list[str] = []
    a, scripts = nested(depth, ran)
    first = await a.send("Go.", deps="Ada")
    path = [f"o{level}" for level in reversed(range(depth))]
    ids = ["/".join([*path, each]) for each in ("i1", "i2")]
    assert [each.id for each in first.pending] == ids
    assert [len(each.parent) for each in first.pending] == [depth, depth]
    assert first.pending[0].parent[0] == path[0]
    b, others = nested(depth, ran)
    for script in others:
        script.answers.pop(0)
    history = stored(*first.messages)
    assert (await b.send(None, history=history)).pending == first.pending
    second = await b.send(
        None, history=history, resume=[moved(first.pending[0]).approve()], deps="Ada"
    )
    assert [each.id for each in second.pending] == ids[1:]
    assert not [request for script in others for request in script.requests]
    history = stored(*history, *second.messages)
    third = await b.send(
        None, history=history, resume=[moved(second.pending[0]).answer("that")], deps="Ada"
    )
    assert third.output == f"Level {depth - 1} done."
    assert ran.count("this for Ada") == 1
    assert [len(script.requests) for script in (*scripts, *others)] == [1] * (2 * (depth + 1))
    last = others[0].requests[0].messages
    assert last[-1].tool_results or last[-2].tool_results


async def test_answers_to_an_agent_in_a_tool_are_checked_before_anything_is_run() -> None:
    ran: list[str] = []
    a, _ = nested(2, ran)
    first = await a.send("Go.")
    begun = len(ran)
    act, ask = first.pending
    for wrong in (act.answer(1), act.approve({"what": "more"}), ask.approve()):
        with pytest.raises(ResumeError):
            await a.send(None, history=first.messages, resume=[wrong])
    assert len(ran) == begun


async def test_signatures_of_an_agent_in_a_tool_are_checked_on_both_floors() -> None:
    ran: list[str] = []

    @tool(requires_approval=True)
    def act() -> str:
        ran.append("act")
        return "ok"

    inner, _ = agent(says(call("act", id="i")), says("Inner."), tools=[act], approval_key="inner")

    @tool
    async def delegate(ctx: ToolContext[Any]) -> str:
        return (await ctx.send(inner, "Do it.")).output

    a, _ = agent(
        says(call("delegate", id="o")), says("Done."), tools=[delegate], approval_key="outer"
    )
    first = await a.send("Go.")
    (wait,) = first.pending
    outer, _, within = str(wait.signature).partition("+")
    assert outer and within
    history = stored(*first.messages)
    with pytest.raises(ResumeError, match="signature"):
        await a.send(
            None,
            history=history,
            resume=[msgspec.structs.replace(wait.approve(), signature=within)],
        )
    half = await a.send(
        None, history=history, resume=[msgspec.structs.replace(wait.approve(), signature=outer)]
    )
    assert "signature" in half.messages[0].tool_results[0].result["error"]
    assert not ran
    assert (await a.send(None, history=history, resume=[moved(wait).approve()])).output == "Done."
    assert ran == ["act"]


async def test_an_agent_in_a_tool_that_came_to_its_end_is_not_asked_again() -> None:
    helper, script = agent(says("42"))

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        number = (await ctx.send(helper, "A number?")).output
        return f"{number} {ctx.ask('Of what?')}"

    a, _ = agent(says(call("work")), says("Done."), tools=[work])
    first = await a.send("hi")
    second = await a.send(
        None, history=stored(*first.messages), resume=[first.pending[0].answer("apples")]
    )
    assert second.messages[0].tool_results[0].result == "42 apples"
    assert len(script.requests) == 1


async def test_a_run_in_a_tool_names_the_run_around_it() -> None:
    told: list[RunStarted] = []

    class Noted(DefaultStreamingOrchestrator):
        async def initialize(self, state: StreamingState) -> None:
            told.append(RunStarted(state.run_id))

    class Sender:
        """Reads the events of the run that it is asked for."""

        def run(self, prompt: Any, **how: Any) -> Any:
            self.made = helper.run(prompt, **how)
            return self.made

    helper, _ = agent(says("ok"), orchestrator=Noted)
    sender = Sender()

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        return (await ctx.send(sender, "?")).output

    a, _ = agent(says(call("work")), says("Done."), tools=[work])
    await a.send("hi", run_id="outer")
    assert [event.run_id for event in told] == [sender.made.id]
    assert sender.made.parent_id == "outer"


async def test_what_is_told_folds_to_the_messages_also_where_a_run_goes_on() -> None:
    a, _ = agent(
        says(call("book", city="Oslo"), call("book", id="c2", city="Rome")),
        says("Done."),
        tools=[book],
    )
    first = await a.send("hi")
    history = list(first.messages)
    pending = first.pending
    while pending:
        async with a.run(
            None, history=history, resume=[pending[0].answer(True if "?2" in pending[0].id else 3)]
        ) as run:
            events = [event async for event in run]
            result = await run.result()
        assert fold(events) == list(result.messages)
        assert isinstance(events[-1], RunFinished)
        assert events[-1].pending == result.pending
        history += result.messages
        pending = result.pending
    assert history[-1].text == "Done."


async def test_many_runs_of_one_agent_go_on_at_once_and_nothing_leaks_between_them() -> None:
    @tool
    async def who(ctx: ToolContext[Any]) -> str:
        answer = ctx.ask("Who?")
        await asyncio.sleep(0)
        return f"{ctx.deps} {answer}"

    a, _ = agent(*[says(call("who"))] * 30, says("Done."), tools=[who])
    firsts = [await a.send(f"hi {number}", deps=number) for number in range(30)]
    results = await asyncio.gather(
        *[
            a.send(
                None,
                history=stored(*first.messages),
                resume=[first.pending[0].answer(f"a{number}")],
                deps=number,
            )
            for number, first in enumerate(firsts)
        ]
    )
    assert [each.messages[0].tool_results[0].result for each in results] == [
        f"{n} a{n}" for n in range(30)
    ]


async def test_a_stale_answer_never_fits_another_call_when_the_history_was_trimmed() -> None:
    @tool(requires_approval=True)
    def delete(path: str) -> str:
        return f"{path} is deleted"

    a, _ = agent(
        says(call("delete", path="x")),
        says("Done."),
        says(call("delete", path="y")),
        says("Done."),
        tools=[delete],
    )
    first = await a.send("x")
    stale = first.pending[0]
    second = await a.send(None, history=first.messages, resume=[stale.approve()])
    third = await a.send("y", history=[*first.messages, *second.messages])
    (wait,) = third.pending
    assert wait.id == f"c1@{third.messages[1].id}"
    with pytest.raises(ResumeError):
        await a.send(
            None,
            history=[*first.messages, *second.messages, *third.messages],
            resume=[stale.approve()],
        )
    with pytest.raises(ResumeError, match="of another message"):
        await a.send(None, history=third.messages, resume=[stale.approve()])
    assert (await a.send(None, history=third.messages, resume=[wait.approve()])).output == "Done."
