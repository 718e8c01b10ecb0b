"""Completion for shells (issue 30, 4)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.completion import prepare_completion
from support.cli import SRC, shell
from support.llm_server import Llm


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_script_is_printed(cli, name: str) -> None:
    code, out, err = cli("completion", name)
    assert (code, err) == (0, "")
    assert f"_DRAGOMAN_COMPLETE=complete_{name}" in out


def test_another_shell_is_one_line(cli) -> None:
    code, _, err = cli("completion", "tcsh")
    assert code == 2
    assert "bash" in err


def offered(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str):
    from dragoman.cli import main

    monkeypatch.setenv("_DRAGOMAN_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "\n".join(["dragoman", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        main([])
    return capsys.readouterr().out.split()


def test_commands_options_and_names_are_completed(
    cli,
    llm: Llm,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    cli("Sum up", "--save", "summary")
    (tmp_path / "f").write_text("text")
    cli("fragments", "set", "style", str(tmp_path / "f"))
    cli("x", "--thread", "trip")
    for words, expected in {
        ("temp",): ["templates"],
        ("chat", "-t", "su"): ["summary"],
        ("-t", "su"): ["summary"],
        ("chat", "-f", "st"): ["style"],
        ("chat", "-m", "anth"): ["anthropic"],
        ("-m", "openai:"): ["openai:gpt-"],
        ("chat", "-o", "temp"): ["temperature"],
        ("chat", "--thread", "t"): ["trip"],
        ("--schema-m",): ["--schema-multi"],
    }.items():
        found = offered(capsys, monkeypatch, *words)
        assert len(found) == len(expected), (words, found)
        assert found[0].startswith(expected[0]), (words, found)


def test_an_option_without_a_command_is_one_of_chat() -> None:
    for before, after in {
        "dragoman -t su": "dragoman chat -t su",
        "dragoman\n-t\nsu": "dragoman\nchat\n-t\nsu",
        "dragoman chat -t": "dragoman chat -t",
        "dragoman": "dragoman",
        "": "",
    }.items():
        environment = {"_DRAGOMAN_COMPLETE": "x", "COMP_WORDS": before, "COMP_CWORD": "2"}
        prepare_completion(environment)
        assert environment["COMP_WORDS"] == after
        assert environment["COMP_CWORD"] == ("3" if after != before else "2")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(tmp_path: Path) -> None:
    program = tmp_path / "dragoman"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dragoman "$@"\n')
    program.chmod(0o755)
    script = shell("completion", "bash").stdout.decode()
    asks = """
COMP_WORDS=(dragoman templates re); COMP_CWORD=2; _dragoman_completion dragoman
echo "${COMPREPLY[@]}"
"""
    done = subprocess.run(
        ["bash", "--norc", "-c", script + asks],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": SRC, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert (done.stdout, done.stderr) == ("remove\n", "")
