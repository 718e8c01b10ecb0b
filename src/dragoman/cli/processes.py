"""`dragoman serve --processes`: runs the same command line in several processes."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Sequence

import typer

from dragoman.cli.terminal import echo

__all__ = ["run_processes"]


def run_processes(
    count: int, arguments: Sequence[str], host: str, port: int, drain_seconds: float
) -> int:
    """Serves with `count` processes until this one is asked to end. Returns the exit code.

    `arguments`: the whole command line, which each process has too.

    Raises:
        BadParameter: this system cannot pass connections to other processes.
        SettingsError: there is no such host, or the port is taken.
    """
    from dragoman.http_server.listener import open_listener, run_in_loop, server_url
    from dragoman.http_server.supervisor import Supervisor
    from dragoman.serve.http.counts import COUNT_BYTES
    from dragoman.serve.page.routes import SECRET_VARIABLE

    if not hasattr(socket, "send_fds"):
        raise typer.BadParameter(
            "several processes need Linux, macOS or another Unix", param_hint="--processes"
        )
    # Who signed in on the page with one process is known to all.
    os.environ.setdefault(SECRET_VARIABLE, secrets.token_hex(32))
    # Modules are looked up as in this process, which does not begin in the working directory.
    command = [sys.executable, "-P", "-m", "dragoman", *arguments]

    async def supervise(listener: socket.socket) -> int:
        supervisor = Supervisor(
            command,
            count,
            listener,
            server_url(host, listener),
            count_bytes=COUNT_BYTES,
            drain_seconds=drain_seconds,
            ready=echo,
        )
        return await supervisor.run()

    with open_listener(host, port) as listener:
        return run_in_loop(supervise(listener))
