"""Plug-ins of the command line (issue 30, 4): tools, loaders and commands of other distributions."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import TextPart, ToolSpec
from support.cli import one_line
from support.llm_server import Llm
from support.plug_ins import Install, installer

GOOD = '''
import typer
from dragoman import DataPart, tool
from dragoman.cli.plugins import Plugin

app = typer.Typer()


@app.command()
def hello(name: str) -> None:
    """Greets."""
    print(f"Hello {name}")


@app.command()
def bye() -> None:
    """Leaves."""


def clock() -> str:
    """Tells the time."""
    return "noon"


def load_pages(rest: str):
    if rest == "boom":
        raise RuntimeError("no such\\npages")
    return [f"page {rest}", DataPart(b"x", "image/png")]


PLUGIN = Plugin(
    tools=[clock],
    template_loaders={"gh": lambda rest: f'prompt = "{rest}: $input"' if rest != "evil" else 'tools = ["clock"]'},
    fragment_loaders={"pages": load_pages},
    commands=app,
)
sys = __import__("sys")
sys.modules[__name__] = PLUGIN
'''


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    yield from installer("dragoman.plugins", "cli_plug_", tmp_path, monkeypatch)


@pytest.fixture
def good(install: Install) -> None:
    install("greeter", GOOD, "cli_plug_good")


def test_a_tool_by_its_name(cli, llm: Llm, good: None) -> None:
    assert cli("x", "-T", "clock")[0] == 0
    assert [tool.name for tool in llm.requests[0].tools if isinstance(tool, ToolSpec)] == ["clock"]
    assert cli("tools", "list")[1] == "clock(): Tells the time.\n"


def test_fragments_and_templates_by_prefix(cli, llm: Llm, good: None) -> None:
    cli("x", "-f", "pages:7", "-t", "gh:me")
    page, picture, prompt = llm.requests[0].messages[-1].content
    assert (page, prompt) == (TextPart("page 7"), TextPart("me: x"))
    assert picture.mime_type == "image/png"
    code, _, err = cli("x", "-f", "pages:boom")
    assert code == 2
    assert one_line(err, "pages:boom: RuntimeError: no such pages")
    # What comes from elsewhere may not name code of this machine.
    code, _, err = cli("x", "-t", "gh:evil")
    assert code == 2
    assert one_line(err, "gh:evil", "(tools)")
    assert len(llm.requests) == 1


def test_its_commands_are_below_its_name(cli, good: None) -> None:
    assert cli("greeter", "hello", "Ada") == (0, "Hello Ada\n", "")
    assert "Greets." in cli("greeter", "--help")[1]


def test_they_are_listed(cli, good: None, install: Install) -> None:
    install("broken", "1 / 0", "cli_plug_broken")
    install("other", "PLUGIN = 5", "cli_plug_other")
    code, out, err = cli("plugins", "list")
    assert code == 0
    assert (
        "greeter (cli_plug_good 1.0): tool clock, templates gh:, fragments pages:, "
        "commands dragoman greeter\n" in out
    )
    assert "broken (cli_plug_broken 1.0): cannot be loaded\n" in out
    assert [line.partition(":")[0] for line in err.splitlines()] == ["warning", "warning"]
    assert "ZeroDivisionError" in err
    assert "is no dragoman.cli.plugins.Plugin" in err


@pytest.mark.parametrize(
    "code", ["1 / 0", "import sys; sys.exit(9)", "import nowhere_at_all", "def"]
)
def test_one_that_raises_is_named_and_the_rest_goes_on(
    cli, llm: Llm, good: None, install: Install, code: str
) -> None:
    install("broken", code, "cli_plug_broken")
    exit_code, out, err = cli("x", "-T", "clock")
    assert (exit_code, out) == (0, "You said: x\n")
    assert err.startswith("warning: plug-in 'broken' of cli_plug_broken")
    assert err.count("\n") == 1
    # Who wants none of it does not load it.
    assert cli("x") == (0, "You said: x\n", "")


def test_they_can_be_switched_off(cli, good: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for names, there in {
        "": False,
        "other": False,
        "greeter": True,
        "a, cli_plug_good": True,
    }.items():
        monkeypatch.setenv("DRAGOMAN_LOAD_PLUGINS", names)
        assert ("greeter" in cli("plugins", "list")[1]) is there
        assert (cli("x", "-T", "clock")[0] == 0) is there


def test_none_is_loaded_without_need(cli, good: None) -> None:
    for arguments in (("--version",), ("--help",), ("chat", "--help"), ("a prompt of words",)):
        cli(*arguments)
        assert "cli_plug_good" not in sys.modules
