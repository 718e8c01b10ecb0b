"""A conversation or a run as one HTML file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from dragoman import Agent, DataPart, Message, ThinkingPart, ToolCallPart, ToolResultPart, tool
from dragoman.cli.transcript import write_run, write_thread
from dragoman.message import Origin, Usage
from dragoman.runs import Runs, open_log
from dragoman.testing import ScriptedModel, call
from dragoman.timeline import read_timeline

HOSTILE = """</pre><script>alert(1)</script><img src=x onerror=alert(2)>"&' \u202etxt.exe"""
MESSAGES = [
    Message.user(HOSTILE, DataPart(b"\x89PNG", "image/png", HOSTILE)),
    Message.model(
        ThinkingPart(HOSTILE, native={"anthropic": {"signature": "c2ln"}}),
        ToolCallPart("c1", HOSTILE, {HOSTILE: HOSTILE}),
    ).replace(
        origin=Origin("anthropic", "https://api.anthropic.com", "claude-sonnet-4-6"),
        usage=Usage(input_tokens=1200, output_tokens=34, total_tokens=1234),
    ),
    Message.user(ToolResultPart("c1", "look", HOSTILE, is_error=True)),
    Message.model(HOSTILE),
]


class Tags(HTMLParser):
    """The tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_what_was_said_stays_text() -> None:
    page = write_thread(MESSAGES, HOSTILE)
    tags = Tags(page).found
    names = {tag for tag, _ in tags}
    assert not names & {"script", "iframe", "svg", "form", "link", "object"}
    images = [attributes for tag, attributes in tags if tag == "img"]
    assert [image["src"] for image in images] == ["data:image/png;base64,iVBORw=="]
    assert all(not name.startswith("on") for _, attributes in tags for name in attributes)
    assert "default-src 'none'" in page and "\u202e" not in page
    assert not re.search(r"(?:src|href)=.?https?:", page)


def test_a_thread_says_who_answered_and_for_how_much() -> None:
    page = write_thread(MESSAGES, "Trip")
    assert "anthropic:claude-sonnet-4-6, 1,200 tokens in, 34 out" in page
    assert "US dollars" in page and "thinking signed" in page
    assert page.count("<details") == 3 and 'class="fold bad"' in page


@pytest.mark.anyio
async def test_a_run_has_its_timeline() -> None:
    @tool
    def look(city: str) -> str:
        """Looks."""
        return f"{city}: rain"

    model = ScriptedModel([call("look", city="Oslo"), "It rains."])
    async with open_log("memory:") as log, Runs(log) as runs:
        run_id = await runs.start(Agent(model, tools=[look]), "Weather?")
        events = [event async for _, event in runs.attach(run_id)]
    page = write_run(read_timeline(events), [Message.user("Weather?")], "Run 1")
    assert "<table>" in page and "look" in page and "model call 1" in page
    assert re.search(r"\d\.\d\d s", page)


def test_commands_write_the_file(cli, tmp_path) -> None:  # type: ignore[no-untyped-def]
    store = f"sqlite:///{tmp_path / 'threads.db'}"
    assert cli("chat", "Hello", "--thread", "trip", "--store", store)[0] == 0
    code, out, _ = cli("threads", "show", "trip", "--html", "--store", store)
    assert code == 0
    assert out.startswith("<!doctype html>") and "You said: Hello" in out
