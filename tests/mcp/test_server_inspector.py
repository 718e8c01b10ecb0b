"""Our MCP server, held against the MCP project's own inspector: over stdio and HTTP, in both eras.
`make service` installs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.aimock import node
from support.cli import SRC

pytestmark = pytest.mark.service

PROGRAM = (
    Path(__file__).parents[2]
    / ".cache/mcp-inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
)
SERVER = (sys.executable, "-m", "dragoman", "mcp", "served")
in_both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])

MODULE = '''
from typing import Annotated, Literal
from pydantic import BaseModel, Field
from dragoman import Agent, DataPart, tool
from dragoman.mcp import server
from dragoman.testing import ScriptedModel

class Point(BaseModel):
    x: float
    y: float = 0.0

@tool
def add(a: int, b: int) -> dict[str, int]:
    """Adds."""
    return {"sum": a + b}

@tool
def plot(points: list[Point], colour: Literal["red", "blue"] = "red", scale: Annotated[float, Field(gt=0)] = 1.0) -> DataPart:
    """Draws points."""
    return DataPart(b"\\x89PNG", "image/png")

@tool(requires_approval=True)
def drop(path: str) -> str:
    """Drops."""
    return "dropped"

agent = Agent(ScriptedModel(lambda request: "I am an agent."), tools=[add], display_name="me")
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    if not PROGRAM.is_file():
        pytest.skip("the inspector is not installed: run `make service`")
    (tmp_path / "served.py").write_text(MODULE)
    return tmp_path


def inspect(module: Path, era: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Runs the inspector → its exit code, and what it shows of the answer."""
    done = subprocess.run(
        [
            *node(),
            str(PROGRAM),
            "--cli",
            "--format",
            "json",
            "--quiet",
            "--protocol-era",
            era,
            *arguments,
        ],
        cwd=module,
        env={**os.environ, "PYTHONPATH": SRC, "HOME": str(module)},
        capture_output=True,
        timeout=50,
    )
    assert done.stdout, done.stderr.decode()
    return done.returncode, json.loads(done.stdout)["result"]


def call(
    module: Path, era: str, name: str, arguments: dict[str, Any], *server: str
) -> tuple[int, dict[str, Any]]:
    words = (
        "--method",
        "tools/call",
        "--tool-name",
        name,
        "--tool-args-json",
        json.dumps(arguments),
    )
    return inspect(module, era, *words, *(server or SERVER))


@in_both_eras
def test_schemas_are_such_that_clients_can_use_them(module: Path, era: str) -> None:
    code, result = inspect(module, era, "--method", "tools/list", "--strict", *SERVER)
    assert code == 0
    assert [one["name"] for one in result["tools"]] == ["add", "plot", "drop"]


@in_both_eras
def test_tools_and_agents_answer(module: Path, era: str) -> None:
    code, result = call(module, era, "add", {"a": 1, "b": 2})
    assert (code, result["structuredContent"], result["isError"]) == (0, {"sum": 3}, False)
    code, result = call(module, era, "plot", {"points": [{"x": 1}]})
    assert (code, result["content"][0]["type"]) == (0, "image")
    code, result = call(module, era, "drop", {"path": "a"})
    assert (code, result["isError"]) == (5, True)
    assert "approval of drop" in result["content"][0]["text"]
    code, result = call(module, era, "me", {"prompt": "Who?"}, *SERVER[:-1], "served:agent")
    assert (code, result["content"]) == (0, [{"type": "text", "text": "I am an agent."}])


@in_both_eras
def test_many_calls_at_once_are_all_answered(module: Path, era: str) -> None:
    words = ("--method", "tools/call", "--tool-name", "add", "--tool-args-json", '{"a": 1, "b": 2}')
    code, result = inspect(
        module, era, *words, "--load", "--load-requests", "200", "--load-concurrency", "20", *SERVER
    )
    assert (code, result["ok"]) == (0, 200)


@contextmanager
def over_http(module: Path, *arguments: str) -> Generator[str]:
    """A server → its URL."""
    environment = {**os.environ, "PYTHONPATH": SRC}
    with subprocess.Popen(
        [*SERVER, "--http", "--port", "0", *arguments],
        cwd=module,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            words = process.stderr.readline().split()
            yield next(word.rstrip(";") for word in words if word.startswith("http://"))
        finally:
            process.kill()


@in_both_eras
def test_over_http_with_a_token(module: Path, era: str) -> None:
    with over_http(module, "--token", "sesame") as url:
        header = ("--header", "Authorization: Bearer sesame")
        code, result = call(
            module,
            era,
            "add",
            {"a": 1, "b": 2},
            "--server-url",
            url,
            "--transport",
            "http",
            *header,
        )
    assert (code, result["structuredContent"]) == (0, {"sum": 3})
