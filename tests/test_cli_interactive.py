"""A conversation in a terminal: `dragoman chat` without a prompt, on a pseudo-terminal."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from threading import Event as Flag

import pytest

from dragoman import Message, Role
from support import says
from support_cli import SRC
from support_llm import Llm, echo

pty = pytest.importorskip("pty", reason="this platform has no pseudo-terminals")

CTRL_C, CTRL_D = b"\x03", b"\x04"


class Terminal:
    """The program on a pseudo-terminal. `until` reads on to a text; what was read before is forgotten."""

    def __init__(self) -> None:
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "chat", "-v"],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_own_terminal,
            env={**os.environ, "PYTHONPATH": SRC, "TERM": "dumb"},
        )
        os.close(theirs)
        self.seen = b""

    def type(self, text: str | bytes) -> None:
        os.write(self.ours, text if isinstance(text, bytes) else f"{text}\n".encode())

    def interrupt(self) -> None:
        """Types Ctrl-C until the prompt is there, as a person does. One that comes between the prompt and the wait for a key is
        seen with the next key only: `input` misses it (CPython's readline)."""
        for _ in range(6):
            self.type(CTRL_C)
            ready, _, _ = select.select([self.ours], [], [], 5)
            while ready and b"> " not in self.seen:
                self.seen += os.read(self.ours, 4096)
                ready, _, _ = select.select([self.ours], [], [], 5)
            if b"> " in self.seen:
                self.until("> ")
                return
        raise AssertionError(f"no prompt in {self.seen!r}")

    def until(self, text: str) -> str:
        while text.encode() not in self.seen:
            ready, _, _ = select.select([self.ours], [], [], 30)
            assert ready, f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.ours, 4096)
        before, _, self.seen = self.seen.partition(text.encode())
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
def terminal(llm: Llm, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    terminal = Terminal()
    try:
        terminal.until("openai-compatible:tiny")
        terminal.until("> ")
        yield terminal
    finally:
        terminal.close()


def test_a_conversation_is_remembered_and_goes_on_with_another_model(terminal: Terminal, llm: Llm) -> None:
    terminal.type("Hello")
    terminal.until("You said: Hello")
    terminal.until("Usage: Input: 3 tokens")
    terminal.until("> ")
    terminal.type("/model anthropic:other")
    terminal.until("anthropic:other\r\n> ")
    terminal.type("Again")
    terminal.until("You said: Again")
    terminal.until("> ")
    assert [request.model for request in llm.requests] == ["tiny", "other"]
    assert [message.text for message in llm.requests[1].messages] == ["Hello", "You said: Hello", "Again"]
    terminal.type("/clear")
    terminal.until("> ")
    terminal.type("Anew")
    terminal.until("You said: Anew")
    assert [message.text for message in llm.requests[2].messages] == ["Anew"]
    terminal.until("> ")
    terminal.type(CTRL_D)
    assert terminal.process.wait(20) == 0


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
    terminal.until("> ")
    terminal.type(b"half a line")
    terminal.interrupt()
    terminal.type("/quit")
    assert terminal.process.wait(20) == 0
    assert len(llm.requests) == 2


def test_a_turn_that_was_stopped_before_the_model_spoke_is_forgotten(terminal: Terminal, llm: Llm) -> None:
    asked, free = Flag(), Flag()

    def slow(_: object) -> Message:
        asked.set()
        free.wait(20)
        return says("Too late.")

    llm.reply = slow
    terminal.type("Talk")
    assert asked.wait(20)
    terminal.type(CTRL_C)
    terminal.until("> ")
    free.set()
    llm.reply = echo
    terminal.type("Go on")
    terminal.until("You said: Go on")
    assert [message.text for message in llm.requests[1].messages] == ["Go on"]


def test_errors_and_unknown_commands_are_told_and_the_conversation_goes_on(terminal: Terminal) -> None:
    for line, answer in [
        ("/nonsense", "error: Invalid value for command: there is no /nonsense"),
        ("/model nobody", 'error: no provider is named "nobody"'),
        ("/model", "openai-compatible:tiny"),
        ("@/nowhere", "error: Invalid value for PROMPT: cannot attach /nowhere"),
        ("/help", "/clear"),
        ("Hello", "You said: Hello"),
    ]:
        terminal.type(line)
        terminal.until("\r\n")
        terminal.until(answer)
        terminal.until("> ")
    terminal.type("/quit")
    assert terminal.process.wait(20) == 0
