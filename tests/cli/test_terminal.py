"""Nothing that comes from outside steers the terminal, whichever command prints it."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import Memory, Message
from dragoman.cli.screen import Screen
from dragoman.cli.terminal import escape
from dragoman.result import ChatResult
from support.llm_server import Llm

HOSTILE = "a\x1b]0;PWN\x07b\x9bc\u202ed\u2028e\u200ff\x08g\U000e0041h\r"
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)
Cli = Callable[..., tuple[int, str, str]]


def test_an_escaped_text_says_what_was_there() -> None:
    assert (
        escape("a\x1bb\u202ec\U000e0041d\n\té 👩‍👩‍👧")
        == "a\\u001bb\\u202ec\\udb40\\udc41d\n\té 👩‍👩‍👧"
    )
    assert not STEERS.search(escape(HOSTILE))


@pytest.fixture
def hostile_file(tmp_path: Path) -> str:
    content = [
        {"type": "text", "text": HOSTILE},
        {"type": "file", "file": {"filename": HOSTILE, "file_data": f"data:{HOSTILE};base64,AAAA"}},
    ]
    call = {
        "id": HOSTILE,
        "type": "function",
        "function": {"name": HOSTILE, "arguments": json.dumps({"x": HOSTILE})},
    }
    messages = [
        {"role": "user", "name": HOSTILE, "content": content},
        {"role": "assistant", "content": HOSTILE, "tool_calls": [call]},
    ]
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(messages))
    return str(path)


@pytest.mark.mend("1.10")
@pytest.mark.parametrize(
    "command",
    [
        ["plan", "ollama", "FILE"],
        ["plan", "anthropic:claude-sonnet-4-5", "FILE"],
        ["plan", "openai_chat", "FILE", "--json"],
        ["plan", HOSTILE, "FILE"],
        ["convert", "FILE", "--to", "sharegpt"],
        ["convert", HOSTILE, "--to", "sharegpt"],
        ["chat", "hi", "-m", HOSTILE],
        ["chat", "hi", "--attach", HOSTILE],
        ["models", HOSTILE],
        ["threads", "show", HOSTILE],
        ["threads", "delete", HOSTILE],
        ["decode", HOSTILE],
        ["serve", HOSTILE],
        ["mcp", HOSTILE],
        ["threads", HOSTILE],
        ["--" + HOSTILE],
    ],
    ids=lambda command: command[0][:8] + str(len(command)),
)
def test_no_command_prints_what_steers_a_terminal(
    cli: Cli, hostile_file: str, command: list[str]
) -> None:
    _, out, err = cli(*[hostile_file if word == "FILE" else word for word in command])
    assert not STEERS.search(err), err
    if command[0] != "convert":  # whose output is data, and JSON
        assert not STEERS.search(out), out


@pytest.mark.mend("1.10")
@pytest.mark.parametrize("flag", [[], ["--json"]], ids=["lines", "json"])
def test_a_servers_names_of_models_are_escaped(cli: Cli, llm: Llm, flag: list[str]) -> None:
    llm.models = [f"mod{HOSTILE}el"]
    code, out, err = cli("models", "openai-compatible", "--base-url", llm.url, *flag)
    assert code == 0, err
    assert "mod" in out
    assert not STEERS.search(out)


@pytest.mark.mend("1.10")
def test_an_answer_on_a_terminal_is_escaped() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out, err = Terminal(), Terminal()
    screen = Screen(colour=False, out=out, err=err)
    screen.show(ChatResult(HOSTILE))
    screen.finish()
    assert not STEERS.search(out.getvalue())


@pytest.mark.mend("1.10")
def test_what_threads_hold_is_escaped(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    file = tmp_path / "dragoman" / "threads.db"
    file.parent.mkdir()

    async def keep() -> None:
        async with Memory(f"sqlite:///{file}") as memory:
            await memory.save([Message.user(HOSTILE), Message.model(HOSTILE)], "trip")
            await memory.save_thread("trip", title=HOSTILE)

    asyncio.run(keep())
    for command in (["threads", "list"], ["threads", "show", "trip"], ["threads", "search", "a"]):
        code, out, err = cli(*command)
        assert code == 0, err
        assert not STEERS.search(out + err), command
