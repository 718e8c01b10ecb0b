"""What a strict type checker sees of the names that people call."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

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


FILES = sorted(SOURCE.rglob("*.py"))
RULE = re.compile(r"\b([DM]-\d|decisions? \d|rules? \d|seeds? 00\d)")
FIELDS = {"Struct", "TypedDict", "NamedTuple", "TextPart", "Tool"}


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in FILES:
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text())


def is_docstring(node: ast.AST | None) -> TypeGuard[ast.Expr]:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@pytest.mark.slow
def test_no_docstring_cites_a_rule() -> None:
    """Users have no list of rules; comments and tests may name them."""
    cited = [
        (name, ast.unparse(node))
        for name, tree in trees()
        for node in ast.walk(tree)
        if is_docstring(node) and RULE.search(ast.unparse(node))
    ]
    assert not cited


@pytest.mark.slow
def test_every_public_field_has_its_docstring() -> None:
    """Of structs, dataclasses and typed dictionaries outside the wires, whose records have tests of
    their own; `native` is told once, where its type is."""
    found, bare = 0, list[str]()
    for name, tree in trees():
        for node in tree.body if not name.startswith("wires") else []:
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if FIELDS & {
                re.split(r"\W", ast.unparse(base).removeprefix("msgspec."))[0]
                for base in node.bases
            } or ("dataclass" in "".join(map(ast.unparse, node.decorator_list))):
                for field, following in zip(node.body, [*node.body[1:], None], strict=True):
                    if (
                        isinstance(field, ast.AnnAssign)
                        and ast.unparse(field.annotation) != "Native"
                    ):
                        found += 1
                        if not is_docstring(following):
                            bare.append(f"{name}: {node.name}.{ast.unparse(field.target)}")
    assert found > 200
    assert not bare
