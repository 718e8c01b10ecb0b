"""Pictures of values in notebooks and on `rich` consoles: everything is escaped, and of any size."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from IPython.core.formatters import DisplayFormatter
from rich.console import Console

from dragoman import (
    Agent,
    ChatResult,
    DataPart,
    FilePart,
    Interrupt,
    LinkPart,
    MarkPart,
    Message,
    MessageList,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.loss import Loss
from dragoman.message import Origin, Usage
from dragoman.testing import ScriptedModel

HOSTILE = """</pre></details><script>alert(1)</script><img src=x onerror=alert(2)>"&' [x](javascript:alert(3)) [red]x[/red] \u202etxt.exe\x1b]0;evil\x07"""
PNG = b"\x89PNG" + b"0" * 100
SECRET = "signature-of-nobody"
TAGS = {"style", "div", "section", "details", "summary", "pre", "b", "p", "img"}


class Page(HTMLParser):
    """Tags and text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def check_harmless(html: str) -> Page:
    """Asserts that nothing in HTML can act, and returns what it has."""
    page = Page(html)
    assert page.open == []
    assert {tag for tag, _ in page.tags} <= TAGS
    for _, attributes in page.tags:
        assert set(attributes) <= {"class", "alt", "src"}
        assert re.match(
            r"data:image/(png|jpeg|gif|webp);base64,",
            attributes.get("src") or "data:image/png;base64,",
        )
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", html)
    return page


def print_rich(value: object) -> str:
    """What `rich` prints of a value on a terminal."""
    stream = StringIO()
    Console(file=stream, width=100, force_terminal=True, color_system=None).print(value)
    return stream.getvalue()


def every_piece(text: str) -> Message:
    return Message.model(
        TextPart(text),
        ThinkingPart(text or "?", native={"anthropic": {"signature": SECRET}}),
        ToolCallPart(text, text, {text: [text, None]}, native={"openai": {"id": SECRET}}),
        ToolResultPart("c", text, {text: text}, is_error=True),
        ToolResultPart("c", text, [TextPart(text), DataPart(PNG, "image/png", text)]),
        DataPart(b"%PDF", text or "a/b", text),
        LinkPart(f"javascript:{text}", "image/png"),
        FilePart(text, "openai", name=text),
        ProviderPart(text, {"openai": {"encrypted": SECRET}}),
        MarkPart(text, {"ai_sdk": {"x": SECRET}}),
    ).replace(origin=Origin(text or "p", SECRET, text), usage=Usage(input_tokens=5))


def values_of(text: str) -> list[Any]:
    message = every_piece(text)
    pending = Interrupt(
        "i", "approval", ToolCallPart("c", text, {"a": text}), text, signature=SECRET
    )
    result = ChatResult(
        text,
        (Message.user(text), message),
        pending=(pending,),
        losses=(Loss(0, None, "setting", text, text),),
    )
    return [message, result, MessageList([Message.user("?" + text), message])]


@given(
    st.text(min_size=1, max_size=60)
    | st.sampled_from([HOSTILE, "\ud800", "<", "&amp;", "]]>", "-->"])
)
def test_no_text_acts_in_a_notebook_or_on_a_console(text: str) -> None:
    message = every_piece(text)
    page = check_harmless(message._repr_html_())
    assert SECRET not in page.text + str(page.tags)
    lines = print_rich(message)
    # What `rich` itself writes on this console are texts and line ends.
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", lines
    )
    assert SECRET not in lines


@pytest.mark.parametrize("number", range(3))
def test_hostile_names_stay_text_everywhere(number: int) -> None:
    value = values_of(HOSTILE)[number]
    page = check_harmless(value._repr_html_())
    assert "<script>alert(1)</script>" in page.text
    assert "[red]x[/red]" in print_rich(value)
    assert SECRET not in page.text + print_rich(value)


def test_notebooks_get_html_and_a_short_text() -> None:
    formatter = DisplayFormatter()
    formatter.active_types = ["text/plain", "text/html"]
    plan = MessageList([every_piece("x")]).plan("ollama")
    run = Agent(ScriptedModel(["Hi."])).run("Hello")
    for value in (*values_of("Rain & sun"), plan, run):
        bundle, _ = formatter.format(value)
        check_harmless(bundle["text/html"])
        assert '<div class="dragoman">' in bundle["text/html"]
        assert bundle["text/plain"]
    (_, result, _) = values_of("x" * 1000)
    assert len(str(result)) < 200


def test_a_plan_shows_what_is_lost() -> None:
    plan = MessageList([every_piece("x")]).plan("ollama")
    page = check_harmless(plan._repr_html_())
    assert str(plan).splitlines()[0] in page.text
    assert str(plan).splitlines()[0][:60] in print_rich(plan)


def test_a_picture_of_a_value_of_any_size_is_bounded() -> None:
    long = Message.user("x" * 10_000_000, ToolCallPart("c", "n" * 100_000, {"a": "y" * 10_000_000}))
    many = MessageList([Message.user(f"message {number}") for number in range(10_000)])
    files = Message.user(*[DataPart(bytes(200_000), "image/png") for _ in range(500)])
    assert len(long._repr_html_()) < 100_000
    assert "more characters" in long._repr_html_()
    assert len(print_rich(long)) < 20_000
    page = check_harmless(many._repr_html_())
    assert "9,900 earlier messages" in page.text
    assert "message 9999" in page.text and "message 5000" not in page.text
    assert len(many._repr_html_()) < 100_000
    assert len(print_rich(many)) < 50_000
    html = files._repr_html_()
    assert html.count("<img") == 10
    assert len(html) < 4_000_000
    assert "300 more before" in html


def test_images_are_shown_and_other_files_named() -> None:
    big, svg = (
        DataPart(bytes(300_000), "image/png", "big.png"),
        DataPart(b"<svg/>", "image/svg+xml"),
    )
    page = check_harmless(Message.user(DataPart(PNG, "image/png", "small"), big, svg)._repr_html_())
    assert [attributes["alt"] for tag, attributes in page.tags if tag == "img"] == ["small"]
    assert "big.png image/png, 300,000 bytes" in page.text
    assert "image/svg+xml, 6 bytes" in page.text


def test_what_json_cannot_hold_is_shown_too() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    for value in ({1: object}, cycle, {"x": "\ud800"}, float("nan")):
        check_harmless(Message.user(ToolResultPart("c", "t", value))._repr_html_())


def test_a_chunk_without_messages_shows_its_output() -> None:
    assert "Half an ans" in Page(ChatResult("Half an ans")._repr_html_()).text
    assert "42" in print_rich(ChatResult(42))
