"""The law of formats over what LangChain, pydantic-ai and the OpenAI Agents SDK write themselves.
`make service` installs them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import formats
from support.law import broken

HERE = Path(__file__).resolve().parent
SCRIPTS = {
    "langchain": "langchain/library.py",
    "pydantic_ai": "pydantic_ai/library.py",
    "openai_agents": "openai_agents/sdk.py",
}
pytestmark = pytest.mark.service


def conversations(name: str) -> list[Any]:
    """What the library writes."""
    python = HERE.parents[1] / ".cache" / name / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{name} is not installed: run `make service`")
    ran = subprocess.run(
        [python, HERE / SCRIPTS[name], "write"],
        input="null",
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    found = json.loads(ran.stdout)
    return [*found.values()] if isinstance(found, dict) else found


@pytest.mark.parametrize("first", SCRIPTS)
def test_what_a_library_wrote_survives(first: str) -> None:
    found = conversations(first)
    assert len(found) >= 6
    for payload in found:
        messages = formats.get(first).load_messages(payload)
        for then in formats.names():
            assert broken(messages, first, then) == []
