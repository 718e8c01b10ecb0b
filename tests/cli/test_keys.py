"""Keys of providers that are stored in a file: `dragoman keys`, and who looks them up."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest

from dragoman import Agent
from dragoman.cli.keys import find_keys_file, make_key_reader
from dragoman.errors import AuthenticationError
from dragoman.providers.keys import use_stored_keys
from dragoman.serve import Gateway
from support.cli import Stdin, one_line, shell
from support.llm_server import Llm

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the keys are."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "dragoman" / "keys.json"


def store(file: Path, **keys: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.write_text(json.dumps(keys))


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    def set_input(text: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", Stdin(text))

    return set_input


def test_where_they_are(tmp_path: Path, cli: Cli, file: Path) -> None:
    assert find_keys_file({"XDG_CONFIG_HOME": "/c"}) == Path("/c/dragoman/keys.json")
    assert find_keys_file({}) == Path.home() / ".config" / "dragoman" / "keys.json"
    assert cli("keys", "path") == (0, f"{file}\n", "")
    assert not file.exists()


def test_a_key_is_stored_for_its_owner_alone(
    cli: Cli, file: Path, pipe: Callable[[bytes], None]
) -> None:
    old = os.umask(0)
    try:
        pipe(b"sk-ant-1\r\n")
        assert cli("keys", "set", "claude") == (0, "", "ANTHROPIC_API_KEY is stored\n")
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert json.loads(file.read_text()) == {"ANTHROPIC_API_KEY": "sk-ant-1"}
    assert [*file.parent.iterdir()] == [file]


def test_names_are_listed_and_keys_are_not(
    cli: Cli, file: Path, pipe: Callable[[bytes], None]
) -> None:
    assert one_line("error: " + cli("keys")[2], "no key is stored")
    for name in ("openai-responses", "MISTRAL_API_KEY"):
        pipe(b"sk-secret")
        cli("keys", "set", name)
    for words in (["keys"], ["keys", "list"]):
        assert cli(*words) == (
            0,
            "MISTRAL_API_KEY  mistral\nOPENAI_API_KEY  openai, openai-responses\n",
            "",
        )
    assert cli("keys", "get", "openai")[1] == "sk-secret\n"
    assert cli("keys", "remove", "openai")[0] == 0
    assert cli("keys", "remove", "openai")[0] == 1
    assert cli("keys", "get", "openai")[0] == 1
    assert list(json.loads(file.read_text())) == ["MISTRAL_API_KEY"]


def test_a_key_is_typed_unseen(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def type_key(question: str) -> str:
        asked.append(question)
        return " sk-typed "

    monkeypatch.setattr(sys, "stdin", Stdin(None))
    monkeypatch.setattr("dragoman.cli.keys.getpass", type_key)
    assert cli("keys", "set", "openai")[1] == ""
    assert asked == ["Key for openai: "]
    assert json.loads(file.read_text()) == {"OPENAI_API_KEY": "sk-typed"}


@pytest.mark.parametrize(
    ("name", "typed", "code", "words"),
    [
        ("openai", b"", 2, "there is no key"),
        ("openai", b"export KEY=sk-1", 2, "no key has"),
        ("openai", b"sk-1\nsk-2", 2, "no key has"),
        ("openai", "sk-é".encode(), 2, "no key has"),
        ("openai", b"\0\1", 2, "not text"),
        ("opnai", b"sk-1", 3, 'did you mean "openai"'),
        ("local", b"sk-1", 3, "has no key"),
    ],
)
def test_what_is_no_key_is_refused(
    cli: Cli,
    file: Path,
    pipe: Callable[[bytes], None],
    name: str,
    typed: bytes,
    code: int,
    words: str,
) -> None:
    pipe(typed)
    answered, out, err = cli("keys", "set", name)
    assert (answered, out) == (code, "")
    assert one_line(err, words)
    assert not file.exists()


def test_a_stored_key_is_used_after_the_environment(
    cli: Cli, llm: Llm, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("chat", "-m", "anthropic:x", "hi")
    assert one_line(cli(*words)[2], "ANTHROPIC_API_KEY", "dragoman keys set")
    store(file, ANTHROPIC_API_KEY="sk-stored")
    assert cli(*words)[0] == 0
    assert llm.headers[-1]["x-api-key"] == "sk-stored"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-environment")
    cli(*words)
    monkeypatch.setattr(sys, "stdin", Stdin(b"sk-other"))
    assert "the environment, which comes first" in cli("keys", "set", "claude")[2]
    assert llm.headers[-1]["x-api-key"] == "sk-environment"


def test_every_command_that_asks_a_provider_looks_a_key_up(cli: Cli, llm: Llm, file: Path) -> None:
    store(file, OPENAI_API_KEY="sk-stored")
    url = ("-m", "openai:tiny", "--base-url", llm.url)
    assert cli("embed", "text", "hi", *url)[0] == 0
    assert cli("models", "openai", "--base-url", llm.url)[0] == 0
    # It fails behind the check of the key.
    assert "OPENAI_API_KEY" not in cli("generate", "cat", *url)[2]
    file.unlink()
    for command in (("embed", "text", "hi"), ("generate", "cat")):
        assert one_line(cli(*command, *url)[2], "OPENAI_API_KEY")


def test_a_gateway_and_an_agent_that_are_served_look_keys_up(llm: Llm, file: Path) -> None:
    store(file, OPENAI_API_KEY="sk-stored")
    for served in (Gateway({"fast": "openai:gpt-4o"}), Agent("openai:gpt-4o")):
        with use_stored_keys(make_key_reader()):
            assert set(served.check_keys().values()) == {None}
        assert None not in served.check_keys().values()


def test_a_program_that_imports_dragoman_reads_no_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    store(file, OPENAI_API_KEY="sk-stored")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    cli("keys")
    assert isinstance(Agent("openai").check_keys().popitem()[1], AuthenticationError)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are of Unix")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused(cli: Cli, file: Path, mode: int) -> None:
    store(file, ANTHROPIC_API_KEY="sk-stored")
    file.chmod(mode)
    for words in (("chat", "-m", "anthropic:x", "hi"), ("keys",), ("keys", "set", "openai")):
        code, out, err = cli(*words)
        assert (code, out) == (3, "") or words[-1] == "openai"
        assert "sk-stored" not in err
    assert one_line(cli("keys")[2], "others can read", f"{mode:04o}", f"chmod 600 {file}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n"OPENAI_API_KEY": "x"\n"b"', "line 3"),
        ("[]", "line 1"),
        ('{"OPENAI_API_KEY": 1}', "OPENAI_API_KEY must be a text"),
        ("[" * 100_000, "nested"),
        ("\udcff", "not UTF-8"),
    ],
)
def test_a_damaged_file_is_told_in_one_line(
    cli: Cli, file: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(file)
    file.write_bytes(text.encode(errors="surrogateescape"))
    before = file.read_bytes()
    for command in (("keys",), ("keys", "remove", "openai"), ("chat", "-m", "anthropic:x", "hi")):
        code, _, err = cli(*command)
        assert code == 3
        assert one_line(err, str(file), words)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-environment")
    assert cli("chat", "-m", "anthropic:x", "hi")[0] == 0
    assert file.read_bytes() == before


def test_a_folder_that_cannot_be_written_is_told_in_one_line(
    cli: Cli, file: Path, pipe: Callable[[bytes], None]
) -> None:
    file.parent.parent.write_text("a file in its way")
    pipe(b"sk-1")
    code, _, err = cli("keys", "set", "openai")
    assert code == 3
    assert one_line(err, "cannot write", str(file))


def test_a_link_stays_a_link(
    cli: Cli, file: Path, tmp_path: Path, pipe: Callable[[bytes], None]
) -> None:
    real = tmp_path / "dotfiles.json"
    store(real)
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    pipe(b"sk-1")
    cli("keys", "set", "openai")
    assert file.is_symlink()
    assert json.loads(real.read_text()) == {"OPENAI_API_KEY": "sk-1"}


def test_two_commands_at_once_lose_no_key(file: Path) -> None:
    names = ("openai", "anthropic", "mistral", "groq")
    threads = [
        Thread(target=shell, args=("keys", "set", name), kwargs={"stdin": b"sk-1"})
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(json.loads(file.read_text())) == len(names)
