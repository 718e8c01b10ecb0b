"""`dragoman chat --tools MODULE`: tools of the user's own, and what their runs wait for without a
terminal (issue 9)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, ModelRequest
from support.cli import one_line, shell
from support.llm_server import Llm, decoded
from support.model import call, says

MODULE = '''
from dragoman import Tool, ToolContext, tool

@tool
async def convert(context: ToolContext, name: str) -> str:
    """Converts a file."""
    await context.progress(1, 2, f"converting {name}")
    return f"{name} is converted"

@tool(requires_approval=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"

pick = Tool("pick", "Asks the client for a colour")
also = delete
'''


def calls(name: str, /, **arguments: Any) -> Callable[[ModelRequest], Message]:
    """A model that calls a tool and then says what it got."""

    def reply(request: ModelRequest) -> Message:
        results = request.messages[-1].tool_results
        return says(f"It says: {results[0].result}" if results else call(name, **arguments))

    return reply


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Writes a module into the working directory → its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    names: list[str] = []

    def write(text: str) -> str:
        names.append(f"own_tools_{len(names)}")
        (tmp_path / f"{names[-1]}.py").write_text(text)
        invalidate_caches()
        return names[-1]

    yield write
    for name in names:
        sys.modules.pop(name, None)


def test_the_model_may_call_the_tools_of_a_module(
    cli, llm: Llm, module: Callable[[str], str]
) -> None:
    llm.reply = calls("convert", name="a.wav")
    assert cli("chat", "Convert.", "--tools", module(MODULE)) == (
        0,
        "It says: a.wav is converted\n",
        "",
    )
    assert [spec.name for spec in llm.requests[0].tools] == ["convert", "delete", "pick"]


@pytest.mark.slow
def test_progress_leaves_what_is_piped_on_as_it_is(llm: Llm, module: Callable[[str], str]) -> None:
    llm.reply = calls("convert", name="a.wav")
    done = shell("chat", "Convert.", "--tools", module(MODULE))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"It says: a.wav is converted\n", b"")


def test_the_example_of_the_docs_runs(
    cli, llm: Llm, module: Callable[[str], str], tmp_path: Path
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
    example = module(page.partition("```python\n")[2].partition("```")[0])
    for name in ("notes.txt", "more.txt"):
        (tmp_path / name).write_text("two words")
    llm.reply = calls("count_words", files=["notes.txt", "more.txt"])
    assert cli("chat", "Count.", "--tools", example) == (0, "It says: 4\n", "")
    llm.reply = calls("delete_file", path="notes.txt")
    assert cli("chat", "Delete notes.txt.", "--tools", example)[0] == 1
    assert (tmp_path / "notes.txt").exists()


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (calls("delete", path="x"), 'pending: waits for approval: delete {"path": "x"}'),
        (calls("pick"), "pending: is yours to run: pick {}"),
    ],
)
def test_without_a_terminal_nothing_is_asked_and_what_is_pending_is_told(
    cli, llm: Llm, module: Callable[[str], str], reply: Callable[[ModelRequest], Message], line: str
) -> None:
    llm.reply = reply
    code, out, err = cli("chat", "Do it.", "--tools", module(MODULE))
    assert (code, out, len(llm.requests)) == (1, "", 1)
    assert err.splitlines() == [
        line,
        "note: it is unanswered; in a terminal dragoman asks for the answer",
    ]


def test_what_is_pending_is_in_the_json(cli, llm: Llm, module: Callable[[str], str]) -> None:
    llm.reply = calls("delete", path="x")
    code, out, _ = cli("chat", "Do it.", "--json", "--tools", module(MODULE))
    told = decoded(out)
    assert code == 1
    assert [one["reason"] for one in told["pending"]] == ["approval"]
    assert [message["role"] for message in told["messages"]] == ["user", "model"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", ("has no tools", "@tool")),
        (
            "import nobody_has_this",
            ("cannot be imported", "ModuleNotFoundError: No module named 'nobody_has_this'"),
        ),
        ("def", ("cannot be imported", "SyntaxError")),
        ("1 / 0", ("cannot be imported", "ZeroDivisionError")),
    ],
)
def test_a_module_that_serves_for_nothing_is_a_usage_error(
    cli, llm: Llm, module: Callable[[str], str], text: str, words: tuple[str, ...]
) -> None:
    code, out, err = cli("chat", "x", "--tools", module(text))
    assert (code, out) == (2, "")
    assert one_line(err, "--tools", *words)
    assert not llm.requests


@pytest.mark.parametrize(
    ("name", "word"),
    [("nowhere", "no module 'nowhere'"), ("a.b", "no module 'a.b'"), ("nowhere.py", "without .py")],
)
def test_a_module_that_is_not_there_is_a_usage_error(cli, llm: Llm, name: str, word: str) -> None:
    code, out, err = cli("chat", "x", "--tools", name)
    assert (code, out) == (2, "")
    assert one_line(err, "--tools", word)
