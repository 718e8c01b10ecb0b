"""A piece of the input of `dragoman convert` → the same piece of its output (`convert_chunk`); and
processes that do so side by side.

`convert_chunk` is pure, so that any process may do it. Each process has a pipe of its own, so that
it ends when the command does, however that ends. Chunks that are done before their turn wait, and
are bounded.
"""

from __future__ import annotations

import gzip
import signal
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any, Literal, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import Problem
from dragoman.errors import DragomanError, HistoryError
from dragoman.formats.conversion import Converted, convert, decode_line, place_in_body
from dragoman.json_bytes import Json
from dragoman.message import Origin

__all__ = [
    "InputChunk",
    "ConvertedChunk",
    "Errors",
    "Job",
    "Place",
    "Summary",
    "convert_chunk",
    "convert_chunks",
]

Errors = Literal["raise", "skip", "collect"]
Place = Literal["auto", "list", "body"]


class Job(msgspec.Struct, frozen=True):
    """What is to be done with each conversation."""

    to: str
    """Name of the format that is written."""
    source: str | None = None
    """Name of the format that is read; `None`: it is told of each conversation."""
    version: str | None = None
    """Of the format that is written."""
    origin: Origin | None = None
    """Who wrote it, where its format does not say."""
    target: Origin | None = None
    """Who will read it."""
    errors: Errors = "raise"
    """What is done with a conversation of which something cannot be read: stop, leave it out, or
    write the rest of it."""
    place: Place = "auto"
    """Whether a list of messages stands alone or in a body."""
    keep: tuple[str, ...] = ()
    """Fields beside a conversation that are copied."""
    reports: bool = False
    """Whether losses and problems are noted one by one."""
    packs: bool = False
    """Whether the output is gzip's."""


class Summary(msgspec.Struct, frozen=True):
    """What became of conversations."""

    conversations: int = 0
    """That were read, or should have been."""
    left_out: int = 0
    """Of these: of which nothing was written."""
    unreadable: int = 0
    """Of these: of which something could not be read."""
    lossy: int = 0
    """Of these: of which the new format does not hold something."""
    lost: dict[str, tuple[int, int]] = {}
    """What was lost → how often, and in how many conversations."""

    def __add__(self, other: Summary) -> Summary:
        lost = dict(self.lost)
        for what, (pieces, conversations) in other.lost.items():
            before = lost.get(what, (0, 0))
            lost[what] = (before[0] + pieces, before[1] + conversations)
        return Summary(
            self.conversations + other.conversations,
            self.left_out + other.left_out,
            self.unreadable + other.unreadable,
            self.lossy + other.lossy,
            lost,
        )


class InputChunk(msgspec.Struct, frozen=True):
    """Conversations that follow each other in one file."""

    file: int
    """Place of the file among those given."""
    name: str
    """Its name, for people."""
    lines: list[tuple[int, bytes]]
    """Number of each conversation in the file, from 1, and its JSON: the line, or the element of a
    document."""
    size: int
    """Bytes of the input up to its end, packed ones as they are packed."""


class ConvertedChunk(msgspec.Struct, frozen=True):
    """A chunk that is converted."""

    output: bytes
    """Conversations, a line each."""
    report: bytes
    """Losses and problems, a line for each conversation that has any."""
    summary: Summary
    """What became of them."""
    last: int
    """Number of the last conversation that is done; 0: none."""
    error: str | None = None
    """Why the next one stops it all."""


def convert_chunk(job: Job, chunk: InputChunk) -> ConvertedChunk:
    """Converts the conversations of a chunk, in order, up to one that stops it."""
    output: list[bytes] = []
    report: list[bytes] = []
    summary, last, error = Summary(), 0, None
    for number, text in chunk.lines:
        try:
            value = decode_line(text)
            conversion = convert(
                value,
                job.to,
                format=job.source,
                version=job.version,
                origin=job.origin,
                target=job.target,
                errors="collect" if job.errors == "collect" else "raise",
                whole=job.place != "list",
            )
            problems = conversion.problems
        except HistoryError as raised:
            if job.errors == "raise":
                error = f"{chunk.name}, conversation {number}: {raised.message}"
                break
            # The traceback's frame holds the error: a cycle, which would keep the whole chunk in
            # memory.
            raised.__traceback__ = None
            value, conversion, problems = None, None, [Problem(-1, None, raised.message)]
        last = number
        losses = [] if conversion is None else _losses_to_json(conversion, job)
        if conversion is not None:
            output.append(_format_line(conversion, value, job))
        summary += _summarize(conversion, [loss["what"] for loss in losses], problems)
        if job.reports and (losses or problems):
            report.append(_format_report(chunk.name, number, conversion, losses, problems))
    data = b"".join(output)
    return ConvertedChunk(
        gzip.compress(data, 6, mtime=0) if job.packs and data else data,
        b"".join(report),
        summary,
        last,
        error,
    )


def _format_line(conversion: Converted, value: Any, job: Job) -> bytes:
    payload = place_in_body(
        conversion.payload,
        job.to,
        in_body=job.place == "body" or (job.place == "auto" and conversion.field != ""),
    )
    row = if_object(value)
    copied = {key: row[key] for key in job.keep if key in row}
    return json_bytes.encode({**copied, **payload} if copied else payload) + b"\n"


def _losses_to_json(conversion: Converted, job: Job) -> list[Json]:
    """The losses of a conversation, as they are reported."""
    return [
        {
            "message": loss.message,
            "part": loss.part,
            "what": loss.what.value,
            "which": loss.which,
            "why": loss.why,
            "minor": loss.is_minor,
        }
        for loss in conversion.losses
        if loss.message is not None or loss.part is not None or loss.which not in job.keep
    ]


def _summarize(conversion: Converted | None, lost: list[str], problems: Iterable[Any]) -> Summary:
    """What became of one conversation."""
    return Summary(
        1,
        int(conversion is None),
        int(bool(problems)),
        int(bool(lost)),
        {what: (lost.count(what), 1) for what in set(lost)},
    )


def _format_report(
    name: str, number: int, conversion: Converted | None, losses: list[Any], problems: list[Problem]
) -> bytes:
    entry = {
        "file": name,
        "conversation": number,
        "format": "" if conversion is None else conversion.format,
        "written": conversion is not None,
        "losses": losses,
        "problems": [
            {"index": problem.index, "field": problem.field, "error": problem.error}
            for problem in problems
        ],
    }
    return json_bytes.encode(entry) + b"\n"


_AHEAD = 4
"""Chunks for each process that may be done before their turn."""


def convert_chunks(
    job: Job, chunks: Iterator[InputChunk], jobs: int
) -> Generator[tuple[InputChunk, ConvertedChunk]]:
    """Each chunk as it is converted, in order; by as many processes as `jobs` says, or here where
    there is one chunk alone.

    Raises:
        DragomanError: a process was ended by somebody else.
    """
    first = list(islice(chunks, 2))
    if jobs == 1 or len(first) < 2:
        yield from ((chunk, convert_chunk(job, chunk)) for chunk in chain(first, chunks))
        return
    with _start_processes(job, jobs) as idle:
        yield from _share_chunks(chain(first, chunks), idle)


def _share_chunks(
    chunks: Iterator[InputChunk], idle: list[Connection]
) -> Iterator[tuple[InputChunk, ConvertedChunk]]:
    """Chunks given to whoever is idle; what is done before its turn waits, and is bounded."""
    most = _AHEAD * len(idle)
    busy: dict[Connection, tuple[int, InputChunk]] = {}
    done: dict[int, tuple[InputChunk, ConvertedChunk]] = {}
    numbered = enumerate(chunks)
    turn, more = 0, True
    while more or busy or done:
        while more and idle and len(busy) + len(done) < most:
            entry = next(numbered, None)
            if entry is None:
                more = False
                break
            connection = idle.pop()
            connection.send(entry[1])
            busy[connection] = entry
        for ready in wait(list(busy)) if busy else ():
            connection = cast("Connection", ready)
            number, chunk = busy.pop(connection)
            done[number] = (chunk, _receive(connection))
            idle.append(connection)
        while turn in done:
            yield done.pop(turn)
            turn += 1


def _receive(connection: Connection) -> ConvertedChunk:
    try:
        result = connection.recv()
    except (EOFError, OSError) as error:
        # In the middle of a message it is no ConnectionError.
        raise DragomanError(
            "a process of the conversion was ended from outside, perhaps for want of memory; try fewer --jobs"
        ) from error
    if isinstance(result, BaseException):
        raise result
    return result


@contextmanager
def _start_processes(job: Job, jobs: int) -> Generator[list[Connection]]:
    """So many processes, by their pipes. They end with the block."""
    context = get_context("spawn")
    pipes = [context.Pipe() for _ in range(jobs)]
    # The processes inherit this: Ctrl-C is for the command alone.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        processes = [
            context.Process(target=_run_process, args=(job, theirs), daemon=True)
            for _, theirs in pipes
        ]
        for process in processes:
            process.start()
    finally:
        signal.signal(signal.SIGINT, before)
    for _, theirs in pipes:
        theirs.close()
    try:
        yield [connection for connection, _ in pipes]
    finally:
        for connection, _ in pipes:
            connection.close()
        for process in processes:
            process.terminate()
            process.join()


def _run_process(job: Job, connection: Connection) -> None:
    """What a process does: chunks, until there are no more."""
    while True:
        try:
            chunk = connection.recv()
        except (EOFError, OSError):
            return
        try:
            result: ConvertedChunk | Exception = convert_chunk(job, chunk)
        except Exception as error:  # noqa: BLE001 a fault of a plug-in, say, which whoever waits must hear of
            result = DragomanError(
                f"a conversation of {chunk.name} could not be converted: {type(error).__name__}: {error}"
            )
        try:
            connection.send(result)
        except OSError:
            return
