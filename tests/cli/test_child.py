"""A program below a command (`cli/child.py`): its exit code, its variables, its signals, its
end."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.child import child_environment, run_child
from support.cli import SRC
from support.until import until

pytestmark = pytest.mark.anyio
_PYTHON = sys.executable
_PARENT = (
    "import asyncio, sys; from dragoman.cli.child import run_child;"
    "sys.exit(asyncio.run(run_child(sys.argv[1:], {})))"
)
"""A process that runs the program of its arguments."""
_TELLS = """
import signal, sys, time
def told(number, frame):
    print(signal.Signals(number).name, flush=True)
    sys.exit(7)
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"):
    signal.signal(getattr(signal, name), told)
print("ready", flush=True)
time.sleep(30)
"""
"""A program that tells of its first signal, and ends with 7."""


def _start(*program: str, **options: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [_PYTHON, "-c", _PARENT, *program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": SRC},
        **options,  # pyright: ignore
    )


async def test_its_exit_code_is_the_commands() -> None:
    assert await run_child([_PYTHON, "-c", "raise SystemExit(23)"], {}) == 23
    assert await run_child([_PYTHON, "-c", "pass"], {}) == 0


async def test_the_end_by_a_signal_counts_as_in_shells() -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert await run_child([_PYTHON, "-c", kill], {}) == 128 + 9


async def test_only_the_child_has_the_variables(capfd: pytest.CaptureFixture[str]) -> None:
    code = "import os; print(os.environ['GATEWAY'], os.environ['NO_PROXY'])"
    assert await run_child([_PYTHON, "-c", code], {"GATEWAY": "http://127.0.0.1:1"}) == 0
    said = capfd.readouterr().out
    assert said.startswith("http://127.0.0.1:1 ") and "127.0.0.1" in said.split()[1]
    assert "GATEWAY" not in os.environ


def test_no_http_proxy_stands_between_the_child_and_this_machine() -> None:
    environment = child_environment({"A": "1"}, {"NO_PROXY": "corp.example, localhost", "B": "2"})
    assert environment == {
        "A": "1",
        "B": "2",
        "NO_PROXY": "corp.example,localhost,127.0.0.1",
        "no_proxy": "127.0.0.1,localhost",
    }


async def test_a_missing_program_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert await run_child(["no-such-program-here"], {}) == 127
    error = capfd.readouterr().err
    assert (
        error == "error: there is no program 'no-such-program-here'; write its name as in a shell\n"
    )


@pytest.mark.parametrize("content", [b"no program at all", b""])
async def test_what_is_no_program_is_one_line(
    content: bytes, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "file").write_bytes(content)
    assert await run_child([str(file)], {}) == 126
    assert await run_child([str(tmp_path)], {}) == 126
    assert capfd.readouterr().err.count("cannot be run") == 2


async def test_a_program_name_with_a_nul_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    assert await run_child(["a\0b"], {}) == 126
    assert capfd.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"])
def test_signals_go_on_to_the_child(name: str) -> None:
    # In a session of its own, where no terminal sends anything.
    with _start(_PYTHON, "-c", _TELLS, start_new_session=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        parent.send_signal(getattr(signal, name))
        assert parent.stdout.read() == f"{name}\n".encode()
        assert parent.wait(20) == 7


async def test_a_signal_that_comes_while_the_child_starts_goes_on_to_it(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    start, lost = asyncio.create_subprocess_exec, list[int]()

    async def start_slowly(*command: Any, **how: Any) -> asyncio.subprocess.Process:
        child = await start(*command, **how)
        await until(lambda: "ready" in capfd.readouterr().out)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.05)
        return child

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start_slowly)
    before = signal.signal(signal.SIGTERM, lambda number, _: lost.append(number))
    try:
        assert await run_child([_PYTHON, "-c", _TELLS.replace("(30)", "(3)")], {}) == 7
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capfd.readouterr().out == "SIGTERM\n" and not lost


def test_ctrl_c_of_a_terminal_reaches_the_child_once() -> None:
    count = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: print("int", flush=True))
signal.signal(signal.SIGTERM, lambda *_: exit(5))
print("ready", flush=True)
while True: time.sleep(0.05)
"""
    number, terminal = pty.fork()
    if number == 0:
        os.environ["PYTHONPATH"] = SRC
        os.execv(_PYTHON, [_PYTHON, "-c", _PARENT, _PYTHON, "-c", count])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 100)
    os.write(terminal, b"\x03")
    while b"int" not in said:
        said += os.read(terminal, 100)
    time.sleep(0.3)
    os.kill(number, signal.SIGTERM)
    _, status = os.waitpid(number, 0)
    with suppress(OSError):  # the end of a terminal without a program
        said += os.read(terminal, 1000)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 5
    assert said.count(b"int") == 1


async def test_a_cancelled_one_ends_the_child(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    task = asyncio.create_task(run_child([_PYTHON, "-c", code], {}))
    while not (mark.exists() and mark.read_text()):  # noqa: ASYNC110 - another process writes it
        await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
