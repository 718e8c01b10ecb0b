"""The documents say what is: every Python block in them runs, and what they list is there.

A block is run as it stands, after those before it in the same document, with `DRAGOMAN_MODEL`, `local` and `anthropic`
answered by a server on this machine.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman import Provider, wires
from dragoman.providers import REGISTRY
from support import PROVIDER
from support_llm import Llm, obliging

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)")


def blocks(path: Path) -> list[str]:
    return [textwrap.dedent(found["code"]) for found in BLOCK.finditer(path.read_text())]


@pytest.fixture
def models(llm: Llm, monkeypatch: pytest.MonkeyPatch) -> Llm:
    """The server, to which `local` leads too."""
    llm.reply = obliging
    record: Provider = msgspec.structs.replace(PROVIDER, name="local", base_url=llm.url)
    monkeypatch.setattr(REGISTRY, "_own", {**REGISTRY._own, "local": lambda: record})
    monkeypatch.delenv("DRAGOMAN_MODEL")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    return llm


@pytest.mark.parametrize("path", [path for path in DOCUMENTS if blocks(path)], ids=lambda path: path.name)
def test_every_python_block_runs(path: Path, models: Llm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wires, "_REGISTERED", {})
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks(path):
        exec(compile(code, str(path), "exec", dont_inherit=True), names)


def test_the_readme_shows_tools_types_and_a_change_of_provider(models: Llm, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks(ROOT / "README.md"):
        exec(compile(code, "README.md", "exec", dont_inherit=True), names)
    results = [result for request in models.requests for message in request.messages for result in message.tool_results]
    assert "light rain" in results[0].result
    assert "Gladly." in capsys.readouterr().out
    assert any(request.output_schema for request in models.requests)
    switched = models.requests[-1]
    assert switched.model.startswith("claude")
    assert [message.text for message in switched.messages] == ["My name is Ada.", "Gladly.", "What is my name?"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target in LINK.findall(path.read_text()):
        assert (path.parent / target).exists(), target


def ours() -> list[str]:
    """The names in the second column of the tables of docs/seeds.md."""
    cells = re.findall(r"^\|.*?\| (.*) \|$", (ROOT / "docs" / "seeds.md").read_text(), re.MULTILINE)
    return re.findall(r"`((?:[A-Z][a-z]|[a-z_]+\.)[\w.]*)`", " ".join(cells))


def test_every_name_of_ours_in_the_map_of_the_seeds_exists() -> None:
    names = ours()
    assert len(names) > 60
    for name in names:
        found, path = dragoman, []
        for step in name.split("."):
            path.append(step)
            with suppress(ModuleNotFoundError):
                import_module(".".join(["dragoman", *path]))
            found = getattr(found, step, None) or _field(found, step)
            assert found is not None, name


def _field(kind: Any, name: str) -> Any:
    """An attribute that a class's instances have."""
    return name if name in vars(kind).get("__annotations__", {}) or f"self.{name}" in inspect.getsource(kind) else None
