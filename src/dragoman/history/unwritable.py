"""Messages that hold what JSON has not: looked for when something fails, so that all others cost nothing."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.errors import HistoryError
from dragoman.message import Message, ToolCallPart, ToolResultPart

__all__ = ["unwritable_named"]

_encode = msgspec.json.Encoder(order="deterministic").encode


@contextmanager
def unwritable_named(messages: Iterable[Message]) -> Generator[None]:
    """Names the first message that is no JSON where something fails because of one.

    Raises:
        HistoryError: there is one.
    """
    try:
        yield
    except (
        HistoryError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        for position, message in enumerate(messages):
            if (fault := _fault(message)) is not None:
                raise HistoryError(
                    f"messages[{position}] cannot be written as JSON: {fault or type(fault).__name__}; arguments, results, metadata and "
                    "native hold texts, numbers, booleans, null, and lists and objects with string keys of them"
                ) from error
        raise


def _fault(message: Message) -> Exception | None:
    for value in _values(message):
        try:
            json.dumps(value)
            json_bytes.bound(_encode(value))
        except UnicodeEncodeError:  # half a pair of surrogates, which is written escaped
            continue
        except (TypeError, ValueError, RecursionError, OverflowError) as fault:
            return fault
    return None


def _values(message: Message) -> Iterator[Any]:
    """What of a message may be any value."""
    yield from (message.metadata, message.native)
    for piece in message.content:
        yield piece.native
        if isinstance(piece, ToolCallPart):
            yield piece.arguments
        elif isinstance(piece, ToolResultPart) and not piece.is_content:
            yield piece.result
