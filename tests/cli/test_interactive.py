"""A conversation in a terminal: `dragoman chat` without a prompt, on a pseudo-terminal."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as Flag

import pytest

from dragoman import Message, ModelRequest, Role
from support.cli import SRC
from support.llm_server import Llm, echo
from support.model import call, says

pty = pytest.importorskip("pty", reason="this platform has no pseudo-terminals")

CTRL_C, CTRL_D = b"\x03", b"\x04"


class Terminal:
    """The program on a pseudo-terminal. `until` reads on to a text; what was read before is
    forgotten."""

    def __init__(self, state: Path, *arguments: str) -> None:
        self.state = state
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "chat", "-v", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,
            env={
                **os.environ,
                "PYTHONPATH": SRC,
                "TERM": "xterm",
                "PROMPT_TOOLKIT_NO_CPR": "1",
                "XDG_STATE_HOME": str(state),
            },
        )
        os.close(theirs)
        self.seen = b""
        self.shown = ""

    def type(self, text: str | bytes) -> None:
        os.write(self.ours, text if isinstance(text, bytes) else f"{text}\r".encode())

    def interrupt(self) -> None:
        """Types Ctrl-C, once, and waits for the prompt."""
        self.type(CTRL_C)
        self.prompt()

    def prompt(self) -> None:
        """Reads on to the next prompt: what switches bracketed paste on, which comes when keys are
        read."""
        self.until("\x1b[?2004h")

    def until(self, text: str) -> str:
        while text.encode() not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], 30)
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.ours, 4096)
        before, _, self.seen = self.seen.partition(text.encode())
        self.shown += f"{before.decode()}{text}"
        return before.decode()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.ours)


def _own_terminal() -> None:
    """Makes the pseudo-terminal the process's own, so that Ctrl-C typed there interrupts it."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def opened(
    llm: Llm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Terminal]]:
    """Opens terminals in which the program has come to its prompt."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    terminals: list[Terminal] = []

    def opened(*how: str) -> Terminal:
        terminals.append(Terminal(tmp_path, *how))
        terminals[-1].until("openai-compatible:tiny")
        terminals[-1].prompt()
        return terminals[-1]

    try:
        yield opened
    finally:
        for terminal in terminals:
            terminal.close()


@pytest.fixture
def terminal(opened: Callable[..., Terminal]) -> Terminal:
    return opened()


@pytest.mark.slow
def test_a_conversation_is_remembered_and_goes_on_with_another_model(
    terminal: Terminal, llm: Llm
) -> None:
    terminal.type("Hello")
    terminal.until("You said: Hello")
    terminal.until("Usage: Input: 3 tokens")
    terminal.prompt()
    terminal.type("/model anthropic:other")
    terminal.until("anthropic:other\r\n")
    terminal.prompt()
    terminal.type("Again")
    terminal.until("You said: Again")
    terminal.prompt()
    assert [request.model for request in llm.requests] == ["tiny", "other"]
    assert [message.text for message in llm.requests[1].messages] == [
        "Hello",
        "You said: Hello",
        "Again",
    ]
    terminal.type("/clear")
    terminal.prompt()
    terminal.type("Anew")
    terminal.until("You said: Anew")
    assert [message.text for message in llm.requests[2].messages] == ["Anew"]
    terminal.prompt()
    terminal.type(CTRL_D)
    assert terminal.process.wait(20) == 0


@pytest.mark.slow
def test_ctrl_c_stops_the_answer_and_not_the_program(terminal: Terminal, llm: Llm) -> None:
    llm.reply = lambda _: says("word " * 100)
    llm.held = Flag()
    terminal.type("Talk")
    terminal.until("word word")
    terminal.interrupt()
    llm.held.set()
    llm.held = None
    llm.reply = echo
    terminal.type("Go on")
    terminal.until("You said: Go on")
    roles = [message.role for message in llm.requests[1].messages]
    assert roles == [Role.USER, Role.MODEL, Role.USER]
    assert llm.requests[1].messages[1].text.startswith("word word")
    assert "word " * 100 not in llm.requests[1].messages[1].text
    terminal.prompt()
    terminal.type(b"half a line")
    terminal.interrupt()
    terminal.type("/quit")
    assert terminal.process.wait(20) == 0
    assert len(llm.requests) == 2


@pytest.mark.slow
def test_a_turn_that_was_stopped_before_the_model_spoke_is_forgotten(
    terminal: Terminal, llm: Llm
) -> None:
    asked, free = Flag(), Flag()

    def slow(_: object) -> Message:
        asked.set()
        free.wait(20)
        return says("Too late.")

    llm.reply = slow
    terminal.type("Talk")
    assert asked.wait(20)
    terminal.type(CTRL_C)
    terminal.prompt()
    free.set()
    llm.reply = echo
    terminal.type("Go on")
    terminal.until("You said: Go on")
    assert [message.text for message in llm.requests[1].messages] == ["Go on"]


@pytest.mark.slow
def test_errors_and_unknown_commands_are_told_and_the_conversation_goes_on(
    terminal: Terminal,
) -> None:
    for line, answer in [
        ("/nonsense", "error: Invalid value for command: there is no /nonsense"),
        ("/model openai", "error: OPENAI_API_KEY is required"),
        ("/model", "openai-compatible:tiny"),
        ("@/nowhere", "error: Invalid value for PROMPT: cannot attach /nowhere"),
        ("/help", "/clear"),
        ("Hello", "You said: Hello"),
    ]:
        terminal.type(line)
        terminal.until("\r\n")
        terminal.until(answer)
        terminal.prompt()
    terminal.type("/quit")
    assert terminal.process.wait(20) == 0


PASTE, PASTED, ALT_ENTER = b"\x1b[200~", b"\x1b[201~", b"\x1b\r"


@pytest.mark.slow
def test_what_is_pasted_is_one_prompt_however_many_lines_it_has(
    terminal: Terminal, llm: Llm
) -> None:
    terminal.type(PASTE + b"/help\r\ntwo\nthree" + PASTED)
    terminal.type("")
    terminal.until("You said: ")
    terminal.prompt()
    assert [request.messages[-1].text for request in llm.requests] == ["/help\ntwo\nthree"]


@pytest.mark.slow
def test_a_conversation_that_is_kept_goes_on_in_another_process(
    opened: Callable[..., Terminal], llm: Llm, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path}/threads.db"
    first = opened("--thread", "trip", "--store", store)
    first.type("Hello")
    first.until("You said: Hello")
    first.prompt()
    first.type(CTRL_D)
    first.process.wait(30)
    second = Terminal(tmp_path, "--store", store, "--continue")
    try:
        second.until("trip goes on; last: You said: Hello")
        second.prompt()
        second.type("Again")
        second.until("You said: Again")
        second.prompt()
        assert [message.text for message in llm.requests[1].messages] == [
            "Hello",
            "You said: Hello",
            "Again",
        ]
        second.type("/clear")
        second.until("the conversation begins anew, and is kept as ")
        second.prompt()
        second.type("Anew")
        second.until("You said: Anew")
        assert [message.text for message in llm.requests[2].messages] == ["Anew"]
    finally:
        second.close()


@pytest.mark.slow
def test_what_a_kept_conversation_waits_for_is_answered_with_its_thread(
    opened: Callable[..., Terminal], llm: Llm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mytools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    llm.reply = calling
    kept = opened(
        "--tools", "mytools", "--thread", "t", "--store", f"sqlite:///{tmp_path}/threads.db"
    )
    kept.type("Delete.")
    kept.until("[waits for approval]")
    kept.prompt()
    kept.type("y")
    kept.until("It says: x is deleted")
    kept.prompt()
    assert len(llm.requests) == 2


@pytest.mark.slow
def test_several_lines_are_typed_with_alt_enter_or_a_backslash(
    terminal: Terminal, llm: Llm
) -> None:
    terminal.type(b"one" + ALT_ENTER + b"two\\\rthree\\n\r")
    terminal.until("You said: ")
    terminal.prompt()
    assert [request.messages[-1].text for request in llm.requests] == ["one\ntwo\nthree\\n"]


@pytest.mark.slow
def test_a_prompt_may_begin_with_a_slash(terminal: Terminal, llm: Llm) -> None:
    for line in ("/etc/hosts is what?", "/ is what?", "//help me"):
        terminal.type(line)
        terminal.until("You said: ")
        terminal.prompt()
    assert [request.messages[-1].text for request in llm.requests] == [
        "/etc/hosts is what?",
        "/ is what?",
        "/help me",
    ]


@pytest.mark.slow
def test_model_takes_a_name_of_the_same_provider(terminal: Terminal, llm: Llm) -> None:
    for name, string in [
        ("large", "openai-compatible:large"),
        ("gemma3:4b", "openai-compatible:gemma3:4b"),
        ("meta/llama", "openai-compatible:meta/llama"),
        ("claude", "claude:claude-"),
        ("haiku", "claude:haiku"),
    ]:
        terminal.type(f"/model {name}")
        terminal.until("\r\n")
        terminal.until(string)
        terminal.prompt()
    terminal.type("Hello")
    terminal.until("You said: ")
    assert llm.requests[0].model == "haiku"


@pytest.mark.slow
def test_prompts_are_there_again_in_the_next_conversation(
    opened: Callable[..., Terminal], llm: Llm
) -> None:
    first = opened()
    first.type(PASTE + b"one\ntwo" + PASTED + b"\r")
    first.until("You said: ")
    first.prompt()
    first.type(CTRL_D)
    assert first.process.wait(20) == 0
    second = opened()
    second.type(b"\x1b[A")
    second.until("two")
    second.type("")
    second.until("You said: ")
    assert [request.messages[-1].text for request in llm.requests] == ["one\ntwo", "one\ntwo"]
    (file,) = (path for path in second.state.rglob("*") if path.is_file())
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_the_banner_names_the_model_that_answers_and_no_other(
    opened: Callable[..., Terminal],
) -> None:
    terminal = opened("-m", "openai-compatible?chat=tiny&embeddings=vectors")
    assert "vectors" not in terminal.shown


@pytest.mark.slow
def test_what_was_shown_of_an_answer_that_failed_is_remembered(
    terminal: Terminal, llm: Llm
) -> None:
    """Decision 25/rule 7: the error of a run holds what there was."""
    llm.reply = lambda _: says("word " * 100)
    llm.cut = True
    terminal.type("Talk")
    terminal.until("error: ")
    terminal.prompt()
    llm.cut, llm.reply = False, echo
    terminal.type("Go on")
    terminal.until("You said: Go on")
    roles = [message.role for message in llm.requests[-1].messages]
    assert roles == [Role.USER, Role.MODEL, Role.USER]
    assert llm.requests[-1].messages[1].text.startswith("word word")


@pytest.mark.slow
def test_what_is_left_out_is_told_once_in_a_conversation(terminal: Terminal) -> None:
    """Decision 25."""
    (terminal.state / "clip.mp4").write_bytes(bytes(range(256)) * 9)
    terminal.type(f"Look @{terminal.state}/clip.mp4")
    terminal.until("note: left out or changed: video/mp4")
    terminal.prompt()
    terminal.type("Go on")
    terminal.until("You said: Go on")
    terminal.prompt()
    assert terminal.shown.count("note: left out or changed") == 1


TOOLS = '''
import asyncio
from pathlib import Path
from dragoman import ToolContext, tool

@tool
async def convert(context: ToolContext, file: str) -> str:
    """Converts a file, once there is a file that allows it."""
    await context.progress(1, 2, f"converting {file}")
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    return f"{file} is converted"

@tool(requires_approval=True, editable=True)
def delete(path: str) -> str:
    """Deletes a file."""
    return f"{path} is deleted"

@tool
def book(context: ToolContext, city: str) -> str:
    """Books a room."""
    nights = context.ask(f"How many nights in {city}?", {"type": "integer"})
    return f"{nights} nights in {city}"

@tool
def where(context: ToolContext) -> str:
    """Tells the conversation's id."""
    return context.thread_id
'''
CALLS = {
    "Convert.": call("convert", file="a.wav"),
    "Delete.": call("delete", path="x"),
    "Book.": call("book", city="Oslo"),
    "Where?": call("where"),
}


def calling(request: ModelRequest) -> Message:
    """Calls a tool as the prompt has it, and says what it got."""
    last = request.messages[-1]
    if last.tool_results:
        return says(f"It says: {last.tool_results[0].result}")
    return says(CALLS[last.text]) if last.text in CALLS else echo(request)


@pytest.fixture
def working(
    opened: Callable[..., Terminal], llm: Llm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    """A terminal whose model has tools."""
    (tmp_path / "mytools.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    llm.reply = calling
    return opened("--tools", "mytools")


@pytest.mark.slow
def test_progress_of_a_tool_is_seen_while_it_works(working: Terminal) -> None:
    working.type("Convert.")
    working.until("converting a.wav (1/2) …")
    (working.state / "go").touch()
    working.until("It says: a.wav is converted")


@pytest.mark.slow
def test_an_approval_is_asked_on_the_terminal(working: Terminal, llm: Llm) -> None:
    for typed, told in [("y", "It says: x is deleted"), ("n it is mine", "denied: it is mine")]:
        working.type("Delete.")
        working.until('[waits for approval]\r\ndelete {"path": "x"}\r\n')
        working.prompt()
        working.type(typed)
        working.until(told)
        working.prompt()
    assert len(llm.requests) == 4
    kept = [path.read_text() for path in working.state.rglob("prompts")]
    assert [("Delete." in text, "it is mine" in text) for text in kept] == [(True, False)]


@pytest.mark.slow
def test_arguments_are_edited_on_the_terminal(working: Terminal, llm: Llm) -> None:
    working.type("Delete.")
    working.until("[waits for approval]")
    working.prompt()
    working.type("edit")
    working.prompt()
    working.type(b"\x15[]\r")
    working.until("error: that is not a JSON object")
    working.prompt()
    working.type(b'\x15{"path": "y"}\r')
    working.until("It says:")
    working.until("y is deleted")
    assert len(llm.requests) == 2


@pytest.mark.slow
def test_a_question_of_a_tool_is_answered_on_the_terminal(working: Terminal) -> None:
    working.type("Book.")
    working.until("How many nights in Oslo?")
    working.prompt()
    working.type("some")
    working.until("error: the answer to ")
    working.prompt()
    working.type("3")
    working.until("It says: 3 nights in Oslo")


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
@pytest.mark.slow
def test_what_is_not_answered_stays_pending_and_the_next_prompt_says_so(
    working: Terminal, llm: Llm, key: bytes
) -> None:
    working.type("Delete.")
    working.until("[waits for approval]")
    working.prompt()
    working.type(key)
    working.until('pending: waits for approval: delete {"path": "x"}')
    working.until("your next prompt tells the model that it was not run")
    working.prompt()
    assert len(llm.requests) == 1
    working.type("Never mind.")
    working.until("You said: Never mind.")
    (result,) = [result for message in llm.requests[1].messages for result in message.tool_results]
    assert "interrupted" in str(result.result)


@pytest.mark.slow
def test_ctrl_c_stops_a_tool_that_was_allowed_to_run(working: Terminal, llm: Llm) -> None:
    working.type("Convert.")
    working.until("converting a.wav (1/2) …")
    working.interrupt()
    working.type("Go on")
    working.until("You said: Go on")
    assert [message.role for message in llm.requests[1].messages][:2] == [Role.USER, Role.MODEL]


@pytest.mark.slow
def test_a_single_prompt_asks_too(working: Terminal, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--tools", "mytools", "Delete.")
    try:
        terminal.until("[waits for approval]")
        terminal.prompt()
        terminal.type("y")
        terminal.until("It says: x is deleted")
        terminal.until("Usage: ")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()


@pytest.mark.slow
def test_a_conversation_is_one_thread_until_it_begins_anew(working: Terminal, llm: Llm) -> None:
    for line in ("Where?", "Where?", "/clear", "Where?"):
        working.type(line)
        working.until("anew" if line == "/clear" else "It says: ")
        working.prompt()
    first, second, third = [
        str(request.messages[-1].tool_results[0].result) for request in llm.requests[1::2]
    ]
    assert first == second != third
