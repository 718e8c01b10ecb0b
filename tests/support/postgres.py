"""A Postgres on this machine, for the tests that want one: Debian's package, run as a user that is
not root, gone with the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

USER = "postgres"
_numbers = count()


def programs() -> Path | None:
    """Where `initdb` and `pg_ctl` are; `None`: there is no Postgres."""
    places = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    if found := shutil.which("initdb"):
        places.append(Path(found).resolve().parent)
    return next((place for place in places if (place / "initdb").exists()), None)


@contextmanager
def postgres() -> Iterator[str]:
    """Runs a server on a free port of the loopback interface → the URL of its databases, without a
    name."""
    place = programs()
    assert place is not None
    as_root = os.geteuid() == 0
    folder = Path(tempfile.mkdtemp(prefix="dragoman-postgres-"))
    if as_root:
        entry = pwd.getpwnam(USER)
        os.chown(folder, entry.pw_uid, entry.pw_gid)

    def run(program: str, *arguments: str) -> None:
        command = [
            *(["runuser", "-u", USER, "--"] if as_root else []),
            str(place / program),
            *arguments,
        ]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            log = folder / "log"
            raise RuntimeError(f"{program}: {done.stderr}{log.read_text() if log.exists() else ''}")

    data = folder / "data"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c max_connections=200"
    try:
        run(
            "initdb",
            "-D",
            str(data),
            "-U",
            USER,
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        )
        run("pg_ctl", "-D", str(data), "-l", str(folder / "log"), "-w", "-o", options, "start")
        try:
            yield f"postgresql://{USER}@127.0.0.1:{port}"
        finally:
            run("pg_ctl", "-D", str(data), "-m", "immediate", "-w", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(server: str) -> str:
    """An empty database → its URL."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")  # type: ignore[arg-type]
    return f"{server}/{name}"
