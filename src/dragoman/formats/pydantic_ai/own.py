"""What stands in `native` of this format: the fields of an object of pydantic-ai's that differ from what would be written for the
neutral piece alone. So whatever is read is written again as it was, and nothing is held twice."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from dragoman.codec.json_values import if_list
from dragoman.codec.native import Own
from dragoman.message import Content, Native

__all__ = ["NAME", "OWN", "applied", "as_read", "noted_as", "read_time", "whole", "written_time"]

NAME = "pydantic_ai"

OWN = Own(NAME)
"""Its part of `native`."""

P = TypeVar("P", bound=Content)


def as_read(piece: P, read: Mapping[str, Any], made: Mapping[str, Any], **form: Any) -> P:
    """The piece with a note of how the object that it was read from differs from `made`, which would be written for it."""
    return msgspec.structs.replace(piece, native=noted_as(piece.native, read, made, **form))


def noted_as(native: Native, read: Mapping[str, Any], made: Mapping[str, Any], **form: Any) -> Native:
    """The same of a native mapping, to which it is added."""
    own = {key: value for key, value in read.items() if key not in made or not _is_same(made[key], value)}
    if absent := [key for key in made if key not in read]:
        form["absent"] = absent
    if own:
        native = {**(native or {}), NAME: own}
    return {**(native or {}), **(OWN.with_form(native, **form) or {})} if form else native


def applied(native: Native, made: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse: what would be written for a piece alone → the object as it was read."""
    absent = if_list(OWN.form(native).get("absent"))
    return {**{key: value for key, value in made.items() if key not in absent}, **OWN.fields(native)}


def whole(native: Native) -> Any:
    """The JSON value that a piece was read from, where all of it is kept; `None`: it is not."""
    kept = if_list(OWN.notes(native).get("whole"))
    return kept[0] if kept else None


def read_time(text: Any) -> datetime | None:
    """A time as it is stored → the time; `None` where it is none, or none that is known to the zone."""
    try:
        time = datetime.fromisoformat(text)
        return None if time.tzinfo is None else time.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None


def written_time(time: datetime) -> str:
    """The inverse, as the library writes it."""
    return (
        (time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)).isoformat().replace("+00:00", "Z")
    )


def _is_same(made: Any, read: Any) -> bool:
    return made is read or (type(made) is type(read) and made == read)
