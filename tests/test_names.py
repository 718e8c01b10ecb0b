"""The public names are the documented ones, in the package and in each of its modules."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman import errors

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "dragoman").rglob("*.py"))
LOADED = {
    "model_profile",
    "capability",
    "content",
    "content_figures",
    "cost",
    "error_json",
    "errors",
    "event",
    "figure",
    "fold",
    "interrupt",
    "json_bytes",
    "logs",
    "loss",
    "message",
    "pending_text",
    "repair",
    "request",
    "result",
    "runtime",
    "visible_text",
}
"""The modules of dragoman that `import dragoman` may load: values, and the functions on them."""


def documented() -> list[str]:
    text, _, _ = (ROOT / "docs" / "api.md").read_text().partition("## In modules of their own")
    return re.findall(r"^\| `(\w+)` \| \S", text, re.MULTILINE)


def test_the_public_names_are_the_documented_ones() -> None:
    assert sorted(documented()) == sorted(dragoman.__all__)
    assert len(dragoman.__all__) <= 80


def test_every_public_name_is_there_and_documented_in_the_code() -> None:
    for name in dragoman.__all__:
        assert name == "Event" or getattr(dragoman, name).__doc__, name
    assert set(dir(dragoman)) >= set(dragoman.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = dragoman.nonsense


def test_the_documented_tree_of_errors_is_the_real_one() -> None:
    lines = re.findall(
        r"^([│ ├└─]*)(\w+Error)\b", (ROOT / "docs" / "errors.md").read_text(), re.MULTILINE
    )
    tree: list[tuple[int, str]] = []
    parents: dict[str, str | None] = {}
    for indent, name in lines:
        depth = len(indent)
        while tree and tree[-1][0] >= depth:
            tree.pop()
        parents[name] = tree[-1][1] if tree else None
        tree.append((depth, name))
    classes = [name for name in errors.__all__ if name.endswith("Error")]
    assert set(parents) == set(classes)
    real = {name: getattr(errors, name).__base__.__name__ for name in classes}
    assert parents == {**real, "DragomanError": None}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
@pytest.mark.slow
def test_every_module_says_what_it_is_and_what_is_public_in_it(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    names = {
        target.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    assert "__all__" in names
    assert len(path.read_text().splitlines()) <= 500


def test_importing_dragoman_loads_the_values_and_what_works_on_them() -> None:
    script = "import sys; import dragoman; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )
    loaded = done.stdout.split()
    assert {name.partition(".")[2] for name in loaded if name.startswith("dragoman.")} <= LOADED
    assert not {"asyncio", "ssl", "http.client"} & set(loaded)
