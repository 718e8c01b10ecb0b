"""What the coding agents are asked, what the scripted model does then, and what has to come of it."""

from __future__ import annotations

import json
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.programs import Program
from agents.provider import Call, Report, Seen, Step

__all__ = ["TASKS", "Script", "Stage", "Task"]

_TASK = re.compile(r"\[task (\w+)\]")
ROUNDS = 10
_SECONDS = 120


@dataclass
class Stage:
    """A program before a gateway before a provider."""

    program: Program
    folder: Path
    """Holds `home` and `work`."""
    report: Report
    start: Callable[..., subprocess.Popen[str]]
    """Starts the program with these words; options are those of `Popen`."""

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def ask(self, prompt: str, *, stdin: str | None = None, **how: Any) -> str:
        """Asks a prompt and returns what the program prints."""
        child = self.start(self.program.ask(prompt, how))
        out, err = child.communicate(stdin or "", timeout=_SECONDS)
        assert child.returncode == 0, f"exit code {child.returncode}: {out[-400:]} {err[-800:]}"
        return out


class Script:
    """What the model does: a list of steps for each task that a prompt names."""

    def __init__(self, program: Program, work: Path) -> None:
        self._program, self._work = program, work

    def name_of(self, seen: Seen) -> str | None:
        """The conversation of a request: the task that its first prompt names, and the tools. Some
        programs show a conversation to an agent of their own, which has other tools."""
        if (task := self._task_of(seen)) is None:
            return None
        return " ".join([task, *sorted(seen.tools)])

    def _task_of(self, seen: Seen) -> str | None:
        if self._program.has_own not in seen.tools:
            return None
        return next((found[1] for t in seen.turns if (found := _TASK.search(t.text))), None)

    def play(self, seen: Seen) -> Step:
        """What the model does next."""
        if self._task_of(seen) is None:
            return Step(text='{"title": "A task"}')
        prompts = [
            (index, found[-1])
            for index, turn in enumerate(seen.turns)
            if turn.role == "user" and (found := _TASK.findall(turn.text))
        ]
        index, name = prompts[-1]
        done = sum(bool(turn.calls) for turn in seen.turns[index:])
        steps = TASKS[name].steps(self._program, self._work, seen.tools)
        return steps[done] if done < len(steps) else Step(text=f"Done: {name}.")


@dataclass(frozen=True)
class Task:
    """One task."""

    steps: Callable[[Program, Path, Any], list[Step]]
    play: Callable[[Stage], None]
    """Asks for it, and checks what came of it."""
    after: str | None = None
    """A task that is done before, in the same home."""
    only: tuple[str, ...] = ()
    """The programs that do it; empty: all."""


def _steps_of_edit(program: Program, work: Path, tools: Any) -> list[Step]:
    notes = str(work / "notes.txt")
    return [
        Step([program.read(notes, tools)], "I read it."),
        Step([program.edit(notes, "alpha", "omega", tools)]),
        Step([program.shell("cat notes.txt > copy.txt", tools)], "I run it."),
    ]


def _edit(stage: Stage) -> None:
    (stage.work / "notes.txt").write_text("alpha\nbeta\n")
    out = stage.ask("[task edit] Put omega in the place of alpha in notes.txt and copy it.")
    assert (stage.work / "copy.txt").read_text() == "omega\nbeta\n"
    assert "Done: edit." in out


def _steps_of_rounds(program: Program, work: Path, tools: Any) -> list[Step]:
    return [
        Step([program.shell(f"echo {turn}{side} >> {side}.txt", tools) for side in "ab"])
        for turn in range(ROUNDS)
    ]


def _rounds(stage: Stage) -> None:
    assert "Done: rounds." in stage.ask("[task rounds] Write ten lines into two files.")
    for side in "ab":
        lines = (stage.work / f"{side}.txt").read_text().split()
        assert lines == [f"{turn}{side}" for turn in range(ROUNDS)]


def _make_png() -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    size = 32
    rows = b"".join(b"\x00" + bytes([200, 30, 30]) * size for _ in range(size))
    head = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def _steps_of_image(program: Program, work: Path, tools: Any) -> list[Step]:
    return [Step([program.look(str(work / "red.png"), tools)])]


def _image(stage: Stage) -> None:
    (stage.work / "red.png").write_bytes(_make_png())
    assert "Done: image." in stage.ask("[task image] What is on red.png?")
    assert stage.report.images >= 1, "no image came to the provider"


def _steps_of_cancelled(program: Program, work: Path, tools: Any) -> list[Step]:
    return [Step([program.shell("true", tools)], stalls=True)]


def _cancelled(stage: Stage) -> None:
    child = stage.start(stage.program.ask("[task cancelled] Run it.", {}))
    assert child.stdin is not None
    child.stdin.close()
    child.stdin = None
    _wait_for(lambda: stage.report.stalled > 0, "no request")
    time.sleep(1)
    # As a terminal does: some programs start others of themselves.
    os.killpg(child.pid, signal.SIGINT)
    try:
        child.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
    _wait_for(lambda: stage.report.gone > 0, "the provider still answers")
    # Some keep nothing of a prompt without an answer, and have nothing to resume.
    (stage.work / "notes.txt").write_text("alpha\nbeta\n")
    stage.ask("[task edit] Put omega in the place of alpha in notes.txt and copy it.")
    assert (stage.work / "copy.txt").read_text() == "omega\nbeta\n"


def _wait_for(happened: Callable[[], bool], words: str) -> None:
    end = time.monotonic() + 30
    while not happened():
        assert time.monotonic() < end, words
        time.sleep(0.05)


def _no_steps(program: Program, work: Path, tools: Any) -> list[Step]:
    return []


def _resumed(stage: Stage) -> None:
    before = len(stage.report.bodies)
    assert "Done: resumed." in stage.ask("[task resumed] And now?", resumes=True)
    assert any("[task edit]" in str(body) for body in stage.report.bodies[before:])


WORDS = 400_000
"""Words of the long history, each of a token."""


def _long(stage: Stage) -> None:
    # One letter each, since some take no more than a million characters in one prompt.
    out = stage.ask("[task long] Count the letters.", stdin=" ".join(["a"] * WORDS))
    assert "Done: long." in out
    assert stage.report.largest > 2 * WORDS, f"the largest request had {stage.report.largest} bytes"


def _steps_of_grouped(program: Program, work: Path, tools: Any) -> list[Step]:
    [name] = [name for name in tools if name.endswith("add_note")]
    return [
        Step([Call(name, {"text": f"{turn}{side}"}) for side in "ab"], "I note it.")
        for turn in range(2)
    ]


def _grouped(stage: Stage) -> None:
    """Calls a tool of an MCP server, which Codex knows as one of a group."""
    server = Path(__file__).with_name("notes_server.py")
    settings = stage.folder / "home" / ".codex" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    words = json.dumps([str(server), str(stage.work / "noted.txt")])
    settings.write_text(
        f"[mcp_servers.notes]\ncommand = {json.dumps(sys.executable)}\nargs = {words}\n"
    )
    assert "Done: grouped." in stage.ask("[task grouped] Note what you see.")
    assert sorted((stage.work / "noted.txt").read_text().split()) == ["0a", "0b", "1a", "1b"]


TASKS = {
    "edit": Task(_steps_of_edit, _edit),
    "resumed": Task(_no_steps, _resumed, after="edit"),
    "rounds": Task(_steps_of_rounds, _rounds),
    "image": Task(_steps_of_image, _image),
    "cancelled": Task(_steps_of_cancelled, _cancelled),
    "grouped": Task(_steps_of_grouped, _grouped, only=("codex",)),
    "long": Task(_no_steps, _long),
}
