"""Processes that convert chunks side by side. Each has a pipe of its own, so that it ends when the command does, however that ends."""

from __future__ import annotations

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import cast

from dragoman.cli.convert_chunks import Chunk, Done, Job, convert_chunk
from dragoman.errors import DragomanError

__all__ = ["converted"]

_AHEAD = 4
"""Chunks for each process that may be done before their turn."""


def converted(job: Job, chunks: Iterator[Chunk], jobs: int) -> Generator[tuple[Chunk, Done]]:
    """Each chunk as it is converted, in order; by as many processes as `jobs` says, or here where there is one chunk alone.

    Raises:
        DragomanError: a process was ended by somebody else.
    """
    first = list(islice(chunks, 2))
    if jobs == 1 or len(first) < 2:
        yield from ((chunk, convert_chunk(job, chunk)) for chunk in chain(first, chunks))
        return
    with _started(job, jobs) as idle:
        yield from _shared(chain(first, chunks), idle)


def _shared(chunks: Iterator[Chunk], idle: list[Connection]) -> Iterator[tuple[Chunk, Done]]:
    """Chunks given to whoever is idle; what is done before its turn waits, and is bounded."""
    most = _AHEAD * len(idle)
    busy: dict[Connection, tuple[int, Chunk]] = {}
    done: dict[int, tuple[Chunk, Done]] = {}
    numbered = enumerate(chunks)
    turn, more = 0, True
    while more or busy or done:
        while more and idle and len(busy) + len(done) < most:
            each = next(numbered, None)
            if each is None:
                more = False
                break
            connection = idle.pop()
            connection.send(each[1])
            busy[connection] = each
        for ready in wait(list(busy)) if busy else ():
            connection = cast("Connection", ready)
            number, chunk = busy.pop(connection)
            done[number] = (chunk, _received(connection))
            idle.append(connection)
        while turn in done:
            yield done.pop(turn)
            turn += 1


def _received(connection: Connection) -> Done:
    try:
        found = connection.recv()
    except (EOFError, OSError) as error:  # in the middle of a message it is no ConnectionError
        raise DragomanError(
            "a process of the conversion was ended from outside, perhaps for want of memory; try fewer --jobs"
        ) from error
    if isinstance(found, BaseException):
        raise found
    return found


@contextmanager
def _started(job: Job, jobs: int) -> Generator[list[Connection]]:
    """So many processes, by their pipes. They end with the block."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(jobs)]
    before = signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # which they inherit: Ctrl-C is for the command alone
    try:
        processes = [
            context.Process(target=_work, args=(job, theirs), daemon=True) for _, theirs in pipes
        ]
        for process in processes:
            process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    for _, theirs in pipes:
        theirs.close()
    try:
        yield [ours for ours, _ in pipes]
    finally:
        for ours, _ in pipes:
            ours.close()
        for process in processes:
            process.terminate()
            process.join()


def _work(job: Job, connection: Connection) -> None:
    """What a process does: chunks, until there are no more."""
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        try:
            found: Done | Exception = convert_chunk(job, chunk)
        except Exception as error:  # noqa: BLE001 a fault of a plug-in, say, which whoever waits must hear of
            found = DragomanError(
                f"a conversation of {chunk.name} could not be converted: {type(error).__name__}: {error}"
            )
        try:
            connection.send(found)
        except OSError:
            return
