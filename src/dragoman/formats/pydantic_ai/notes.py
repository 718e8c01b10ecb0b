"""What stands in `native` of this format: the fields of an object of pydantic-ai's that differ from
what would be written for the neutral piece alone. So whatever is read is written again as it was,
and nothing is held twice.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from dragoman.codec.json_values import if_list
from dragoman.codec.native import WireNative
from dragoman.codec.timing import convert_to_utc
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import NOTES, Content, Native, TextPart, ToolCallPart, ToolResultPart

__all__ = [
    "NAME",
    "OWN",
    "apply_notes",
    "note_as_read",
    "with_form",
    "note_difference",
    "read_time",
    "usual_part",
    "usual_result",
    "usual_text",
    "whole",
    "format_time",
]

NAME = "pydantic_ai"

OWN = WireNative(NAME)
"""Its part of `native`."""

P = TypeVar("P", bound=Content)
_MISSING = object()


def note_as_read(piece: P, read: JsonMap, written: JsonMap, **form: Any) -> P:
    """Returns the piece with a note of how the Pydantic AI object that it was read from differs
    from `written`, which would be written for it."""
    return msgspec.structs.replace(
        piece, native=note_difference(piece.native, read, written, **form)
    )


def note_difference(native: Native, read: JsonMap, written: JsonMap, **form: Any) -> Native:
    """Returns a native mapping with a note of how a Pydantic AI object differs from what is written
    for it."""
    fields, absent = _find_differences(read, written)
    if absent:
        form["absent"] = absent
    if native is None:
        if form:
            return OWN.note(fields, form)
        if fields:
            return {NAME: fields}
        return None
    if fields:
        native = {**native, NAME: fields}
    if form:
        return with_form(native, **form)
    return native


def _find_differences(read: JsonMap, written: JsonMap) -> tuple[Json, list[str]]:
    """Returns what a note holds: the fields of a Pydantic AI object `read` that `written` does not
    have alike, and the keys that only `written` has."""
    fields, absent = dict(read), list[str]()
    for key, was in written.items():
        value = fields.get(key, _MISSING)
        # Types count, since Python's 1, 1.0 and True are equal and differ in JSON.
        if value is was or (type(value) is type(was) and value == was):
            del fields[key]
        elif value is _MISSING:
            absent.append(key)
    return fields, absent


def with_form(native: Native, **form: Any) -> Native:
    """Returns a native mapping with more noted of the form of a Pydantic AI object."""
    if native is None:
        return OWN.note(form=form)
    return {**native, **(OWN.with_form(native, **form) or {})}


def apply_notes(native: Native, written: JsonMap) -> Json:
    """Returns a Pydantic AI object as it was read, from what is written for a piece and the notes
    on it."""
    if not native:
        return dict(written)
    absent = if_list(OWN.form(native).get("absent"))
    if absent:
        remaining = {key: value for key, value in written.items() if key not in absent}
    else:
        remaining = written
    return {**remaining, **OWN.fields(native)}


def whole(native: Native) -> Any:
    """Returns the JSON value that is noted of the Pydantic AI part that a piece was read from,
    where all of it is kept; `None`: it is not."""
    values = if_list(OWN.notes(native).get("whole"))
    if values:
        return values[0]
    return None


def read_time(text: object) -> datetime | None:
    """Returns the time in a Pydantic AI object, or None if it is invalid or has no zone."""
    if isinstance(text, str):
        return _parse_time(text)
    return None


@lru_cache(maxsize=16)
def _parse_time(text: str) -> datetime | None:  # the parts of a message have the same, most often
    """Parses a time of a Pydantic AI object with a zone, or returns None."""
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is None:
            return None
        return time.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


@lru_cache(maxsize=16)
def format_time(time: datetime) -> str:
    """Returns a time as pydantic-ai writes it."""
    return convert_to_utc(time).isoformat().replace("+00:00", "Z")


_OF_CALLS = ("tool_name", "tool_call_id", "part_kind", "args")
_OF_TEXTS = ("content", "part_kind")
_OF_RESULTS = ("tool_name", "tool_call_id", "content", "part_kind")
_FORM = NAME + NOTES


def usual_part(piece: Content, part: JsonMap) -> tuple[str, ...]:
    """Returns the fields of a Pydantic AI part that are written for a text or a call of the model's
    that nobody signed, as the part has them that it was read from. Empty: it is another piece."""
    part_kind = part["part_kind"]
    if (
        isinstance(piece, ToolCallPart)
        and part_kind == "tool-call"
        and all(key == _FORM for key in piece.native or ())
    ):
        return _OF_CALLS
    if isinstance(piece, TextPart) and part_kind == "text" and piece.native is None:
        return _OF_TEXTS
    return ()


def usual_text(piece: Content) -> Json | None:
    """Returns the part of a text of the model's that has nothing but fields of the Pydantic AI
    format; `None`: it is another piece."""
    native = piece.native
    if not isinstance(piece, TextPart) or not (
        native is None or (len(native) == 1 and NAME in native)
    ):
        return None
    return {"content": piece.text, "part_kind": "text", **OWN.fields(native)}


def usual_result(piece: ToolResultPart, part: JsonMap) -> Json | None:
    """Returns a value that a tool of the agent returned, read as a part of the Pydantic AI
    format."""
    failed = piece.is_error or piece.denied
    if failed or piece.is_content or not piece.name or part["part_kind"] != "tool-return":
        return None
    return {key: part[key] for key in _OF_RESULTS}
