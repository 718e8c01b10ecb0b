"""Rows of Mastra's storage (V2): their table, and what stands around the parts.

A row holds its parts in `content`, whose other fields are read and written as one object with those
of the row (`Nesting`). The fields that repeat the parts are the business of `mastra_mirrors`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from msgspec.structs import replace

from dragoman.codec.json_values import if_object, read_extra_fields
from dragoman.codec.media import Media
from dragoman.message import Message, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.ai4_ui_messages import V4_DIALECT
from dragoman.wires.ai_sdk_messages.dragoman_metadata import ONE_STEP
from dragoman.wires.ai_sdk_messages.files import dump_row_attachment, dump_row_file, load_row_file
from dragoman.wires.ai_sdk_messages.js_dates import date_of, is_js_date, js_date
from dragoman.wires.ai_sdk_messages.marks import dump_mark
from dragoman.wires.ai_sdk_messages.mastra_mirrors import (
    MIRRORS,
    alone_in,
    are_usual,
    contents_of,
    load_before,
    load_behind,
    mirror_parts,
    put_beside,
    split_alone,
    ways_of,
)
from dragoman.wires.ai_sdk_messages.notes import OWN, ROW, Nesting, Part, Parts, present, thread_of
from dragoman.wires.ai_sdk_messages.read_parts import (
    Envelope,
    MessageDialect,
    Reading,
    fault,
    load_parts,
    role_in,
)
from dragoman.wires.ai_sdk_messages.read_turn import (
    Head,
    Loading,
    add_turn,
    id_in,
    metadata_in,
    turn_of,
)
from dragoman.wires.ai_sdk_messages.text_only_messages import load_plain_row
from dragoman.wires.ai_sdk_messages.texts_and_thinking import (
    dump_details,
    dump_text,
    group_details,
    load_row_details,
    load_text,
)
from dragoman.wires.ai_sdk_messages.tool_invocations import (
    INVOCATION,
    add_row_result,
    dump_row_call,
    load_row_invocation,
)
from dragoman.wires.ai_sdk_messages.ui_messages import keep_in_metadata, with_metadata

__all__ = ["ROW_DIALECT", "is_row", "load_row"]

_ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "signal": Role.USER,
}
_CONTENT = Nesting(
    "content",
    frozenset(
        ["format", "parts", "content", "toolInvocations", "reasoning", "experimental_attachments", "annotations", "metadata", "providerMetadata"]
    ),
)  # fmt: skip
_READ_IN_ROW = frozenset(["id", "role", "createdAt", "content"])
_READ_IN_CONTENT = frozenset(["format", "parts", "metadata"])
"""Fields of a row, and of its content, that a message has a place for."""


def is_row(entry: Any) -> bool:
    """True if a message is a row of Mastra's storage."""
    content = None
    if type(entry) is dict:
        content = cast("Part", entry).get("content")
    return type(content) is dict and cast("Part", content).get("format") == 2


def load_row(row: Part, where: str, loading: Loading) -> None:
    """Reads a row, and adds it to the conversation.

    Raises:
        HistoryError: it cannot be read.
    """
    if loading.add_plain(load_plain_row, row):
        return
    role = role_in(row, _ROLES, where)
    content = cast("Part", row["content"])
    head = Head(ROW_DIALECT, {}, {})
    if "metadata" in content:
        metadata_in(content["metadata"], head)
    reading = Reading(ROW_DIALECT, role)
    reading.arguments = loading.arguments
    reading.implies_steps &= ONE_STEP not in if_object(head.extras)
    ways, is_usual = _load_content(content, reading, f"{where}.content")
    _read_unknown(row, content, ways, head, where)
    id_in(row, head)
    if "parts" not in content:
        head.form["parts"] = "absent"
    if not is_usual:
        head.form["mirrors"] = ways
    if row["role"] == "signal":
        head.form["role"] = "signal"
    _read_time(row, head)
    if head.fields or head.form:
        head.form["in"] = ROW
    messages = turn_of(reading, head, loading)
    if head.extras is not None:
        messages[0] = _with_dialect(messages[0])
    add_turn(messages, head, loading)


def _load_content(content: Part, reading: Reading, where: str) -> tuple[dict[str, str], bool]:
    """Reads the parts, and what fields beside them say alone.

    Returns the ways of the fields that can be written again, and True if these are the usual ones.
    """
    parts = content.get("parts", [])
    if type(parts) is not list:
        fault(f"{where}.parts must be a list of objects, the parts of a message")
    listed = cast("Parts", parts)
    for number, part in enumerate(listed):
        if type(part) is not dict or type(part.get("type")) is not str:
            fault(f"{where}.parts[{number}] must be an object with a type, a part of a message")
    contents = contents_of(listed)
    if content.keys().isdisjoint(MIRRORS):
        load_parts(listed, reading, f"{where}.parts")
        return {}, are_usual({}, contents)
    alone = load_before(content, contents, reading, where)
    load_parts(listed, reading, f"{where}.parts")
    alone |= load_behind(content, contents, listed, reading)
    ways = ways_of(content, alone, contents)
    return ways, are_usual(ways, contents)


def _read_unknown(
    row: Part, content: Part, ways: Mapping[str, str], head: Head, where: str
) -> None:
    """Reads the fields of a row and its content that a message has no field for.

    Args:
        row: the row.
        content: the row's content.
        ways: how each field that repeats the parts is written; such fields are no unknown ones.
        head: takes the fields.
        where: path of the row for error messages.

    Raises:
        HistoryError: a field has a name that the writer uses itself.
    """
    unread = content.keys() - _READ_IN_CONTENT - ways.keys()
    if not unread and row.keys() <= _READ_IN_ROW:
        return
    outer = read_extra_fields(row, *_READ_IN_ROW)
    if not (_CONTENT.is_clear(outer) and _CONTENT.is_clear(content)):
        fault(f"{where} has fields whose names begin with inner/ or outer/")
    within = {key: value for key, value in content.items() if key in unread}
    head.fields |= _CONTENT.flatten(outer, within)


def _read_time(row: Part, head: Head) -> None:
    """Reads the time of a row, and notes how it was written."""
    time = row.get("createdAt")
    head.created_at = date_of(time)
    if head.created_at is None:
        head.fields |= {"createdAt": time} if "createdAt" in row else {}
    elif isinstance(time, datetime):
        head.form["created_at"] = "naive" if time.tzinfo is None else "datetime"
    elif not is_js_date(time) and js_date(head.created_at) != time:
        head.fields["createdAt"] = time
        head.form["created_at"] = js_date(head.created_at)


def _with_dialect(message: Message) -> Message:
    """Returns a message with the note that its fields are a row's."""
    if not OWN.fields(message.native) or "in" in OWN.form(message.native):
        return message
    return message.replace(native=OWN.with_form(message.native, **{"in": ROW}))


def _dump_text(piece: TextPart, dialect: MessageDialect, is_model: bool) -> Part:
    """Returns the part of a text, or of one that goes into a field beside the parts."""
    return put_beside(piece, dump_text(piece, dialect, is_model), piece.text)


def _dump_thinking(pieces: Sequence[ThinkingPart], dialect: MessageDialect) -> Parts:
    """Returns the parts of thinking, or of some that goes into a field beside the parts."""
    groups = group_details(pieces, dialect)
    parts = dump_details(pieces, dialect)
    return [
        put_beside(group[0], part, group[0].text) for group, part in zip(groups, parts, strict=True)
    ]


def _dump_file(piece: Media, dialect: MessageDialect, is_model: bool) -> Part:  # noqa: ARG001 it is the same for all
    """Returns the part of a file, or of one that is an attachment of the row."""
    if alone_in(piece.native) is None:
        return dump_row_file(piece, dialect)
    return put_beside(piece, {}, dump_row_attachment(piece, dialect))


def _dump_call(
    call: ToolCallPart,
    dialect: MessageDialect,
    answered: bool,
    step: int,  # noqa: ARG001 the marks tell the step
) -> Part:
    """Returns the part of a call, or of one that goes into a field beside the parts."""
    part = dump_row_call(call, dialect, answered)
    return put_beside(call, part, part["toolInvocation"])


def _add_result(
    part: Part, result: ToolResultPart, call: ToolCallPart, dialect: MessageDialect
) -> Part:
    """Returns the part of a call with its result."""
    if part["type"] == INVOCATION:
        return add_row_result(part, result, call, dialect)
    alone = {"type": INVOCATION, "toolInvocation": part["value"]}
    return {**part, "value": add_row_result(alone, result, call, dialect)["toolInvocation"]}


def _envelope(envelope: Envelope) -> Part:
    """Returns the Mastra row around its parts."""
    first = envelope.first
    form = OWN.form(first.native) if first.native else {}
    if form.get("in") == ROW:
        outer, within = _CONTENT.nest(OWN.fields(first.native))
    else:
        form, outer, within = {}, thread_of(first.native), {}
    # A signal is a user's message here; Mastra alone tells the two apart.
    row = present(id=envelope.id, role=form.get("role") or envelope.role)
    if first.created_at is not None:
        row["createdAt"] = dump_time(first.created_at, form.get("created_at"))
        # The date as it was read counts only while the message still has that time.
        if form.get("created_at") != row["createdAt"]:
            outer.pop("createdAt", None)
    parts, alone = split_alone(envelope.parts)
    content: Part = {
        "format": 2,
        "parts": parts,
        **mirror_parts(parts, form.get("mirrors")),
        **alone,
    }
    if form.get("parts") == "absent" and not parts:
        del content["parts"]
    content |= with_metadata(envelope, within)
    content |= read_extra_fields(within, "metadata")
    return {**row, "content": content, **outer}


def dump_time(time: datetime, form: Any) -> Any:
    """Returns the time of a row: a `datetime` if it was read as one, else a text."""
    if form == "datetime":
        return time
    if form == "naive":
        return time.replace(tzinfo=None)
    return js_date(time)


ROW_DIALECT = replace(
    V4_DIALECT,
    name=ROW,
    loaders={
        "text": load_text,
        "reasoning": load_row_details,
        "file": load_row_file,
        INVOCATION: load_row_invocation,
    },
    dump_text=_dump_text,
    dump_thinking=_dump_thinking,
    dump_file=_dump_file,
    dump_call=_dump_call,
    add_result=_add_result,
    dump_mark=dump_mark,
    envelope=_envelope,
    keep=keep_in_metadata,
    metadata_first=False,
    silent=False,
)
