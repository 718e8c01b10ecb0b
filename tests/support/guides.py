"""Programs that guides show, run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.javascript import installed, with_installed, with_openai

__all__ = ["GUIDE_KEY", "Program", "built", "output", "programs", "python_blocks", "read"]

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
GUIDE_KEY = "a-key-that-nobody-guesses"
"""What `$KEY` is to programs."""
_AT = "http://127.0.0.1:8000"
"""Where servers are in guides."""
_PROGRAM = re.compile(
    r"^```(sh|py|js)\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL
)
_HOMES = {"@a2a-js/sdk": "clients", '"ai"': "clients", "@ag-ui/client": "ag_ui"}
"""A package that a program imports → under which name `make service` installs it."""


class Program(NamedTuple):
    """A program of a guide."""

    language: str
    """`sh`, `py` or `js`."""
    code: str
    printed: str
    """What the guide says that it prints; empty: it does not say."""


def read(guide: str) -> str:
    """The text of a guide."""
    return (GUIDES / guide).read_text("utf-8")


def programs(guide: str) -> list[Program]:
    """The programs that talk to a server, in their order."""
    return [Program(*found) for found in _PROGRAM.findall(read(guide))]


def python_blocks(guide: str) -> list[str]:
    """The blocks that make the server."""
    return re.findall(r"^```python\n(.*?)^```$", read(guide), re.MULTILINE | re.DOTALL)


def built(code: str, model: Any, *replaced: tuple[str, str]) -> dict[str, Any]:
    """The names that a block makes, with this model in the place of the embedded one."""
    for old, new in replaced:
        assert old in code, old
        code = code.replace(old, new)
    names: dict[str, Any] = {"MODEL": model}
    exec(compile(code.replace('"local"', "MODEL"), "guide", "exec", dont_inherit=True), names)
    return names


def output(program: Program, url: str, folder: Path, *replaced: tuple[str, str]) -> str:
    """What a program prints whose server is at this URL. Skips a test whose packages are not
    installed."""
    code = program.code.replace(_AT, url)
    for old, new in replaced:
        code = code.replace(old, new)
    command = {"sh": ["sh", "-c"], "py": [sys.executable, "-c"], "js": ["node"]}[program.language]
    if program.language == "js":
        code = str(_with_packages(folder, code))
    environment = {**os.environ, "KEY": GUIDE_KEY}
    done = subprocess.run(
        [*command, code], capture_output=True, timeout=50, env=environment, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _with_packages(folder: Path, code: str) -> Path:
    home = next((home for package, home in _HOMES.items() if package in code), None)
    if home is None:
        return with_openai(folder, code)
    if not installed(home):
        pytest.skip(f"the packages of {home} are not installed: make service")
    return with_installed(folder, code, home)
