"""Rows as Mastra's first versions stored them (V1): model messages of ai 4 with an id, a time and a thread, split where texts, calls and
results meet. What one message of ours is split into says so under our key, and is one again when it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, rest
from dragoman.loss import Loss
from dragoman.message import Message, Origin
from dragoman.wires.ai_sdk_messages.approvals import at_calls, has_parts
from dragoman.wires.ai_sdk_messages.model import dump_message, load_message
from dragoman.wires.ai_sdk_messages.model_media import KEY
from dragoman.wires.ai_sdk_messages.model_parts import CORE
from dragoman.wires.ai_sdk_messages.own import OURS, OWN
from dragoman.wires.ai_sdk_messages.reading import fault
from dragoman.wires.ai_sdk_messages.threads import thread_of
from dragoman.wires.ai_sdk_messages.times import date_of, js_date

__all__ = ["TYPES", "dump_split_rows", "is_split_row", "load_split_row"]

TYPES = ("text", "tool-call", "tool-result")
_ROW = "row"
_READ = frozenset(["id", "role", "createdAt", "content", KEY])


def is_split_row(entry: Any) -> bool:
    """Whether a message is such a row: it has a thread or an owner, or all that one has beside them."""
    if type(entry) is not dict:
        return False
    fields = cast("dict[str, Any]", entry)
    if "content" not in fields or "parts" in fields:
        return False
    return (
        "threadId" in fields
        or "resourceId" in fields
        or ("id" in fields and fields.get("type") in TYPES)
    )


def load_split_row(entry: Any, where: str, origin: Origin | None, out: list[Message]) -> None:
    """A row, added to `out`, or to its last message where it goes on with that.

    Raises:
        HistoryError: it cannot be read.
    """
    if type(entry) is not dict:
        fault(f"{where} must be an object, a row with a role")
    row = cast("dict[str, Any]", entry)
    ours, options = _pop_row(row.get(KEY))
    core: dict[str, Any] = {
        "role": "user" if row.get("role") == "signal" else row.get("role"),
        "content": row.get("content"),
    }
    if options is not None:
        core[KEY] = options
    elif KEY in row and not ours:
        core[KEY] = row[KEY]
    before, count = out[-1:], len(out)
    load_message(core, where, CORE, origin, out)
    message = out[-1]
    id_, made_at = row.get("id"), date_of(row.get("createdAt"))
    message_id = ours.get("id", id_)
    noted = _form(row, core)
    if ours:
        noted |= {"ours": ours, "id": id_}
    if len(out) == count and before:  # the results in the row before are of the same message
        noted = {"rows": [*_rows(before[0]), noted]}
    native = {**(message.native or {}), **(OWN.with_notes(message.native, row=noted) or {})}
    out[-1] = message.replace(
        id=message_id if isinstance(message_id, str) else None,
        created_at=made_at or message.created_at,
        native=native,
    )
    if ours.get("goes_on") is True and len(out) > 1:
        _join(out)


def dump_split_rows(messages: Sequence[Message], losses: list[Loss]) -> list[dict[str, Any]]:
    """Messages → rows."""
    if has_parts(
        messages
    ):  # these rows have no approvals, and a message of one alone would be none
        settled, positions = at_calls(messages)
        lost: list[Loss] = []
        rows = dump_split_rows(settled, lost)
        losses += [
            msgspec.structs.replace(
                loss, message=None if loss.message is None else positions[loss.message]
            )
            for loss in lost
        ]
        return rows
    out: list[dict[str, Any]] = []
    thread: dict[str, Any] = {}
    taken = {message.id for message in messages if message.id is not None}
    for position, message in enumerate(messages):
        notes = if_object(OWN.notes(message.native).get(_ROW)) if message.native else {}
        thread = thread_of(message.native) or thread
        entries = dump_message(
            message.replace(id=None, created_at=None), position, CORE, losses, None
        )
        pieces = (
            list(entries)
            if notes and "rows" not in notes
            else [part for entry in entries for part in _split(entry)]
        )
        noted = _rows(message) if notes else []
        ids = _ids(message, position, taken)
        for at, entry in enumerate(pieces):
            own = if_object(noted[at]) if at < len(noted) else {}
            out.append(
                _row(
                    entry,
                    message,
                    next(ids),
                    own,
                    thread,
                    goes_on=at > 0 and entry["role"] == pieces[at - 1]["role"],
                )
            )
    return out


def _pop_row(options: Any) -> tuple[dict[str, Any], Any]:
    """What stands under our key about rows, and the options without it; `None`: there are no others."""
    held = if_object(if_object(options).get(OURS))
    ours = held.get(_ROW)
    if (
        not isinstance(ours, dict)
        or not cast("dict[str, Any]", ours).keys() <= {"id", "goes_on"}
        or not ours
    ):
        return {}, options
    left = rest(held, _ROW)
    others = {**rest(if_object(options), OURS), **({OURS: left} if left else {})}
    return cast("dict[str, Any]", ours), others or None


def _form(row: Mapping[str, Any], core: Mapping[str, Any]) -> dict[str, Any]:
    """What a row has that one which is made would not have."""
    form: dict[str, Any] = {"as": _ROW}
    fields = {key: value for key, value in row.items() if key not in _READ}
    if fields.get("type") == _type(core):
        del fields["type"]
    elif "type" not in fields:
        form["absent"] = ["type"]
    if fields:
        form["fields"] = fields
    if row.get("role") == "signal":
        form["role"] = "signal"
    given = row.get("createdAt")
    made_at = date_of(given)
    if isinstance(given, datetime):
        form["created_at"] = "datetime" if given.tzinfo is not None else "naive"
    elif "createdAt" in row and (made_at is None or js_date(made_at) != given):
        form["created_at"] = [None if made_at is None else js_date(made_at), given]
    id_ = row.get("id")
    if not isinstance(id_, str):
        form["id"] = [id_] if "id" in row else []
    return form


def _row(
    entry: Mapping[str, Any], message: Message, id_: str, noted: Mapping[str, Any], thread: Mapping[str, Any], *, goes_on: bool
) -> dict[str, Any]:  # fmt: skip
    """A row. `id_`: where it was not read with another; `noted`: how it was read."""
    read = bool(noted)
    row: dict[str, Any] = {"id": id_, **(if_object(noted.get("fields")) if read else thread)}
    given = noted.get("id")
    if isinstance(given, str):
        row["id"] = given
    elif isinstance(given, list):
        row = {**rest(row, "id"), **({"id": given[0]} if given else {})}
    row["role"] = if_text(noted.get("role")) or entry["role"]
    if "type" not in row and if_list(noted.get("absent")) != ["type"]:
        row["type"] = _type(entry)
    time, as_date = message.created_at, noted.get("created_at")
    if time is not None:
        row["createdAt"] = (
            time
            if as_date == "datetime"
            else time.replace(tzinfo=None)
            if as_date == "naive"
            else js_date(time)
        )
    if isinstance(as_date, list) and as_date[0] == (None if time is None else js_date(time)):
        row["createdAt"] = as_date[1]
    ours = if_object(noted.get("ours")) if read else {}
    if not read and row["id"] != message.id:
        ours["id"] = message.id
    if not read and goes_on:
        ours["goes_on"] = True
    made = {**row, **{key: value for key, value in entry.items() if key != "role"}}
    if ours:
        options = if_object(made.get(KEY))
        made[KEY] = {**options, OURS: {**if_object(options.get(OURS)), _ROW: ours}}
    return made


def _split(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A message of the model's, split where texts and calls meet; what it has beside its content stands with the first."""
    content = entry["content"]
    if entry["role"] != "assistant" or not isinstance(content, list) or not content:
        yield entry
        return
    blocks: list[list[dict[str, Any]]] = []
    for part in cast("list[dict[str, Any]]", content):
        if blocks and _is_of_tools(blocks[-1][-1]) == _is_of_tools(part):
            blocks[-1].append(part)
        else:
            blocks.append([part])
    for at, block in enumerate(blocks):
        plain = (
            len(blocks) > 1
            and len(block) == 1
            and block[0].keys() == {"type", "text"}
            and block[0]["type"] == "text"
        )
        more = rest(entry, "role", "content") if at == 0 else {}
        yield {"role": "assistant", "content": block[0]["text"] if plain else block, **more}


def _is_of_tools(part: Mapping[str, Any]) -> bool:
    return part.get("type") in ("tool-call", "tool-result")


def _type(entry: Mapping[str, Any]) -> str:
    types = {if_object(part).get("type") for part in if_list(entry.get("content"))}
    return (
        "tool-call" if "tool-call" in types else "tool-result" if "tool-result" in types else "text"
    )


def _ids(message: Message, position: int, taken: set[str]) -> Iterator[str]:
    """The ids of the rows of a message."""
    base = message.id or f"msg-{position}"
    while message.id is None and base in taken:
        base += "'"
    taken.add(base)
    yield base
    number = 0
    while True:
        number += 1
        if (made := f"{base}__split-{number}") not in taken:
            taken.add(made)
            yield made


def _join(out: list[Message]) -> None:
    """Makes the last message part of the one before it."""
    before, last = out[-2:]
    if before.role is not last.role or before.created_at != last.created_at:
        return
    rows = [*_rows(before), *_rows(last)]
    native = {**(before.native or {}), **(OWN.with_notes(before.native, row={"rows": rows}) or {})}
    out[-2:] = [before.replace(content=(*before.content, *last.content), native=native)]


def _rows(message: Message) -> list[Any]:
    """How the rows of a message were read."""
    notes = if_object(OWN.notes(message.native).get(_ROW))
    return if_list(notes.get("rows")) or [notes]
