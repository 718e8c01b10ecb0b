"""Runs a program below a command, with variables of its own: `dragoman proxy -- PROGRAM`,
`dragoman run PROGRAM`.

The program has this terminal, and its exit code is the command's. Signals go on to it. Ctrl-C does
not where it comes from a terminal, which sends it to both.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress

import anyio

from dragoman.cli.terminal import report
from dragoman.errors import DragomanError

__all__ = ["NOT_FOUND", "child_environment", "run_child"]

NOT_FOUND = 127
"""Exit code where there is no such program, as in shells."""
_NOT_RUNNABLE = 126
"""Exit code for a file that is no program, as in shells."""
_SIGNALLED = 128
"""Exit code of a program that a signal ended, less the signal's number, as in shells."""
_GRACE_SECONDS = 5.0
"""How long a program may take to end that is asked to."""
_NAMES = ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_OF_TERMINALS = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to a command and its child alike."""
_HERE = ("127.0.0.1", "localhost")


def child_environment(
    variables: Mapping[str, str | None], environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Returns the environment of a child: this process's, with these variables (None: without), and
    without an HTTP proxy between the child and this machine."""
    exceptions: dict[str, str] = {}
    for name in ("NO_PROXY", "no_proxy"):
        written = environment.get(name, "")
        hosts = [host.strip() for host in written.split(",") if host.strip()]
        exceptions[name] = ",".join(dict.fromkeys([*hosts, *_HERE]))
    changed = {**environment, **exceptions, **variables}
    return {name: text for name, text in changed.items() if text is not None}


async def run_child(command: Sequence[str], variables: Mapping[str, str | None]) -> int:
    """Runs a program to its end. Returns its exit code: 128 and the signal's number if a signal
    ended it, 127 or 126 with one line on standard error if it cannot be run.

    If this is cancelled, the program is asked to end, and killed 5 seconds later.

    Args:
        command: the program and its arguments.
        variables: environment variables that it has beside those of this process; None: not.
    """
    # Before the child, which may be seen, and signals be sent, before this goes on.
    with _forward_signals() as forwarder:
        return await _run(command, variables, forwarder)


async def _run(
    command: Sequence[str], variables: Mapping[str, str | None], forwarder: _Forwarder
) -> int:
    """Runs a program, to which signals go on; see `run_child`."""
    name = command[0]
    try:
        child = await asyncio.create_subprocess_exec(*command, env=child_environment(variables))
    except FileNotFoundError:
        report(DragomanError(f"there is no program {name!r}; write its name as in a shell"))
        return NOT_FOUND
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        report(DragomanError(f"the program {name!r} cannot be run: {reason}"))
        return _NOT_RUNNABLE
    forwarder.attach(child)
    try:
        code = await child.wait()
    finally:
        if child.returncode is None:
            # Cancelled: the server that the child talks to is about to go.
            await _end_child(child)
    return code if code >= 0 else _SIGNALLED - code


class _Forwarder:
    """Sends signals on to a child; those that come before it stands then."""

    def __init__(self) -> None:
        self._child: asyncio.subprocess.Process | None = None
        self._early: list[signal.Signals] = []

    def attach(self, child: asyncio.subprocess.Process) -> None:
        """Takes the child, and sends it what came before."""
        self._child = child
        for number in self._early:
            self.forward(number)

    def forward(self, number: signal.Signals) -> None:
        """Sends a signal on, unless the terminal does."""
        if number.name in _OF_TERMINALS and _has_terminal():
            return
        if self._child is None:
            self._early.append(number)
            return
        with suppress(ProcessLookupError):
            self._child.send_signal(number)


@contextmanager
def _forward_signals() -> Generator[_Forwarder]:
    """Sends the signals that this process gets within the block on to a child. Those that are
    ignored here stay so, as below `nohup`."""
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    caught = [number for number in numbers if before[number] is not signal.SIG_IGN]

    forwarder = _Forwarder()
    for number in caught:
        try:
            loop.add_signal_handler(number, forwarder.forward, number)
        except NotImplementedError:  # Windows, whose consoles send Ctrl-C to both
            signal.signal(number, _stay)
    try:
        yield forwarder
    finally:
        for number in caught:
            with suppress(NotImplementedError):  # Windows
                loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _stay(*_: object) -> None:
    """Does nothing on a signal."""


def _has_terminal() -> bool:
    """True if this process is in the foreground of a terminal."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


async def _end_child(child: asyncio.subprocess.Process) -> None:
    """Asks a child to end, kills it if it does not, and waits for its end."""
    with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
        child.terminate()
        with anyio.move_on_after(_GRACE_SECONDS):
            await child.wait()
            return
        child.kill()
        await child.wait()
