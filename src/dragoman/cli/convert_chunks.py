"""Converts chunks of conversations for `dragoman convert`, in several processes.

`convert_chunk` is pure, so any process may run it. `convert_chunks` starts processes and hands each
one the next chunks, over a pipe of its own: a process ends when its pipe closes, so none
outlives the command. Each has a chunk waiting, so that it converts while this process writes.
Results are yielded in input order. Chunks that are ready early wait, up to a limit, so that memory
stays bounded.
"""

from __future__ import annotations

import gc
import gzip
import signal
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from threading import Thread
from typing import Any, Literal, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import Problem
from dragoman.errors import DragomanError, HistoryError
from dragoman.formats.conversion import (
    Converted,
    convert_and_read,
    decode_line,
    keep_training_fields,
    place_in_body,
)
from dragoman.json_bytes import Json
from dragoman.message import Message, Origin, Role

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
Place = Literal["auto", "list", "body", "training"]
_BODIES = ("body", "training")


class Job(msgspec.Struct, frozen=True):
    """What to do with each conversation."""

    to: str
    """The name of the target format."""
    source: str | None = None
    """The name of the source format; `None` detects it for each conversation."""
    version: str | None = None
    """The version of the target format."""
    origin: Origin | None = None
    """The model that wrote the conversations, if their format does not say."""
    target: Origin | None = None
    """The model that will read them."""
    errors: Errors = "raise"
    """What to do if a part of a conversation cannot be read: stop, leave the conversation out, or
    write the rest of it."""
    place: Place = "auto"
    """Write lists of messages alone (`list`), in a body (`body`), in a body with nothing but messages
    and tools (`training`), or as in the input (`auto`)."""
    keep: tuple[str, ...] = ()
    """Fields of a body to copy."""
    answered: bool = False
    """True to leave out conversations whose last message is no answer."""
    reports: bool = False
    """True to report losses and problems one by one."""
    packs: bool = False
    """True to compress the output with gzip."""


class Summary(msgspec.Struct, frozen=True):
    """Numbers of converted conversations."""

    conversations: int = 0
    """Conversations of the input."""
    left_out: int = 0
    """Conversations that were not written."""
    unanswered: int = 0
    """Those of them that were left out because they end without an answer."""
    unreadable: int = 0
    """Conversations with something unreadable."""
    lossy: int = 0
    """Conversations with something that the target format cannot hold."""
    lost: dict[str, tuple[int, int]] = {}
    """Kind of loss → how often it occurred, and in how many conversations."""

    def __add__(self, other: Summary) -> Summary:
        """Returns the sum of the summaries of two chunks of converted conversations."""
        lost = dict(self.lost)
        for what, (pieces, conversations) in other.lost.items():
            before = lost.get(what, (0, 0))
            lost[what] = (before[0] + pieces, before[1] + conversations)
        return Summary(
            self.conversations + other.conversations,
            self.left_out + other.left_out,
            self.unanswered + other.unanswered,
            self.unreadable + other.unreadable,
            self.lossy + other.lossy,
            lost,
        )


class InputChunk(msgspec.Struct, frozen=True):
    """Consecutive conversations of one file."""

    file: int
    """The index of the file among the arguments."""
    name: str
    """The file's name, for messages."""
    lines: list[tuple[int, bytes]]
    """The number of each conversation in the file, from 1, and its JSON."""
    size: int
    """Bytes of the whole input up to the chunk's end, compressed ones as they are."""


class ConvertedChunk(msgspec.Struct, frozen=True):
    """The result of a chunk."""

    output: bytes
    """The converted conversations, one per line."""
    report: bytes
    """Losses and problems, one line for each conversation with any."""
    summary: Summary
    """The numbers of this chunk."""
    last: int
    """The number of the last finished conversation; 0 if there is none."""
    error: str | None = None
    """Why the next conversation stops the conversion."""


_UNANSWERED = Problem(-1, None, "its last message is no answer")


def _ends_with_answer(messages: Sequence[Message]) -> bool:
    """True if the last message is one of the model that holds something."""
    return bool(messages and messages[-1].role is Role.MODEL and messages[-1].content)


def convert_chunk(job: Job, chunk: InputChunk) -> ConvertedChunk:
    """Converts the conversations of a chunk in order, up to one that stops the conversion."""
    output: list[bytes] = []
    report: list[bytes] = []
    summary, last, error = Summary(), 0, None
    for number, text in chunk.lines:
        try:
            value = decode_line(text)
            conversion, messages = convert_and_read(
                value,
                job.to,
                format_name=job.source,
                version=job.version,
                origin=job.origin,
                target=job.target,
                problems=[] if job.errors == "collect" else None,
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
            messages = []
        last = number
        if job.answered and conversion is not None and not _ends_with_answer(messages):
            summary += Summary(1, left_out=1, unanswered=1, unreadable=int(bool(problems)))
            if job.reports:
                problems = [*problems, _UNANSWERED]
                report.append(_format_report(chunk.name, number, None, [], problems))
            continue
        losses: list[Json] = []
        if conversion is not None:
            losses = _losses_to_json(conversion, job)
            output.append(_format_line(conversion, value, job))
        summary += _summarize_conversation(conversion, [loss["what"] for loss in losses], problems)
        if job.reports and (losses or problems):
            report.append(_format_report(chunk.name, number, conversion, losses, problems))
    data = b"".join(output)
    # A file of several gzip members is one gzip file. Without a time, a resumed run gives the
    # same bytes.
    if job.packs and data:
        data = gzip.compress(data, 6, mtime=0)
    return ConvertedChunk(data, b"".join(report), summary, last, error)


def _format_line(conversion: Converted, value: Any, job: Job) -> bytes:
    """Returns a converted conversation as a line of the output."""
    payload = place_in_body(
        conversion.payload,
        job.to,
        in_body=job.place in _BODIES or (job.place == "auto" and conversion.field != ""),
    )
    if job.place == "training":
        payload = keep_training_fields(payload, job.to)
    row = if_object(value)
    if copied := {key: row[key] for key in job.keep if key in row}:
        payload = {**copied, **payload}
    return json_bytes.encode(payload) + b"\n"


def _losses_to_json(conversion: Converted, job: Job) -> list[Json]:
    """Returns the losses of a converted conversation for the report. A lost field that is copied
    anyway is no loss."""
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
        # Losses without a position are fields of the body.
        if loss.message is not None or loss.part is not None or loss.which not in job.keep
    ]


def _summarize_conversation(
    conversion: Converted | None, lost: list[str], problems: Iterable[Any]
) -> Summary:
    """Returns the numbers of one converted conversation for the summary."""
    return Summary(
        1,
        left_out=int(conversion is None),
        unreadable=int(bool(problems)),
        lossy=int(bool(lost)),
        lost={what: (lost.count(what), 1) for what in set(lost)},
    )


def _format_report(
    name: str, number: int, conversion: Converted | None, losses: list[Any], problems: list[Problem]
) -> bytes:
    """Returns the line of the JSONL report about one converted conversation."""
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
"""Chunks per process that may be ready before their turn."""


def convert_chunks(
    job: Job, chunks: Iterator[InputChunk], jobs: int
) -> Generator[tuple[InputChunk, ConvertedChunk]]:
    """Yields each chunk with its result, in order, converted by `jobs` processes, or in this
    process if there is only one chunk.

    Raises:
        DragomanError: a process was killed.
    """
    # Starting processes takes longer than one chunk.
    first = list(islice(chunks, 2))
    if jobs == 1 or len(first) < 2:
        yield from ((chunk, _convert_at_once(job, chunk)) for chunk in chain(first, chunks))
        return
    with _start_processes(job, jobs) as idle:
        yield from _share_chunks(chain(first, chunks), idle)


def _share_chunks(
    chunks: Iterator[InputChunk], processes: list[Connection]
) -> Iterator[tuple[InputChunk, ConvertedChunk]]:
    """Gives chunks to processes and yields the results in order."""
    most = _AHEAD * len(processes)
    # Each takes two: one waits in the process, which never has to wait for this one.
    free = processes * 2
    busy = {connection: deque[tuple[int, InputChunk]]() for connection in processes}
    done: dict[int, tuple[InputChunk, ConvertedChunk]] = {}
    count = turn = 0
    while True:
        # Ready chunks count too: a slow first chunk must not let them fill the memory.
        while free and count - turn < most and (chunk := next(chunks, None)) is not None:
            connection = free.pop()
            connection.send(chunk)
            busy[connection].append((count, chunk))
            count += 1
        if count == turn:
            return
        for ready in wait([connection for connection in processes if busy[connection]]):
            connection = cast("Connection", ready)
            number, chunk = busy[connection].popleft()
            done[number] = (chunk, _receive_chunk_result(connection))
            free.append(connection)
        while turn in done:
            yield done.pop(turn)
            turn += 1


def _receive_chunk_result(connection: Connection) -> ConvertedChunk:
    """Returns the result that a process sends.

    Raises:
        DragomanError: the process was killed, or the conversion raised an error.
    """
    try:
        result = connection.recv()
    except (EOFError, OSError) as error:
        # A pipe that breaks in the middle of a message raises a plain OSError.
        raise DragomanError(
            "a process of the conversion was killed, perhaps because memory ran out; try fewer --jobs"
        ) from error
    if isinstance(result, BaseException):
        raise result
    return result


@contextmanager
def _start_processes(job: Job, jobs: int) -> Generator[list[Connection]]:
    """Starts processes that convert chunks, yields a pipe to each, and ends them with the block."""
    # Forked processes would share locks and threads of this one.
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
        # Only the process may hold its end, or the pipe would never end.
        theirs.close()
    try:
        yield [connection for connection, _ in pipes]
    finally:
        for connection, _ in pipes:
            connection.close()
        for process in processes:
            # A process may be in the middle of a chunk that nobody needs any more.
            process.terminate()
            process.join()


def _convert_at_once(job: Job, chunk: InputChunk) -> ConvertedChunk:
    """Converts a chunk with the garbage collector paused: nearly all that a conversation makes is
    freed without it."""
    gc.disable()
    try:
        return convert_chunk(job, chunk)
    finally:
        gc.enable()


def _receive_chunks(connection: Connection, chunks: SimpleQueue[InputChunk | None]) -> None:
    """Receives chunks until the pipe is closed; then `None` is the last."""
    try:
        while True:
            chunks.put(connection.recv())
    except (EOFError, OSError):
        chunks.put(None)


def _run_process(job: Job, connection: Connection) -> None:
    """Converts chunks from a pipe until it is closed. Runs in its own process."""
    chunks: SimpleQueue[InputChunk | None] = SimpleQueue()
    # What is sent is always received at once, so that neither end waits for the other's.
    Thread(target=_receive_chunks, args=(connection, chunks), daemon=True).start()
    while (chunk := chunks.get()) is not None:
        try:
            result: ConvertedChunk | Exception = _convert_at_once(job, chunk)
        except Exception as error:  # noqa: BLE001 - a plug-in may raise anything, and the command waits for a result
            result = DragomanError(
                f"a conversation of {chunk.name} could not be converted: {type(error).__name__}: {error}"
            )
        try:
            connection.send(result)
        except OSError:
            return
