"""How many processes serve one application, as far as a worker of uvicorn or gunicorn can tell.

Answers that are kept in memory belong to one process: with several, the next request of a client
finds its answer only by chance. A worker is not told how many it is one of, so the signs are read:
the command line, WEB_CONCURRENCY, and the name that multiprocessing gave this process.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from collections.abc import Mapping, Sequence

from dragoman.errors import SettingsError

__all__ = ["check_durable", "check_processes", "count_processes"]

_WORKERS = re.compile(r"(?:--workers|-w)=?(\d{1,4})?")
_SPAWNED = re.compile(r"SpawnProcess-(\d{1,4})")


def count_processes(
    arguments: Sequence[str] | None = None,
    environment: Mapping[str, str] = os.environ,
    process_name: str | None = None,
) -> int:
    """Returns how many processes there are at least.

    Args:
        arguments: the command line; by default that of this process, which a worker inherits.
        environment: where WEB_CONCURRENCY may be.
        process_name: name of this process, `SpawnProcess-2` for the second worker that uvicorn starts.
    """
    arguments = sys.argv if arguments is None else arguments
    if process_name is None:
        process_name = multiprocessing.current_process().name
    spawned = _SPAWNED.fullmatch(process_name)
    counts = [1, *([int(spawned[1])] if spawned else [])]
    if environment.get("WEB_CONCURRENCY", "").isdecimal():
        counts.append(int(environment["WEB_CONCURRENCY"]))
    for index, argument in enumerate(arguments):
        # `--workers 4` and `--workers=4` are both common.
        if option := _WORKERS.fullmatch(argument):
            value = option[1] or next(iter(arguments[index + 1 : index + 2]), "")
            counts.append(int(value) if value.isdecimal() else 1)
    return max(counts)


def check_processes(in_memory: Sequence[str], count: int) -> None:
    """Refuses to keep something in memory with more than one process. `in_memory`: what is, with
    the argument that says where.

    Raises:
        SettingsError: that is asked for.
    """
    if in_memory and count > 1:
        raise SettingsError(
            f"this application runs in {count} processes or more, and keeps {' and '.join(in_memory)} in the memory of each: "
            'a client would find them only by chance. Give a database that they share, such as "sqlite:///server.db" '
            'or "postgresql://…", keep none (store=None, --store none), or serve with one process'
        )


def check_durable(store: object, log: object, *, durable: bool, drives: bool) -> None:
    """Checks that runs can outlive the server. `store`, `log`: those of `serve.app`.

    Raises:
        SettingsError: nothing is kept, it is kept in memory only, or `drives` means nothing.
    """
    if not (durable or drives):
        raise SettingsError(
            "only durable runs can be left to other processes: drives=False needs durable=True "
            "(--no-drive needs --durable)"
        )
    if not durable:
        return
    from dragoman.runs.memory_log import MemoryLog

    has_log = isinstance(store, str) if log is None else not isinstance(log, MemoryLog)
    if store in (None, "memory:") or not has_log:
        raise SettingsError(
            "durable runs outlive the process, so answers and the log must be in a database: "
            'give store="sqlite:///server.db" or "postgresql://…" (--store)'
        )
