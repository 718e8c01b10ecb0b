"""Every recorded answer that tells tokens has a cost, or is in a list that somebody has read; and
costs are what others say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple

import genai_prices
import pytest
from genai_prices import extract_usage

from dragoman import wires
from dragoman.cost import call_cost
from dragoman.event import MessageFinished, MessageStarted
from dragoman.message import NOTES, Origin, Usage
from support.traffic import WIRES, Exchange, exchanges

PROVIDERS = {"llama.cpp": "llamacpp"}
"""Vendors of the recordings → our names, where these differ."""
UNKNOWN = {
    # nobody has prices of these vendors, or of these servers of somebody's own
    *(
        (
            "alibaba",
            "crusoe",
            "gpustack",
            "heroku",
            "mistral.rs",
            "sambanova",
            "snowflake",
            "vllm",
            "z.ai",
        )
    ),
    # their prices are by the hour, or depend on a plan: Ollama's cloud, gateways on localhost
    *(("ollama", "localhost")),
    # a vendor's own routing, whose prices depend on who serves
    *(("huggingface", "together-via-hf-router", "databricks")),
}
"""Vendors of which some models have no price."""
UNKNOWN_MODELS = {
    "azure": {"grok-4-1-fast-non-reasoning"},  # more tokens cached than there are
    "bedrock-mantle": {"mistral.voxtral-mini-3b-2507", "openai.gpt-oss-20b", "openai.gpt-5.6-luna"},
    "cerebras": {"zai-glm-4.7"},  # recorded without an address
    "cohere": {
        "command-a-reasoning-08-2025",
        "command-a-plus-05-2026",
        "command-a-vision-07-2025",
        None,
    },
    "doubleword": {"Qwen/Qwen3.5-397B-A17B-FP8"},
    "google": {"models/gemini-2.5-pro"},  # a prompt was blocked: no tokens of an answer are told
    "mistral": {
        "ministral-3b-latest",
        "ministral-14b-latest",
        "mistral-small-2402",
        "pixtral-12b-2409",
        "zai-glm-5-2",
    },
    "open-responses": {"zai-org/glm-4.7-flash"},  # LM Studio
    "openai": {"gpt-4.1-mini", "gpt-4o-mini", "gpt-5.4"},  # counted tokens, made no answer
    "openrouter": {"x-ai/grok-4"},
    "perplexity": {"sonar"},  # recorded without an address
    "together": {"deepseek-ai/DeepSeek-V3.1"},
    "xai": {"grok-beta", "grok-vision-beta"},  # withdrawn
}
"""Vendor → models without a price, or whose tokens are told wrongly."""


class Answered(NamedTuple):
    """An answer that tells tokens."""

    exchange: Exchange
    origin: Origin
    usage: Usage
    native: Any
    cost: Decimal | None


@cache
def answers() -> tuple[Answered, ...]:
    return tuple(_answers())


def _answers() -> Iterator[Answered]:
    for folder, wire in WIRES.items():
        for exchange in exchanges(folder):
            if (
                exchange.status != 200
                or folder == "openai_embeddings"
                or exchange.endpoint == "embeddings"
            ):
                continue
            asked = exchange.request.get("model") if isinstance(exchange.request, dict) else None
            vendor = PROVIDERS.get(exchange.vendor, exchange.vendor)
            origin = Origin(vendor, exchange.url and exchange.url.partition("?")[0], asked)
            events = wires.get(wire).load_response(exchange.body, origin=origin)
            starts = {
                event.message_id: event.origin
                for event in events
                if isinstance(event, MessageStarted)
            }
            for event in events:
                if isinstance(event, MessageFinished) and event.usage is not None:
                    who = event.origin or starts[event.message_id] or origin
                    cost = call_cost(who, event.usage, None, event.native)
                    yield Answered(exchange, who, event.usage, event.native, cost)
                    break


@pytest.mark.slow
def test_every_answer_has_a_cost_or_is_known_to_have_none() -> None:
    found = answers()
    unknown = {
        (each.origin.provider, each.origin.served_model or each.origin.model)
        for each in found
        if each.cost is None
    }
    missing = {
        (vendor, model)
        for vendor, model in unknown
        if vendor not in UNKNOWN and model not in UNKNOWN_MODELS.get(vendor, ())
    }
    assert missing == set()
    assert sum(each.cost is not None for each in found) > 0.9 * len(found) > 2000


@pytest.mark.slow
def test_costs_are_those_that_the_prices_own_reading_of_the_answer_gives() -> None:
    """Where they differ, more is counted here: what was done beside an answer, searches, another
    name of cached tokens."""
    seen: Counter[str] = Counter()
    for each in answers():
        found = theirs(each)
        ours = call_cost(each.origin, each.usage, None, without_own_figure(each.native))
        if found is None or ours is None:
            continue
        if found == ours:
            seen[each.origin.provider] += 1
        else:
            assert explained(each), each.exchange.id
            seen["explained"] += 1
    assert seen["explained"] < 20
    assert seen.total() > 1500
    assert (
        min(
            seen[vendor]
            for vendor in ("openai", "anthropic", "google", "openrouter", "cohere", "xai", "groq")
        )
        > 20
    )


@pytest.mark.slow
def test_costs_are_those_that_providers_tell_themselves() -> None:
    """OpenRouter and xAI, to the last digit. Where they differ, they count what is no token
    (searches, files), or prices have changed."""
    same: Counter[bool] = Counter()
    for each in answers():
        by_price = call_cost(each.origin, each.usage, None, without_own_figure(each.native))
        if (
            each.origin.provider in ("openrouter", "xai")
            and each.cost is not None
            and by_price is not None
        ):
            same[abs(each.cost - by_price) < Decimal("1e-9")] += 1
    assert same[True] > 200
    assert same[False] < 12


def theirs(each: Answered) -> Decimal | None:
    """What `genai-prices` makes of a whole answer's body by itself; `None`: it cannot read it, or
    it is a stream."""
    url, wire = each.origin.endpoint, WIRES[each.exchange.path.parent.name]
    try:
        body = json.loads(each.exchange.body)
    except ValueError:
        return None
    if not isinstance(body, dict) or not url:
        return None
    flavor = {"openai_chat": "chat", "openai_responses": "responses"}.get(wire, "default")
    tier = body.get("service_tier")
    for name in (flavor, "default"):
        try:
            found = extract_usage(
                {**body, "model": each.origin.served_model or each.origin.model},
                provider_api_url=url,
                api_flavor=name,
            )
            return found.calc_price(
                price_context={"service_tier": tier} if isinstance(tier, str) else None
            ).total_price
        except (ValueError, LookupError):
            continue
    return None


def explained(each: Answered) -> bool:
    usage = json.dumps(each.native)
    return (
        any(word in usage for word in ("advisor_message", "num_requests"))
        or each.origin.provider == "mistral"
    )


def without_own_figure(native: Any) -> Any:
    key = next((key for key in native or {} if key.endswith(NOTES)), None)
    if key is None:
        return native
    response = {
        name: value for name, value in native[key].get("response", {}).items() if name != "cost"
    }
    own = ("cost", "cost_in_usd_ticks", "is_byok")
    if isinstance(response.get("usage"), dict):
        response["usage"] = {
            name: value for name, value in response["usage"].items() if name not in own
        }
    return {key: {"response": response}}


def test_the_prices_are_those_of_the_package_and_nothing_is_fetched() -> None:
    assert genai_prices.data_snapshot.get_snapshot().from_auto_update is False
