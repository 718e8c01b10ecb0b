"""What a terminal shows while an answer arrives (issue 30, 3 and 4): Markdown and a table of typed
values; and code that is cut out of an answer."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.fenced_code import extract_code
from dragoman.cli.live_table import LiveTable
from dragoman.cli.markdown_stream import MarkdownStream
from dragoman.cli.schema_shorthand import load_schema
from dragoman.cli.screen import Screen
from dragoman.result import ChatResult
from support.llm_server import Llm
from support.model import says

CODE = "Before.\n\n```python\nx = 1\n```\n\nBetween.\n\n````\n```\ny\n```\n````\n\nAfter."


class Terminal(io.StringIO):
    """A terminal that remembers what it was sent."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def size(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"COLUMNS": "60", "LINES": "20", "TERM": "xterm"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_COLOR", raising=False)


# code


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        (CODE, "x = 1\n", "```\ny\n```\n"),
        ("no code", "no code", "no code"),
        ("```\nopen", "```\nopen", "```\nopen"),
        ("````js\na\n````", "a\n", "a\n"),
        ("```a\nx\n````", "x\n", "x\n"),
        ("````a\nx\n```", "````a\nx\n```", "````a\nx\n```"),
        ("~~~\na\n~~~ \n", "a\n", "a\n"),
        ("```\na\n``` \n```b\nc\n```", "a\n", "c\n"),
        ("```\n```", "", ""),
        ("use `x` and ```y```", "use `x` and ```y```", "use `x` and ```y```"),
        ("  ```\n  a\n  ```", "  a\n", "  a\n"),
    ],
)
def test_code_is_cut_out(text: str, first: str, last: str) -> None:
    assert extract_code(text) == first
    assert extract_code(text, last=True) == last


@given(st.text(max_size=50), st.text(alphabet="ab\n ", max_size=30))
def test_code_is_found_behind_any_text(before: str, code: str) -> None:
    whole = f"{code}\n"
    text = f"{before.replace('`', '').replace('~', '')}\n```py\n{whole}```\n"
    assert extract_code(text) == whole


def test_extract_prints_the_code_alone(cli, llm: Llm) -> None:
    llm.reply = lambda _: says(CODE)
    assert cli("x", "-x") == (0, "x = 1\n", "")
    assert cli("x", "--xl") == (0, "```\ny\n```\n", "")
    assert json.loads(cli("x", "-x", "--json")[1])["output"] == "x = 1\n"
    llm.reply = lambda _: says("none")
    assert cli("x", "-x") == (0, "none\n", "")


# Markdown


def render(text: str, step: int = 1, clock: Callable[[], float] = lambda: 0.0) -> str:
    """What a terminal is sent for a text that arrives in pieces."""
    out = Terminal()
    stream = MarkdownStream(out, clock=clock)
    for start in range(0, len(text), step):
        stream.write(text[start : start + step])
    stream.close()
    return out.getvalue()


def show(sent: str) -> list[str]:
    """The lines that stand on a terminal after that, without colours."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[\??[\d;]*[A-Za-z]|\r|\n|[^\x1b\r\n]+", sent):
        if token == "\r":
            column = 0
        elif token == "\n":
            row, column = row + 1, 0
            lines += [""] * (row == len(lines))
        elif token.endswith("A") and token.startswith("\x1b"):
            row = max(row - int(token[2:-1] or 1), 0)
        elif token == "\x1b[2K":
            lines[row] = ""
        elif not token.startswith("\x1b"):
            lines[row] = (
                lines[row][:column].ljust(column) + token + lines[row][column + len(token) :]
            )
            column += len(token)
    return [line.rstrip() for line in lines]


MARKDOWN = """# Rivers

The *Rhine* is `long`.

- one
- two

  still two

3. three
4. four

```python
x = 1

y = 2
```
After it.

| a | b |
|---|---|
| 1 | 2 |

The end."""


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_what_stands_at_the_end_is_the_same_however_it_came(step: int) -> None:
    ticks = iter(range(10_000))
    shown = [line for line in show(render(MARKDOWN, step, lambda: float(next(ticks)))) if line]
    whole = [line for line in show(render(MARKDOWN, 10_000)) if line]
    assert shown == whole
    text = "\n".join(shown)
    assert "The Rhine is long." in text
    assert "#" not in text and "```" not in text and "|" not in text
    assert " 3 three" in text and "y = 2" in text and text.endswith("The end.")


@given(st.text(alphabet="ab *`#-|1.\n ", max_size=80), st.integers(1, 9))
def test_any_text_is_drawn_the_same_in_pieces(text: str, step: int) -> None:
    ticks = iter(range(10_000))
    pieces = [line for line in show(render(text, step, lambda: float(next(ticks)))) if line]
    assert pieces == [line for line in show(render(text, 10_000)) if line]


def test_a_block_is_printed_once_it_ended() -> None:
    out = Terminal()
    stream = MarkdownStream(out, clock=lambda: 0.0)
    stream.write("First.\n\nSecond")
    drawn = out.getvalue()
    assert "First." in drawn
    stream.write(" block.\n\nThird")
    assert "First." not in out.getvalue().removeprefix(drawn)
    stream.close()


def test_the_model_does_not_control_the_terminal() -> None:
    sent = render("Evil \x1b[31m\x1b]8;;http://x\x07 [text](https://evil.example)\u202e")
    assert "\x1b[31m" not in sent
    assert "\x1b]" not in sent
    assert "\x07" not in sent


def test_an_open_block_costs_no_more_than_the_terminal_is_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rich import markdown

    sizes: list[int] = []
    make = markdown.Markdown.__init__

    def count(self: Any, text: str, **options: Any) -> None:
        sizes.append(len(text))
        make(self, text, **options)

    monkeypatch.setattr(markdown.Markdown, "__init__", count)
    for text in ("```py\n" + "x = 1\n" * 3000, "word " * 4000):
        sizes.clear()
        ticks = iter(range(100_000))
        out = Terminal()
        stream = MarkdownStream(out, clock=lambda ticks=ticks: next(ticks) / 1000)
        for start in range(0, len(text), 4):
            stream.write(text[start : start + 4])
        assert sizes
        assert max(sizes) <= 60 * 20 + 20
        assert len(sizes) <= len(text) / 4 * 2 / 50 + 2
        stream.close()


def test_md_renders_on_a_terminal_alone(cli, llm: Llm) -> None:
    llm.reply = lambda _: says("# Title\n\nText")
    assert cli("x", "--md") == (0, "# Title\n\nText\n", "")
    out = Terminal()
    screen = Screen(markdown=True, out=out, err=Terminal())
    screen.show(ChatResult("", thinking="*hm*"))
    screen.show(ChatResult("# Title\n\nSo"))
    screen.show(ChatResult("me *text*"))
    screen.finish()
    lines = [line.strip() for line in show(out.getvalue()) if line.strip()]
    assert lines == ["*hm*", "Title", "Some text"]


# tables


def rows(schema: str, *pieces: str | ChatResult[str], height: int = 9, multi: bool = False):
    """The cells of the table after these pieces of an answer."""
    table = LiveTable(load_schema(schema, multi=multi), lambda: None, clock=lambda: float("-inf"))
    for piece in pieces:
        table.follow(ChatResult(piece) if isinstance(piece, str) else piece)
    return list(table.list_rows(height))


def test_fields_grow_in_a_table() -> None:
    assert rows("name, age int", '{"name": "Zi') == [["name", "Zi"]]
    assert rows("name, age int", '{"name": "Zi', 'ggy", "age": 4', "}") == [
        ["name", "Ziggy"],
        ["age", "4"],
    ]
    assert rows("tags list", '{"tags": ["a", "b", "c", "d", "e", "f"') == [
        ["tags", "a, b, c, d, e, …"]
    ]
    assert rows("name", "") == []
    assert rows("name", '{"name": "\\u001b[2J\\n' + "x" * 500 + '"}')[0][1].count("x") <= 200


def test_of_a_list_the_last_elements_are_rows() -> None:
    text = json.dumps({"items": [{"name": f"dog {n}", "age": n} for n in range(20)]})
    assert rows("name, age int", text[:-20], height=2, multi=True) == [
        ["dog 18", "18"],
        ["dog 19", ""],
    ] or rows("name, age int", text, height=2, multi=True) == [["dog 18", "18"], ["dog 19", "19"]]


def test_a_retracted_answer_begins_again() -> None:
    void = ChatResult("", retracted='{"name": "no"')
    assert rows("name", '{"name": "no"', void, '{"name": "yes"}') == [["name", "yes"]]


def test_the_table_is_removed_before_the_json_is_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    err = Terminal()
    monkeypatch.setattr("sys.stderr", err)
    begun: list[bool] = []
    table = LiveTable(load_schema("name"), lambda: begun.append(True))
    table.follow(ChatResult('{"name": "Zi'))
    assert "Zi" in err.getvalue()
    table.close()
    assert [line for line in show(err.getvalue()) if line] == []
    assert begun == [True]
