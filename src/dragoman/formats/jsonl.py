"""Files with a conversation on each line, in any format: training data, recorded bodies of requests, exports. Never more than a line of
them is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dragoman import json_bytes
from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.formats.reading import read
from dragoman.message import Message

__all__ = ["Line", "decoded", "read_jsonl"]


class Line(NamedTuple):
    """A line that holds a conversation."""

    number: int
    """Of the line in the file, from 1."""
    format: str
    """Name of the format of its messages, of the first where there are several; empty: plain texts, or nothing that can be read."""
    messages: list[Message]
    """The conversation."""
    problems: list[Problem]
    """What of it could not be read; index -1: the line as a whole."""


def read_jsonl(
    source: str | Path | Iterable[bytes | str],
    *,
    format: str | None = None,  # noqa: A002 the word that the whole library has for it
    errors: Literal["raise", "collect"] = "raise",
) -> Iterator[Line]:
    """The conversations of a file, one after the other: a line is a list of messages, the body of a request or any other object that holds
    such a list, or a text, which is the user's. Lines that are empty are passed over.

    `source`: the file's path, or what gives its lines, such as an open file. `format`: of all lines; otherwise it is told of each.
    `errors`: what is to be done where something cannot be read: raise, or note it in the line's problems and go on.

    Raises:
        HistoryError: a line cannot be read and `errors` is "raise"; it names the line.
        OSError: the file cannot be read.
    """
    if isinstance(source, str | Path):
        with Path(source).open("rb") as file:
            yield from read_jsonl(file, format=format, errors=errors)
        return
    for number, text in enumerate(source, start=1):
        if not text.strip():
            continue
        problems: list[Problem] | None = [] if errors == "collect" else None
        try:
            name, _, messages = read(decoded(text), format, problems)
        except HistoryError as error:
            if problems is None:
                raise HistoryError(f"line {number}: {error.message}") from error
            name, messages = "", []
            problems.append(Problem(-1, None, error.message))
        yield Line(number, name, messages, problems or [])


def decoded(text: bytes | str) -> Any:
    """A line → its value.

    Raises:
        HistoryError: it is no JSON.
    """
    try:
        return json_bytes.decode(text)
    except ValueError as error:
        raise HistoryError(f"it is no JSON: {error}") from error
