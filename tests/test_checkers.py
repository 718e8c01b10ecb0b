"""What pyright and mypy, both strict, say of a user's program: mistakes are reported where they
are, and nothing else is."""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dragoman
from dragoman import Agent, Chat
from dragoman.testing import ScriptedModel

pytestmark = pytest.mark.anyio
SOURCE = Path(__file__).parents[1] / "src"

MISTAKES = """
from dataclasses import dataclass

from dragoman import Agent, Chat, RunOptions, Tool, ToolContext, tool


@dataclass
class Account:
    name: str


@tool
def greet(context: ToolContext[Account], word: str) -> str:
    return word + context.deps.name


@tool(timeout=3.0)
async def pay(context: ToolContext[Account], cents: int) -> str:
    return f"{cents} of {context.deps.name}"


@tool
def look(city: str) -> str:
    return city


@tool
def search(context: ToolContext, city: str) -> str:
    return city


def count(numbers: list[int]) -> int:
    return len(numbers)


bank = Agent[Account]("local", tools=[greet, pay, look, search, count, Tool("confirm")])
library = Agent("local", tools=[look, search, count])
options: RunOptions[Account] = {"deps": Account("Ada")}


async def right() -> None:
    ada = Account("Ada")
    await bank.send("x", deps=ada, tools=[greet, look, count])
    await bank.send("x", **options)
    bank.send_sync("x", deps=ada)
    bank.send_for_sync("x", int, deps=ada)
    await Chat(bank).send_for("x", int | str, deps=ada)
    async with bank.run("x", output_type=int, deps=ada) as run:
        await run.result()
    await library.send("x")


async def wrong() -> None:
    await bank.send("x", deps=3)  # mistake
    bank.send_sync("x", deps=3)  # mistake
    bank.send_stream("x", deps="Ada")  # mistake
    bank.run("x", deps=3)  # mistake
    bank.run("x", output_type=int, deps=3)  # mistake
    bank.send_for_sync("x", int, deps=3)  # mistake
    await Chat(bank).send("x", deps=3)  # mistake
    await Agent("local").send("x", deps=3)  # mistake
    Agent[int]("local", tools=[greet])  # mistake
    Agent[int]("local", tools=[look, pay])  # mistake
    await Agent[int]("local").send("x", tools=[greet])  # mistake
"""


def run_checker(name: str, program: Path) -> set[int]:
    """The lines in which a strict checker reports errors."""
    command: list[str | Path] = [sys.executable, "-m", name]
    if name == "mypy":
        command += ["--strict", "--follow-imports=silent", f"--cache-dir={os.devnull}"]
    else:
        command += ["--pythonpath", sys.executable]
    environment = os.environ | {"MYPYPATH": str(SOURCE)}
    checked = subprocess.run(
        [*command, program],
        capture_output=True,
        text=True,
        check=False,
        cwd=program.parent,
        env=environment,
    )
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
    return {
        int(line)
        for line in re.findall(r"program\.py:(\d+)(?::\d+)?(?: -|:) error", checked.stdout)
    }


@pytest.mark.slow
@pytest.mark.mend("4.3")
@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_wrong_deps_are_errors(checker: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("# pyright: strict" + MISTAKES)
    (tmp_path / "pyrightconfig.json").write_text(
        f'{{"extraPaths": ["{SOURCE}"], "pythonVersion": "3.11"}}'
    )

    mistakes = {
        number
        for number, line in enumerate(program.read_text().split("\n"), 1)
        if "# mistake" in line
    }

    assert run_checker(checker, program) == mistakes


def public_functions() -> list[tuple[str, str]]:
    """Module and name of each function that a package exports."""
    packages = [
        package.name for package in pkgutil.iter_modules(dragoman.__path__) if package.ispkg
    ]
    modules = [
        dragoman,
        *[importlib.import_module(f"dragoman.{name}") for name in packages if name != "cli"],
    ]
    return [
        (module.__name__, name)
        for module in modules
        for name in getattr(module, "__all__", ())
        if name[0].islower()
        and callable(value := getattr(module, name))
        and not isinstance(value, ModuleType)
    ]


@pytest.mark.slow
@pytest.mark.mend("4.1")
def test_mypy_takes_no_function_for_a_module(tmp_path: Path) -> None:
    """A module with the name of a function that its package exports is what mypy finds, where the
    packages import each other."""
    functions = public_functions()
    program = tmp_path / "program.py"
    start = "from collections.abc import Callable\ndef take(function: Callable[..., object]) -> None: ...\n"
    lines = [
        f"from {module} import {name} as f{place}; take(f{place})"
        for place, (module, name) in enumerate(functions)
    ]
    program.write_text(start + "\n".join(lines))

    assert ("dragoman", "tool") in functions
    assert run_checker("mypy", program) == set()


@pytest.mark.mend("4.3")
@pytest.mark.parametrize(
    "name", ["send", "send_sync", "send_stream", "send_events", "chat", "chat_stream"]
)
async def test_a_send_that_gives_text_takes_no_type(name: str) -> None:
    agent = Agent(ScriptedModel([]))
    how = {"output_type": int}

    with pytest.raises(
        TypeError, match=r"take no output_type; for a value of a type use send_for\(prompt, type\)"
    ):
        match name:
            case "send":
                await agent.send("x", **how)
            case "send_sync":
                agent.send_sync("x", **how)
            case "chat":
                await Chat(agent).send("x", **how)
            case "chat_stream":
                [chunk async for chunk in Chat(agent).send_stream("x", **how)]
            case _:
                [item async for item in getattr(agent, name)("x", **how)]
