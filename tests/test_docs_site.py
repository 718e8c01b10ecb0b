"""The site of the documentation: its reference is whole, each page has its place, and the skill for
coding agents runs."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from docs_site import reference
from docs_site.__main__ import main as build_site

import dragoman
from dragoman import Agent, ChatResult, Message

ROOT = Path(__file__).parents[1]
SITE = ROOT / "scripts" / "docs_site"
SKILL = ROOT / "src" / "dragoman" / ".agents" / "skills" / "dragoman" / "SKILL.md"


def test_every_page_is_in_a_section() -> None:
    listed = set(re.findall(r"([\w/-]+\.md)$", (SITE / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    formats = {page for page in pages if page.startswith("formats/")}
    assert pages - formats <= listed
    assert listed - pages == {"start.md", "reference/index.md"}


def test_the_reference_has_every_argument_and_field() -> None:
    pages = reference.pages()
    agents, messages = pages["reference/agents"], pages["reference/messages"]
    arguments = set(Agent.__init__.__annotations__) - {"return", "unknown"}
    assert len(arguments) > 25
    for name in arguments:
        assert re.search(rf"^\| `{name}` \|.*\| \w.* \|$", agents, re.MULTILINE), name
    for record, page in ((ChatResult, agents), (Message, messages)):
        for field in record.__struct_fields__:
            assert re.search(rf"^\| `{field}` \|.*\| \w?.* \|$", page, re.MULTILINE), field


def test_the_reference_has_every_event() -> None:
    events = pages = reference.pages()["reference/events"]
    for name in ("RunStarted", "PartDelta", "MessageDropped", "ToolStarted", "RunError"):
        assert f"## `{name}`" in events, pages


def test_the_names_of_the_reference_are_there() -> None:
    for _, members in reference.GROUPS.values():
        for module, names in members.items():
            for name in names:
                assert hasattr(importlib.import_module(module), name), (module, name)


def test_the_skills_programs_run(monkeypatch: Any) -> None:
    text = SKILL.read_text()
    assert text.startswith("---\nname: dragoman\n")
    programs = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(programs) == 3
    for program in programs[1:]:
        exec(compile(program, "SKILL.md", "exec", dont_inherit=True), {})
    compile(programs[0], "SKILL.md", "exec")
    assert dragoman.Agent is Agent


@pytest.mark.service
def test_the_site_is_built_without_a_dead_link(tmp_path: Path) -> None:
    mkdocs = ROOT / ".cache" / "docs" / "bin" / "mkdocs"
    if not mkdocs.exists():
        pytest.skip("mkdocs is not installed (make docs installs it)")
    site = tmp_path / "site"
    assert build_site(site, str(mkdocs)) == 0
    page = (site / "html" / "reference" / "agents.html").read_text()
    assert "approval_key" in page and "https://fonts" not in page
    assert "guides/fine-tuning.html" in (site / "html" / "llms.txt").read_text()
