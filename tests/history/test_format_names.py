"""Histories and the ground name no format: a format says in its own record which of its fields hold
what they go by."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dragoman
from dragoman import formats
from dragoman.wires.ai_sdk_messages.notes import NAME as FAMILY

ROOT = Path(dragoman.__file__).parent
GROUND = (
    "capability", "errors", "error_json", "event", "fold", "halves", "inner_runs", "interrupt", "json_bytes", "json_patch",
    "limits", "logs", "loss", "message", "repair", "request", "result", "run_request", "saved", "stored",
)  # fmt: skip
FIELDS = ("mastra", "previous_response_id", "regenerate-message", "threadId", "toolCallId")
"""Fields, and values of fields, that are formats' own."""
NAMES = {*formats.names(), FAMILY, *FIELDS} - {"dragoman"}


def modules() -> list[Path]:
    ground = [ROOT / f"{name}.py" for name in GROUND if (ROOT / f"{name}.py").exists()]
    return [*sorted((ROOT / "history").glob("*.py")), *ground]


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The texts of a module that are no documentation, and the names that it imports."""
    tree = ast.parse(source)
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in documentation:
            yield node.lineno, str(node.value)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def test_the_walk_sees_names() -> None:
    source = '"""openai_chat"""\nfrom dragoman.wires.anthropic import x\ny = {"ai_sdk": 1}\n'
    assert [text for _, text in texts(source)] == ["dragoman.wires.anthropic", "ai_sdk", "1"]
    assert {"ai_sdk", "mastra_v2", "openai_responses"} <= NAMES
    assert len(modules()) > len(GROUND) / 2


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.name)
def test_no_format_is_named(path: Path) -> None:
    named = {
        (line, name)
        for line, text in texts(path.read_text())
        for name in NAMES
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
    }
    assert not named
