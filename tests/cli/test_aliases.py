"""Short names for models, the default model, and the file of settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from support.cli import one_line, shell
from support.llm_server import Llm

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the settings are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "dragoman" / "settings.json"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def asked_model(llm: Llm) -> str:
    return llm.requests[-1].model


def test_an_alias_stands_for_a_model_wherever_one_is_named(
    cli: Cli, llm: Llm, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("aliases", "path") == (0, f"{file}\n", "")
    assert cli("aliases", "set", "fast", "openai-compatible:small") == (0, "", "")
    assert cli("aliases", "set", "f", "fast")[0] == 0
    assert cli("aliases")[1] == "f     fast\nfast  openai-compatible:small\n"
    assert json.loads(cli("aliases", "--json")[1])["f"] == "fast"
    assert cli("-m", "f", "hi")[0] == 0
    assert asked_model(llm) == "small"
    cli("embed", "text", "hi", "-m", "fast")
    assert llm.embedded[-1].model == "small"
    assert cli("models", "f")[1].startswith("openai-compatible:small\n")
    monkeypatch.setenv("DRAGOMAN_MODEL", "f")
    cli("chat", "hi")
    assert asked_model(llm) == "small"


def test_an_alias_is_removed(cli: Cli, file: Path) -> None:
    cli("aliases", "set", "fast", "openai")
    assert cli("aliases", "remove", "fast")[0] == 0
    assert one_line(cli("aliases", "remove", "fast")[2], "no alias fast")
    assert cli("aliases", "remove", "fast")[0] == 1
    assert cli("aliases")[:2] == (0, "")


@pytest.mark.parametrize(
    ("alias", "model", "code", "words"),
    [
        ("fast", "opnai:x", 3, 'did you mean "openai"'),
        ("fast", "", 3, "the alias fast"),
        ("fast", "fast", 3, "leads to itself: fast → fast"),
        ("claude", "openai", 2, "is a provider"),
        ("a:b", "openai", 2, "without a colon"),
        (" ", "openai", 2, "without a colon"),
    ],
)
def test_what_is_no_alias_is_refused(
    cli: Cli, file: Path, alias: str, model: str, code: int, words: str
) -> None:
    answered, out, err = cli("aliases", "set", alias, model)
    assert (answered, out) == (code, "")
    assert one_line(err, words)
    assert not file.exists()


@pytest.mark.parametrize(
    ("aliases", "words"),
    [
        ({"f": "g", "g": "f"}, "the alias f leads to itself: f → g → f"),
        ({"f": "gone"}, "the alias f stands for 'gone': no provider"),
        ({"f": ""}, "the alias f stands for ''"),
    ],
)
def test_an_alias_to_nothing_is_told_in_one_line(
    cli: Cli, file: Path, aliases: dict[str, str], words: str
) -> None:
    write(file, json.dumps({"aliases": aliases}))
    for command in (("-m", "f", "hi"), ("embed", "text", "hi", "-m", "f"), ("models", "f")):
        code, out, err = cli(*command)
        assert (code, out) == (3, "")
        assert one_line(err, words)


def test_the_default_model_comes_after_the_variable(
    cli: Cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("aliases", "set", "fast", "openai-compatible:small")
    assert cli("models", "default")[1] == "openai-compatible:tiny\n"
    assert "which comes first" in cli("models", "default", "fast")[2]
    cli("chat", "hi")
    assert asked_model(llm) == "tiny"
    monkeypatch.delenv("DRAGOMAN_MODEL")
    assert cli("models", "default") == (0, "openai-compatible:small\n", "")
    cli("chat", "hi")
    assert asked_model(llm) == "small"
    cli("chat", "-m", "openai-compatible:other", "hi")
    assert asked_model(llm) == "other"
    cli("embed", "text", "hi", "-m", "openai-compatible:vectors")
    assert llm.embedded[-1].model == "vectors"
    assert cli("models")[1].startswith("Chat:\n  openai-compatible:tiny\n")
    assert one_line(cli("models", "default", "opnai")[2], "cannot be the default", "openai")


def test_a_conversation_keeps_its_model_whatever_the_default_is(
    cli: Cli, llm: Llm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    cli("chat", "--thread", "a", "-m", "openai-compatible:first", "hi")
    monkeypatch.delenv("DRAGOMAN_MODEL")
    cli("models", "default", "openai-compatible:second")
    cli("chat", "-c", "hi")
    assert asked_model(llm) == "first"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n"model": "x"\n"log": true}', "line 3"),
        ('{\n\n"modl": "x"}', "line 3: there is no setting 'modl'; there are model, aliases, log"),
        ('{"log": true,\n"model": 1}', "line 2: model must be a text"),
        ('{"log":\n"no"}', "line 1: log must be true or false"),
        ('{"aliases": {"a": "openai",\n"é": 2}}', "line 2: the alias 'é' must be a text"),
        ('{"aliases": []}', "line 1: aliases must be an object"),
        ("", "line 1"),
    ],
)
def test_a_typo_in_the_settings_is_told_with_its_line(
    cli: Cli, file: Path, text: str, words: str
) -> None:
    write(file, text)
    for command in (("hi",), ("aliases",), ("aliases", "set", "f", "openai"), ("models",)):
        code, out, err = cli(*command)
        assert (code, out) == (3, "")
        assert one_line(err, str(file), words)
    assert file.read_text() == text


def test_two_commands_at_once_lose_no_alias(file: Path) -> None:
    names = ("a1", "a2", "a3", "a4")
    threads = [Thread(target=shell, args=("aliases", "set", name, "openai")) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(json.loads(file.read_text())["aliases"]) == {*names}
