"""A fallback in runs, on the four wires by pairs: before the first byte, in the middle, in a later
round of tools, typed."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import anyio
import msgspec
import pytest
from pydantic import BaseModel

from dragoman import (
    Capability,
    FinishReason,
    Message,
    MessageDropped,
    MessageStarted,
    ModelRequest,
    PartDelta,
    Role,
    RunError,
    RunFinished,
    ThinkingPart,
    ToolCallPart,
    providers,
    tool,
)
from dragoman.errors import OverloadedError, SettingsError, StreamCutError
from dragoman.event import Event
from dragoman.hooks import Hooks, ModelEnd, RequestRetry, add_global_hooks
from dragoman.model import fallback
from dragoman.orchestration import choose_orchestrator
from dragoman.runs import visible
from dragoman.testing import Answer
from support.model import PROVIDER, says
from support.net import CUT, FOUR, NAMES, Net, agent, used, whole

pytestmark = pytest.mark.anyio

BUSY = OverloadedError("no capacity")
SEAL = "c2lnbmVkIGFuZCBzZWFsZWQ="
SEALS = {
    "anthropic": {"signature": SEAL},
    "google": {"thoughtSignature": SEAL},
    "openai_responses": {"id": "rs_1", "encrypted_content": SEAL},
}
PAIRS = [
    pytest.param(first, second, id=f"{first}-{second}") for first, second in permutations(FOUR, 2)
]
WAYS = [pytest.param([], id="streamed"), pytest.param([whole], id="whole")]
pairs = pytest.mark.parametrize(("first", "second"), PAIRS)
ways = pytest.mark.parametrize("layers", WAYS)


@tool
def lookup(number: int) -> str:
    """Looks something up.

    Args:
        number: of what.
    """
    return f"found {number}"


def named(*wires: str) -> list[str]:
    return [NAMES[wire] for wire in wires]


def provider_of(message: Message) -> str | None:
    return message.origin and message.origin.provider


@pairs
@ways
async def test_before_the_first_byte(first: str, second: str, layers: list[Any]) -> None:
    net = Net(**{first: BUSY, second: used(says("There was a king."), 7)})
    async with agent(net, named(first, second), middleware=layers) as one:
        events = [event async for event in one.send_events("Tell me a story.")]
        assert not any(isinstance(event, MessageDropped) for event in events)
        result = await one.send("Tell me a story.")
    assert result.output == "There was a king."
    assert provider_of(result.messages[-1]) == NAMES[second]
    assert result.usage is not None
    assert result.usage.output_tokens == 7
    assert net.asked == [first, second] * 2
    assert net.retries == [0, None] * 2
    assert net.sent(second).messages[-1].text == "Tell me a story."


@pairs
async def test_in_the_middle_of_a_stream(first: str, second: str) -> None:
    net = Net(**{first: CUT, second: used(says("There was a king."), 7)})
    async with agent(net, named(first, second)) as one:
        shown = told = ""
        async for chunk in one.send_stream("Tell me a story."):
            told += chunk.output
            shown = chunk.joined(shown)
        events = [event async for event in one.send_events("Tell me a story.")]
        result = await one.send("Tell me a story.")
    assert told.startswith("Once")
    assert shown == result.output == "There was a king."
    assert [provider_of(message) for message in result.messages] == [None, NAMES[second]]
    assert [call.origin and call.origin.provider for call in result.calls] == named(first, second)
    assert sum(isinstance(event, MessageDropped) for event in events) == 1
    assert isinstance(events[-1], RunFinished)
    assert events[-1].result == "There was a king."
    assert net.open == 0


@pairs
async def test_a_whole_answer_that_is_cut_is_never_seen(first: str, second: str) -> None:
    net = Net(**{first: CUT, second: says("There was a king.")})
    async with agent(net, named(first, second), middleware=[whole]) as one:
        events = [event async for event in one.send_events("Tell me a story.")]
    text = [event.delta for event in events if isinstance(event, PartDelta)]
    assert text == ["Tell me a story.", "There was a king."]


@pairs
@ways
async def test_in_a_later_round_of_tools(first: str, second: str, layers: list[Any]) -> None:
    """Round 1 by the first model, rounds 2 and 3 by the second in its place, and the next prompt by
    the first again, which gets back what it had signed, and nobody else does."""
    thinking = ThinkingPart("let me see", {first: SEALS[first]}) if first in SEALS else None
    content = [
        part for part in (thinking, ToolCallPart("c1", "lookup", {"number": 1})) if part is not None
    ]
    net = Net(
        **{
            first: [says(*content), BUSY, BUSY, says("And on.")],
            second: [says(ToolCallPart("c2", "lookup", {"number": 2})), says("Found both.")],
        }
    )
    async with agent(net, named(first, second), tools=[lookup], middleware=layers) as one:
        result = await one.send("Look 1 and 2 up.")
        assert net.asked == [first, first, second, first, second]
        assert [provider_of(message) for message in result.messages if message.origin] == named(
            first, second, second
        )
        assert result.output == "Found both."
        found = [
            part.result for message in net.sent(second).messages for part in message.tool_results
        ]
        assert [one if isinstance(one, str) else one["result"] for one in found] == [
            "found 1",
            "found 2",
        ]
        again = await one.send("Go on.", history=result.messages)
    assert again.output == "And on."
    assert provider_of(again.messages[-1]) == NAMES[first]
    assert net.asked[5:] == [first]
    calls = [call.arguments for message in net.sent(first).messages for call in message.tool_calls]
    assert calls == [{"number": 1}, {"number": 2}]
    assert SEAL in str(net.sent(first)) or first not in SEALS
    assert not any(SEAL in str(request.body) for request in net.servers[second].sent)


class Story(BaseModel):
    title: str
    pages: int


@pairs
@ways
@pytest.mark.parametrize("tools", [[], [lookup]], ids=["alone", "with tools"])
async def test_typed_output(first: str, second: str, layers: list[Any], tools: list[Any]) -> None:
    """The means is one that both have; what the first one began is void."""
    both = [providers.get(name) for name in named(first, second)]
    by_call = (
        choose_orchestrator(*both, typed=True, tools=bool(tools)).provider_hint == "return_result"
    )
    value = {"title": "The King", "pages": 3}
    answer = says(
        ToolCallPart("r1", "return_result", value) if by_call else Story(**value).model_dump_json()
    )
    broken = Answer(content=answer, cut=True)
    net = Net(**{first: broken, second: answer})
    async with agent(net, named(first, second), tools=tools, middleware=layers) as one:
        result = await one.send_for("Tell me a story.", Story)
        shown = ""
        async for chunk in one.send_stream(
            "Tell me a story.", output_schema=Story.model_json_schema()
        ):
            shown = chunk.joined(shown)
    assert result.output == Story(**value)
    assert Story.model_validate_json(shown) == Story(**value)
    answered = [provider_of(message) for message in result.messages if message.origin]
    assert set(answered) == {NAMES[second]}


async def test_typed_output_needs_a_means_that_all_have() -> None:
    """Providers that share no means, and one that has none, are named."""
    nothing, schema, call = [
        msgspec.structs.replace(
            PROVIDER, name=name.lower(), display_name=name, capabilities=frozenset(can)
        )
        for name, can in (
            ("Plain", ()),
            ("Schema", (Capability.typed_output,)),
            ("Call", (Capability.tools,)),
        )
    ]
    for models, words in (
        ([schema, call], "different means.*Schema, Call"),
        ([call, nothing], "Plain can give no typed"),
    ):
        async with agent(Net(), models) as one:
            with pytest.raises(SettingsError, match=words):
                one.run("Hi", output_type=Story)
    async with agent(Net(), "openai", middleware=[fallback(nothing)]) as one:
        with pytest.raises(SettingsError, match="Plain can give no typed"):
            one.run("Hi", output_type=Story)
        one.run("Hi")


async def seen(net: Net, *models: str) -> list[Event]:
    """What a client sees that cannot take back."""
    async with agent(net, list(models)) as one, one.run("Tell me a story.") as run:
        return [*visible([event async for event in run], retractable=False)]


@pairs
async def test_a_client_that_cannot_take_back(first: str, second: str) -> None:
    """Decision 31: the next model answers as long as no text and no call was told; afterwards the
    error is."""
    sound = says("There was a king.")
    events = await seen(Net(**{first: BUSY, second: sound}), *named(first, second))
    assert _text(events) == "There was a king."
    assert isinstance(events[-1], RunFinished)
    events = await seen(Net(**{first: CUT, second: sound}), *named(first, second))
    assert _text(events).startswith("Once")
    assert "king." not in _text(events)
    assert isinstance(events[-1], RunError)
    assert isinstance(events[-1].error, StreamCutError)
    assert not any(isinstance(event, MessageDropped) for event in events)
    if first in SEALS:  # those that tell their thinking
        thought = Answer(content=says(ThinkingPart("let me see " * 20), "x"), cut=True)
        events = await seen(Net(**{first: thought, second: sound}), *named(first, second))
        assert isinstance(events[-1], RunFinished)
        assert _text(events).endswith("There was a king.")


@pairs
async def test_a_typed_answer_is_whole_for_a_client_that_cannot_take_back(
    first: str, second: str
) -> None:
    both = [providers.get(name) for name in named(first, second)]
    by_call = choose_orchestrator(*both, typed=True, tools=False).provider_hint == "return_result"
    texts = ['{"title": "The Queen", "pages": 4}', '{"title": "The King", "pages": 3}']
    values = [msgspec.json.decode(text) for text in texts]
    void, sound = [
        says(ToolCallPart("r1", "return_result", value) if by_call else text)
        for text, value in zip(texts, values, strict=True)
    ]
    net = Net(**{first: Answer(content=void, cut=True, share=0.8), second: sound})
    async with agent(net, named(first, second)) as one, one.run("Hi", output_type=Story) as run:
        events = [*visible([event async for event in run], retractable=False)]
    assert net.asked == [first, second]
    assert isinstance(events[-1], RunFinished)
    assert msgspec.json.decode(_text(events)) == values[1]


def _text(events: list[Event]) -> str:
    model = [
        event.message_id
        for event in events
        if isinstance(event, MessageStarted) and event.role is Role.MODEL
    ]
    return "".join(
        [str(e.delta) for e in events if isinstance(e, PartDelta) and e.message_id in model]
    )


async def test_a_refusal_may_be_answered_by_another() -> None:
    no = says("I cannot.", reason=FinishReason.refusal)
    net = Net(anthropic=no, openai_chat=says("Once upon a time."))
    layer = fallback(
        *named("anthropic", "openai_chat"),
        on_answer=lambda m: m.finish_reason is FinishReason.refusal,
    )
    async with agent(net, layer) as one:
        result = await one.send("Tell me a story.")
    assert result.output == "Once upon a time."
    assert len(result.messages) == 2
    assert len(result.calls) == 2


@pytest.mark.parametrize("wire", FOUR)
async def test_all_failing(wire: str) -> None:
    other = next(each for each in FOUR if each != wire)
    net = Net(**{wire: BUSY, other: OverloadedError("none here either")})
    async with agent(net, named(wire, other)) as one:
        with pytest.raises(
            OverloadedError, match=rf"none here.*Before it failed {NAMES[wire]}:\S+: Overloaded"
        ) as failed:
            await one.send("Tell me a story.")
    assert [error.provider for error in failed.value.earlier] == [NAMES[wire]]
    assert failed.value.result is not None
    assert net.open == 0


async def test_hooks_are_told_of_each_step_and_of_each_call() -> None:
    retries: list[RequestRetry] = []
    ends: list[ModelEnd] = []
    hooks = Hooks(retry=retries.append, model_end=ends.append)
    no = says("I cannot.", reason=FinishReason.refusal)
    net = Net(openai_chat=BUSY, anthropic=no, google=says("Once."))
    layer = fallback(
        *named("openai_chat", "anthropic", "google"),
        on_answer=lambda m: m.finish_reason is FinishReason.refusal,
    )
    async with agent(net, layer, hooks=hooks) as one:
        result = await one.send("Tell me a story.")
    assert result.output == "Once."
    told = [(each.provider, each.attempt, each.status, each.fallback) for each in retries]
    assert told == [("openai", 1, 503, "anthropic"), ("anthropic", 2, None, "google")]
    assert isinstance(retries[0].error, OverloadedError)
    assert retries[0].run is not None
    assert [end.start.target.provider for end in ends] == ["openai", "anthropic", "google"]
    with add_global_hooks(hooks):
        async with agent(net, layer) as one:
            model = one._models.chat()
            async for _ in model.stream(ModelRequest("", (Message.user("Hi"),))):
                pass
    assert len(retries) == 4


async def test_cancelled_in_the_middle() -> None:
    net = Net(
        openai_chat=Answer(content=says("word " * 50), gate=anyio.Event()), anthropic=says("no")
    )
    async with agent(net, ["openai", "anthropic"]) as one, one.run("Hi") as run:
        async for event in run:
            if isinstance(event, PartDelta) and "word" in str(event.delta):
                run.cancel()
        result = await run.result()
    assert result.finish_reason is FinishReason.cancelled
    assert net.asked == ["openai_chat"]
    assert net.open == 0


def test_a_run_that_is_waited_for_without_a_loop() -> None:
    net = Net(openai_chat=CUT, google=says("There was a king."))
    with agent(net, ["openai", "google"]) as one:
        assert one.send_sync("Tell me a story.").output == "There was a king."
