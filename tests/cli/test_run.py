"""`dragoman run`: a program beside a gateway of its own (issue R)."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dragoman.cli import main
from dragoman.cli.coding_agents import CODING_AGENTS, make_command
from support.cli import SRC, one_line

KEYS = {"OPENAI_API_KEY": "a-real-key", "ANTHROPIC_API_KEY": "another-real-key"}
PRINTS = "import json, os; print(json.dumps(dict(os.environ)))"
ASKS = """
import json, os, sys, urllib.error, urllib.request
url, key = os.environ["ANTHROPIC_BASE_URL"], sys.argv[1] or os.environ["ANTHROPIC_AUTH_TOKEN"]
request = urllib.request.Request(url + "/v1/models", headers={"authorization": "Bearer " + key})
try:
    listed = json.load(urllib.request.urlopen(request))
    print([model["id"] for model in listed["data"]])
except urllib.error.HTTPError as error:
    sys.exit(error.code % 256)
"""


class Ran(NamedTuple):
    """What a command line came to."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def ran(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Ran]:
    """Runs `dragoman run` in this process, and the program in its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("DRAGOMAN_MODEL", "DRAGOMAN_SERVE_STORE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, **environment: str) -> Ran:
        for name, text in environment.items():
            monkeypatch.setenv(name, text)
        code = main(["run", *arguments])
        return Ran(code, *capfd.readouterr())

    return run


def test_the_exit_code_is_the_programs(ran: Callable[..., Ran]) -> None:
    done = ran("-m", "ollama:llama3", sys.executable, "-c", "print('hi'); raise SystemExit(7)")
    assert (done.returncode, done.stdout, done.stderr) == (7, "hi\n", "")


def test_only_the_program_is_let_in(ran: Callable[..., Ran]) -> None:
    done = ran("-m", "quick=ollama:llama3", "--", sys.executable, "-c", ASKS, "")
    assert done.returncode == 0, done.stderr
    assert "quick" in done.stdout
    refused = ran("-m", "quick=ollama:llama3", "--", sys.executable, "-c", ASKS, "a-guessed-key")
    assert refused.returncode == 401 % 256


def test_a_program_of_another_name_gets_the_variables_of_all(ran: Callable[..., Ran]) -> None:
    done = ran("-m", "openai:gpt-5", sys.executable, "-c", PRINTS, **KEYS)
    variables = json.loads(done.stdout)
    url, key = variables["ANTHROPIC_BASE_URL"], variables["OPENAI_API_KEY"]
    assert url.startswith("http://127.0.0.1:")
    assert variables["OPENAI_BASE_URL"] == variables["OPENAI_API_BASE"] == f"{url}/v1"
    assert variables["GOOGLE_GEMINI_BASE_URL"] == url
    assert variables["GEMINI_MODEL"] == variables["ANTHROPIC_MODEL"] == "gpt-5"
    assert key == variables["ANTHROPIC_API_KEY"] == variables["GEMINI_API_KEY"]
    assert "real-key" not in key
    assert "127.0.0.1" in variables["NO_PROXY"]
    # A file of this run, gone with it.
    assert not Path(variables["GEMINI_CLI_SYSTEM_SETTINGS_PATH"]).exists()


@pytest.mark.parametrize("name", list(CODING_AGENTS))
def test_each_known_program_gets_its_own_alone(name: str, tmp_path: Path) -> None:
    command, variables = make_command(
        [f"/some/where/{name}", "--word"],
        url="http://127.0.0.1:1",
        key="the-key",
        model="gpt-5",
        window=272_000,
        folder=tmp_path,
    )
    everything = str([command, variables])
    assert command[0] == f"/some/where/{name}" and command[-1] == "--word"
    assert all(word in everything for word in ("http://127.0.0.1:1", "the-key", "gpt-5"))
    assert "$" not in everything
    if name in ("claude", "codex"):
        assert "272000" in everything
    unknown, _ = make_command(
        [name], url="http://127.0.0.1:1", key="the-key", model=None, window=None, folder=tmp_path
    )
    assert "$" not in str(unknown) and "None" not in str(unknown)


def test_claude_gets_no_key_of_anthropic(tmp_path: Path) -> None:
    _, variables = make_command(
        ["claude"], url="http://h", key="k", model="m", window=None, folder=tmp_path
    )
    assert variables["ANTHROPIC_API_KEY"] is None
    assert "OPENAI_API_KEY" not in variables


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["-m", "openai:gpt-5", "claude"], 127, ["'claude'", "npm install -g @anthropic-ai"]),
        (["-m", "openai:gpt-5", "no-such-program"], 127, ["'no-such-program'"]),
        (["-m", "openai:gpt-5", "true"], 4, ["OPENAI_API_KEY"]),
        (["-m", "nobody:gpt-5", "true"], 3, ["nobody"]),
        (["true"], 2, ["-m openai:gpt-5"]),
        (["--gateway", "FILE", "-m", "slow", "true"], 2, ["'slow'"]),
    ],
)
def test_what_is_missing_is_one_line(
    ran: Callable[..., Ran], arguments: list[str], code: int, words: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[models]\nfast = "ollama:llama3"\n')
    arguments = [str(file) if word == "FILE" else word for word in arguments]
    done = ran(*arguments, PATH="/usr/bin:/bin")
    assert done.returncode == code, done.stderr
    assert one_line(done.stderr, *words), done.stderr


def test_a_taken_port_is_one_line(ran: Callable[..., Ran]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = ran("-m", "ollama:llama3", "--port", port, "true")
    assert done.returncode == 3
    assert one_line(done.stderr, f"port {port}", "taken"), done.stderr


def test_a_file_names_the_model(ran: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text('[models]\n"llama-*" = "ollama:llama-*"\nfast = "ollama:llama3"\n')
    show = "import os; print(os.environ['ANTHROPIC_MODEL'])"
    first = ran("--gateway", str(file), sys.executable, "-c", show)
    assert first.stdout == "fast\n", first.stderr
    # Which is the default of the command line, and none of the file's.
    again = ran("--gateway", str(file), sys.executable, "-c", show, DRAGOMAN_MODEL="openai:gpt-5")
    assert again.stdout == "fast\n", again.stderr
    default = ran(sys.executable, "-c", show, DRAGOMAN_MODEL="ollama:llama3")
    assert default.stdout == "llama3\n", default.stderr
    chosen = ran("--gateway", str(file), "-m", "llama-4", sys.executable, "-c", show)
    assert chosen.stdout == "llama-4\n"


def test_signals_are_the_programs_and_nothing_is_left(tmp_path: Path) -> None:
    waits = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))\n"
        "print(os.getpid(), os.environ['GEMINI_CLI_SYSTEM_SETTINGS_PATH'], flush=True)\n"
        "time.sleep(30)"
    )
    run: Any = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "run", "-m", "ollama:x", sys.executable, "-c", waits],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC, "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    child, file = run.stdout.readline().decode().split()
    assert Path(file).is_relative_to(tmp_path) and Path(file).exists()
    run.send_signal(signal.SIGTERM)
    assert run.wait(timeout=20) == 9
    run.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(child), 0)
    assert not list((tmp_path / "cache").iterdir())


def test_calls_are_told_in_a_file_alone(ran: Callable[..., Ran], tmp_path: Path) -> None:
    log = tmp_path / "log"
    asks = ASKS.replace("/v1/models", "/v1/messages").replace("headers=", "data=b'{}', headers=")
    done = ran("-m", "ollama:llama3", "--log", str(log), "--", sys.executable, "-c", asks, "")
    assert (done.returncode, done.stdout, done.stderr) == (400 % 256, "", "")
    assert "POST /v1/messages 400" in log.read_text()
