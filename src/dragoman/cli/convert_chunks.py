"""A piece of the input of `dragoman convert` → the same piece of its output. Pure, so that any process may do it."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.formats.conversion import Converted, convert, decoded, placed
from dragoman.message import Origin

__all__ = ["Chunk", "Done", "Errors", "Job", "Place", "Summary", "convert_chunk"]

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
    """What is done with a conversation of which something cannot be read: stop, leave it out, or write the rest of it."""
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


class Chunk(msgspec.Struct, frozen=True):
    """Conversations that follow each other in one file."""

    file: int
    """Place of the file among those given."""
    name: str
    """Its name, for people."""
    lines: list[tuple[int, bytes]]
    """Number of each conversation in the file, from 1, and its JSON: the line, or the element of a document."""
    size: int
    """Bytes of the input up to its end, packed ones as they are packed."""


class Done(msgspec.Struct, frozen=True):
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


def convert_chunk(job: Job, chunk: Chunk) -> Done:
    """Converts the conversations of a chunk, in order, up to one that stops it."""
    output: list[bytes] = []
    report: list[bytes] = []
    summary, last, error = Summary(), 0, None
    for number, text in chunk.lines:
        try:
            value = decoded(text)
            made = convert(
                value,
                job.to,
                format=job.source,
                version=job.version,
                origin=job.origin,
                target=job.target,
                errors="collect" if job.errors == "collect" else "raise",
                whole=job.place != "list",
            )
            problems = made.problems
        except HistoryError as raised:
            if job.errors == "raise":
                error = f"{chunk.name}, conversation {number}: {raised.message}"
                break
            raised.__traceback__ = None  # a frame that raised it holds it: a cycle, which keeps the whole chunk for long
            value, made, problems = None, None, [Problem(-1, None, raised.message)]
        last = number
        losses = [] if made is None else _losses(made, job)
        if made is not None:
            output.append(_line(made, value, job))
        summary += _counted(made, [loss["what"] for loss in losses], problems)
        if job.reports and (losses or problems):
            report.append(_reported(chunk.name, number, made, losses, problems))
    data = b"".join(output)
    return Done(
        gzip.compress(data, 6, mtime=0) if job.packs and data else data,
        b"".join(report),
        summary,
        last,
        error,
    )


def _line(made: Converted, value: Any, job: Job) -> bytes:
    payload = placed(
        made.payload,
        job.to,
        in_body=job.place == "body" or (job.place == "auto" and made.field != ""),
    )
    row = if_object(value)
    kept = {key: row[key] for key in job.keep if key in row}
    return json_bytes.encode({**kept, **payload} if kept else payload) + b"\n"


def _losses(made: Converted, job: Job) -> list[dict[str, Any]]:
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
        for loss in made.losses
        if loss.message is not None or loss.part is not None or loss.which not in job.keep
    ]


def _counted(made: Converted | None, lost: list[str], problems: Iterable[Any]) -> Summary:
    """What became of one conversation."""
    return Summary(
        1,
        int(made is None),
        int(bool(problems)),
        int(bool(lost)),
        {what: (lost.count(what), 1) for what in set(lost)},
    )


def _reported(
    name: str, number: int, made: Converted | None, losses: list[Any], problems: list[Problem]
) -> bytes:
    entry = {
        "file": name,
        "conversation": number,
        "format": "" if made is None else made.format,
        "written": made is not None,
        "losses": losses,
        "problems": [
            {"index": each.index, "field": each.field, "error": each.error} for each in problems
        ],
    }
    return json_bytes.encode(entry) + b"\n"
