"""What calls cost: a provider's own figure, else the prices; on every wire, streamed and whole; and
a bound of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from genai_prices import data_snapshot, types
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import Agent, Limits, Message, Usage, providers, tool, unfold, wires
from dragoman.cost import call_cost
from dragoman.errors import LimitReachedError, OverloadedError, SettingsError
from dragoman.event import Event, MessageFinished, RunError
from dragoman.hooks import Hooks
from dragoman.message import FinishReason, Origin, ToolCallPart
from dragoman.model import fallback
from dragoman.result import ChatResult, ModelCall, sum_cost, sum_usage
from support.answers import MODELS, agent_of, answer
from support.model import agent, call, says

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 1, tzinfo=UTC)
MILLION = 1_000_000


def cost(
    provider: str, model: str, *, endpoint: str | None = None, native: Any = None, **tokens: int
) -> Decimal | None:
    usage = Usage(**{"input_tokens": 0, "output_tokens": 0, **tokens})
    return call_cost(Origin(provider, endpoint, model), usage, NOW, native)


def noted(wire: str = "openai_chat", **response: Any) -> Any:
    return {f"{wire}:notes": {"response": response}}


# by prices


@pytest.mark.parametrize(
    ("provider", "endpoint", "model"),
    [
        ("openai", "https://api.openai.com/v1", "gpt-4o"),
        ("openai-responses", "https://api.openai.com/v1", "gpt-4o-2024-08-06"),
        ("openai", "https://llm.example.com/v1", "gpt-4o"),
        ("anthropic", "https://api.anthropic.com/v1", "claude-sonnet-4-5"),
        ("google", "https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-flash"),
        ("google", "https://generativelanguage.googleapis.com/v1beta", "models/gemini-2.5-flash"),
        (
            "vertex",
            "https://europe-west4-aiplatform.googleapis.com/v1/projects/p",
            "gemini-2.5-flash",
        ),
        ("azure", "https://me.openai.azure.com/openai/v1", "gpt-4o"),
        ("azure-responses", None, "gpt-4o"),
        ("mistral", "https://api.mistral.ai/v1", "mistral-large-latest"),
        ("cohere", "https://api.cohere.com/v2", "command-a-03-2025"),
        ("groq", "https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
        ("openrouter", "https://openrouter.ai/api/v1", "openai/gpt-4o"),
        ("together", "https://api.together.xyz/v1", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
        ("xai", "https://api.x.ai/v1", "grok-4"),
        ("deepseek", "https://api.deepseek.com", "deepseek-chat"),
        (
            "openai-compatible",
            "https://api.fireworks.ai/inference/v1",
            "accounts/fireworks/models/gpt-oss-120b",
        ),
        (
            "openai-compatible",
            "https://bedrock-mantle.us-east-1.api.aws/v1",
            "openai.gpt-oss-120b-1:0",
        ),
    ],
)
def test_providers_and_endpoints_have_prices(
    provider: str, endpoint: str | None, model: str
) -> None:
    one = cost(provider, model, endpoint=endpoint, input_tokens=1000)
    both = cost(provider, model, endpoint=endpoint, input_tokens=1000, output_tokens=1000)
    assert one is not None
    assert both is not None
    assert 0 < one < both


def test_the_endpoint_counts_for_more_than_the_name() -> None:
    at = "https://api.groq.com/openai/v1"
    assert cost("openai", "openai/gpt-oss-20b", endpoint=at, input_tokens=MILLION) == cost(
        "groq", "openai/gpt-oss-20b", endpoint=at, input_tokens=MILLION
    )


@pytest.mark.parametrize(
    ("provider", "endpoint", "model"),
    [
        ("openai", "https://api.openai.com/v1", "no-such-model"),
        ("openai-compatible", "https://llm.example.com/v1", "gpt-4o"),
        ("my-own", None, "gpt-4o"),
        ("ollama", "https://ollama.com", "gpt-oss:120b"),
        ("ollama", "http://localhost:11434", "gpt-oss:120b-cloud"),
        ("openai-compatible", "http://localhost:8000/v1", "llama"),
    ],
)
def test_what_nobody_has_a_price_for_is_unknown(
    provider: str, endpoint: str | None, model: str
) -> None:
    assert cost(provider, model, endpoint=endpoint, input_tokens=1000) is None


@pytest.mark.parametrize(
    ("provider", "endpoint"),
    [
        ("local", "http://127.0.0.1:39000/v1"),
        ("ollama", "http://localhost:11434"),
        ("ollama", "http://[::1]:11434"),
        ("llamacpp", "http://127.0.0.1:8080/v1"),
    ],
)
def test_a_model_on_this_machine_costs_nothing(provider: str, endpoint: str) -> None:
    """Also a call of which nobody told the tokens."""
    assert cost(provider, "some-model", endpoint=endpoint, input_tokens=1000) == 0
    assert call_cost(Origin(provider, endpoint, "some-model"), None) == 0


def test_tokens_that_nobody_told_are_unknown() -> None:
    origin = Origin("openai", None, "gpt-4o")
    assert call_cost(origin, None) is None
    assert call_cost(origin, Usage(input_tokens=1)) is None
    assert call_cost(origin, Usage(output_tokens=1)) is None
    assert call_cost(None, Usage(input_tokens=1, output_tokens=1)) is None


def test_the_model_that_served_counts_and_not_the_one_asked_for() -> None:
    usage = Usage(input_tokens=MILLION, output_tokens=0)
    small, large = (
        cost("openai", "gpt-4o-mini", input_tokens=MILLION),
        cost("openai", "gpt-4o", input_tokens=MILLION),
    )
    assert small != large
    assert call_cost(Origin("openai", None, "gpt-4o", "gpt-4o-mini"), usage, NOW) == small
    assert call_cost(Origin("openai", None, "gpt-4o", "unheard-of"), usage, NOW) is None


def test_the_time_of_the_call_decides_between_prices() -> None:
    """That of o3 fell in June 2025."""
    origin, usage = Origin("openai", None, "o3"), Usage(input_tokens=MILLION, output_tokens=0)
    before = call_cost(origin, usage, datetime(2025, 5, 1, tzinfo=UTC))
    after = call_cost(origin, usage, datetime(2025, 8, 1, tzinfo=UTC))
    assert before is not None
    assert after is not None
    assert after < before


# parts of the totals


def test_cached_tokens_are_parts_of_the_prompt_and_counted_once() -> None:
    fresh = cost("openai", "gpt-4o", input_tokens=MILLION)
    cached = cost("openai", "gpt-4o", input_tokens=MILLION, cache_read_tokens=MILLION)
    half = cost("openai", "gpt-4o", input_tokens=MILLION, cache_read_tokens=MILLION // 2)
    assert fresh is not None
    assert cached is not None
    assert half == (fresh + cached) / 2
    assert cached < fresh


def test_reasoning_tokens_are_parts_of_the_answer_and_counted_once() -> None:
    plain = cost("openai", "o3", output_tokens=1000)
    assert plain == cost("openai", "o3", output_tokens=1000, reasoning_tokens=900)


def test_what_is_written_to_the_cache_costs_more_and_for_an_hour_more_still() -> None:
    how = {"input_tokens": MILLION, "cache_write_tokens": MILLION}
    written = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": MILLION}
    fresh = cost("anthropic", "claude-sonnet-4-5", input_tokens=MILLION)
    five = cost("anthropic", "claude-sonnet-4-5", **how)
    hour = cost(
        "anthropic",
        "claude-sonnet-4-5",
        native=noted("anthropic", usage={"cache_creation": written}),
        **how,
    )
    assert fresh is not None
    assert (five, hour) == (fresh * Decimal("1.25"), fresh * 2)


def test_audio_has_a_price_of_its_own() -> None:
    notes = noted(usage={"prompt_tokens_details": {"audio_tokens": 1000}})
    text = cost("openai", "gpt-audio", input_tokens=1000)
    heard = cost("openai", "gpt-audio", input_tokens=1000, native=notes)
    assert text is not None
    assert heard is not None
    assert heard > text
    listed = noted(
        "google", usageMetadata={"promptTokensDetails": [{"modality": "AUDIO", "tokenCount": 1000}]}
    )
    text = cost("google", "gemini-2.5-flash", input_tokens=1000)
    heard = cost("google", "gemini-2.5-flash", input_tokens=1000, native=listed)
    assert text is not None
    assert heard is not None
    assert heard > text


def test_counts_that_contradict_each_other_have_no_price() -> None:
    assert cost("openai", "gpt-4o", input_tokens=7, cache_read_tokens=161) is None


def test_a_search_on_the_web_is_counted() -> None:
    searched = noted("anthropic", usage={"server_tool_use": {"web_search_requests": 3}})
    plain = cost("anthropic", "claude-sonnet-4-5", input_tokens=10)
    assert plain is not None
    assert cost(
        "anthropic", "claude-sonnet-4-5", input_tokens=10, native=searched
    ) == plain + Decimal("0.03")


def test_a_tier_has_prices_of_its_own() -> None:
    flex, plain = noted(service_tier="flex"), noted(service_tier="default")
    cheap = cost("openai", "gpt-5", input_tokens=MILLION, native=flex)
    usual = cost("openai", "gpt-5", input_tokens=MILLION, native=plain)
    assert cheap is not None
    assert usual == 2 * cheap == cost("openai", "gpt-5", input_tokens=MILLION)


def test_what_was_done_beside_an_answer_is_counted_too() -> None:
    """Anthropic's totals say nothing of another model's advice, nor of a compaction."""

    def step(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": kind, "input_tokens": MILLION, "output_tokens": 0, **more}

    alone = cost("anthropic", "claude-sonnet-4-5", input_tokens=MILLION)
    other = cost("anthropic", "claude-opus-4-8", input_tokens=MILLION)
    assert alone is not None
    assert other is not None
    for steps, wanted in [
        ([step("message")], alone),
        ([step("message"), step("compaction")], alone * 2),
        ([step("message"), step("advisor_message", model="claude-opus-4-8")], alone + other),
        ([step("advisor_message", model="unheard-of")], None),
    ]:
        native = noted("anthropic", usage={"iterations": steps})
        assert cost("anthropic", "claude-sonnet-4-5", input_tokens=MILLION, native=native) == wanted


def test_cohere_bills_other_counts_than_it_uses() -> None:
    billed = noted("cohere", usage={"billed_units": {"input_tokens": 10.0, "output_tokens": 5.0}})
    assert cost(
        "cohere", "command-a-03-2025", input_tokens=900, output_tokens=5, native=billed
    ) == cost("cohere", "command-a-03-2025", input_tokens=10, output_tokens=5)


# the provider's own figure


@pytest.mark.parametrize(
    ("response", "dollars"),
    [
        ({"usage": {"cost": 0.000112}}, "0.000112"),
        ({"usage": {"cost": 0}}, "0"),
        ({"usage": {"cost": {"total_cost": 0.00504, "request_cost": 0.005}}}, "0.00504"),
        ({"usage": {"cost_in_usd_ticks": 6881000}}, "0.0006881"),
        ({"cost": {"usd": 0.0001, "diem": 0}}, "0.0001"),
        (
            {
                "usage": {
                    "is_byok": True,
                    "cost": 0.01,
                    "cost_details": {"upstream_inference_cost": 0.5},
                }
            },
            "0.51",
        ),
        ({"usage": {"is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}}}, "0.5"),
    ],
)
def test_a_provider_s_own_figure_wins(response: dict[str, Any], dollars: str) -> None:
    assert cost("openrouter", "openai/gpt-4o", input_tokens=1, native=noted(**response)) == Decimal(
        dollars
    )
    assert call_cost(None, None, None, noted(**response)) == Decimal(dollars)


@pytest.mark.parametrize(
    "cost_field", [-1, True, "12", None, float("nan"), [1], {"total_cost": "x"}]
)
def test_what_is_no_amount_is_no_figure(cost_field: Any) -> None:
    assert call_cost(None, None, None, noted(usage={"cost": cost_field})) is None


def test_of_xai_the_own_figure_and_the_price_are_the_same() -> None:
    """Recorded: 160 tokens in, 128 of them cached, 249 out."""
    tokens = {
        "input_tokens": 160,
        "output_tokens": 249,
        "cache_read_tokens": 128,
        "reasoning_tokens": 186,
    }
    assert cost("xai", "grok-4.3", **tokens) == Decimal("0.0006881")


# runs


@tool
async def add(x: int) -> int:
    """Adds one."""
    return x + 1


KEYS = {
    name: "k"
    for each in MODELS.values()
    for name in providers.get(each.partition(":")[0]).key_names
}
FIRST = Usage(input_tokens=1000, output_tokens=200, total_tokens=1200)
SECOND = Usage(input_tokens=1300, output_tokens=70, total_tokens=1370)


def two_calls(wire: str, *, whole: bool, **how: Any) -> Agent[Any]:
    exchanges = [
        answer(wire, "I add.", ToolCallPart("c1", "add", {"x": 1}), usage=FIRST, whole=whole),
        answer(wire, "Two.", usage=SECOND, whole=whole),
    ]
    return agent_of(wire, *exchanges, tools=[add], **how)[0]


@pytest.mark.parametrize("wire", MODELS)
async def test_streamed_whole_and_in_chunks_a_run_costs_the_same(wire: str) -> None:
    """And it costs what its calls cost."""
    provider, _, model = MODELS[wire].partition(":")
    wanted = [call_cost(Origin(provider, None, model), usage) for usage in (FIRST, SECOND)]
    for whole in (False, True):
        result = await two_calls(wire, whole=whole).send("1 + 1?")
        assert [each.cost for each in result.calls] == wanted
        assert result.cost == sum(filter(None, wanted))
        chunks = [chunk async for chunk in two_calls(wire, whole=whole).send_stream("1 + 1?")]
        assert sum((chunk.cost or Decimal(0)) for chunk in chunks) == result.cost
        assert [chunk.cost for chunk in chunks if chunk.calls] == wanted
        assert all(chunk.cost == 0 for chunk in chunks if not chunk.calls)


@pytest.mark.parametrize("wire", MODELS)
@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
async def test_a_bound_of_dollars_ends_a_run(wire: str, whole: bool) -> None:
    provider, _, model = MODELS[wire].partition(":")
    first = call_cost(Origin(provider, None, model), FIRST)
    assert first is not None
    with pytest.raises(LimitReachedError, match=f"limit of {first} US dollars") as caught:
        await two_calls(wire, whole=whole, limits=Limits(cost=first)).send("1 + 1?")
    assert caught.value.result is not None
    assert caught.value.result.cost == first
    more = first + Decimal("0.000001")
    assert (
        await two_calls(wire, whole=whole, limits=Limits(cost=more)).send("1 + 1?")
    ).output.endswith("Two.")


async def test_a_call_of_unknown_cost_leaves_no_room_for_another() -> None:
    a, script = agent(
        says(call("add", x=1), usage=1), says("done"), tools=[add], limits=Limits(cost=100)
    )
    with pytest.raises(LimitReachedError, match="unknown"):
        await a.send("hi")
    assert len(script.requests) == 1


async def test_the_cost_of_a_run_with_a_call_of_unknown_cost_is_unknown() -> None:
    a, _ = agent(says("done", usage=1))
    result = await a.send("hi")
    assert result.cost is None
    assert sum_cost([]) == 0
    assert sum_cost([ModelCall(Origin("local"), FIRST), ModelCall(Origin("my-own"), FIRST)]) is None


async def test_an_answer_from_a_cache_costs_nothing() -> None:
    assert ModelCall(Origin("openai", None, "gpt-4o"), FIRST, cached=True).cost == 0


@pytest.mark.parametrize("amount", [0.5, "0.50", Decimal("0.5"), 1, 0])
def test_amounts_as_people_write_them(amount: Any) -> None:
    assert Limits(cost=amount).cost == Decimal(str(amount))
    assert isinstance(Limits(cost=amount).cost, Decimal)


@pytest.mark.parametrize("amount", [-1, "half", "NaN", "inf", True, [1], object()])
def test_what_is_no_amount_is_refused(amount: Any) -> None:
    with pytest.raises(SettingsError, match=r"Limits\(cost="):
        Limits(cost=amount)


async def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else needs it: what was told, what is free and what nobody asks about."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    result = await two_calls("openai_chat", whole=False).send("1 + 1?")
    with pytest.raises(SettingsError, match=r"pip install '\.\[cost\]' in "):
        _ = result.cost
    with pytest.raises(SettingsError, match=r"pip install '\.\[cost\]' in "):
        Limits(cost=1)
    assert cost("local", "m") == 0
    assert cost("openrouter", "m", native=noted(usage={"cost": 0.5})) == Decimal("0.5")


def test_a_wire_s_own_notes_are_read() -> None:
    """As each of the four writes them down."""
    seen: dict[str, Decimal | None] = {}
    for wire, body in {
        "openai_chat": {
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25},
            "choices": [{}],
        },
        "openai_responses": {
            "object": "response",
            "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0.25},
            "output": [],
        },
        "anthropic": {
            "usage": {"input_tokens": 1, "output_tokens": 1, "cost": 0.25},
            "content": [],
            "type": "message",
        },
    }.items():
        end = wires.get(wire).load_response(body)[-1]
        assert isinstance(end, MessageFinished), wire
        seen[wire] = call_cost(end.origin, end.usage, None, end.native)
    assert set(seen.values()) == {Decimal("0.25")}, seen


@pytest.mark.parametrize("wire", MODELS)
async def test_hooks_are_told_the_cost_of_each_call(wire: str) -> None:
    seen: list[Decimal | None] = []
    hooks = Hooks(model_end=lambda end: seen.append(end.cost))
    result = await two_calls(wire, whole=False, hooks=hooks).send("1 + 1?")
    assert seen == [each.cost for each in result.calls]
    assert sum(filter(None, seen)) == result.cost


@pytest.mark.parametrize("wire", MODELS)
async def test_what_agents_within_tools_cost_counts_and_is_bounded_by_the_run_around(
    wire: str,
) -> None:
    def agents(**how: Any) -> tuple[Agent[Any], Any]:
        helper, _ = agent_of(
            wire, answer(wire, "It rains.", usage=SECOND), display_name="Weatherman"
        )
        asks = ToolCallPart("c1", "weatherman", {"prompt": "Oslo?"})
        told = [answer(wire, asks, usage=FIRST), answer(wire, "An umbrella.", usage=FIRST)]
        return agent_of(wire, *told, tools=[helper.as_tool()], **how)

    result = await agents()[0].send("What shall I wear?")
    assert [each.usage and each.usage.input_tokens for each in result.calls] == [1000, 1300, 1000]
    first, child, last = (each.cost or Decimal(0) for each in result.calls)
    assert result.cost == first + child + last
    outer, player = agents(limits=Limits(cost=first + child))
    with pytest.raises(LimitReachedError, match="US dollars"):
        await outer.send("What shall I wear?")
    assert len(player.requests) == 1


@pytest.mark.parametrize("wire", MODELS)
async def test_an_attempt_that_failed_and_told_its_tokens_is_paid_for(wire: str) -> None:
    failed = Message.model("half").replace(
        id="m", finish_reason=FinishReason.error, usage=FIRST, origin=Origin("xai", None, "grok-4")
    )
    broken = [*unfold([failed]), RunError(OverloadedError("busy"))]

    async def first(request: Any, following: Any) -> AsyncIterator[Event]:
        if request.model.startswith("xai:"):
            for event in broken:
                yield event
            return
        async for event in following(request):
            yield event

    chain = fallback("xai:grok-4", MODELS[wire])
    a, _ = agent_of(
        wire, answer(wire, "Yes.", usage=SECOND), model=chain, middleware=[first], environment=KEYS
    )
    result = await a.send("hi")
    assert result.output == "Yes."
    assert [counted.usage and counted.usage.input_tokens for counted in result.calls] == [
        1000,
        1300,
    ]
    paid = [each.cost for each in result.calls]
    assert paid[0] == call_cost(Origin("xai", None, "grok-4"), FIRST)
    assert result.cost == sum(filter(None, paid))


tokens = st.integers(0, 10**6)


@pytest.mark.parametrize("wire", MODELS)
@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(told=st.lists(st.tuples(tokens, tokens), min_size=1, max_size=4), whole=st.booleans())
def test_nothing_is_lost_and_nothing_counted_twice(
    wire: str, told: list[tuple[int, int]], whole: bool
) -> None:
    """Whatever the tokens: each call's own cost, their sum, the chunks' and the whole's are the
    same."""
    usages = [
        Usage(input_tokens=read, output_tokens=made, total_tokens=read + made)
        for read, made in told
    ]
    call = ToolCallPart("c1", "add", {"x": 1})
    answers = [answer(wire, call, usage=usage, whole=whole) for usage in usages[:-1]]
    answers.append(answer(wire, "Done.", usage=usages[-1], whole=whole))
    provider, _, model = MODELS[wire].partition(":")
    wanted = [call_cost(Origin(provider, None, model), usage) for usage in usages]

    async def both() -> tuple[ChatResult[str], list[ChatResult[str]]]:
        one, other = (agent_of(wire, *answers, tools=[add])[0] for _ in range(2))
        return await one.send("hi"), [chunk async for chunk in other.send_stream("hi")]

    result, chunks = asyncio.run(both())
    assert [each.cost for each in result.calls] == wanted
    assert [each.cost for chunk in chunks for each in chunk.calls] == wanted
    assert result.cost == sum(filter(None, wanted)) == sum(chunk.cost or 0 for chunk in chunks)
    assert (
        result.usage
        == sum_usage(result.calls)
        == sum_usage([each for chunk in chunks for each in chunk.calls])
    )


def test_prices_of_one_s_own_count() -> None:
    """As those that were fetched by who wants the newest: `genai_prices` is asked for what it knows
    now."""
    mine = types.Provider(
        id="mine",
        name="Mine",
        api_pattern="http://localhost:8000",
        models=[
            types.ModelInfo(
                "llama",
                types.ClauseStartsWith("llama"),
                prices=types.ModelPrice(input_mtok=Decimal(3)),
            )
        ],
    )
    known = data_snapshot.get_snapshot().providers
    data_snapshot.set_custom_snapshot(
        data_snapshot.DataSnapshot([mine, *known], from_auto_update=False)
    )
    try:
        assert (
            cost(
                "openai-compatible",
                "llama-3",
                endpoint="http://localhost:8000/v1",
                input_tokens=MILLION,
            )
            == 3
        )
    finally:
        data_snapshot.set_custom_snapshot(None)
    assert (
        cost(
            "openai-compatible",
            "llama-3",
            endpoint="http://localhost:8000/v1",
            input_tokens=MILLION,
        )
        is None
    )
