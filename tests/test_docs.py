"""The documents say what is: every Python block in them runs, and what they list is there; a user
of the wheel has them alone.

A block is run as it stands, after those before it in the same document, with `DRAGOMAN_MODEL`,
`local` and `anthropic` answered by a server on this machine.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import runpy
import textwrap
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pages import endpoints, seed_mapping
from pages.fields import fields, markdown, records

import dragoman
from dragoman import Provider, testing, wires
from dragoman.prompt import RunOptions
from dragoman.providers import REGISTRY
from support.llm_server import Llm, obliging
from support.model import PROVIDER

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(
    r"^(?P<indent> *)```python\n(?P<code>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)(?:#([^)]*))?\)")


def blocks(path: Path) -> list[str]:
    return [textwrap.dedent(found["code"]) for found in BLOCK.finditer(path.read_text())]


def anchors(path: Path) -> set[str]:
    """What a link can point to within a document: its headings, as they are shown on the web."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture
def models(llm: Llm, monkeypatch: pytest.MonkeyPatch) -> Llm:
    """The server, to which `local` leads too."""
    llm.reply = obliging
    record: Provider = msgspec.structs.replace(PROVIDER, name="local", base_url=llm.url)
    monkeypatch.setattr(REGISTRY, "_own", {**REGISTRY._own, "local": lambda: record})
    monkeypatch.delenv("DRAGOMAN_MODEL")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    return llm


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if blocks(path)], ids=lambda path: path.name
)
@pytest.mark.slow
def test_every_python_block_runs(
    path: Path, models: Llm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(wires, "_REGISTERED", {})
    # What a page writes stays here.
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks(path):
        exec(compile(code, str(path), "exec", dont_inherit=True), names)


def test_the_readme_shows_tools_types_and_a_change_of_provider(
    models: Llm, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks(ROOT / "README.md"):
        exec(compile(code, "README.md", "exec", dont_inherit=True), names)
    results = [
        result
        for request in models.requests
        for message in request.messages
        for result in message.tool_results
    ]
    assert "light rain" in results[0].result
    assert "Gladly." in capsys.readouterr().out
    assert any(request.output_schema for request in models.requests)
    switched = models.requests[-1]
    assert switched.model.startswith("claude")
    assert [message.text for message in switched.messages] == [
        "My name is Ada.",
        "Gladly.",
        "What is my name?",
    ]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    for target, anchor in LINK.findall(CODE.sub("", path.read_text())):
        assert (path.parent / target).exists(), target
        assert not anchor or anchor in anchors(path.parent / target), (target, anchor)


def test_the_index_leads_to_every_page_and_the_readme_to_the_index() -> None:
    assert ("docs/index.md", "") in LINK.findall((ROOT / "README.md").read_text())
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target, _ in LINK.findall(index.read_text())}
    pages = {*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "guides").glob("*.md")} - {index}
    assert pages <= linked


def test_the_readme_is_read_in_two_minutes() -> None:
    text = (ROOT / "README.md").read_text()
    assert text.count("\n") <= 120
    assert len(CODE.sub("", text).split()) < 600


SHOWN = re.findall(r"`(\w+\.py)`", (ROOT / "README.md").read_text())


@pytest.mark.parametrize("name", SHOWN)
@pytest.mark.slow
def test_the_examples_that_the_readme_names_run(
    name: str, models: Llm, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "none")
    monkeypatch.setattr("sys.argv", [name, *([models.url] if name == "own_provider.py" else [])])
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_each_program_of_the_readme_is_an_example() -> None:
    assert len(SHOWN) == len(blocks(ROOT / "README.md"))


def test_the_example_of_an_mcp_server_runs(models: Llm, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples" / "mcp_server.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines()[2:] == [
        "{'words': 3}",
        "1: calls count_words",
        "2: Gladly.",
        "Gladly.",
    ]


@pytest.mark.parametrize("name", ["debug_streaming_tool_calls", "debug_tool_accumulation"])
def test_seed_003_the_debug_examples_run(
    name: str, models: Llm, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    shown = capsys.readouterr().out
    if name == "debug_streaming_tool_calls":
        assert re.findall(r"PartFinished +(\w+)", shown) == [
            "TextPart",
            "ToolCallPart",
            "ToolResultPart",
            "TextPart",
        ]
    else:
        deltas = [
            ast.literal_eval(delta) for delta in re.findall(r"^  \+ (.*)$", shown, re.MULTILINE)
        ]
        assert len(deltas) > 3 and json.loads("".join(deltas))["restaurant"] == "Oslo"
        assert shown.endswith("1 calls, each as its pieces say\n")


def test_the_readme_of_the_wheel_links_to_nothing_that_is_not_there() -> None:
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    core = ProjectMetadata(str(ROOT), PluginManager()).core
    assert LINK.search((ROOT / "README.md").read_text())
    assert LINK.findall(core.readme) == []
    assert "[Documentation]" not in core.readme and "Documentation" in core.readme
    assert "![" not in core.readme, "a picture that the wheel does not hold"
    assert "protocol" not in core.description


def test_no_document_sends_its_reader_into_the_source() -> None:
    """A user of the wheel has no repository (decisions are for those who have)."""
    sources = re.compile(r"`(?:src/)?dragoman/[\w/]+(?:\.py)?`")
    for path in DOCUMENTS:
        if path.name not in ("decisions.md", "CHANGELOG.md"):
            assert not sources.findall(path.read_text()), path


def test_the_documented_endpoints_are_those_of_the_wires() -> None:
    assert (ROOT / "docs" / "endpoints.md").read_text() == endpoints.markdown(), "make pages"


def test_the_documented_mapping_of_protocols_is_what_the_wires_do() -> None:
    assert (ROOT / "docs" / "formats" / "a2a-mapping.md").read_text() == seed_mapping.markdown(), (
        "make pages"
    )


def test_the_documented_fields_are_those_of_the_source() -> None:
    written = (ROOT / "docs" / "fields.md").read_text()
    assert written == markdown(), "make pages"
    assert (ROOT / "docs" / "records.md").read_text() == records(), "make pages"
    told = {field.name: field for field in fields(Provider)}
    assert list(told) == list(Provider.__struct_fields__)
    assert told["wire"].default is None
    assert told["key_prefix"].default == "'Bearer '"
    assert told["models_path"].meaning.startswith("The path of the list of models")
    for wire in wires.names("model"):
        record = import_module(f"dragoman.wires.{wire}").Quirks
        assert [field.name for field in fields(record)] == list(record.__struct_fields__)
        assert all(field.meaning for field in fields(record))


def test_the_documented_arguments_of_a_send_are_all() -> None:
    section = (ROOT / "docs" / "api.md").read_text().partition("### Sending")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)=` \|", section, re.MULTILINE) == list(RunOptions.__annotations__)


@pytest.mark.slow
def test_the_documented_wire_does_all_that_is_asked_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wires, "_REGISTERED", {})
    names: dict[str, Any] = {"__name__": "__main__"}
    for code in blocks(ROOT / "docs" / "wires.md"):
        exec(compile(code, "wires.md", "exec", dont_inherit=True), names)
    found = {
        finding.check: finding for finding in testing.run_checks(testing.wire_checks("acme_lines"))
    }
    left = {name: finding.details for name, finding in found.items() if finding.outcome != "passed"}
    without = {
        "memory_changes_nothing",
        "recordings_of_answers_are_read",
        "recordings_of_requests_return",
    }
    assert set(left) == without, left
    documented = set(
        re.findall(r"`(?:\w+\.)?(?:dump|load)_\w+`", (ROOT / "docs" / "wires.md").read_text())
    )
    assert documented >= {
        f"`{name}`" for name in dir(wires.Wire) if name.startswith(("load_", "dump_"))
    }


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
    return (
        name
        if name in vars(kind).get("__annotations__", {})
        or f"self.{name}" in inspect.getsource(kind)
        else None
    )
