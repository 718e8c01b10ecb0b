"""Rows as Mastra's first versions stored them (V1): model messages of ai 4 with an id, a time and a
thread, split where texts, calls and results meet.

What one message of ours is split into says so under our key, and is one again when it is read. How
a row was read is noted with its message under `row`; where several rows became one message, `row`
has the notes of each as `rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text, read_extra_fields
from dragoman.codec.memos import dump_for_client
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.approvals import dump_moved, has_parts
from dragoman.wires.ai_sdk_messages.js_dates import date_of, js_date
from dragoman.wires.ai_sdk_messages.mastra_v2_rows import dump_time
from dragoman.wires.ai_sdk_messages.model_messages import OPTIONS, dump_message, load_message
from dragoman.wires.ai_sdk_messages.notes import (
    CORE,
    OURS,
    OWN,
    Fields,
    Part,
    Parts,
    join_native,
    text_in,
    thread_of,
)
from dragoman.wires.ai_sdk_messages.read_parts import object_in

__all__ = ["dump_split_rows", "is_split_row", "load_split_row"]

_TYPES = ("text", "tool-call", "tool-result")
_ROW = "row"
_READ = frozenset(["id", "role", "createdAt", "content", OPTIONS])
_OURS = frozenset(["id", "goes_on"])


def is_split_row(entry: Any) -> bool:
    """True for such a Mastra row: it has a thread or an owner, or an id and a type."""
    fields = if_object(entry)
    if "content" not in fields or "parts" in fields:
        return False
    is_typed = "id" in fields and fields.get("type") in _TYPES
    return "threadId" in fields or "resourceId" in fields or is_typed


def load_split_row(
    entry: Any,
    where: str,
    origin: Origin | None,
    out: list[Message],
) -> None:
    """Reads a Mastra row. It is added to `out`, or joined to the last message there if it continues
    that.

    Args:
        entry: the row.
        where: path for error messages.
        origin: for a model message that names none.
        out: the messages so far.

    Raises:
        HistoryError: it cannot be read.
    """
    row = object_in(entry, where, "a row with a role")
    row_extras, options = _pop_ours(row.get(OPTIONS))
    core: Part = {"role": row.get("role"), "content": row.get("content")}
    if core["role"] == "signal":
        core["role"] = "user"
    if options is not None or (OPTIONS in row and not row_extras):
        core[OPTIONS] = options
    before, count = out[-1:], len(out)
    load_message(core, where, CORE, origin, out)
    message = out[-1]
    note = _note_of(row, core)
    if row_extras:
        note |= {"ours": row_extras, "id": row.get("id")}
    if len(out) == count and before:  # the results in the row before are of the same message
        note = {"rows": [*_notes_of(before[0]), note]}
    out[-1] = message.replace(
        id=text_in({"id": row.get("id"), **row_extras}, "id"),
        created_at=date_of(row.get("createdAt")) or message.created_at,
        native=join_native(message.native, OWN.with_notes(message.native, row=note)),
    )
    if row_extras.get("goes_on") is True and len(out) > 1:
        _join_last(out)


def _pop_ours(options: Any) -> tuple[Part, Any]:
    """Returns what dragoman carries about Mastra rows, and the options without it or None."""
    extras = if_object(if_object(options).get(OURS))
    row_extras = if_object(extras.get(_ROW))
    if not row_extras or not row_extras.keys() <= _OURS:
        return {}, options
    other_extras = read_extra_fields(extras, _ROW)
    other_options = {
        **read_extra_fields(if_object(options), OURS),
        **({OURS: other_extras} if other_extras else {}),
    }
    return row_extras, other_options or None


def _note_of(row: Part, core: Part) -> Part:
    """Returns how a Mastra row differs from the one that would be written."""
    note: Part = {"as": _ROW}
    fields = read_extra_fields(row, *_READ)
    if fields.get("type") == _type_of(core):
        del fields["type"]
    elif "type" not in fields:
        note["absent"] = ["type"]
    if fields:
        note["fields"] = fields
    if row.get("role") == "signal":
        note["role"] = "signal"
    if (time := _time_note(row)) is not None:
        note["created_at"] = time
    if not isinstance(row.get("id"), str):
        note["id"] = [row["id"]] if "id" in row else []
    return note


def _time_note(row: Part) -> Any:
    """Returns how the time of a Mastra row was written, or None if as usual."""
    time = row.get("createdAt")
    if isinstance(time, datetime):
        if time.tzinfo is None:
            return "naive"
        return "datetime"
    written = _format_time(date_of(time))
    is_usual = written is not None and written == time
    if "createdAt" not in row or is_usual:
        return None
    return [written, time]


def _format_time(time: datetime | None) -> str | None:
    """Returns a time as text, or None."""
    return None if time is None else js_date(time)


def _notes_of(message: Message) -> list[Any]:
    """Returns the notes of a message's rows."""
    note = if_object(OWN.notes(message.native).get(_ROW))
    return if_list(note.get("rows")) or [note]


def _join_last(out: list[Message]) -> None:
    """Joins the last message of the Mastra rows to the one before it."""
    before, last = out[-2:]
    if before.role is not last.role or before.created_at != last.created_at:
        return
    note = {"rows": [*_notes_of(before), *_notes_of(last)]}
    native = join_native(before.native, OWN.with_notes(before.native, row=note))
    out[-2:] = [before.replace(content=(*before.content, *last.content), native=native)]


def dump_split_rows(messages: Sequence[Message], losses: list[Loss]) -> Parts:
    """Returns a conversation as rows. `losses` grows with what rows cannot hold."""
    return dump_for_client(messages, losses, _dump_rows)


def _dump_rows(messages: Sequence[Message], losses: list[Loss]) -> Parts:
    """Returns an AI SDK conversation without memos as `dump_split_rows` does."""
    if has_parts(messages):
        # These rows have no approvals, and a message of one alone would be none.
        return dump_moved(messages, losses, _dump_rows)
    rows: Parts = []
    thread: Part = {}
    taken = {message.id for message in messages if message.id is not None}
    for position, message in enumerate(messages):
        thread = thread_of(message.native) or thread
        bare = message.replace(id=None, created_at=None)
        entries = dump_message(bare, position, CORE, losses, None)
        rows += _rows_of(message, entries, _ids_of(message, position, taken), thread)
    return rows


def _rows_of(
    message: Message,
    entries: Parts,
    ids: Iterator[str],
    thread: Part,
) -> Iterator[Part]:
    """Yields the Mastra rows of a message. `thread` is the last one that a row named."""
    if message.native:
        note = if_object(OWN.notes(message.native).get(_ROW))
    else:
        note = {}
    notes = _notes_of(message) if note else []
    if not note or "rows" in note:
        entries = [part for entry in entries for part in _split_texts_and_calls(entry)]
    # Rows of one role behind each other are one message again when they are read.
    role_before = None
    for number, entry in enumerate(entries):
        if number < len(notes):
            own_note = if_object(notes[number])
        else:
            own_note = {}
        id_, goes_on = next(ids), entry["role"] == role_before
        if own_note:
            yield _row_as_read(entry, message, id_, own_note)
        else:
            yield _new_row(entry, message, {"id": id_, **thread}, goes_on)
        role_before = entry["role"]


def _new_row(
    entry: Part,
    message: Message,
    head: Part,
    goes_on: bool,
) -> Part:
    """Returns a Mastra row that was read from none. `goes_on` says that it continues the row before
    it."""
    row: Part = {**head, "role": entry["role"]}
    row.setdefault("type", _type_of(entry))
    if message.created_at is not None:
        row["createdAt"] = js_date(message.created_at)
    row_extras: Part
    if row["id"] == message.id:
        row_extras = {}
    else:
        row_extras = {"id": message.id}
    return _with_ours({**row, **entry}, {**row_extras, **({"goes_on": True} if goes_on else {})})


def _row_as_read(
    entry: Part,
    message: Message,
    id_: str,
    note: Part,
) -> Part:
    """Returns a Mastra row as it was read, by the note of that."""
    row: Part = {"id": id_, **if_object(note.get("fields"))}
    noted_id = note.get("id")
    if isinstance(noted_id, str):
        row["id"] = noted_id
    elif noted_id == []:  # it was absent
        del row["id"]
    elif isinstance(noted_id, list):
        row["id"] = cast("list[Any]", noted_id)[0]
    row["role"] = if_text(note.get("role")) or entry["role"]
    if if_list(note.get("absent")) != ["type"]:
        row.setdefault("type", _type_of(entry))
    time, form = message.created_at, note.get("created_at")
    if time is not None:
        row["createdAt"] = dump_time(time, form)
    if isinstance(form, list) and form[0] == _format_time(time):
        row["createdAt"] = form[1]
    return _with_ours({**row, **read_extra_fields(entry, "role")}, if_object(note.get("ours")))


def _with_ours(row: Part, row_extras: Part) -> Part:
    """Returns a Mastra row with what dragoman carries about it."""
    if not row_extras:
        return row
    options = if_object(row.get(OPTIONS))
    return {**row, OPTIONS: {**options, OURS: {**if_object(options.get(OURS)), _ROW: row_extras}}}


def _split_texts_and_calls(entry: Part) -> Iterator[Part]:
    """Yields the pieces of an AI SDK model message, split where texts and calls meet.

    Fields beside the content go with the first.
    """
    content = entry["content"]
    if entry["role"] != "assistant" or not isinstance(content, list) or not content:
        yield entry
        return
    blocks = [list(block) for _, block in groupby(cast("Parts", content), _is_of_tools)]
    more = read_extra_fields(entry, "role", "content")
    for block in blocks:
        is_text = block[0].keys() == {"type", "text"} and block[0]["type"] == "text"
        is_plain = is_text and len(blocks) > 1 and len(block) == 1
        yield {
            "role": "assistant",
            "content": block[0]["text"] if is_plain else block,
            **more,
        }
        more = {}


def _is_of_tools(part: Fields) -> bool:
    """True for a call or a result."""
    return part.get("type") in ("tool-call", "tool-result")


def _type_of(entry: Fields) -> str:
    """Returns the type of a row: `tool-call`, `tool-result` or `text`."""
    types = {if_text(if_object(part).get("type")) for part in if_list(entry.get("content"))}
    return next((type_ for type_ in ("tool-call", "tool-result") if type_ in types), "text")


def _ids_of(message: Message, position: int, taken: set[str]) -> Iterator[str]:
    """Yields ids for the Mastra rows of a message."""
    base = message.id or f"msg-{position}"
    while message.id is None and base in taken:
        base += "'"
    taken.add(base)
    yield base
    number = 0
    while True:
        number += 1
        id_ = f"{base}__split-{number}"
        if id_ not in taken:
            taken.add(id_)
            yield id_
