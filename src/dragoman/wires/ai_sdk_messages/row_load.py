"""A row of Mastra's storage (V2) → the messages of its turn."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, cast

from dragoman.codec.json_values import if_object
from dragoman.message import Message, Origin, Role
from dragoman.wires.ai_sdk_messages.envelope import ONE_STEP
from dragoman.wires.ai_sdk_messages.mirrors import (
    MIRRORS,
    contents_of,
    is_usual,
    load_before,
    load_behind,
    same_as,
)
from dragoman.wires.ai_sdk_messages.nested import flat, is_flat
from dragoman.wires.ai_sdk_messages.own import OWN
from dragoman.wires.ai_sdk_messages.plain_row import load_plain_row
from dragoman.wires.ai_sdk_messages.reading import Reading, fault, load_mark
from dragoman.wires.ai_sdk_messages.rows import CONTENT, ROW, ROW_DIALECT
from dragoman.wires.ai_sdk_messages.times import date_of, is_js_date, js_date
from dragoman.wires.ai_sdk_messages.ui_load import add_turn, given_id, metadata_of, turn_of

__all__ = ["is_row", "load_row"]

_ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "signal": Role.USER,
}
_READ = frozenset(["id", "role", "createdAt", "content"])
_READ_WITHIN = frozenset(["format", "parts", "metadata"])


def is_row(entry: Any) -> bool:
    """Whether a message is a row."""
    content = cast("dict[str, Any]", entry).get("content") if type(entry) is dict else None
    return type(content) is dict and cast("dict[str, Any]", content).get("format") == 2


def load_row(
    entry: dict[str, Any],
    where: str,
    origin: Origin | None,
    taken: Collection[str],
    out: list[Message],
    arguments: dict[tuple[str, str], dict[str, Any]],
) -> None:
    """A row, added to `out`. `taken`: ids of all messages of the conversation; `arguments`: those of the calls so far.

    Raises:
        HistoryError: it cannot be read.
    """
    plain = load_plain_row(entry, out[-1] if out else None) if origin is None else None
    if plain is not None:
        out.append(plain)
        return
    role = _ROLES.get(entry["role"]) if type(entry.get("role")) is str else None
    if role is None:
        fault(f"{where}.role must be one of {', '.join(_ROLES)}, not {entry.get('role')!r:.50}")
    content = cast("dict[str, Any]", entry["content"])
    given = content.get("parts", [])
    if type(given) is not list:
        fault(f"{where}.content.parts must be a list of objects, the parts of a message")
    parts = cast("list[dict[str, Any]]", given)
    form: dict[str, Any] = {}
    it = Reading(ROW, role)
    it.arguments = arguments
    own: dict[str, Any] = {}
    metadata: Mapping[str, Any] = {}
    extras: Any = None
    if "metadata" in content:
        metadata, extras = metadata_of(content["metadata"], own)
    it.implies_steps = it.implies_steps and ONE_STEP not in if_object(extras)
    ways, usual = _load_content(content, parts, it, where)
    unread = content.keys() - _READ_WITHIN - ways.keys()
    if unread or entry.keys() != _READ:
        rest = {key: value for key, value in entry.items() if key not in _READ}
        if not (is_flat(rest) and is_flat(content)):
            fault(f"{where} has fields whose names begin with inner/ or outer/")
        within = {key: value for key, value in content.items() if key in unread}
        own = {**own, **flat(rest, within, CONTENT, "content")}
    id_ = given_id(entry, own, form)
    if "parts" not in content:
        form["parts"] = "absent"
    if not usual:
        form["mirrors"] = ways
    if entry["role"] == "signal":
        form["role"] = "signal"
    made_at = _created(entry, own, form)
    if own or form:
        form["in"] = ROW
    messages = turn_of(it, id_, origin, taken, own, form, metadata, extras, ROW_DIALECT, made_at)
    if (
        extras is not None
        and OWN.fields(messages[0].native)
        and "in" not in OWN.form(messages[0].native)
    ):
        messages[0] = messages[0].replace(native=OWN.with_form(messages[0].native, **{"in": ROW}))
    add_turn(messages, id_, extras, out)


def _load_content(
    content: dict[str, Any], parts: list[dict[str, Any]], it: Reading, where: str
) -> tuple[dict[str, str], bool]:
    """The parts, and what the fields beside them say alone → the fields that are written from what was read and how, and whether these are
    the usual ones."""
    for at, part in enumerate(parts):
        if type(part) is not dict or type(part.get("type")) is not str:
            fault(f"{where}.content.parts[{at}] must be an object with a type, a part of a message")
    contents = contents_of(parts)
    fields = {key: content[key] for key in MIRRORS if key in content}
    alone = load_before(fields, contents, it, f"{where}.content") if fields else set[str]()
    loaders = ROW_DIALECT.loaders
    for at, part in enumerate(parts):
        loaders.get(part["type"], load_mark)(part, it, f"{where}.content.parts[{at}]")
    if not fields:
        return {}, is_usual({}, contents)
    alone |= load_behind(fields, contents, parts, it, f"{where}.content")
    ways: dict[str, str] = dict.fromkeys(alone, "alone")
    for key, value in fields.items():
        if key not in alone and (way := same_as(key, value, contents)) is not None:
            ways[key] = way
    return ways, is_usual(ways, contents)


def _created(
    entry: Mapping[str, Any], own: dict[str, Any], form: dict[str, Any]
) -> datetime | None:
    given = entry.get("createdAt")
    made_at = date_of(given)
    if made_at is None:
        own |= {"createdAt": given} if "createdAt" in entry else {}
    elif isinstance(given, datetime):
        form["created_at"] = "datetime" if given.tzinfo is not None else "naive"
    elif not is_js_date(given) and js_date(made_at) != given:
        own["createdAt"] = given
        form["created_at"] = js_date(made_at)
    return made_at
