"""Pages that say of something that it is missing are held to the code: it must not be there."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import dragoman

DOCS = Path(__file__).parents[1] / "docs"
MISSING = re.compile(r"^\|(?P<theirs>.*?)\| (?:later|nothing|none)\b(?P<rest>.*)\|$", re.MULTILINE)
THERE = {
    "proxy": "serve.Gateway",
    "mcp": "mcp.mcp",
    "memory": "Memory",
    "checkpointer": "Memory",
    "hooks": "Hooks",
    "cache": "model.cache",
    "fallbacks": "fallback",
    "embeddings": "embeddings.similarity",
    "handoffs": "handoff",
    "mastramemory": "Memory",
    "mastramessagev2": "formats.mastra_v2",
    "coremessage": "formats.ai_sdk_model",
    "uimessage": "formats.ai_sdk_ui",
}
"""What others call things, and where they are here."""
QUALIFIED = {"working memory"}
"""What is missing although one of its words is not."""


def names_of_ours() -> set[str]:
    """Public names, and those of their methods, without case and underscores."""
    packages = [
        package.name for package in pkgutil.iter_modules(dragoman.__path__) if package.ispkg
    ]
    modules = [dragoman, *[import_module(f"dragoman.{name}") for name in packages if name != "cli"]]
    names = {name for module in modules for name in getattr(module, "__all__", ())}
    for owner in (dragoman.MessageList, dragoman.Memory, dragoman.Agent):
        names |= {name for name in dir(owner) if not name.startswith("_")}
    return {name.replace("_", "").lower() for name in names}


def present(page: str) -> list[str]:
    """What a text says is missing, and is there."""
    ours = names_of_ours()
    words = list[str]()
    for row in MISSING.finditer(page):
        theirs = row["theirs"].lower()
        for phrase in QUALIFIED:
            theirs = theirs.replace(phrase, "")
        names = [
            name.split("(")[0].split(".")[-1] for name in re.findall(r"`(\w[^`]*)`", row["theirs"])
        ]
        words += [name for name in names if name.lower() in ours]
        words += [word for word in re.findall(r"\w+", theirs) if word in THERE]
    return words


@pytest.mark.mend("3.9")
@pytest.mark.parametrize("page", ["seeds.md", "guides/coming-from.md"])
def test_what_a_page_calls_missing_is_not_there(page: str) -> None:
    text = (DOCS / page).read_text()

    assert MISSING.search(text)
    assert present(text) == []


@pytest.mark.mend("3.9")
def test_the_check_finds_what_the_pages_said_wrongly() -> None:
    before = "| `MessageList`, `toUIMessages` | later |\n| graphs, MCP, evals | nothing |\n| the proxy | nothing |\n"

    assert present(before) == ["MessageList", "toUIMessages", "mcp", "proxy"]


@pytest.mark.mend("3.9")
def test_what_the_check_takes_as_there_is_there() -> None:
    for path in THERE.values():
        value: object = dragoman
        *folders, name = path.split(".")
        value = import_module(".".join(["dragoman", *folders]))
        assert hasattr(value, name) or import_module(f"dragoman.{path}"), path
