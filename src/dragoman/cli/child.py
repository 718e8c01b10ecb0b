"""Runs a program of the user's beside a server of ours, with variables that only it has.

The program keeps the terminal: it inherits the three streams and stays in the process group, so
Ctrl-C and Ctrl-Z reach it from the terminal itself.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress

from dragoman.errors import SettingsError

__all__ = ["check_program", "find_program", "run_child"]

_KILLED = 128
"""What a shell adds to the number of the signal that ended a program."""
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


def check_program(name: str, *, hint: str = "") -> None:
    """Raises `SettingsError` if no program has that name. `hint`: how it is installed."""
    find_program(name, os.environ, hint=hint)


def find_program(name: str, environment: Mapping[str, str], *, hint: str = "") -> str:
    """Returns the path of a program on this environment's PATH. `hint`: how it is installed.

    Raises:
        SettingsError: there is none.
    """
    path = shutil.which(name, path=environment.get("PATH"))
    if path is None:
        where = "here" if os.path.dirname(name) else "on PATH"  # noqa: PTH120 - as which has it
        raise SettingsError(
            f"there is no program {name!r} {where}" + (f"; install it: {hint}" if hint else "")
        )
    return path


async def run_child(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs a program to its end with these variables alone, and returns its exit code; that of a
    program which a signal ended is 128 and the signal's number, as in a shell.

    Signals that this process gets meanwhile are the program's. If this is cancelled, the program is
    ended first.

    Raises:
        SettingsError: there is no such program, or it cannot be run.
    """
    program = find_program(command[0], environment)
    try:
        child = await asyncio.create_subprocess_exec(program, *command[1:], env=dict(environment))
    except OSError as error:
        raise SettingsError(f"{program} cannot be run: {error.strerror or error}") from error

    def forward(number: int) -> None:
        # Its terminal has told the program of Ctrl-C already.
        if number != signal.SIGINT or not _is_foreground():
            with suppress(ProcessLookupError):
                child.send_signal(number)

    try:
        with _signals_to(forward):
            code = await child.wait()
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            child.terminate()
        await child.wait()
        raise
    return code if code >= 0 else _KILLED - code


def _is_foreground() -> bool:
    """True if this process has a terminal that sends its signals to it and its children."""
    try:
        return os.tcgetpgrp(sys.__stdin__.fileno()) == os.getpgrp()  # type: ignore[union-attr]
    except (AttributeError, OSError, ValueError):  # Windows; no terminal; a closed stream
        return False


@contextmanager
def _signals_to(forward: Callable[[int], object]) -> Generator[None]:
    """Passes the signals of this process to a function within the block."""
    loop = asyncio.get_running_loop()
    numbers = [number for name in _FORWARDED if (number := getattr(signal, name, None))]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        # Below `nohup` it stays ignored. Windows, and threads other than the first, have none.
        if before[number] is not signal.SIG_IGN:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, forward, number)
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)
                signal.signal(number, handler)
