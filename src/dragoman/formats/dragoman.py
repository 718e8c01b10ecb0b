"""Our own stored form, as JSON's values: what `Message.to_json` writes, one object a message.
Nothing is ever lost in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import check_depth, if_object
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role

__all__ = ["dump_messages", "load_messages", "name", "votes"]

name = "dragoman"


def votes(message: object) -> int:
    """Returns how surely an object is a stored message: 0 = cannot be, 1 = could be, 2 = likely, 3
    = hardly anything else."""
    fields = if_object(message)
    if type(fields.get("v")) is int and fields.get("role") in tuple(Role):
        return 3
    return 0


def load_messages(
    payload: object,
    *,
    origin: Origin | None = None,  # noqa: ARG001 each message has its own
    problems: list[Problem] | None = None,
) -> list[Message]:
    """Reads a list of stored messages. With `problems`, one that cannot be read is left out and
    noted there.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError("stored messages are a list of objects, as dump_messages() writes them")
    messages: list[Message] = []
    for index, stored in enumerate(cast("list[Any]", payload)):
        try:
            messages.append(Message.from_json(json_bytes.encode(check_depth(stored))))
        except HistoryError as error:
            note_problem(error, problems, index, None)
    return messages


def dump_messages(
    messages: Iterable[Message],
    *,
    target: Origin | None = None,  # noqa: ARG001 it is written for every reader alike
    losses: list[Loss] | None = None,  # noqa: ARG001 nothing is lost
) -> list[Json]:
    """Writes messages in their stored form."""
    return [msgspec.json.decode(message.to_json()) for message in messages]
