"""What a strict type checker sees of the names that people call."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "dragoman"

PROGRAM = """
from typing import Unpack

from dragoman import Agent, Chat, RunOptions, ToolContext, tool

agent = Agent("openai")
reveal_type(agent)
reveal_type(Agent[int]("openai"))


async def ask(prompt: str, **how: Unpack[RunOptions]) -> None:
    reveal_type((await agent.send_for(prompt, int | str, **how)).output)
    reveal_type((await agent.send_for(prompt, list[int])).output)
    reveal_type(agent.send_for_sync(prompt, dict[str, int] | None).output)
    reveal_type((await Chat(agent).send_for(prompt, int | None)).output)
    reveal_type((await agent.send(prompt)).output)
    async with agent.run(prompt, output_type=int | str) as run:
        reveal_type((await run.result()).output)
    async with agent.run(prompt) as plain:
        reveal_type((await plain.result()).output)


@tool
def look(context: ToolContext, x: int) -> str:
    return str(x)
"""
TYPES = [
    "Agent[None]",
    "Agent[int]",
    "int | str",
    "list[int]",
    "dict[str, int] | None",
    "int | None",
    "str",
    "int | str",
    "str",
]


@pytest.mark.slow
def test_types_of_the_names_that_people_call(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("# pyright: strict\n" + PROGRAM)
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert re.findall(r'is "(.*)"$', run.stdout, re.MULTILINE) == TYPES, run.stdout
    assert "0 errors" in run.stdout, run.stdout


MODULES = ["__init__", "agent", "arguments", "chat", "limits", "output", "prompt", "request", "result", "run"]
FILES = [
    *[SOURCE / f"{name}.py" for name in MODULES],
    *sorted((SOURCE / "tools").glob("*.py")),
    *sorted((SOURCE / "orchestration").glob("*.py")),
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_docstring_that_a_user_sees_cites_a_rule(path: Path) -> None:
    texts = [
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert not [text for text in texts if re.search(r"\b(D-\d|M-\d|decision \d|seed 00)", text)]


@pytest.mark.parametrize("name", ["Settings", "Limits", "ChatResult", "ModelInfo"])
def test_every_field_has_its_docstring(name: str) -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and node.name == name:
                fields = [n for n, each in enumerate(node.body) if isinstance(each, ast.AnnAssign)]
                assert fields
                for n in fields:
                    following = node.body[n + 1] if n + 1 < len(node.body) else None
                    documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
                    assert documented, ast.unparse(node.body[n])
                return
    raise AssertionError(name)
