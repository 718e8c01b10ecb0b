"""What the documents show that is no Python: commands, settings of a gateway, keys."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dragoman import serve
from dragoman.cli.app import add_chat, app

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
GUIDES = ROOT / "docs" / "guides"


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(
        rf"^ *```{language}\n(.*?)^ *```$", path.read_text(), re.MULTILINE | re.DOTALL
    )


def commands(path: Path, program: str) -> list[list[str]]:
    """The words of each command of a program, in blocks and within lines."""
    text = path.read_text()
    inline = re.findall(
        rf"`({program} [^`\n]+)`",
        re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL),
    )
    lines = [
        line for block in blocks(path, "sh") for line in block.replace("\\\n", " ").splitlines()
    ]
    found: list[list[str]] = []
    for line in [*lines, *inline]:
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|;&<>")
        lexer.whitespace_split = True
        words = [*lexer, ";"]
        while words:
            end = next(at for at, word in enumerate(words) if re.fullmatch(r"[|;&<>]+", word))
            command = [word for word in words[:end] if not re.fullmatch(r"\w+=.*", word)]
            if command[:1] == [program]:
                found.append(command[1:])
            words = words[end + 1 :]
    return found


PROGRAM: Any = typer.main.get_command(app)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_is_there_with_its_options(path: Path) -> None:
    for words in commands(path, "dragoman"):
        command = PROGRAM
        given = add_chat(words)
        while given and (inner := getattr(command, "commands", {}).get(given[0])) is not None:
            command, given = inner, given[1:]
        known = {
            option for each in command.params for option in each.opts + each.secondary_opts
        } | {"--help", "-h"}
        if "--" in given:  # the words of a program
            given = given[: given.index("--")]
        wanted = {word.partition("=")[0] for word in given if re.match(r"--?[a-zA-Z]", word)}
        assert wanted <= known, (words, wanted - known)
        assert (
            command.name != "dragoman"
            or not given
            or given[0].startswith("-")
            or given[0].isupper()
        ), words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_target_of_make_is_there(path: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(path, "make"):
        assert words[0] in targets, words


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_of_the_project_that_is_named_is_there(path: Path) -> None:
    for named in re.findall(r"`((?:tests|examples|scripts|bench)/[\w./]+)`", path.read_text()):
        assert (ROOT / named).exists(), named


def test_what_contributing_names_is_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    places = [ROOT, ROOT / "src" / "dragoman"]
    for path in re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text):
        assert "NAME" in path or any((place / path).exists() for place in places), path
    packages = {each.parent.name for each in (ROOT / "src" / "dragoman").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"`(\w+)/`", text))


def test_the_readme_names_every_extra() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    readme = (ROOT / "README.md").read_text()
    rows = readme.partition("| extra | what it adds |")[2].partition("\n\n")[0].splitlines()
    named = [
        name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1] if row else "")
    ]
    assert "'.[all]'" in readme
    assert {*named, "all"} == set(settings["project"]["optional-dependencies"])


def test_there_are_commands_to_look_at() -> None:
    found = [words for path in DOCUMENTS for words in commands(path, "dragoman")]
    assert ["serve", "myagent:agent"] in found
    assert ["chat", "Review this:", "-m", "openai"] in found
    assert len(found) > 60


def test_the_settings_of_a_gateway_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SEAL_KEY", "TEAM_OPENAI_KEY"):
        monkeypatch.setenv(name, "a secret of thirty-two bytes and more")
    whole, fetch = blocks(GUIDES / "gateway.md", "toml")
    (tmp_path / "gateway.toml").write_text(whole + fetch)
    assert set(serve.Gateway.from_toml(tmp_path / "gateway.toml").names) == {
        "fast",
        "careful",
        "llama-*",
    }


def test_the_keys_of_a_file_are_read(tmp_path: Path) -> None:
    [text] = blocks(GUIDES / "server-security.md", "text")
    (tmp_path / "keys").write_text(text)
    first, second = serve.read_keys(tmp_path / "keys")
    assert (first.name, first.models) == ("shop", None)
    assert (second.name, second.models) == ("guest", ("local", "small-*"))
