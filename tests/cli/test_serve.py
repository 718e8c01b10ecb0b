"""`dragoman serve`: what is served, to whom, and the lines that it prints."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.serve import format_greeting
from support.cli import SRC, one_line
from support.javascript import with_openai
from support.llm_server import Llm

Cli = Callable[..., tuple[int, str, str]]
MODULE = """
from dragoman import Agent, serve

print("noise")
one = Agent("openai:x", api_key="none", display_name="One")
two = Agent("openai:y", api_key="none")
again = one
app = serve.app(one)
number = 3
"""
GATEWAY = '[models]\nfast = "ollama:x"\n"llama-*" = "ollama:llama-*"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a module, a gateway and keys, in which the command runs."""
    (tmp_path / "served_of_mine.py").write_text(MODULE)
    (tmp_path / "gateway.toml").write_text(GATEWAY)
    (tmp_path / "keys").write_text(
        "# ours\nkey-of-the-first ada\n\n  key-of-the-second bob one gpt-*\nkey-of-the-third\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "served_of_mine", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return tmp_path


@pytest.fixture
def run(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Any, Mapping[str, Any]]]:
    """Runs a command line that serves → the application, and how it is served."""
    seen: list[tuple[Any, dict[str, Any]]] = []
    monkeypatch.setattr(
        "dragoman.serve.server.run_server", lambda app, **how: seen.append((app, how))
    )

    def serving(*arguments: str) -> tuple[Any, Mapping[str, Any]]:
        code, out, err = cli("serve", *arguments)
        assert (code, out) == (0, ""), err
        app, how = seen[-1]
        how["ready"]("http://127.0.0.1:1234")
        return app, how

    return serving


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("no_such:agent",), 2, ("no module 'no_such'",)),
        (("served_of_mine:",), 2, ("MODULE:NAME",)),
        (("served_of_mine:nobody",), 2, ("'nobody'", "one, two")),
        (("served_of_mine:number",), 2, ("'number' is a int", "no agent")),
        (("json",), 2, ("has no agent",)),
        (("served_of_mine:one", "served_of_mine:one"), 2, ("two targets are named 'one'",)),
        (("served_of_mine:app", "--gateway", "gateway.toml"), 2, ("one of the two",)),
        (("served_of_mine:app", "served_of_mine:one"), 2, ("'app' is a Starlette",)),
        (("--gateway", "no.toml"), 2, ("no.toml",)),
        (("--gateway", "keys"), 3, ("keys", "line")),
        (("-m", "nobody:x"), 3, ("nobody",)),
        (("--port", "70000"), 2, ("65535",)),
        (("--key", "short"), 3, ("guessed",)),
        (("--key", "the same key", "--key", "the same key"), 3, ("the same",)),
        (("--key-file", "gateway.toml"), 3, ("gateway.toml, line 2", "guessed")),
        (("--key-file", "empty"), 3, ("has no key",)),
        (
            ("--host", "0.0.0.0", "--port", "0"),
            3,
            ("0.0.0.0 can be reached from other machines", "--key"),
        ),
        (("--store", "redis://x"), 3, ("redis",)),
        (("--drain", "-1"), 2, ("--drain",)),
        (("--on-disconnect", "stay"), 2, ("'stay'", "--on-disconnect")),
    ],
)
def test_a_wrong_command_line_is_one_line(
    cli: Cli, folder: Path, arguments: Any, code: int, words: Any
) -> None:
    (folder / "empty").write_text("# none\n")
    for name in ("empty", "gateway.toml"):
        (folder / name).chmod(0o600)
    got, out, err = cli("serve", *arguments)
    assert (got, out) == (code, "")
    assert one_line(err.removeprefix("noise\n"), *words), err


def test_a_model_without_its_key_is_said_before_anything_is_served(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    code, _, err = cli("serve", "-m", "openai:gpt-4o")
    assert code == 4
    assert one_line(err, "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("arguments", "listed", "anything"),
    [
        ((), 1, True),
        (("-m", "openai:gpt-4o"), ["openai"], True),
        (("served_of_mine:one",), ["openai"], True),
        (("served_of_mine:app",), ["openai"], True),
        (("served_of_mine:one", "served_of_mine:two"), ["one", "two"], False),
        (("served_of_mine",), ["one", "two"], False),
        (("served_of_mine:two", "-m", "openai:z"), ["two", "openai:z"], False),
        (("--gateway", "gateway.toml"), ["fast"], False),
        (("served_of_mine:one", "--gateway", "gateway.toml"), ["fast", "one"], False),
    ],
)
def test_what_is_served(run: Any, arguments: Any, listed: Any, anything: bool) -> None:
    app, _ = run(*arguments)
    service = app.state.service
    found = [name for backend in service.backends for name in backend.names if "*" not in name]
    assert len(found) == listed if isinstance(listed, int) else found == listed
    assert any(backend.serves("whatever") for backend in service.backends) is anything


@pytest.mark.parametrize("agents", [False, True])
def test_agent_protocols_are_named_where_agents_are(agents: bool) -> None:
    printed = format_greeting(["one"], "http://127.0.0.1:1", None, agents=agents)
    assert [path in printed for path in ("/ag-ui", "/ai-sdk", "/a2a", "agent-card.json")] == [
        agents
    ] * 4


def test_where_and_how_long(run: Any) -> None:
    _, how = run("--host", "127.0.0.2", "--port", "0", "--drain", "5")
    assert (how["host"], how["port"], how["drain_seconds"]) == ("127.0.0.2", 0, 5)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("arguments", "variable", "known"),
    [
        (["--key", "key-of-the-line"], "", ["line"]),
        (["--key", "key-of-the-line"], "key-of-the-variable", ["line"]),
        ([], "key-of-the-variable\nkey-of-the-second-line ada", ["variable", "second-line"]),
        (["--key-file", "keys"], "", ["first", "second", "third"]),
        (
            ["--key-file", "keys", "--key", "key-of-the-line"],
            "",
            ["line", "first", "second", "third"],
        ),
    ],
)
async def test_where_keys_come_from(
    run: Any, monkeypatch: Any, arguments: Any, variable: str, known: Any
) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE_KEY", variable)
    app, _ = run(*arguments)
    authenticate = app.state.service.authenticate
    every = ["line", "variable", "second-line", "first", "second", "third"]
    assert [each for each in every if await authenticate([f"key-of-the-{each}"])] == known


def test_keys_come_from_the_environment_and_stand_nowhere(
    run: Any, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("DRAGOMAN_SERVE_KEY", "first-of-the-keys\nsecond-of-the-keys")
    app, _ = run()
    assert app.state.service.has_keys
    printed = capsys.readouterr().out
    assert "of-the-keys" not in printed
    assert printed.count("DRAGOMAN_SERVE_KEY") == 3


@contextmanager
def server(
    *arguments: str, errors: Callable[[str], bool] = lambda err: not err, **environment: str
) -> Generator[str]:
    """A server of its own → what it prints. `errors`: of standard error, whether it is right."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC, **environment},
        text=True,
    )
    try:
        assert process.stdout is not None
        printed = ""
        while "agent-card.json" not in printed and (line := process.stdout.readline()):
            printed += line
        yield printed
    finally:
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors(err), err


@pytest.mark.service
@pytest.mark.parametrize("key", [None, "a-key-that-nobody-guesses"])
def test_the_lines_that_it_prints_talk_to_it(llm: Llm, tmp_path: Path, key: str | None) -> None:
    environment = {"DRAGOMAN_SERVE_KEY": key} if key else {}
    with server(**environment) as printed:
        curl, python, javascript, protocols = re.split(r"\n\n(?:#|//) ", printed)[1:]
        for address in re.findall(r"http://\S+", protocols):
            reached = [
                "curl",
                "-s",
                "-o",
                "/dev/null",
                "-w",
                "%{http_code}",
                "-X",
                "GET",
                "-H",
                f"authorization: Bearer {key}",
                address,
            ]
            done = subprocess.run(reached, capture_output=True, timeout=40, text=True)
            assert done.stdout in ("200", "405"), address
        program = with_openai(tmp_path, javascript.partition("\n")[2])
        for command in (
            ["sh", "-c", curl.partition("\n")[2]],
            [sys.executable, "-c", python.partition("\n")[2]],
            ["node", str(program)],
        ):
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=40,
                env={**os.environ, **environment},
                text=True,
            )
            assert "You said: Name a river." in done.stdout, done.stderr


@pytest.mark.service
def test_calls_are_shown_where_that_is_wanted(llm: Llm) -> None:
    import urllib.request

    for arguments, shown in ((("--log",), 1), ((), 0)):
        with server(
            *arguments, errors=lambda err, shown=shown: err.count("GET /v1/models 200") == shown
        ) as printed:
            [url] = re.findall(r"at (http\S+);", printed)
            urllib.request.urlopen(f"{url}/v1/models").read()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["served_of_mine:one", "--no-drive"], "--no-drive needs --durable"),
        (["served_of_mine:one", "--durable"], "in a database"),
        (["served_of_mine:one", "--durable", "--store", "none"], "in a database"),
        (["served_of_mine:app", "--durable", "--store", "sqlite:///x.db"], "durable=True"),
    ],
)
def test_runs_that_cannot_outlive_the_server_are_refused(
    cli: Cli, folder: Path, arguments: list[str], words: str
) -> None:
    code, out, error = cli("serve", *arguments)
    assert (code in (2, 3), out) == (True, "")
    assert one_line(error.removeprefix("noise\n"), words)


def test_durable_runs_find_an_agent_by_its_name(run: Any) -> None:
    app, _ = run("served_of_mine:one", "--durable", "--no-drive", "--store", "sqlite:///x.db")
    [backend] = app.state.service.backends
    assert (backend.names, backend.is_durable) == (["one"], True)
