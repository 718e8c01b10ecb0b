"""`dragoman models PROVIDER:MODEL` says what is known of a model, and where from."""

from __future__ import annotations

import json
from typing import Any

import pytest


def test_a_model_string_shows_its_profile_without_asking_anybody(cli: Any) -> None:
    code, out, _ = cli("models", "anthropic:claude-opus-5-5")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "anthropic:claude-opus-5-5"
    assert "  thinks: always" in lines
    assert "  output: 128,000" in lines


def test_why_names_the_source_of_each_fact(cli: Any) -> None:
    _, out, _ = cli("models", "anthropic:claude-opus-5-5", "--why")
    [thinks] = [line for line in out.splitlines() if line.startswith("  thinks:")]
    assert "# P, A, L" in thinks


def test_the_profile_as_json(cli: Any) -> None:
    _, out, _ = cli("models", "anthropic:claude-opus-5-5", "--json")
    shown = json.loads(out)
    assert shown["model"] == "anthropic:claude-opus-5-5"
    assert shown["input"] == 1_000_000


@pytest.mark.parametrize(
    ("model", "says"), [("openai:gpt-99", "parallel"), ("ollama:x", "nothing")]
)
def test_an_unknown_model_has_what_its_api_says_or_nothing(cli: Any, model: str, says: str) -> None:
    code, out, _ = cli("models", model)
    assert code == 0
    assert says in out


def test_an_unknown_provider_is_an_error_in_a_line(cli: Any) -> None:
    assert cli("models", "nobody:x")[0] == 3
