"""Output checks: functions that accept, change or send back what a run gives."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel

from dragoman import (
    Agent,
    Chat,
    Custom,
    Limits,
    Memory,
    ModelRetry,
    RunFinished,
    Settings,
    ToolContext,
    fold,
    handoff,
    tool,
)
from dragoman.errors import LimitReachedError, TypedOutputError
from dragoman.message import Message, Role, TextPart, ThinkingPart
from dragoman.orchestration import DefaultStreamingOrchestrator, StreamingIterationResult
from dragoman.testing import ScriptedModel, answer_with, call

pytestmark = pytest.mark.anyio

LIKE = {
    "schema": "openai:gpt-4o",
    "return_result": "anthropic:claude-3-haiku-20240307",
    "json in text": "groq:groq/compound",
}
each_way = pytest.mark.parametrize("way", LIKE)


class Order(BaseModel):
    item: str
    count: int


def agent_of(
    way: str, answers: Sequence[Any], **arguments: Any
) -> tuple[Agent[Any], ScriptedModel]:
    model = ScriptedModel.like(LIKE[way], list(answers))
    return Agent(model, **arguments), model


def few(_: ToolContext[Any], order: Order) -> Order:
    if order.count > 5:
        raise ModelRetry("At most 5 of an item.")
    return order


async def upper(_: ToolContext[Any], order: Order) -> Order:
    await asyncio.sleep(0)
    return order.model_copy(update={"item": order.item.upper()})


@each_way
async def test_what_a_check_accepts_stays_as_the_model_wrote_it(way):
    agent, model = agent_of(way, [answer_with(Order(item="nut", count=2))], output_checks=[few])
    result = await agent.send_for("Order", Order)
    assert result.output == Order(item="nut", count=2) and len(model.requests) == 1


@each_way
async def test_what_a_check_sends_back_is_answered_again(way):
    answers = [answer_with(Order(item="nut", count=9)), answer_with(Order(item="nut", count=5))]
    agent, model = agent_of(way, answers, output_checks=[few])
    result = await agent.send_for("Order", Order)
    assert result.output.count == 5 and len(model.requests) == 2
    assert "At most 5 of an item." in str(model.requests[1].messages[-1])
    assert len(result.calls) == 2 and result.usage.total_tokens


@each_way
async def test_what_a_check_changes_is_the_answer_everywhere(way):
    answers = [answer_with(Order(item="nut", count=2))] * 2
    agent, _ = agent_of(way, answers, output_checks=[few, upper])
    events = []
    async with agent.run("Order", output_type=Order) as run:
        async for event in run:
            events.append(event)
        result = await run.result()
    assert result.output == Order(item="NUT", count=2)
    told = [message for message in fold(events) if message.role is Role.MODEL]
    kept = [message for message in result.messages if message.role is Role.MODEL]
    assert [message.content for message in told] == [message.content for message in kept]
    assert "NUT" in str(told) and "nut" not in str(told)
    [finished] = [event for event in events if isinstance(event, RunFinished)]
    assert finished.result == {"item": "NUT", "count": 2}
    chunks = [chunk async for chunk in agent.send_stream_for("Order", Order)]
    assert chunks[-1].output == result.output and chunks[-2].output.item == "NUT"


@each_way
@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_how_often_is_a_limit(way, retries):
    answers = [answer_with(Order(item="nut", count=9))] * 5
    agent, model = agent_of(way, answers, output_checks=[few])
    with pytest.raises(TypedOutputError, match="At most 5 of an item") as caught:
        await agent.send_for("Order", Order, limits=Limits(output_retries=retries))
    assert len(model.requests) == retries + 1
    assert '"count":9' in caught.value.output.replace(" ", "")
    assert caught.value.result.messages[-1] and caught.value.partial.role is Role.MODEL
    assert "output_retries" in str(caught.value)


@each_way
async def test_wrong_types_and_refusals_share_the_corrections(way):
    answers = [answer_with({"item": 5}), answer_with(Order(item="nut", count=9))]
    agent, model = agent_of(way, answers, output_checks=[few])
    with pytest.raises(TypedOutputError):
        await agent.send_for("Order", Order)
    assert len(model.requests) == 2


async def test_no_bound_of_corrections_leaves_that_of_model_calls():
    answers = [answer_with(Order(item="nut", count=9))] * 5
    agent, model = agent_of("schema", answers, output_checks=[few])
    with pytest.raises(LimitReachedError):
        await agent.send_for("x", Order, limits=Limits(output_retries=None, model_calls=3))
    assert len(model.requests) == 3


def polite(_: ToolContext[Any], text: str) -> str:
    if "please" not in text:
        raise ModelRetry("Say please.")
    return text


async def test_a_text_is_checked_too_and_what_was_refused_is_void():
    agent, _ = agent_of("schema", ["Sit.", "Sit, please."] * 3, output_checks=[polite])
    result = await agent.send("How do I ask?")
    assert result.output == "Sit, please."
    assert [message.text for message in result.messages] == [
        "How do I ask?",
        "Sit.",
        "Say please.",
        "Sit, please.",
    ]
    text = ""
    async for chunk in agent.send_stream("How do I ask?"):
        text = chunk.joined(text)
    assert text == "Sit, please."
    events = [event async for event in agent.send_events("How do I ask?")]
    assert [event.result for event in events if isinstance(event, RunFinished)] == ["Sit, please."]


async def test_a_number_in_a_checked_text_stays_a_text():
    agent, _ = agent_of("schema", ["5"], output_checks=[lambda _, text: text])
    events = [event async for event in agent.send_events("Two and three?")]
    assert [event.result for event in events if isinstance(event, RunFinished)] == ["5"]


async def test_the_output_of_a_checked_run_is_its_last_message():
    @tool
    def look() -> str:
        """Look."""
        return "seen"

    answers = [[TextPart("I look."), call("look")], "It is fine, please."]
    agent, _ = agent_of("schema", answers, tools=[look], output_checks=[polite])
    assert (await agent.send("How is it?")).output == "It is fine, please."


async def test_a_changed_text_keeps_what_stands_beside_it():
    answer = [ThinkingPart("Hm."), TextPart("Sit, "), TextPart("please.")]
    agent, _ = agent_of("schema", [answer], output_checks=[lambda _, text: f"{text}!"])
    result = await agent.send("How do I ask?")
    assert result.output == result.messages[-1].text == "Sit, please.!"
    assert result.messages[-1].thinking == "Hm."


async def test_checks_run_in_order_with_the_context_of_the_run():
    seen: list[Any] = []

    def first(context: ToolContext[str], text: str) -> str:
        seen.append((context.deps, context.run_id, threading.current_thread().name))
        context.emit("checked", text)
        return text + "1"

    class Second:
        async def __call__(self, context: ToolContext[str], text: str) -> str:
            return f"{text}2 {context.messages[-1].text}"

    def third(_: ToolContext[str], text: str) -> str:
        return text + " 3"

    agent = Agent(ScriptedModel(["a"]), output_checks=(first, Second()))
    async with agent.run("Hi", deps="d", run_id="r", output_checks=[third]) as run:
        events = [event async for event in run]
        assert (await run.result()).output == "a12 Hi 3"
    [(deps, run_id, thread)] = seen
    assert (deps, run_id) == ("d", "r") and thread != threading.main_thread().name
    assert [event.value for event in events if isinstance(event, Custom)] == ["a"]


@pytest.mark.parametrize(
    ("check", "error", "words"),
    [
        (lambda _, text: None, TypeError, "returned None"),
        (lambda _, text: 5, TypeError, "returned 5 for a text"),
        (lambda _, text: 1 / 0, ZeroDivisionError, "division"),
        (lambda _, text: int(text), ValueError, "invalid literal"),
    ],
)
async def test_what_a_check_does_wrong_ends_the_run_as_it_is(check, error, words):
    agent, model = agent_of("schema", ["a"], output_checks=[check])
    with pytest.raises(error, match=words):
        await agent.send("Hi")
    assert len(model.requests) == 1


@pytest.mark.parametrize("checks", [5, "few", [5], few, {"few": few}])
def test_a_wrong_argument_is_named(checks):
    with pytest.raises(TypeError, match="output_checks"):
        Agent(ScriptedModel(["a"]), output_checks=checks).run("Hi")
    with pytest.raises(TypeError, match="output_checks"):
        Agent(ScriptedModel(["a"])).run("Hi", output_checks=checks)


async def test_a_check_may_change_a_value_in_place_and_beyond_json():
    def raise_count(_: ToolContext[Any], order: Order) -> Order:
        order.count += 1
        return order

    agent, _ = agent_of(
        "schema", [answer_with(Order(item="a", count=1))], output_checks=[raise_count]
    )
    result = await agent.send_for("Order", Order)
    assert result.output.count == 2 and '"count":2' in result.messages[-1].text


async def test_an_answer_that_waits_is_not_checked():
    @tool(requires_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    agent, _ = agent_of(
        "schema", [call("pay"), "Done, please."], tools=[pay], output_checks=[polite]
    )
    chat = Chat(agent)
    waiting = await chat.send("Pay")
    assert waiting.pending
    done = await chat.send(None, resume=[waiting.pending[0].approve()])
    assert done.output == "Done, please."


async def test_a_hand_off_is_checked_by_both_agents():
    other = Agent(
        ScriptedModel(["No.", "No, please."]), display_name="other", output_checks=[polite]
    )
    strict = [lambda _, text: text.upper()]
    agent = Agent(
        ScriptedModel([call("transfer_to_other")]), tools=[handoff(other)], output_checks=strict
    )
    assert (await agent.send("Hi")).output == "NO, PLEASE."
    refused = Agent(
        ScriptedModel([call("transfer_to_other")]),
        tools=[handoff(Agent(ScriptedModel(["No."]), display_name="other"))],
        output_checks=[polite],
    )
    with pytest.raises(TypedOutputError, match="Say please"):
        await refused.send("Hi")


async def test_an_agent_in_a_tool_has_its_own_checks():
    inner = Agent(
        ScriptedModel(["No.", "No, please."]), display_name="inner", output_checks=[polite]
    )
    outer = Agent(ScriptedModel([call("inner", prompt="?"), "Well."]), tools=[inner.as_tool()])
    result = await outer.send("Hi")
    assert result.messages[-2].tool_results[0].result == "No, please."


async def test_an_own_orchestrator_does_not_get_round_the_checks():
    class Own:
        provider_hint = "own"

        def initialize(self, state: Any) -> None: ...
        def finalize(self, state: Any) -> None: ...

        async def process_iteration(self, model: Any, state: Any, output_schema: Any = None) -> Any:
            message = Message.model("Sit.").replace(id="m")
            yield StreamingIterationResult(output="Sit.", messages=[message], should_continue=False)

    class Wrapping(DefaultStreamingOrchestrator):
        pass

    agent = Agent(ScriptedModel([]), orchestrator=Own, output_checks=[polite])
    with pytest.raises(TypedOutputError, match="Say please"):
        await agent.send("Hi")
    agent = Agent(ScriptedModel(["Sit.", "please"]), orchestrator=Wrapping, output_checks=[polite])
    assert (await agent.send("Hi")).output == "please"


async def test_a_memory_keeps_what_the_check_left():
    memory = Memory("memory:")
    agent = Agent(ScriptedModel(["secret"]), memory=memory, output_checks=[lambda _, text: "***"])
    await agent.send("Hi", thread_id="t")
    assert [message.text for message in (await memory.recall("t")).items] == ["Hi", "***"]


async def test_a_run_that_is_cancelled_while_it_is_checked_ends():
    begun = asyncio.Event()

    async def slow(_: ToolContext[Any], text: str) -> str:
        begun.set()
        await asyncio.sleep(60)
        return text

    agent = Agent(ScriptedModel(["a"]), output_checks=[slow], settings=Settings(temperature=0))
    async with agent.run("Hi") as run:
        reading = asyncio.create_task(run.result())
        await begun.wait()
        run.cancel()
        result = await asyncio.wait_for(reading, 5)
    assert result.finish_reason == "cancelled" and result.output == "a"


def test_words_of_a_retry_reach_the_model_from_a_tool_too():
    @tool
    def find(name: str) -> str:
        """Find."""
        raise ModelRetry(f"No {name} here; try another name.")

    with Agent(ScriptedModel([call("find", name="x"), "I cannot."]), tools=[find]) as agent:
        result = agent.send_sync("Hi")
    [part] = result.messages[2].tool_results
    assert part.is_error and part.result == {"error": "No x here; try another name."}
