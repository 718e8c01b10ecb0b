"""A conversation in any format → its messages, with what of it cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple, cast

from dragoman.codec.json_values import if_list
from dragoman.codec.serving import Problem
from dragoman.formats.detection import Detected, detected_in, opened
from dragoman.formats.registry import get, layout
from dragoman.message import Message, Origin

__all__ = ["Conversation", "read"]


class Conversation(NamedTuple):
    """What a conversation is read as."""

    format: str
    """Name of its format, of the first where there are several; empty: plain texts."""
    field: str
    """Field of the body that held it; empty: none did."""
    messages: list[Message]
    """All of it."""


def read(
    value: Any, given: str | None, problems: list[Problem] | None, origin: Origin | None = None
) -> Conversation:
    """A conversation as JSON has it → its messages. `given`: the name of its format, which otherwise is told by its structure. `origin` is
    given to the model's messages where they do not say whose they are. With `problems`, what cannot be read is left out and noted there.

    Raises:
        HistoryError: it is no conversation, or something in it cannot be read and no problems are noted.
    """
    found: list[Detected] = []
    messages: list[Message] = []
    start, field = 0, ""
    for plain, part in _parts(value):
        if plain:
            messages += [Message.user(text) for text in part if text]
        else:
            it = opened(part)
            field = it.field
            whole = (
                None
                if given is None
                else [Detected(given, layout(given).payload(it.messages, it.body))]
            )
            runs = detected_in(it) if whole is None else whole
            found += runs
            for name, payload, at in runs:
                noted: list[Problem] | None = None if problems is None else []
                messages += get(name).load_messages(payload, origin=origin, problems=noted)
                for index, of_field, error in (
                    (each.index, each.field, each.error) for each in noted or ()
                ):
                    cast("list[Problem]", problems).append(
                        Problem(index if index < 0 else start + at + index, of_field, error)
                    )
        start += len(if_list(part))
    return Conversation(found[0].format if found else "", field, messages)


def _parts(value: Any) -> Iterator[tuple[bool, Any]]:
    """A conversation, apart at its plain texts → whether it is such texts, and they or the rest."""
    if isinstance(value, str):
        yield True, [value]
    elif not isinstance(value, list):
        yield False, value
    elif not any(isinstance(each, str) for each in cast("list[Any]", value)):
        yield False, cast("list[Any]", value)
    else:
        for plain, part in groupby(cast("list[Any]", value), lambda each: isinstance(each, str)):
            yield plain, list(part)
