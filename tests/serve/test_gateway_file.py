"""A gateway from a TOML file: what it says, and where in it a mistake is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import SettingsError
from dragoman.serve import Gateway
from dragoman.serve.gateway.gateway_file import load_gateway

WHOLE = """
seal_keys = ["env:SEAL"]
on_loss = "refuse"
max_tokens = 100

[models]
fast = "openai:gpt-4o-mini"
careful = ["anthropic:claude-opus-4-5", "openai:gpt-5"]
"llama-*" = "groq:llama-*"

[providers.openai]
key = "env:TEAM_KEY"
base_url = "https://eu.host.test/v1"

[providers.groq]
key = "file:groq.key"

[settings]
temperature = 0.5
stop = ["END"]
"""


def load(folder: Path, text: str, **environment: str) -> Any:
    (folder / "groq.key").write_text("gsk-secret\n")
    (folder / "gate.toml").write_text(text)
    return load_gateway(
        Gateway,
        folder / "gate.toml",
        environment={"TEAM_KEY": "sk-secret", "SEAL": "secret" * 5, **environment},
    )


def test_a_file_says_what_the_arguments_say(tmp_path: Path) -> None:
    gateway = load(tmp_path, WHOLE)
    assert [name for name in ("fast", "careful", "llama-3", "gpt-5") if gateway.serves(name)] == [
        "fast",
        "careful",
        "llama-3",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ('on_loss = "refuse"', 'on_los = "refuse"', "line 3, on_los", "did you mean on_loss?"),
        ('on_loss = "refuse"', "on_loss = 1", "line 3, on_loss", "must be a text"),
        ('on_loss = "refuse"', 'on_loss = "shrug"', "line 3, on_loss", "'shrug') is unknown"),
        ("max_tokens = 100", "max_tokens = true", "line 4, max_tokens", "must be a whole number"),
        ("[models]", "[model]", "line 6, model", "did you mean models?"),
        ('"openai:gpt-4o-mini"', '"opnai:gpt-4o-mini"', "line 7, models.fast", "openai"),
        ('"llama-*" =', '"llama" =', "line 9, models.llama", "has a *"),
        (
            "[providers.groq]",
            "[providers.mistral]",
            "line 15, providers.mistral",
            "there is a key for mistral",
        ),
        (
            'key = "env:TEAM_KEY"',
            'key = "env:NO_SUCH"',
            "line 12, providers.openai.key",
            "has no NO_SUCH",
        ),
        (
            'key = "env:TEAM_KEY"',
            'key = "sk-secret"',
            "line 12, providers.openai.key",
            "does not stand here",
        ),
        (
            'key = "file:groq.key"',
            'key = "file:none.key"',
            "line 16, providers.groq.key",
            "cannot be read",
        ),
        ("temperature = 0.5", 'temperature = "hot"', "line 18, settings", "temperature"),
        (
            "temperature = 0.5",
            "temprature = 0.5",
            "line 19, settings.temprature",
            "did you mean temperature?",
        ),
        ("base_url = ", "url = ", "line 13, providers.openai.url", "base_url"),
        (
            '["env:SEAL"]',
            '["secret-key-of-16-and-more"]',
            "line 2, seal_keys",
            "does not stand here",
        ),
        ('["env:SEAL"]', '"env:SEAL"', "line 2, seal_keys", "a list of texts"),
        ('["env:SEAL"]', "[]", "line 2, seal_keys", "one secret or more"),
        ("[settings]", "[settings", "gate.toml", "line 18"),
    ],
)
def test_a_mistake_is_found_by_its_line_and_its_name(
    tmp_path: Path, old: str, new: str, line: str, words: str
) -> None:
    assert old in WHOLE
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, WHOLE.replace(old, new))
    assert line in str(raised.value)
    assert words in str(raised.value)
    assert not any(
        word in str(raised.value)
        for word in ("sk-secret", "gsk-secret", "secretsecret", "secret-key")
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "models are missing"),
        ("models = 5", "models"),
        ("models = ['*']", "provider before"),
        ("models = {}", "no model"),
    ],
)
def test_a_gateway_without_models_is_none(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SettingsError, match="gate.toml.*" + words):
        load(tmp_path, text)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml cannot be read: No such file"):
        Gateway.from_toml(tmp_path / "none.toml")


FETCH = """
[models]
fast = "ollama:llava"

[fetch]
allow = ["*.example.org", "10.1.0.0/16"]
ports = [443, 8443]
most = 5
on_failure = "tell"
"""


def test_what_may_be_fetched(tmp_path: Path) -> None:
    gateway = load(tmp_path, FETCH)
    assert gateway.serves("fast")
    assert "*.example.org" in repr(gateway._upstreams._middleware[0])


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ('"*.example.org"', '"https://example.org"', "line 5, fetch"),
        ("most = 5", "most = 0", "fetch"),
        ("most = 5", 'most = "many"', "fetch"),
        ("most = 5", "mist = 5", "line 8, fetch.mist: there is no such entry; did you mean most?"),
        ('allow = ["*.example.org", "10.1.0.0/16"]', 'allow = "*"', "fetch"),
        ("[fetch]", "[[fetch]]", "fetch"),
    ],
)
def test_what_may_be_fetched_is_said_wrongly(
    tmp_path: Path, before: str, after: str, where: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, FETCH.replace(before, after))
    assert where in caught.value.message
