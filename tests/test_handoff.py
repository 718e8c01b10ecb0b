"""Hand-off: another agent goes on with the conversation, and what it says is the answer of the
run."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from dragoman import (
    Agent,
    Capability,
    Chat,
    DataPart,
    Interrupt,
    Limits,
    Message,
    StateDelta,
    TextPart,
    ToolContext,
    dump_messages,
    fold,
    load_messages,
    tool,
    unfold,
    wires,
)
from dragoman.errors import LimitReachedError, ProviderError, ResumeError, ToolError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
)
from dragoman.message import Role
from dragoman.runs import Runs, open_log, visible
from dragoman.testing import ScriptedModel, call
from dragoman.tools import handoff
from support.model import FORCING, agent, says
from support.model import call as calls
from support.net import FOUR as WIRES

pytestmark = pytest.mark.anyio

NUMBERS = itertools.count()
WAYS = [(wire, stream) for wire in WIRES for stream in (True, False)]


def model(
    *answers: Any, wire: str = "openai_chat", stream: bool = True, **fields: Any
) -> ScriptedModel:
    """A scripted model at an address of its own: nobody else has its stored responses."""
    url = f"http://{next(NUMBERS)}.invalid/v1"
    return ScriptedModel(answers, wire=wire, stream=stream, **{"base_url": url, **fields})


async def told(a: Agent[Any], prompt: Any = "Go.", **how: Any) -> tuple[list[Event], Any]:
    async with a.run(prompt, **how) as run:
        events = [event async for event in run]
        return events, await run.result()


def stored(*messages: Message) -> list[Message]:
    return load_messages(dump_messages(messages))


@tool
def balance() -> str:
    """The balance."""
    return "5 pounds"


@pytest.mark.parametrize(("wire", "stream"), WAYS)
@pytest.mark.parametrize("other", WIRES)
async def test_another_agent_answers_in_the_place_of_the_first(
    wire: str, stream: bool, other: str
) -> None:
    teller = model(
        Message.model("I look.", calls("balance")), "You have 5 pounds.", wire=other, stream=stream
    )
    billing = Agent(teller, system="You are the teller.", tools=[balance])
    first = model(
        Message.model("One moment.", calls("transfer_to_billing", id="t1", reason="money")),
        wire=wire,
        stream=stream,
    )
    a = Agent(first, system="You are the porter.", tools=[handoff(billing, "billing")])
    events, result = await told(a, "How much do I have?", run_id="outer")
    assert result.output == "One moment.\nI look.\nYou have 5 pounds."
    assert fold(events) == list(result.messages)
    question, asked, answered, said = result.messages
    assert (question.text, asked.text) == ("How much do I have?", "One moment.")
    assert "Handed over to billing" in answered.tool_results[0].result
    assert (said.role, said.text, said.content) == (
        Role.MODEL,
        "I look.\nYou have 5 pounds.",
        (TextPart(said.text),),
    )
    assert said.origin is not None
    assert said.origin.endpoint == teller.base_url
    assert (
        said.origin.response_id is None
    )  # the first model's provider has no such response in this conversation
    assert said.metadata["agent"] == result.metadata["agent"] == "billing"
    assert said.usage is None
    (started,) = [
        event
        for event in events
        if isinstance(event, RunStarted) and event.parent_run_id == "outer"
    ]
    inner = fold(events, run_id=started.run_id)
    assert [message.text for message in inner] == ["I look.", "", "You have 5 pounds."]
    assert [each.run_id for each in result.calls] == ["outer", started.run_id, started.run_id]
    seen = teller.requests[0].messages
    assert [message.role for message in seen] == [Role.SYSTEM, Role.USER, Role.MODEL, Role.USER]
    assert (seen[0].text, seen[1].text) == ("You are the teller.", "How much do I have?")
    first.assert_exhausted()
    teller.assert_exhausted()
    again = model("Anything else?", wire=wire, stream=stream)
    b = Agent(again, system="You are the porter.", tools=[handoff(billing, "billing")])
    assert (await b.send("Thanks.", history=stored(*result.messages))).output == "Anything else?"
    assert again.requests[0].messages[-2].text == said.text


@pytest.mark.parametrize("stream", [True, False])
async def test_what_it_says_streams_live_and_chunks_join_to_the_output(stream: bool) -> None:
    was_read = asyncio.Event()

    @tool
    async def waits() -> str:
        await asyncio.wait_for(was_read.wait(), 30)
        return "ok"

    b = Agent(
        model(Message.model("I wait.", calls("waits")), "Done.", stream=stream), tools=[waits]
    )
    a = Agent(model(call("transfer_to_b"), stream=stream), tools=[handoff(b, "b")])
    output = ""
    usages: list[int] = []
    async for chunk in a.send_stream("Go."):
        output = chunk.joined(output)
        usages += [chunk.usage.total_tokens or 0] if chunk.usage else []
        if output == "I wait.":
            was_read.set()
    assert output == "I wait.\nDone."
    b = Agent(
        model(Message.model("I wait.", calls("waits")), "Done.", stream=stream), tools=[waits]
    )
    result = await Agent(model(call("transfer_to_b"), stream=stream), tools=[handoff(b, "b")]).send(
        "Go."
    )
    assert result.usage is not None
    assert sum(usages) == result.usage.total_tokens
    assert len(result.calls) == 3


async def test_a_client_sees_one_answer() -> None:
    b = Agent(model(Message.model("I look.", calls("balance")), "5 pounds."), tools=[balance])
    a = Agent(
        model(Message.model("One moment.", calls("transfer_to_b", id="t"))), tools=[handoff(b, "b")]
    )
    events, result = await told(a)
    seen = [*visible(events)]
    (answer,) = [message for message in fold(seen) if message.role is Role.MODEL]
    assert answer.text == result.output == "One moment.\nI look.\n5 pounds."
    assert answer.tool_calls == ()
    assert answer.usage == result.usage
    texts = [
        message.text
        for message in fold(visible(events, retractable=True))
        if message.role is Role.MODEL
    ]
    assert texts == ["One moment.", "I look.\n5 pounds."]


async def test_other_calls_come_first_and_the_first_transfer_counts() -> None:
    b, c = Agent(model("I am b.")), Agent(model())
    first = model([call("transfer_to_b"), call("balance"), call("transfer_to_c")])
    result = await Agent(first, tools=[handoff(b, "b"), balance, handoff(c, "c")]).send("Go.")
    assert result.output == "I am b."
    one, two, three = result.messages[2].tool_results
    assert "Handed over to b" in one.result
    assert two.result == "5 pounds"
    assert "b goes on" in str(three.result)
    assert three.is_error


async def test_a_transfer_beside_a_call_that_waits_is_made_later() -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        return "paid"

    b = Agent(model("I am b."))
    first = model([call("transfer_to_b"), call("pay")], call("transfer_to_b"))
    a = Agent(first, tools=[handoff(b, "b"), pay])
    waits = await a.send("Go.")
    assert waits.messages[2].tool_results[0].is_error
    result = await a.send(
        None, history=stored(*waits.messages), resume=[waits.pending[0].approve()]
    )
    assert result.output == "I am b."


async def test_arguments_that_do_not_fit_are_an_error_result() -> None:
    b = Agent(model("I am b."))
    a = Agent(
        model(call("transfer_to_b", reason=5), call("transfer_to_b")), tools=[handoff(b, "b")]
    )
    result = await a.send("Go.")
    assert result.messages[2].tool_results[0].is_error
    assert result.output == "I am b."


async def test_chains_and_who_answered() -> None:
    c = Agent(model("I am c."))
    b = Agent(
        model(Message.model("To c.", calls("transfer_to_c", id="t2"))), tools=[handoff(c, "c")]
    )
    a = Agent(model(call("transfer_to_b")), tools=[handoff(b, "b")])
    events, result = await told(a)
    assert result.output == "To c.\nI am c."
    assert result.metadata["agent"] == "c"
    assert fold(events) == list(result.messages)
    parents = [
        (event.run_id, event.parent_run_id) for event in events if isinstance(event, RunStarted)
    ]
    assert [parent for _, parent in parents] == [None, parents[0][0], parents[1][0]]
    assert [message.text for message in fold(events, run_id=parents[1][0])] == [
        "To c.",
        "",
        "I am c.",
    ]
    assert [message.text for message in fold(events, run_id=parents[2][0])] == ["I am c."]


async def test_a_loop_is_ended_by_limits() -> None:
    agents: dict[str, Agent[Any]] = {}
    for name, other in (("a", "b"), ("b", "a")):
        to = handoff(lambda other=other: agents[other], other)
        agents[name] = Agent(model(*[call(f"transfer_to_{other}")] * 60), tools=[to])
    with pytest.raises(LimitReachedError, match="50 model calls") as raised:
        await agents["a"].send("Go.")
    assert raised.value.result is not None
    assert len(raised.value.result.calls) == 50
    with pytest.raises(ToolError, match="needs the name"):
        handoff(lambda: agents["a"])


# waiting


def bank(
    ran: list[str], answers: int, wire: str, stream: bool, depth: int
) -> tuple[Agent[Any], list[ScriptedModel]]:
    """Agents that hand over to each other; the last must be allowed something and asks
    something."""

    @tool(requires_approval=True)
    def pay(ctx: ToolContext[Any], cents: int) -> str:
        ran.append(f"{cents} by {ctx.deps}")
        return "paid"

    @tool
    def ask(ctx: ToolContext[Any]) -> str:
        return ctx.ask("Sure?")

    scripts = [
        model(
            *[
                Message.model("I pay.", calls("pay", id="p", cents=5), calls("ask", id="q")),
                "It is paid.",
            ][answers:][:1],
            wire=wire,
            stream=stream,
        )
    ]
    inner = Agent(scripts[0], tools=[pay, ask], system="The banker.")
    for level in range(depth):
        scripts.append(
            model(*[call("transfer_to_next", id=f"t{level}")][answers:], wire=wire, stream=stream)
        )
        inner = Agent(
            scripts[-1],
            tools=[handoff(inner, "next")],
            approval_key="key" * 11,
            system=f"Level {level}.",
        )
    return inner, scripts


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(("wire", "stream"), WAYS)
async def test_what_it_waits_for_the_run_waits_for_and_it_goes_on(
    wire: str, stream: bool, depth: int
) -> None:
    ran: list[str] = []
    a, scripts = bank(ran, 0, wire, stream, depth)
    events, first = await told(a, "Pay the bill.", deps="Ada", thread_id="t")
    assert fold(events) == list(first.messages)
    pay, ask = first.pending
    assert (pay.reason, ask.reason, len(pay.parent), ran) == ("approval", "input", depth, [])
    assert first.output == "I pay."
    for script in scripts:
        script.assert_exhausted()
    b, scripts = bank(ran, 1, wire, stream, depth)
    moved = [
        msgspec.json.decode(msgspec.json.encode(each), type=Interrupt) for each in first.pending
    ]
    history = stored(*first.messages)
    assert (await b.send(None, history=history, thread_id="t")).pending == first.pending
    events, second = await told(
        b,
        None,
        history=history,
        resume=[moved[0].approve(), moved[1].answer("yes")],
        deps="Ada",
        thread_id="t",
    )
    assert fold(events) == list(second.messages)
    assert (second.output, ran) == ("It is paid.", ["5 by Ada"])
    assert second.metadata["agent"] == "next"
    assert len(second.calls) == 1
    for script in scripts:
        script.assert_exhausted()
    seen = scripts[0].requests[0].messages
    assert [result.result for result in seen[-1].tool_results] == ["paid", "yes"]
    assert seen[-2].text == "I pay."
    assert seen[0].text == "The banker."
    last = model("Bye.", wire=wire, stream=stream)
    c = Agent(last, tools=[handoff(b, "next")])
    assert (await c.send("Thanks.", history=stored(*history, *second.messages))).output == "Bye."


async def test_answers_may_come_one_by_one_and_with_a_new_prompt() -> None:
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 1)
    first = await a.send("Pay.", deps="Ada", thread_id="t")
    b, scripts = bank(ran, 1, "openai_chat", True, 1)
    second = await b.send(
        None, history=first.messages, resume=[first.pending[0].approve()], deps="Ada", thread_id="t"
    )
    assert ran == ["5 by Ada"]
    (wait,) = second.pending
    assert wait.reason == "input"
    history = [*first.messages, *second.messages]
    third = await b.send(
        "And hurry.", history=history, resume=[wait.answer("yes")], deps="Ada", thread_id="t"
    )
    assert third.output == "It is paid."
    assert scripts[0].requests[0].messages[-1].text == "And hurry."
    assert [
        message.text for message in third.messages if message.role is not Role.USER or message.text
    ] == [
        "And hurry.",
        "It is paid.",
    ]


async def test_handing_over_may_need_approval() -> None:
    b = Agent(model("I am b."))
    a = Agent(model(call("transfer_to_b")), tools=[handoff(b, "b", requires_approval=True)])
    first = await a.send("Go.")
    assert first.pending[0].reason == "approval"
    assert (
        await a.send(None, history=first.messages, resume=[first.pending[0].approve()])
    ).output == "I am b."
    a = Agent(model("Then not."), tools=[handoff(b, "b", requires_approval=True)])
    assert (
        await a.send(None, history=first.messages, resume=[first.pending[0].deny()])
    ).output == "Then not."


async def test_one_that_was_approved_waits_and_goes_on_without_asking_again() -> None:
    @tool
    def ask(ctx: ToolContext[Any]) -> str:
        return ctx.ask("Sure?")

    b = Agent(model(call("ask"), "Fine."), tools=[ask])
    a = Agent(model(call("transfer_to_b")), tools=[handoff(b, "b", requires_approval=True)])
    first = await a.send("Go.")
    second = await a.send(None, history=first.messages, resume=[first.pending[0].approve()])
    assert second.pending[0].message == "Sure?"
    history = [*first.messages, *second.messages]
    third = await a.send(None, history=history, resume=[second.pending[0].answer("yes")])
    assert third.output == "Fine."


# typed output


class Sum(BaseModel):
    pounds: int


@pytest.mark.parametrize(("wire", "stream"), WAYS)
@pytest.mark.parametrize("other", ["openai_chat", "anthropic"])
async def test_typed_output_is_what_the_other_is_held_to(
    wire: str, stream: bool, other: str
) -> None:
    b = Agent(model('{"pounds": 5}', wire=other, stream=stream))
    a = Agent(
        model(Message.model("Wait.", calls("transfer_to_b", id="t")), wire=wire, stream=stream),
        tools=[handoff(b, "b")],
    )
    result = await a.send_for("How much?", Sum)
    assert result.output == Sum(pounds=5)
    assert result.messages[-1].text == '{"pounds": 5}'


@pytest.mark.parametrize("outer", [True, False])
@pytest.mark.parametrize("inner", [True, False])
async def test_typed_output_by_a_call_is_one_call_for_both(outer: bool, inner: bool) -> None:
    """Of providers that take no schema the output is a call's arguments: in the run, in the
    other's, in both or in neither."""

    def made(forcing: bool, *answers: Any, **how: Any) -> Agent[Any]:
        return agent(*answers, **({"provider": FORCING} if forcing else {}), **how)[0]

    answer = says(calls("return_result", id="r", pounds=5)) if inner else says('{"pounds":5}')
    wrong = (
        says(calls("return_result", id="r0", pounds="many")) if inner else says('{"pounds":"many"}')
    )
    b = made(inner, wrong, answer, ids="b")
    a = made(outer, says("Wait.", calls("transfer_to_b", id="t")), tools=[handoff(b, "b")], ids="a")
    async with a.run("How much?", output_type=Sum) as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == Sum(pounds=5)
    assert fold(events) == list(result.messages)
    said = [message for message in result.messages if message.role is Role.MODEL][-1]
    assert [each.name for each in said.tool_calls] == (["return_result"] if outer else [])
    if outer:
        assert said.tool_calls[0].arguments == {"pounds": 5}
        assert result.messages[-1].tool_results[0].result == "ok"
    for retractable in (False, True):
        seen = [
            message for message in fold(visible(events, retractable)) if message.role is Role.MODEL
        ]
        assert seen[-1].text == '{"pounds":5}'
    finished = events[-1]
    assert isinstance(finished, RunFinished)
    assert finished.result == {"pounds": 5}


@pytest.mark.parametrize("forcing", [True, False])
async def test_a_typed_run_may_wait_within_the_other(forcing: bool) -> None:
    @tool
    def ask(ctx: ToolContext[Any]) -> str:
        return ctx.ask("Sure?")

    provider = {"provider": FORCING} if forcing else {}
    b, _ = agent(says("Hm.", calls("ask", id="q")), says('{"pounds":5}'), tools=[ask], ids="b")
    a, _ = agent(says(calls("transfer_to_b", id="t")), tools=[handoff(b, "b")], ids="a", **provider)
    first = await a.send_for("How much?", Sum)
    *_, said, waits = first.messages
    assert [each.name for each in said.tool_calls] == [
        "transfer_to_b"
    ]  # what is no answer is no call of return_result
    assert waits.role is Role.USER
    history = stored(*first.messages)
    result = await a.send_for(None, Sum, history=history, resume=[first.pending[0].answer("yes")])
    assert result.output == Sum(pounds=5)


# retractions, failures, the end


def restarts(*texts: str) -> list[Event]:
    """A model that begins again and again, and then says the last."""
    events: list[Event] = []
    for number, text in enumerate(texts[:-1]):
        begun = unfold([says(text).replace(id=f"void{number}")])[:3]
        events += [*begun, MessageDropped(f"void{number}", "again")]
    return [*events, *unfold([says(texts[-1]).replace(id="said")])]


@given(st.lists(st.text("ab\n", min_size=1, max_size=5), min_size=1, max_size=4), st.booleans())
def test_a_retraction_of_the_other_is_one_of_the_run(texts: list[str], before: bool) -> None:
    @tool
    def t() -> str:
        return "ok"

    async def go() -> tuple[list[Event], Any, str]:
        def made() -> Agent[Any]:
            first = [says("First.", calls("t", id="x"))] if before else []
            b, _ = agent(*first, restarts(*texts), tools=[t], ids="b")
            return agent(
                says("Wait.", calls("transfer_to_b", id="t")), tools=[handoff(b, "b")], ids="a"
            )[0]

        output = ""
        async for chunk in made().send_stream("Go."):
            output = chunk.joined(output)
        return *(await told(made())), output

    events, result, streamed = asyncio.run(go())
    expected = f"Wait.\n{'First.' + chr(10) if before else ''}{texts[-1]}"
    assert result.output == streamed == expected
    assert fold(events) == list(result.messages)
    assert result.messages[-1].text == expected.removeprefix("Wait.\n")


async def test_its_failure_is_the_runs() -> None:
    b = Agent(
        model(Message.model("I look.", calls("balance")), ProviderError("it broke", status=500)),
        tools=[balance],
    )
    a = Agent(model(call("transfer_to_b")), tools=[handoff(b, "b")])
    async with a.run("Go.") as run:
        events = [event async for event in run]
        with pytest.raises(ProviderError, match="it broke") as raised:
            await run.result()
    assert [type(event) for event in events if isinstance(event, RunError)] == [RunError, RunError]
    assert raised.value.result is not None
    assert raised.value.result.output == "I look."
    assert raised.value.result.messages[-1].text == "I look."
    assert fold(events) == list(raised.value.result.messages)
    assert len(raised.value.result.calls) == 2
    seen = [*visible(events)]
    assert isinstance(seen[-1], RunError)
    assert "it broke" in str(seen[-1].error)


@pytest.mark.parametrize("chain", [1, 2, 3])
async def test_cancelling_ends_it_where_it_stands(chain: int) -> None:
    runs: list[Any] = []

    @tool
    async def sleeps() -> str:
        runs[0].cancel()
        await asyncio.sleep(60)
        return "never"

    inner, _ = agent(says("I wait.", calls("sleeps", id="s")), tools=[sleeps], ids="i")
    for level in range(chain):
        inner, _ = agent(
            says(calls("transfer_to_next", id="t")), tools=[handoff(inner, "next")], ids=f"l{level}"
        )
    async with inner.run("Go.") as run:
        runs.append(run)
        events = [event async for event in run]
        result = await run.result()
    assert result.output == "I wait."
    assert result.messages[-1].text == "I wait."
    assert fold(events) == list(result.messages)
    assert [event.outcome for event in events if isinstance(event, RunFinished)] == [
        "cancelled"
    ] * (chain + 1)
    opened = [event.message_id for event in events if isinstance(event, MessageStarted)]
    ended = [event.message_id for event in events if isinstance(event, MessageFinished)]
    assert sorted(opened) == sorted(ended)
    assert len([event for event in events if isinstance(event, StepStarted)]) == len(
        [event for event in events if isinstance(event, StepFinished)]
    )


async def test_its_own_limits_hold_too_and_state_is_shared() -> None:
    @tool
    async def write(ctx: ToolContext[Any]) -> str:
        await ctx.state.patch([{"op": "add", "path": "/by", "value": "b"}])
        return "ok"

    b = Agent(model(call("write"), "Written."), tools=[write])
    a = Agent(model(call("transfer_to_b")), tools=[handoff(b, "b", limits=Limits(model_calls=2))])
    events, result = await told(a, state={"x": 1})
    assert result.state == {"x": 1, "by": "b"}
    assert [event.run_id for event in events if isinstance(event, StateDelta)] == [None]
    b = Agent(model(call("write"), "Written."), tools=[write])
    a = Agent(model(call("transfer_to_b")), tools=[handoff(b, "b", limits=Limits(model_calls=1))])
    with pytest.raises(LimitReachedError, match="1 model calls"):
        await a.send("Go.")


async def test_nothing_said_leaves_no_message() -> None:
    b, _ = agent(says(), ids="b")
    a, _ = agent(says(calls("transfer_to_b", id="t")), tools=[handoff(b, "b")], ids="a")
    events, result = await told(a)
    assert result.output == ""
    assert fold(events) == list(result.messages)
    assert [message.role for message in result.messages] == [Role.USER, Role.MODEL, Role.USER]


# what the history holds


async def test_a_run_that_waits_holds_the_conversation_once() -> None:
    """However often the other waits: what stands in the history is not stored again with what
    waits."""
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 2)
    words = "a long story " * 100
    first = await a.send(words, deps="Ada", thread_id="t")
    b, _ = bank(ran, 1, "openai_chat", True, 2)
    second = await b.send(
        None, history=first.messages, resume=[first.pending[0].approve()], deps="Ada", thread_id="t"
    )
    assert second.pending
    assert dump_messages([*first.messages, *second.messages]).count(words.encode()) == 1


async def test_a_history_may_be_trimmed_at_its_front_and_needs_its_ids() -> None:
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 1)
    first = await a.send(
        "Pay.", deps="Ada", history=[Message.user("Old."), Message.model("Old.")], thread_id="t"
    )
    answers = [first.pending[0].approve(), first.pending[1].answer("yes")]
    b, scripts = bank(ran, 1, "openai_chat", True, 1)
    result = await b.send(None, history=first.messages, resume=answers, deps="Ada", thread_id="t")
    assert result.output == "It is paid."
    assert "Old." not in [message.text for message in scripts[0].requests[0].messages]
    b, scripts = bank(ran, 1, "openai_chat", True, 1)
    nameless = [
        first.messages[0],
        *[m.replace(id=None) if m.tool_results else m for m in first.messages[1:]],
    ]
    with pytest.raises(ResumeError, match="the history lacks the message"):
        await b.send(None, history=nameless, resume=answers, deps="Ada", thread_id="t")


async def test_who_makes_up_what_the_other_said_is_found_out() -> None:
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 1)
    first = await a.send("Pay.", thread_id="t")
    forged = load_messages(dump_messages(first.messages).replace(b'"cents":5', b'"cents":9'))
    assert forged != list(first.messages)
    b, _ = bank(ran, 1, "openai_chat", True, 1)
    with pytest.raises(ResumeError, match="signature"):
        await b.send(None, history=forged, resume=[first.pending[0].approve()], thread_id="t")
    assert not ran


# together with agents as tools, and by providers that answer in other ways


async def test_an_agent_in_a_tool_may_hand_over() -> None:
    c = Agent(model("I am c."))
    b = Agent(model(call("transfer_to_c")), tools=[handoff(c, "c")])
    a = Agent(model(call("ask_b", prompt="?"), "c says it is c."), tools=[b.as_tool("ask_b")])
    events, result = await told(a)
    assert result.output == "c says it is c."
    assert result.messages[2].tool_results[0].result == "I am c."
    assert fold(events) == list(result.messages)
    assert "agent" not in result.metadata
    assert len([event for event in events if isinstance(event, RunStarted)]) == 3


async def test_typed_output_in_two_phases() -> None:
    capabilities = FORCING.capabilities | {Capability.typed_output}
    two_phases = msgspec.structs.replace(FORCING, capabilities=capabilities)
    b, _ = agent(
        says("I see."), says('{"pounds":5}'), tools=[balance], provider=two_phases, ids="b"
    )
    a, _ = agent(
        says("Hm.", calls("transfer_to_b", id="t")),
        tools=[handoff(b, "b")],
        provider=two_phases,
        ids="a",
    )
    async with a.run("How much?", output_type=Sum) as run:
        events = [event async for event in run]
        result = await run.result()
    assert result.output == Sum(pounds=5)
    assert fold(events) == list(result.messages)


async def test_an_output_schema_is_passed_on() -> None:
    schema = {
        "type": "object",
        "properties": {"pounds": {"type": "integer"}},
        "required": ["pounds"],
    }
    teller = model('{"pounds": "many"}', '{"pounds": 5}')
    a = Agent(model(call("transfer_to_b")), tools=[handoff(Agent(teller), "b")])
    result = await a.send("How much?", output_schema=schema)
    assert result.output == '{"pounds": 5}'
    assert len(teller.requests) == 2


@pytest.mark.parametrize("name", WIRES)
async def test_on_every_wire_a_client_reads_one_answer(name: str) -> None:
    b = Agent(model(Message.model("I look.", calls("balance")), "5 pounds."), tools=[balance])
    a = Agent(
        model(Message.model("One moment.", calls("transfer_to_b", id="t"))), tools=[handoff(b, "b")]
    )
    events, result = await told(a)
    wire = wires.get(name)
    seen = [*visible(events)]
    encoder, decoder = wire.encoder(id="r", model="m"), wire.decoder()
    data = b"".join([*map(encoder.feed, seen), encoder.close()])
    streamed = fold([*decoder.feed(data), *decoder.close()])
    whole = fold(wire.load_response(wire.dump_response(seen, id="r", model="m")))
    for (message,) in (streamed, whole):
        assert message.text == result.output == "One moment.\nI look.\n5 pounds."
        assert message.tool_calls == ()
        assert message.usage is not None
        assert message.usage.total_tokens == result.usage.total_tokens


async def test_a_history_that_comes_from_a_client_goes_on_with_a_signature_alone() -> None:
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 2)
    first = await a.send("Pay.", deps="Ada", thread_id="t")
    answers = [first.pending[0].approve(), first.pending[1].answer("yes")]
    how: dict[str, Any] = {"history": stored(*first.messages), "deps": "Ada", "thread_id": "t"}
    b, _ = bank(ran, 1, "openai_chat", True, 2)
    unsigned = [msgspec.structs.replace(each, signature=None) for each in answers]
    with pytest.raises(ResumeError, match="signature"):
        await b.send(None, resume=unsigned, trusted_history=False, **how)
    assert not ran
    assert (
        await b.send(None, resume=answers, trusted_history=False, **how)
    ).output == "It is paid."


async def test_what_its_requests_leave_out_is_among_the_losses() -> None:
    sound = DataPart(b"RIFF....WAVE", "audio/wav")
    b = Agent(model("I am b.", wire="anthropic"))
    a = Agent(model(call("transfer_to_b"), wire="google"), tools=[handoff(b, "b")])
    events, result = await told(a, [sound, "What is this?"])
    lost = [
        loss
        for event in events
        if isinstance(event, StepFinished) and event.run_id
        for loss in event.losses
    ]
    assert lost
    assert set(lost) <= set(result.losses)


async def test_handing_over_is_a_call_of_a_tool() -> None:
    b = Agent(model("I am b."))
    with pytest.raises(LimitReachedError, match="0 tool calls"):
        await Agent(model(call("transfer_to_b")), tools=[handoff(b, "b")]).send(
            "Go.", limits=Limits(tool_calls=0)
        )


async def test_a_hand_off_that_is_approved_before_another_call_is_not_made() -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        return "paid"

    b = Agent(model("I am b."))
    a = Agent(
        model([call("transfer_to_b"), call("pay")]),
        tools=[handoff(b, "b", requires_approval=True), pay],
    )
    first = await a.send("Go.")
    transfer, paying = first.pending
    second = await a.send(None, history=first.messages, resume=[transfer.approve()])
    assert [each.id for each in second.pending] == [paying.id]
    assert second.messages[0].tool_results[0].is_error
    both = await a.send(None, history=first.messages, resume=[transfer.approve(), paying.approve()])
    assert both.output == "I am b."
    assert [each.is_error for each in both.messages[0].tool_results] == [False, False]


@pytest.mark.parametrize("text", ["A cat.", ""])
async def test_files_that_the_other_made_stand_in_its_message(text: str) -> None:
    picture = DataPart(b"png", "image/png")
    b, _ = agent(says(*([text] if text else []), picture), ids="b")
    a, _ = agent(says(calls("transfer_to_b", id="t")), tools=[handoff(b, "b")], ids="a")
    events, result = await told(a)
    assert result.output == text
    assert result.messages[-1].content == (*([TextPart(text)] if text else []), picture)
    assert fold(events) == list(result.messages)


async def test_a_chat_goes_on_with_what_the_other_waits_for() -> None:
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 2)
    chat = Chat(a, thread_id="t")
    first = await chat.send("Pay.", deps="Ada")
    assert chat.pending == first.pending
    b, _ = bank(ran, 1, "openai_chat", True, 2)
    later = Chat(b, stored(*chat.history), thread_id="t")
    assert later.pending == first.pending
    answers = [later.pending[0].approve(), later.pending[1].answer("yes")]
    assert (await later.send(None, resume=answers, deps="Ada")).output == "It is paid."
    assert later.pending == ()
    assert [message.text for message in later.history if message.text] == [
        "Pay.",
        "I pay.",
        "It is paid.",
    ]


async def test_an_answer_that_is_sent_twice_counts_once_in_a_run_of_its_own() -> None:
    ran: list[str] = []
    a, _ = bank(ran, 0, "openai_chat", True, 1)
    first = await a.send("Pay.", deps="Ada", thread_id="t")
    how: dict[str, Any] = {"history": first.messages, "deps": "Ada", "thread_id": "t"}
    how["resume"] = [first.pending[0].approve(), first.pending[1].answer("yes")]
    async with open_log("memory:") as log, Runs(log) as runs:
        ends: list[Any] = []
        for last in ([], ["Who knows."]):
            teller, _ = bank(ran, 1, "openai_chat", True, 0)
            b = Agent(model(*last), tools=[handoff(teller, "next")], approval_key="key" * 11)
            run_id = await runs.start(b, None, **how)
            ends.append([event async for _, event in runs.attach(run_id)][-1])
    assert ran == ["5 by Ada"]
    assert [end.result for end in ends] == ["It is paid.", "Who knows."]
