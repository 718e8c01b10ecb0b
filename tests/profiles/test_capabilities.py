"""Typed output goes by what a model can do, not by what its provider's record says of all."""

from __future__ import annotations

import pytest

from dragoman import Settings, profiles, providers
from dragoman.capability import Capability
from dragoman.model_profile import ModelProfile
from dragoman.profiles.capabilities import with_profile

NATIVE = {Capability.typed_output, Capability.typed_output_with_tools}


@pytest.mark.parametrize(
    "model",
    [
        "anthropic:claude-opus-5-5",
        "anthropic:claude-haiku-4-5",
        "openai:gpt-5.4",
        "google:gemini-3-pro-preview",
        "mistral:mistral-medium-latest",
    ],
)
def test_a_model_that_answers_by_a_schema_beside_tools_is_asked_so(model: str) -> None:
    provider = providers.get(model.partition(":")[0])
    assert with_profile(provider, profiles.get(model), Settings()).capabilities >= NATIVE


def test_a_model_without_a_schema_is_asked_by_a_tool() -> None:
    provider = providers.get("anthropic")
    profile = profiles.get("anthropic:claude-3-haiku-20240307")
    assert not with_profile(provider, profile, Settings()).capabilities & NATIVE


@pytest.mark.parametrize(
    ("model", "reasoning", "is_forced"),
    [
        ("anthropic:claude-opus-5-5", None, False),  # it always thinks
        ("anthropic:claude-haiku-4-5", None, True),
        ("anthropic:claude-haiku-4-5", "high", False),
        ("anthropic:claude-opus-4-6", "high", True),
        ("anthropic:claude-opus-4-6", 4096, False),
    ],
)
def test_a_tool_is_forced_where_that_is_no_error(
    model: str, reasoning: str | int | None, is_forced: bool
) -> None:
    provider = providers.get("anthropic")
    settings = Settings(reasoning=reasoning)  # type: ignore[arg-type]
    changed = with_profile(provider, profiles.get(model), settings)
    assert (Capability.forced_tools in changed.capabilities) is is_forced


def test_what_a_profile_does_not_know_is_as_in_the_record() -> None:
    provider = providers.get("anthropic")
    assert with_profile(provider, ModelProfile(), Settings()) is provider
