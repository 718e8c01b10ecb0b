"""The log of prompts and answers: what is logged, `dragoman logs`, and what a broken log does."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dragoman import ModelRequest
from dragoman.errors import ProviderError
from support.cli import one_line, shell
from support.llm_server import Llm

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the log is."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("DRAGOMAN_NO_LOG", raising=False)
    return tmp_path / "data" / "dragoman" / "threads.db"


def logged(cli: Cli, *words: str) -> list[dict[str, object]]:
    return json.loads(cli("logs", "--json", *words)[1])


def prompts(cli: Cli, *words: str) -> list[object]:
    return [exchange["prompt"] for exchange in logged(cli, *words)]


def test_prompts_and_answers_are_logged_in_the_store_of_threads(
    cli: Cli, llm: Llm, file: Path
) -> None:
    for prompt in ("one", "two", "three", "four"):
        assert cli(prompt) == (0, f"You said: {prompt}\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert prompts(cli) == ["two", "three", "four"]
    assert prompts(cli, "-n", "1") == ["four"]
    assert prompts(cli, "-n", "0") == ["one", "two", "three", "four"]
    entry = logged(cli)[-1]
    assert entry["response"] == "You said: four"
    assert entry["model"] == "openai-compatible:tiny"
    assert (entry["input_tokens"], entry["output_tokens"]) == (3, 4)
    assert cli("logs", "-r") == (0, "You said: four\n", "")
    assert cli("threads", "list")[1] == ""
    assert len(cli("threads", "list", "--all")[1].splitlines()) == 4


def test_a_conversation_goes_on_with_its_model_by_c_and_by_its_id(
    cli: Cli, llm: Llm, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("-m", "openai-compatible:other", "one")
    cli("two")
    first, second = logged(cli)
    cli("-c", "three")
    assert [message.text for message in llm.requests[-1].messages] == [
        "two",
        "You said: two",
        "three",
    ]
    for option in ("--cid", "--conversation"):
        cli(option, str(first["conversation_id"]), "four")
        assert llm.requests[-1].model == "other"
        assert llm.requests[-1].messages[0].text == "one"
    assert prompts(cli, "-c") == ["one", "four", "four"]
    assert prompts(cli, "--cid", str(second["conversation_id"])) == ["two", "three"]
    assert prompts(cli, "-c", "-n", "1") == ["four"]


def test_named_threads_are_logged_too_and_once(cli: Cli) -> None:
    cli("--thread", "trip", "one")
    cli("two")
    cli("--thread", "trip", "three")
    assert prompts(cli) == ["one", "two", "three"]
    assert cli("threads", "list")[1].split()[-1] == "trip"


def test_the_log_is_searched_and_filtered(cli: Cli) -> None:
    cli("a Red bicycle")
    cli("-m", "openai-compatible:other", "a red car")
    cli("a blue car")
    assert prompts(cli, "-q", "red") == ["a Red bicycle", "a red car"]
    assert prompts(cli, "--search", "car red") == ["a red car"]
    assert prompts(cli, "-q", "red", "-n", "1") == ["a red car"]
    assert prompts(cli, "-m", "openai-compatible:other") == ["a red car"]
    assert len(prompts(cli, "-m", "openai-compatible")) == 3
    cli("aliases", "set", "o", "openai-compatible:other")
    assert prompts(cli, "-m", "o", "-n", "0") == ["a red car"]
    assert cli("logs", "-q", "lorry") == (1, "", "note: nothing of this is logged\n")
    assert cli("logs", "-q", "lorry", "--json")[:2] == (0, "[]\n")
    for words in ('"', "red AND", "*", "%", "NEAR(", ""):
        assert cli("logs", "-q", words)[0] in (0, 1)


def test_it_is_shown_for_people(cli: Cli) -> None:
    cli("Name a\nriver \x1b[2J")
    out = cli("logs", "-u")[1]
    assert "Model: **openai-compatible:tiny**\n\n## Prompt\n\nName a\nriver \\u001b[2J\n" in out
    assert "\n## Response\n\nYou said: Name a" in out
    assert "Input: 3 tokens" in out
    cli("code\n```py\nx = 1\n```")
    assert cli("logs", "-x")[1].strip() == "x = 1"
    short = cli("logs", "-s")[1]
    assert short.startswith('- model: "openai-compatible:tiny"\n  datetime: "')
    assert "You said" not in short
    assert '\n  prompt: "Name a river ' in short


def test_it_is_turned_off(cli: Cli, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    cli("--no-log", "hi")
    monkeypatch.setenv("DRAGOMAN_NO_LOG", "1")
    cli("hi")
    assert not file.exists()
    assert "logging is off" in cli("logs", "status")[1]
    monkeypatch.delenv("DRAGOMAN_NO_LOG")
    assert cli("logs", "off")[0] == 0
    cli("hi")
    assert "logging is off" in cli("logs", "status")[1]
    cli("--log", "asked for")
    assert cli("logs", "on")[0] == 0
    cli("again")
    assert prompts(cli) == ["asked for", "again"]
    assert cli("logs", "status")[1] == f"logging is on\nstore: {file}\nconversations: 2\n"
    assert cli("logs", "path") == (0, f"{file}\n", "")


def test_nothing_is_logged_of_what_was_not_answered(cli: Cli, llm: Llm, file: Path) -> None:
    def refuse(_: ModelRequest) -> ProviderError:
        return ProviderError("no", status=400)

    llm.reply = refuse
    assert cli("hi")[0] == 4
    assert not file.exists()


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("--cid", "gone", "hi"), 1, "no conversation gone"),
        (("--cid", "a", "--thread", "b", "hi"), 2, "--conversation"),
        (("--cid", "a", "-c", "hi"), 2, "not both"),
        (("logs", "--cid", "gone"), 1, "no conversation gone"),
        (("logs", "-c"), 1, "no conversation"),
        (("logs", "-n", "-1"), 2, "greater than"),
        (("logs", "-m", "a", "--store", "mysql://x"), 3, "mysql"),
    ],
)
def test_what_is_not_there_is_told_in_one_line(
    cli: Cli, words: tuple[str, ...], code: int, error: str
) -> None:
    answered, out, err = cli(*words)
    assert (answered, out) == (code, "")
    assert one_line(err, error)


def break_folder(file: Path) -> None:
    file.parent.parent.mkdir(parents=True)
    file.parent.write_text("a file where the folder is to be")


def break_file(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"no database at all" * 1000)


def break_path(file: Path) -> None:
    file.mkdir(parents=True)


@pytest.mark.parametrize("damage", [break_folder, break_file, break_path])
def test_a_log_that_cannot_be_written_fails_no_prompt(
    cli: Cli, file: Path, damage: Callable[[Path], None]
) -> None:
    damage(file)
    code, out, err = cli("hi")
    assert (code, out) == (0, "You said: hi\n")
    assert err.startswith("note: this is not logged: ")
    assert err.count("\n") == 1


def test_a_log_of_a_newer_release_or_a_locked_one_fails_no_prompt(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("one")
    monkeypatch.setattr("dragoman.memory.quick_save._SECONDS", 0.05)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        code, out, err = cli("hi")
        assert (code, out) == (0, "You said: hi\n")
        assert err.startswith("note: this is not logged: ") and "locked" in err
        other.execute("UPDATE dragoman_memory_version SET version_num = '9999'")
        other.execute("COMMIT")
    code, out, err = cli("hi")
    assert (code, out) == (0, "You said: hi\n")
    assert "newer release" in err and err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_fails_no_prompt(llm: Llm, file: Path, tmp_path: Path) -> None:
    file.parent.mkdir(parents=True)
    # No file may grow beyond this many blocks, as on a full disk.
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)); "
        "sys.argv[1:] = ['hi']; from dragoman.cli import main; sys.exit(main())"
    )
    import os
    import subprocess
    import sys

    from support.cli import SRC

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": SRC, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stdout) == (0, "You said: hi\n")
    assert done.stderr.startswith("note: this is not logged: ")
    assert done.stderr.count("\n") == 1


def test_a_logged_prompt_imports_no_sqlalchemy(cli: Cli, llm: Llm) -> None:
    cli("one")
    import os
    import subprocess
    import sys

    from support.cli import SRC

    code = (
        "import sys; sys.argv[1:] = ['two']; from dragoman.cli import main; main(); "
        "sys.exit('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": SRC},
        timeout=50,
    )
    assert done.returncode == 0
    assert prompts(cli) == ["one", "two"]


def test_two_commands_at_once_are_both_logged(cli: Cli, llm: Llm) -> None:
    from threading import Thread

    cli("zero")
    threads = [Thread(target=shell, args=(word,)) for word in ("one", "two", "three")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(prompts(cli, "-n", "0")) == {"zero", "one", "two", "three"}
