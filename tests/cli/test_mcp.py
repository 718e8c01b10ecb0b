"""`dragoman mcp`: what is wrong with a command line is told before anything is served, and what to
give a client."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.cli import Stdin, one_line

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module with an agent, a tool and what is neither, in the working directory."""
    (tmp_path / "of_mine.py").write_text(
        "from dragoman import Agent, tool\n"
        "print('noise')\n"
        "@tool\n"
        "def add(a: int) -> int:\n"
        "    return a\n"
        "agent = Agent('openai:x', tools=[add], display_name='Me')\n"
        "number = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "of_mine", raising=False)
    return "of_mine"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("no_such",), ("no module 'no_such'",)),
        (("of_mine:",), ("MODULE:NAME",)),
        ((":agent",), ("MODULE:NAME",)),
        (("of_mine:nobody",), ("'nobody'", "agent")),
        (("of_mine:number",), ("int", "not an agent")),
        (("of_mine.py",), ("without .py",)),
        (("of_mine:agent", "--tools", "--both"), ("exclude each other",)),
        (("of_mine:agent", "-C", "/no/such"), ("/no/such",)),
        (("of_mine:agent", "--http", "--port", "70000"), ("--port", "65535")),
        (("json",), ("has no tools",)),
    ],
)
def test_a_wrong_command_line_is_told(cli: Cli, module: str, arguments: Any, words: Any) -> None:
    assert module
    code, out, err = cli("mcp", *arguments)
    assert code == 2
    assert out == ""
    assert one_line(err.removeprefix("noise\n"), *words)


def test_where_others_could_reach_it_a_token_is_needed(cli: Cli, module: str) -> None:
    code, out, err = cli("mcp", f"{module}:agent", "--http", "--host", "0.0.0.0", "--port", "0")
    assert (code, out) == (3, "")
    assert "token" in err


def test_a_terminal_is_shown_what_a_client_needs(
    cli: Cli, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[str] = []

    async def serve(server: Any) -> None:
        served.append(server.name)

    monkeypatch.setattr("dragoman.mcp.serve_stdio", serve)
    monkeypatch.setattr("sys.stdin", Stdin(None))
    monkeypatch.setattr("sys.argv", ["dragoman", "mcp", f"{module}:agent"])
    code, out, err = cli("mcp", f"{module}:agent")
    assert (code, out, served) == (0, "", ["Me"])
    shown = json.loads(err[err.index("{") :])["mcpServers"]["Me"]
    assert shown["command"] == sys.executable
    assert shown["args"] == [
        "-m",
        "dragoman",
        "mcp",
        f"{module}:agent",
        "--directory",
        str(Path.cwd()),
    ]


def test_in_a_pipe_nothing_is_shown(cli: Cli, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(server: Any) -> None:
        assert server.name == "tools"

    monkeypatch.setattr("dragoman.mcp.serve_stdio", serve)
    assert cli("mcp", module) == (0, "", "noise\n")


def test_the_help_shows_how(cli: Cli) -> None:
    code, out, _ = cli("mcp", "--help")
    assert code == 0
    assert "dragoman mcp myagent:agent --http" in out


def test_without_the_library_the_extra_is_named(
    cli: Cli, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dragoman.mcp.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    code, out, err = cli("mcp", f"{module}:agent")
    assert (code, out) == (3, "")
    assert "pip install '.[mcp]' in " in err
