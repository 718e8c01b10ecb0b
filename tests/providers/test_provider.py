"""A provider is its record and nothing else: whatever is known of it anywhere is read there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from dragoman import Agent, Message, Usage, providers
from dragoman.cost import call_cost
from dragoman.errors import SettingsError
from dragoman.message import Origin
from dragoman.model.tokens import estimate_tokens
from dragoman.providers.capability_table import capability_table
from dragoman.providers.provider import Calls, Provider, TokenRates
from dragoman.providers.registry import REGISTRY
from dragoman.telemetry.attributes import provider_name, target_attributes

NOW = datetime(2026, 11, 1, tzinfo=UTC)
TALK = [Message.user("How many people live in Rome?"), Message.model("Nearly three million.")]
MILLION = Usage(input_tokens=1_000_000, output_tokens=0)
ACME = Provider(
    name="acme-one-record",
    display_name="Acme",
    wire="openai_chat",
    base_url="http://localhost:9999/v1",
    calls=Calls("given or minted", "whole"),
    token_rates=TokenRates(request=1000, message=0, text=0),
    priced_as="openai",
    otel_name="acme.ai",
)


@pytest.fixture(autouse=True)
def acme(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(REGISTRY, "_own", dict(REGISTRY._own))
    providers.register(ACME)
    yield
    target_attributes.cache_clear()


def cost(provider: str, endpoint: str | None = None, model: str = "gpt-4o") -> Decimal | None:
    return call_cost(Origin(provider, endpoint, model), MILLION, NOW)


def test_cost_takes_prices_from_the_record() -> None:
    assert cost(ACME.name) == cost("openai")
    assert cost("nobody-knows-it") is None


@pytest.mark.parametrize(
    ("free", "endpoint", "model", "is_free"),
    [
        ("always", None, "m", True),
        ("always", "https://acme.example/v1", "m", True),
        ("on this machine", "http://localhost:9999/v1", "m", True),
        ("on this machine", "http://127.0.0.1:9999/v1", "m", True),
        ("on this machine", "http://localhost:9999/v1", "m:cloud", False),
        ("on this machine", "https://acme.example/v1", "m", False),
        ("on this machine", None, "m", False),
        (None, "http://localhost:9999/v1", "m", False),
    ],
)
def test_cost_takes_from_the_record_what_is_free(
    free: object, endpoint: str | None, model: str, is_free: bool
) -> None:
    values = {name: getattr(ACME, name) for name in ACME.__struct_fields__}
    providers.register(Provider(**{**values, "priced_as": None, "free": free}), replace=True)
    assert cost(ACME.name, endpoint, model) == (0 if is_free else None)


def test_telemetry_takes_the_name_from_the_record() -> None:
    assert provider_name(ACME.name) == "acme.ai"
    assert target_attributes(Origin(ACME.name, None, "m"))["gen_ai.provider.name"] == "acme.ai"
    assert provider_name("nobody-knows-it") == "nobody-knows-it"
    assert provider_name("groq") == "groq"


def test_estimates_of_tokens_take_rates_from_the_record() -> None:
    assert estimate_tokens(TALK, provider=ACME.name) == 1000
    assert estimate_tokens(TALK, provider="azure", model="gpt-4o") == estimate_tokens(
        TALK, provider="openai"
    )


def test_the_table_of_capabilities_takes_calls_from_the_record() -> None:
    (row,) = [row for row in capability_table(REGISTRY.providers()) if row.provider == ACME.name]
    assert row.calls == Calls("given or minted", "whole")


def test_a_record_is_found_by_its_exact_name_alone() -> None:
    assert REGISTRY.find(ACME.name) is ACME
    assert REGISTRY.find("claude") is None


def test_a_record_that_only_an_agent_was_given_has_its_prices() -> None:
    values = {name: getattr(ACME, name) for name in ACME.__struct_fields__}
    record = Provider(**{**values, "name": "acme-unregistered"})
    assert cost(record.name) is None
    Agent(record, api_key="none")
    assert cost(record.name) == cost("openai")
    with pytest.raises(SettingsError, match="no provider is named"):
        providers.get(record.name)
