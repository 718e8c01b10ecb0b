"""`Settings.cache` on every wire: asked for where a provider wants to be asked, and read back as it
was."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import providers, wires
from dragoman.message import Message, Origin, TextPart
from dragoman.providers.anthropic import SIGNERS
from dragoman.request import ModelRequest, Settings

MARKED = ("openrouter", *SIGNERS)
ASKED: dict[tuple[str, str], dict[str, Any]] = {
    **{(name, "short"): {"cache_control": {"type": "ephemeral"}} for name in MARKED},
    **{(name, "long"): {"cache_control": {"type": "ephemeral", "ttl": "1h"}} for name in MARKED},
    ("bedrock-responses", "long"): {"prompt_cache_retention": "24h"},
    ("openai", "long"): {"prompt_cache_retention": "24h"},
    ("azure", "long"): {"prompt_cache_retention": "24h"},
    ("openai-responses", "long"): {"prompt_cache_retention": "24h"},
    ("azure-responses", "long"): {"prompt_cache_retention": "24h"},
}


def body(provider: str, settings: Settings) -> dict[str, Any]:
    record = providers.get(provider)
    request = ModelRequest("m", (Message.user("Hello"),), settings=settings)
    losses: list[Any] = []
    sent = wires.get(record.wire).dump_request(
        request, target=Origin(provider, model="m"), quirks=record.quirks, losses=losses
    )
    assert not losses
    return sent


@pytest.mark.parametrize("cache", ["short", "long"])
@pytest.mark.parametrize(
    "provider", [each.name for each in providers.REGISTRY.providers() if not each.by_url]
)
def test_a_provider_that_wants_to_be_asked_is_asked_and_no_other(provider: str, cache: Any) -> None:
    plain = body(provider, Settings())
    assert body(provider, Settings(cache=cache)) == {**plain, **ASKED.get((provider, cache), {})}


@pytest.mark.parametrize(("provider", "cache"), ASKED)
def test_what_was_asked_is_read_back_and_goes_to_another_provider(
    provider: str, cache: Any
) -> None:
    wire = wires.get(providers.get(provider).wire)
    request = wire.load_request(body(provider, Settings(cache=cache)))
    assert request.settings.cache == cache
    # Vertex AI wants the version in the body.
    assert {*request.options} <= {"anthropic_version"}
    assert {**wire.dump_request(request)}.items() >= ASKED[provider, cache].items()


@pytest.mark.parametrize(
    ("wire", "field", "value"),
    [
        ("anthropic", "cache_control", {"type": "ephemeral", "ttl": "5m"}),
        ("anthropic", "cache_control", None),
        ("openai_chat", "prompt_cache_retention", "in_memory"),
        ("openai_chat", "cache_control", {"type": "ephemeral", "ttl": "5m"}),
        ("openai_responses", "prompt_cache_retention", "in_memory"),
        ("openai_responses", "prompt_cache_options", {"ttl": "12h"}),
    ],
)
def test_a_cache_of_another_kind_stays_the_wires_own(wire: str, field: str, value: Any) -> None:
    sent = body(
        {"openai_chat": "openai", "openai_responses": "openai-responses"}.get(wire, wire),
        Settings(),
    )
    request = wires.get(wire).load_request({**sent, field: value})
    assert request.settings.cache is None
    assert wires.get(wire).dump_request(request)[field] == value


def test_a_mark_on_a_piece_goes_to_its_own_provider_alone() -> None:
    part = TextPart("Long.", native={"anthropic": {"cache_control": {"type": "ephemeral"}}})
    for name in wires.names("model"):
        sent = str(
            wires.get(name).dump_messages([Message.user(part)], target=Origin("p", model="m"))
        )
        assert ("cache_control" in sent) == (name == "anthropic")
