"""`dragoman proxy`: a program below it, the official clients, exit codes, and its recordings."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import NamedTuple
from urllib.request import Request, urlopen

import pytest

from dragoman import Message
from dragoman.cli import main
from support.cli import SRC, one_line
from support.serving import in_a_thread, served

_PYTHON = sys.executable
_PROVIDERS = (
    "openai",
    "anthropic",
    "google",
    "cohere",
    "ollama",
    "mistral",
    "openrouter",
)
_CLIENTS = str(Path(SRC).parent / "tests" / "support" / "proxied_clients.py")
_ASK = """
import json, os, sys, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": sys.argv[1]}]}).encode()
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
try:
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as reply:
        print(json.load(reply)["choices"][0]["message"]["content"])
except urllib.error.HTTPError as error:
    print(error.code, json.load(error)["error"]["message"])
    sys.exit(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
"""
"""A program that asks a question of OpenAI's API."""
_KEYS = {name: "" for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))}


@pytest.fixture(scope="module")
def provider() -> Generator[str]:
    """The URL of a server that speaks the API of each provider."""
    with in_a_thread(served(Message.model("Hello."))[0]) as url:
        yield url


class Ran(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in this process; what a program below it prints counts."""
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("DRAGOMAN_PROXY_MODE", raising=False)

    def run(*arguments: str, **environment: str) -> Ran:
        with monkeypatch.context() as patch:
            for name, text in environment.items():
                patch.setenv(name, text)
            code = main(["proxy", *arguments])
        return Ran(code, *capfd.readouterr())

    return run


def ask(
    run: Run, folder: Path, provider: str, question: str, *options: str, code: str = "0"
) -> Ran:
    return run(
        *("-f", str(folder), "--upstream", f"openai={provider}/v1", *options),
        *("--", _PYTHON, "-S", "-c", _ASK, question, code),
        OPENAI_API_KEY="sk-secret-123456",
    )


def test_a_program_is_recorded_and_then_answered_without_its_provider(
    tmp_path: Path, provider: str, run: Run
) -> None:
    first = ask(run, tmp_path / "r", provider, "Hi")
    assert (first.code, first.out) == (0, "Hello.\n")
    assert "proxy: 1 recorded" in first.err
    again = run(
        *("-f", str(tmp_path / "r"), "--ci", "--upstream", "openai=http://127.0.0.1:9/v1"),
        *("--", _PYTHON, "-c", _ASK, "Hi"),
    )
    assert (again.code, again.out) == (0, "Hello.\n")
    assert "proxy: 1 replayed" in again.err
    assert b"secret" not in b"".join(file.read_bytes() for file in (tmp_path / "r").iterdir())


@pytest.mark.parametrize(("code", "wanted"), [("0", 1), ("7", 7)])
def test_an_unknown_request_fails_the_command(
    code: str, wanted: int, tmp_path: Path, provider: str, run: Run
) -> None:
    ask(run, tmp_path, provider, "Hi")
    unknown = ask(run, tmp_path, provider, "Bye", "--ci", code=code)
    assert unknown.code == wanted
    assert unknown.out.startswith("400 ")
    assert '+      "content": "Bye"' in unknown.err
    assert "1 unknown" in unknown.err
    # One that asks nothing has the program's own code.
    assert ask(run, tmp_path, provider, "Hi", "--ci", code=code).code == 0


def test_the_programs_exit_code_is_the_commands(tmp_path: Path, run: Run) -> None:
    assert run("-f", str(tmp_path / "none"), "--", _PYTHON, "-c", "raise SystemExit(5)").code == 5
    assert not (tmp_path / "none").exists()
    missing = run("-f", str(tmp_path), "--", "no-such-program")
    assert missing.code == 127
    assert missing.err.startswith("error: there is no program")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--mode", "play"), "record-new"),
        (("--replay", "best"), "nearest"),
        (("--upstream", "acme"), "NAME=URL"),
        (("--upstream", "acme=ftp://x"), "http://"),
        (("--upstream", "page=http://x"), "other than page"),
        (("--upstream", "a=http://user:secret-12@x"), "http://"),
        (("--",), "a program must follow"),
        (("lst",), "list"),
        (("list", "no-such-folder"), "there is no folder"),
        (("show", "1", "-f", "no-such-folder"), "there is no folder"),
        (("report", "no-such-folder"), "there is no folder"),
        (("-f", "pyproject.toml"), "is no folder"),
    ],
)
def test_a_wrong_command_line_is_one_line(
    arguments: tuple[str, ...], word: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(SRC).parent)
    ran = run(*arguments)
    assert ran.code in (2, 3)
    assert one_line(ran.err, word), ran.err
    assert "secret-12" not in ran.err


def test_list_show_and_report_tell_of_the_recordings(
    tmp_path: Path, provider: str, run: Run
) -> None:
    ask(run, tmp_path, provider, "Hi")
    (tmp_path / "0002.json").write_text("{")
    listed = run("list", str(tmp_path))
    assert listed.out.split() == [
        "0001",
        "200",
        "POST",
        provider.removeprefix("http://") + "/v1/chat/completions",
        "m",
    ]
    assert "left out" in listed.err
    assert json.loads(run("list", str(tmp_path), "--json").out)["wire"] == "openai_chat"
    shown = json.loads(run("show", "1", "-f", str(tmp_path)).out)
    assert shown["request"]["messages"][0]["content"] == "Hi"
    assert shown["decoded"]["messages"][0]["content"][0]["text"] == "Hello."
    assert shown["drift"] == []
    assert one_line(run("show", "9", "-f", str(tmp_path)).err, "no recording '9'")
    report = run("report", str(tmp_path))
    assert (report.code, report.out) == (0, "")
    assert "1 answers decoded" in report.err


def test_drift_is_reported_against_older_recordings(tmp_path: Path, run: Run) -> None:
    def write(folder: Path, **fields: object) -> str:
        folder.mkdir()
        body = {
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": "x", **fields},
                    "finish_reason": "stop",
                }
            ]
        }
        record = {
            "request": {
                "url": "https://api.openai.com/v1/chat/completions",
                "body": {"model": "m"},
            },
            "response": {"status": 200, "headers": {}, "body_text": json.dumps(body)},
        }
        (folder / "0001.json").write_text(json.dumps(record))
        return str(folder)

    old = write(tmp_path / "old", aura_level=3)
    new = write(tmp_path / "new", aura_level=3, mood_ring={"colour": "red"})
    report = run("report", new)
    assert [line.split()[3] for line in report.out.splitlines()] == [
        "choices.message.aura_level",
        "choices.message.mood_ring",
    ]
    against = run("report", new, "--baseline", old, "--json")
    assert json.loads(against.out)["what"] == "choices.message.mood_ring"


def test_it_serves_until_a_signal_and_shows_its_page(
    tmp_path: Path, provider: str, run: Run
) -> None:
    ask(run, tmp_path, provider, "Hi")
    command = [_PYTHON, "-m", "dragoman", "proxy", "-f", str(tmp_path), "--ci"]
    environment = {**os.environ, **_KEYS, "PYTHONPATH": SRC}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[2].rstrip(";")
        for path, word in {
            "/": "exchanges.js",
            "/page/static/exchanges.js": "usePages",
            "/page/exchanges": '"0001"',
            "/page/exchanges/0001": '"Hello."',
        }.items():
            with urlopen(Request(url + path, headers={"accept": "text/html"})) as reply:
                assert word in reply.read().decode()
        process.send_signal(signal.SIGTERM)
        output = process.stdout.read()
    assert process.returncode == 0, output
    assert f"export OPENAI_BASE_URL={url}/openai/v1" in output.decode()
    assert f"export ANTHROPIC_BASE_URL={url}/anthropic\n" in output.decode()


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_guides_program_runs_as_it_stands(tmp_path: Path, provider: str, run: Run) -> None:
    guide = (Path(SRC).parent / "docs" / "guides" / "proxy.md").read_text()
    [code] = re.findall(r"^```py\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "ask.py").write_text(code.replace("gpt-4o-mini", "m"))
    command = ("-f", str(tmp_path / "r"), "--", _PYTHON, str(tmp_path / "ask.py"))
    first = run("--upstream", f"openai={provider}/v1", *command, OPENAI_API_KEY="sk-secret-123456")
    assert (first.code, first.out) == (0, "Hello.\n"), first.err
    assert run("--ci", *command).out == "Hello.\n"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_each_official_client_finds_the_proxy_by_its_variables(
    tmp_path: Path, provider: str, run: Run
) -> None:
    paths = {"openai": "/v1", "openrouter": "/v1", "mistral": "/mistral/v1"}
    upstreams = [
        word
        for name in _PROVIDERS
        for word in ("--upstream", f"{name}={provider}{paths.get(name, '')}")
    ]
    clients = [*_PROVIDERS[:-1], "dragoman"]
    keys = dict.fromkeys(
        (
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "GEMINI_API_KEY",
            "CO_API_KEY",
            "MISTRAL_API_KEY",
            "OPENROUTER_API_KEY",
        ),
        "sk-secret-123456",
    )
    first = run("-f", str(tmp_path), *upstreams, "--", _PYTHON, "-P", _CLIENTS, *clients, **keys)
    wanted = "".join(f"{name} Hello.\n" for name in clients)
    assert (first.out, first.code) == (wanted, 0), first.err
    assert "7 recorded" in first.err
    # Without keys and a provider; those of this machine's environment do not count.
    gone = [word.replace(provider, "http://127.0.0.1:9") for word in upstreams]
    again = run(
        "-f", str(tmp_path), *gone, "--ci", "--", _PYTHON, "-P", _CLIENTS, *clients, CO_API_KEY=""
    )
    assert (again.out, again.code) == (wanted, 0), again.err
    assert "7 replayed" in again.err
    assert b"secret" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
