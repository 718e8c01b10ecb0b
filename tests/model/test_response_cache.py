"""A response cache: what is answered again, to whom, and as what; on every wire, streamed and
whole."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from dragoman import Agent, Limits, Message, Settings, ToolSpec, Usage, tool
from dragoman.errors import DragomanError, ProviderError, SettingsError
from dragoman.event import MessageDropped, MessageFinished, PartDelta
from dragoman.fold import unfold
from dragoman.message import FinishReason, Origin, TextPart, ThinkingPart, ToolCallPart
from dragoman.model import CacheStore, cache, fallback
from dragoman.model.cache_store import MemoryCacheStore
from dragoman.model.response_cache import ResponseCache
from support.answers import MODELS, agent_of, answer
from support.model import PROVIDER, Script, says

pytestmark = pytest.mark.anyio

EVERY_WIRE = pytest.mark.parametrize("wire", MODELS)
FIRST = Usage(input_tokens=100, output_tokens=20, total_tokens=120)
SECOND = Usage(input_tokens=130, output_tokens=7, total_tokens=137)
TEXT = "Once upon a time there was a king who had a very long story to tell."


@tool
async def add(x: int) -> int:
    """Adds one."""
    return x + 1


def scripted(layer: ResponseCache, *answers: Any, **how: Any) -> tuple[Agent[Any], Script]:
    """An agent with a cache above a scripted model."""
    script = Script(*answers)
    return Agent(PROVIDER, middleware=[layer, script], api_key="k", **how), script


# hits


@EVERY_WIRE
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
async def test_a_run_is_answered_again_without_its_model(wire: str, whole: bool) -> None:
    """Tools run again; ids of messages are new, those of calls are the provider's."""
    exchanges = [
        answer(wire, "I add.", ToolCallPart("c1", "add", {"x": 1}), usage=FIRST, whole=whole),
        answer(wire, TEXT, usage=SECOND, whole=whole),
    ]
    agent, player = agent_of(wire, *exchanges, tools=[add], middleware=[cache()])
    first, second = await agent.send("1 + 1?"), await agent.send("1 + 1?")
    assert len(player.requests) == 2
    assert second.output == first.output == f"I add.\n{TEXT}"
    for one, other in zip(first.messages, second.messages, strict=True):
        assert one.id != other.id
        assert (one.content, one.role, one.origin) == (other.content, other.role, other.origin)
        assert (one.finish_reason, one.usage, one.native) == (
            other.finish_reason,
            other.usage,
            other.native,
        )
    assert [each.cached for each in first.calls] == [False, False]
    assert [each.cached for each in second.calls] == [True, True]
    assert [each.usage for each in second.calls] == [each.usage for each in first.calls]
    assert second.usage == Usage(input_tokens=0, output_tokens=0, total_tokens=0)
    assert second.cost == 0 != first.cost


@EVERY_WIRE
async def test_it_is_a_stream_again(wire: str) -> None:
    agent, _ = agent_of(wire, answer(wire, TEXT, usage=FIRST), middleware=[cache()])
    first = [chunk async for chunk in agent.send_stream("Tell.")]
    second = [chunk async for chunk in agent.send_stream("Tell.")]
    assert (
        "".join(chunk.output for chunk in second)
        == TEXT
        == "".join(chunk.output for chunk in first)
    )
    assert len([chunk for chunk in second if chunk.output]) > 2
    assert [chunk.cost for chunk in second if chunk.calls] == [0]
    assert sum(1 for chunk in second if chunk.usage is not None) == 1


async def test_thinking_and_what_a_provider_signed_come_again() -> None:
    signed = ThinkingPart("Hm.", {"anthropic": {"signature": "c2ln"}})
    agent, script = scripted(cache(), says(signed, TextPart("Yes."), usage=1))
    first, second = await agent.send("hi"), await agent.send("hi")
    assert len(script.requests) == 1
    assert second.messages[-1].content == first.messages[-1].content == (signed, TextPart("Yes."))
    assert second.thinking == "Hm."


async def test_a_message_is_made_when_it_is_told_again() -> None:
    times = iter([datetime(2026, 1, day, tzinfo=UTC) for day in range(1, 9)])
    layer = cache(clock=lambda: next(times), id_factory=map("id-{}".format, count()).__next__)
    agent, _ = scripted(layer, says("Yes."))
    await agent.send("hi")
    again = (await agent.send("hi")).messages[-1]
    assert (again.id, again.created_at) == ("id-0", datetime(2026, 1, 2, tzinfo=UTC))


async def test_what_was_left_out_is_told_again() -> None:
    """A request that had to leave something out says so each time."""
    agent, player = agent_of(
        "openai_chat",
        answer("openai_chat", "Yes.", usage=FIRST),
        middleware=[cache()],
        settings=Settings(top_k=3),
    )
    first, second = await agent.send("hi"), await agent.send("hi")
    assert len(player.requests) == 1
    assert first.losses == second.losses != ()


async def test_tokens_of_cached_answers_count_against_no_limit_but_calls_do() -> None:
    layer = cache()
    agent, script = scripted(
        layer, says(ToolCallPart("c1", "add", {"x": 1}), usage=100), says("Two."), tools=[add]
    )
    await agent.send("1 + 1?")
    await agent.send("1 + 1?", limits=Limits(total_tokens=50, cost=1))
    assert len(script.requests) == 2
    with pytest.raises(DragomanError, match="1 model calls"):
        await agent.send("1 + 1?", limits=Limits(model_calls=1))


async def test_equal_requests_at_once_are_all_answered_rightly() -> None:
    agent, script = scripted(cache(), says("Yes."))
    results = await asyncio.gather(*[agent.send("hi") for _ in range(5)])
    assert {result.output for result in results} == {"Yes."}
    assert len({result.messages[-1].id for result in results}) >= 1
    asked = len(script.requests)
    assert (await agent.send("hi")).calls[0].cached
    assert len(script.requests) == asked


# misses


def options(wire: str) -> dict[str, dict[str, Any]]:
    """Everything that an agent or a send may say otherwise, by name; each is another request."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    provider = MODELS[wire].partition(":")[0]
    return {
        "the prompt": {"prompt": "Tell again."},
        "the history": {"history": [Message.user("Hm?"), Message.model("Yes.")]},
        "the system text": {"agent": {"system": "Be brief."}},
        "the model": {"agent": {"model": f"{provider}:another"}},
        "the model of a send": {"model": f"{provider}:another"},
        "the endpoint": {"agent": {"base_url": "https://elsewhere.example.com/v1"}},
        "headers": {"agent": {"headers": {"x-variant": "b"}}},
        "the key": {"agent": {"api_key": "another"}},
        "temperature": {"settings": Settings(temperature=0.5)},
        "most tokens": {"settings": Settings(max_tokens=77)},
        "stop": {"settings": Settings(stop=("x",))},
        "reasoning": {"settings": Settings(reasoning="low")},
        "tools": {"agent": {"tools": [add]}},
        "tools of a send": {
            "tools": [ToolSpec("look", "Looks.", {"type": "object", "properties": {}})]
        },
        "options": {"options": {"user": "u"}},
        "on_loss": {"on_loss": "error"},
        "an output schema": {"output_schema": schema},
        "the user": {"resource_id": "ann"},
    }


LEFT_OUT = {
    ("openai_chat", "reasoning"),
    ("openai_responses", "reasoning"),
    ("openai_responses", "stop"),
}
"""What gpt-4o does not take: the request as it is sent is the same."""


@EVERY_WIRE
@pytest.mark.parametrize("what", options("openai_chat"))
async def test_whatever_is_said_otherwise_is_another_request(wire: str, what: str) -> None:
    """To the model, and to the same store."""
    changed = options(wire)[what]
    layer, json = cache(), '{"a":"b"}'

    async def send(**how: Any) -> bool:
        agent, player = agent_of(
            wire, answer(wire, json, usage=FIRST), middleware=[layer], **how.pop("agent", {})
        )
        await agent.send(how.pop("prompt", "Tell."), **how)
        return bool(player.requests)

    async def asked(**how: Any) -> bool:
        try:
            return await send(**how)
        except TypeError:
            raise
        except DragomanError:
            return True

    assert await asked()
    assert not await asked()
    assert await asked(**changed) is not ((wire, what) in LEFT_OUT)
    assert not await asked()


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ({}, {}, True),
        ({"api_key": "a"}, {"api_key": "b"}, False),
        ({"api_key": lambda: "a"}, {"api_key": lambda: "a"}, False),
        ({"api_key": "a", "resource_id": "ann"}, {"api_key": "b", "resource_id": "ann"}, True),
        ({"resource_id": "ann"}, {"resource_id": "bob"}, False),
        ({"resource_id": "ann"}, {}, False),
        ({"api_key": "a", "scope": "team"}, {"api_key": "b", "scope": "team"}, True),
        ({"scope": "team"}, {"scope": "others"}, False),
        ({"scope": "team", "resource_id": "ann"}, {"scope": "team", "resource_id": "bob"}, False),
        ({"thread_id": "1", "run_id": "1"}, {"thread_id": "2", "run_id": "2"}, True),
        ({"metadata": {"a": 1}}, {"metadata": {"b": 1}}, True),
    ],
)
async def test_who_shares_answers(
    one: dict[str, Any], other: dict[str, Any], is_shared: bool
) -> None:
    store = MemoryCacheStore(10)

    async def asked(how: dict[str, Any]) -> bool:
        how = {"api_key": "k", **how}
        layer = cache(store, scope=how.pop("scope", None))
        agent = Agent(
            PROVIDER, middleware=[layer, script := Script(says("Yes."))], api_key=how.pop("api_key")
        )
        await agent.send("hi", **how)
        return bool(script.requests)

    assert await asked(one)
    assert await asked(other) is not is_shared


@pytest.mark.parametrize(
    "answers",
    [
        [ProviderError("no")],
        [[*unfold([says("half").replace(id="m")])[:-1]]],
        [
            [
                *unfold([says("void").replace(id="m")]),
                MessageDropped("m", "no"),
                *unfold([says("Yes.").replace(id="n")]),
            ]
        ],
        [says("cut", reason=FinishReason.error)],
        [says("filtered", reason=FinishReason.content_filter)],
        [says("left", reason=FinishReason.cancelled)],
        [says()],
        [says("of another").replace(origin=Origin("another", None, "m"))],
        [says("of another").replace(origin=Origin("scripted", None, "another"))],
    ],
    ids=[
        "failed",
        "not ended",
        "taken back",
        "error",
        "filtered",
        "cancelled",
        "empty",
        "provider",
        "model",
    ],
)
async def test_only_whole_answers_of_the_model_itself_are_kept(answers: list[Any]) -> None:
    agent, script = scripted(cache(), *answers)
    for _ in range(2):
        with suppress(DragomanError):
            await agent.send("hi")
    assert len(script.requests) == 2


async def test_a_call_that_cannot_be_run_is_not_kept() -> None:
    broken = ToolCallPart("c1", "add", {}, raw='{"x":', state="invalid")
    agent, script = scripted(cache(), says(broken), says("Sorry."), tools=[add])
    await agent.send("hi")
    script.answers = [says(broken), says("Sorry.")]
    await agent.send("hi")
    assert len(script.requests) >= 3


async def test_an_answer_that_is_left_is_not_kept() -> None:
    agent, script = scripted(cache(), says("a long answer"))
    async with agent.run("hi") as run:
        async for event in run:
            if isinstance(event, PartDelta) and event.delta == "a l":
                run.cancel()
    await agent.send("hi")
    assert len(script.requests) == 2


async def test_a_fallback_s_answer_is_not_that_of_the_model_that_failed() -> None:
    """With the cache outside of the fallback; within it, each model's answers are its own."""
    broken, sound = ProviderError("gone"), answer("anthropic", "Yes.", usage=FIRST)
    for inside in (False, True):
        layers: list[Any] = [cache(), fallback("anthropic:claude-sonnet-4-5")]
        agent, player = agent_of(
            "openai_chat",
            *[broken, sound, broken, sound],
            middleware=layers[::-1] if inside else layers,
            environment={"ANTHROPIC_API_KEY": "k"},
        )
        assert [(await agent.send("hi")).output for _ in range(2)] == ["Yes.", "Yes."]
        assert len(player.requests) == (3 if inside else 4)


async def test_an_answer_counts_for_so_long() -> None:
    time = [datetime(2026, 1, 1, tzinfo=UTC)]
    agent, script = scripted(cache(ttl=60, clock=lambda: time[0]), says("Yes."))
    await agent.send("hi")
    time[0] += timedelta(seconds=59)
    await agent.send("hi")
    assert len(script.requests) == 1
    time[0] += timedelta(seconds=1)
    await agent.send("hi")
    assert len(script.requests) == 2
    await agent.send("hi")
    assert len(script.requests) == 2


async def test_what_was_not_used_for_the_longest_time_is_forgotten() -> None:
    agent, script = scripted(cache(max_entries=2), says("Yes."))
    for prompt in ("a", "b", "a", "c", "a"):
        await agent.send(prompt)
    assert len(script.requests) == 3
    await agent.send("b")
    assert len(script.requests) == 4


# what may be said otherwise


async def test_a_send_may_go_without_it() -> None:
    layer = cache()
    agent, script = scripted(layer, says("Yes."))
    with layer.off():
        await agent.send("hi")
        await asyncio.to_thread(agent.send_sync, "hi")
    await agent.send("hi")
    assert len(script.requests) == 3
    with layer.off():
        assert not (await agent.send("hi")).calls[0].cached
    assert (await agent.send("hi")).calls[0].cached
    agent.close_sync()


async def test_a_function_may_say_which_requests_it_takes() -> None:
    agent, script = scripted(
        cache(when=lambda request: request.settings.temperature == 0), says("Yes.")
    )
    for _ in range(2):
        await agent.send("hi")
        await agent.send("hi", settings=Settings(temperature=0))
    assert len(script.requests) == 3


class Broken:
    """A store that does nothing but fail."""

    async def get(self, key: str) -> bytes | None:
        raise OSError("no disk")

    async def put(self, key: str, value: bytes) -> None:
        raise OSError("no disk")

    async def close(self) -> None:
        pass


class Damaged(MemoryCacheStore):
    """A store that gives back something else."""

    def __init__(self, value: bytes) -> None:
        super().__init__(10)
        self.value = value

    async def get(self, key: str) -> bytes | None:
        return self.value if await super().get(key) is not None else None


async def test_a_store_that_fails_is_a_miss_and_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store: CacheStore = Broken()
    agent, script = scripted(cache(store), says("Yes."))
    with caplog.at_level(logging.WARNING, "dragoman.model.cache"):
        assert [(await agent.send("hi")).output for _ in range(3)] == ["Yes."] * 3
    assert len(script.requests) == 3
    assert [record.message for record in caplog.records if "no disk" in record.message] == [
        "the response cache does not work, models are asked: OSError: no disk"
    ]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"null",
        b'{"version":0,"at":1.0,"events":[]}',
        b'{"version":1}',
        b'{"version":1,"at":1.0,"events":[{"type":"no_such_event"}]}',
        b'{"version":1,"at":1.0,"events":[{"type":"part_delta"}]}',
        b'{"version":"1","at":1.0,"events":[]}',
        b"\xff\xfe",
        b"[" * 10_000,
    ],
)
async def test_what_is_damaged_or_of_another_version_is_not_there(value: bytes) -> None:
    agent, script = scripted(cache(Damaged(value)), says("Yes."))
    assert [(await agent.send("hi")).output for _ in range(2)] == ["Yes.", "Yes."]
    assert len(script.requests) == 2


async def test_a_request_with_half_a_character_is_mended_and_found_again() -> None:
    agent, script = scripted(cache(), says("Yes."))
    for _ in range(2):
        await agent.send("half a pair: \ud800")
    assert [request.messages[-1].text for request in script.requests] == ["half a pair: \ufffd"]


@pytest.mark.parametrize(
    "where", ["redis://x", "sqlite://", "sqlite:///", "memory", "postgresql://u:secret@h/d"]
)
def test_a_store_that_nobody_knows(where: str) -> None:
    with pytest.raises(SettingsError, match="response cache") as caught:
        cache(where)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ({"store": 3}, TypeError),
        ({"max_entries": "3"}, TypeError),
        ({"max_entries": 0}, SettingsError),
        ({"ttl": 0}, SettingsError),
        ({"when": True}, TypeError),
        ({"store": "sqlite:////no/such/folder/answers.db"}, SettingsError),
    ],
)
def test_what_it_is_not_made_of(how: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        cache(**how)


async def test_without_a_hit_nothing_is_marked() -> None:
    agent, _ = scripted(cache(), says("Yes."))
    ends = [
        event
        for event in [each async for each in agent.send_events("hi")]
        if isinstance(event, MessageFinished)
    ]
    assert not any(event.cached for event in ends)


async def test_an_agent_within_a_tool_answers_for_the_user_of_the_run_around() -> None:
    inner, script = scripted(cache(), says("It rains."), display_name="Weatherman")
    outer = Script(
        *[says(ToolCallPart("c1", "weatherman", {"prompt": "Oslo?"})), says("An umbrella.")] * 3
    )
    agent = Agent(PROVIDER, middleware=[outer], tools=[inner.as_tool()])
    asked = []
    for user in ("ann", "bob", "ann"):
        result = await agent.send("What shall I wear?", resource_id=user)
        asked.append(len(script.requests))
        assert [each.cached for each in result.calls] == [
            False,
            user == "ann" and len(asked) == 3,
            False,
        ]
    assert asked == [1, 2, 2]
