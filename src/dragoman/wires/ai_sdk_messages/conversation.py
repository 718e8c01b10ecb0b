"""A list of messages of the family ↔ a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec

from dragoman.codec.json_values import bounded, if_list, if_object
from dragoman.codec.marks import INTERRUPT
from dragoman.codec.serving import Problem, noted
from dragoman.errors import HistoryError
from dragoman.loss import Loss, Lost
from dragoman.message import MarkPart, Message, Origin, Role, ToolResultPart
from dragoman.wires.ai_sdk_messages.approvals import approval_parts, at_calls, has_parts
from dragoman.wires.ai_sdk_messages.detection import dialect_in
from dragoman.wires.ai_sdk_messages.grouping import Group, groups
from dragoman.wires.ai_sdk_messages.model import dump_message, load_message
from dragoman.wires.ai_sdk_messages.model_parts import CORE, MODEL
from dragoman.wires.ai_sdk_messages.own import OWN, UI, dialect_of, joined
from dragoman.wires.ai_sdk_messages.plain import dump_plain, load_plain
from dragoman.wires.ai_sdk_messages.plain_row import dump_plain_row
from dragoman.wires.ai_sdk_messages.row_load import is_row, load_row
from dragoman.wires.ai_sdk_messages.rows import ROW, ROW_DIALECT
from dragoman.wires.ai_sdk_messages.split_rows import is_split_row, load_split_row
from dragoman.wires.ai_sdk_messages.ui import UI_DIALECT
from dragoman.wires.ai_sdk_messages.ui_dump import ALONE, WAITS, dump_group
from dragoman.wires.ai_sdk_messages.ui_load import load_ui, shown_id
from dragoman.wires.ai_sdk_messages.v4 import V4, V4_DIALECT, load_v4

__all__ = ["dump_model", "dump_ui", "load_conversation"]


_DIALECTS = {V4: V4_DIALECT, ROW: ROW_DIALECT, **dict.fromkeys((UI, "v5", "v6", "v7"), UI_DIALECT)}
"""Version, or dialect that is noted → what it is written by."""
_UIS = (None, "v5", "v6", "v7")
"""Versions of UI messages with parts that have a state."""
_VERSIONS = (V4, UI)
"""Dialects that are versions of UI messages."""


def load_conversation(
    payload: Any,
    origin: Origin | None,
    problems: list[Problem] | None,
    *,
    rows: bool = False,
    is_model: bool = False,
) -> list[Message]:
    """A list of messages of the family → messages. With `problems`, one that cannot be read is left out and noted there. `rows`: what has no
    parts is a row of Mastra's too where nothing in it says so; `is_model`: what may be either is a model message.

    Raises:
        HistoryError: it is no list, or a message cannot be read and no problems are noted.
    """
    if not isinstance(payload, list):
        raise HistoryError(
            "messages of the AI SDK are a list of objects with a role and parts, or a role and a content"
        )
    entries = cast("list[Any]", payload)
    if problems is None:
        bounded(entries)
    taken = _ids(entries)
    read: list[tuple[int, str]] = []
    arguments: dict[tuple[str, str], dict[str, Any]] = {}
    out: list[Message] = []
    for index, entry in enumerate(entries):
        start = len(out)
        if origin is None and (plain := load_plain(entry, out[-1] if out else None)) is not None:
            out.append(plain)
            read.append((start, UI))
            continue
        try:
            checked = entry if problems is None else bounded(entry)
            if is_row(checked):
                load_row(checked, f"[{index}]", origin, taken, out, arguments)
                continue
            if is_split_row(checked) or (rows and "parts" not in if_object(checked)):
                load_split_row(checked, f"[{index}]", origin, out)
                continue
            kind = dialect_in(if_object(checked), is_model=is_model)
            read.append((start, kind))
            if kind in (MODEL, CORE):
                load_message(checked, f"[{index}]", kind, origin, out)
            else:
                load = load_v4 if kind == V4 else load_ui
                load(checked, f"[{index}]", origin, taken, out)
        except HistoryError as error:
            noted(error, problems, index, field_of(error))
    _tell_apart(read, out)
    return out


def _tell_apart(read: list[tuple[int, str]], out: list[Message]) -> None:
    """Notes the dialect of messages that are of the usual one, where others are of an older. `read`: position and dialect of each."""
    kinds = {kind for _, kind in read}
    newer = {new for new, old in ((UI, V4), (MODEL, CORE)) if old in kinds}
    for start, kind in read if newer else ():
        if kind in newer and start < len(out) and dialect_of(out[start].native) is None:
            native = out[start].native
            out[start] = out[start].replace(
                native=joined(native, OWN.with_form(native, **{"in": kind}))
            )


def dump_ui(
    messages: Iterable[Message], losses: list[Loss] | None, version: str | None
) -> list[dict[str, Any]]:
    """Messages → UI messages, or rows of Mastra's."""
    losses = [] if losses is None else losses
    given = tuple(messages)
    if has_parts(given):
        settled, positions = at_calls(given)
        lost: list[Loss] = []
        out = dump_ui(settled, lost, version)
        places = {None: None, **dict(enumerate(positions))}
        losses += [msgspec.structs.replace(loss, message=places[loss.message]) for loss in lost]
        return out
    usual = V4 if any(dialect_of(message.native) == V4 for message in given) else UI
    found: list[Group] = []
    for group in groups(given, steering=usual == UI and version in (None, "v7")):
        if group.orphans:
            stood = [
                group.places.get((0, at), (group.positions[0], at))
                for at in _results(group.messages[0])
            ]
            losses += [Loss(position, at, Lost.tool_result, ALONE) for position, at in stood]
            losses += [
                Loss(
                    *group.places.get((0, at), (group.positions[0], at)),
                    Lost.field,
                    WAITS,
                    INTERRUPT,
                )
                for at, piece in enumerate(group.messages[0].content)
                if isinstance(piece, MarkPart)
            ]
        else:
            found.append(group)
    ids: list[str | None] = []
    seen: set[str] = set()
    for group in found:
        first = group.messages[0]
        id_ = shown_id(first)
        if id_ in seen and id_ == first.turn:  # the turn goes on behind what cut it
            id_ = first.id
        ids.append(id_)
        if id_ is not None:
            seen.add(id_)
    taken = {id_ for id_ in ids if id_ is not None}
    out: list[dict[str, Any]] = []
    for number, (group, id_) in enumerate(zip(found, ids, strict=True)):
        if id_ is None:
            id_ = _minted(number, taken)
        elif len(group.messages) == 1 and usual == UI and not (group.behind or group.joined):
            alone = group.messages[0]
            plain = (
                dump_plain(alone, id_)
                if version in _UIS
                else dump_plain_row(alone, id_)
                if version == ROW
                else None
            )
            if plain is not None:
                out.append(plain)
                continue
        read_in = dialect_of(group.messages[0].native)
        dialect = _DIALECTS[version or (read_in if read_in in _VERSIONS else None) or usual]
        out.append(dump_group(group, id_, dialect, taken, losses, version))
    return out


def dump_model(
    messages: Iterable[Message], losses: list[Loss] | None, version: str | None
) -> list[dict[str, Any]]:
    """Messages → model messages."""
    losses = [] if losses is None else losses
    given = tuple(messages)
    waiting: list[dict[str, Any]] = []
    usual = CORE if any(dialect_of(message.native) == CORE for message in given) else MODEL
    out: list[dict[str, Any]] = []
    for position, message in enumerate(given):
        noted_as = dialect_of(message.native)
        dialect = (
            (CORE if version == V4 else MODEL)
            if version
            else noted_as
            if noted_as in (CORE, MODEL)
            else usual
        )
        entries = dump_message(message, position, dialect, losses, version)
        if waiting:
            _answer(entries, waiting)
            waiting = []
        if dialect == MODEL and message.role is Role.MODEL and version != "v5":
            waiting = _ask(entries, message)
        out += entries
    if waiting:
        out.append({"role": "tool", "content": waiting})
    return out


def _ask(entries: list[dict[str, Any]], message: Message) -> list[dict[str, Any]]:
    """Puts the requests of approvals behind their calls → the responses."""
    requests, responses = approval_parts(message)
    if requests:
        parts = if_list(entries[0]["content"])
        entries[0]["content"] = [
            each
            for part in parts
            for each in (
                part,
                requests.get(part["toolCallId"]) if part["type"] == "tool-call" else None,
            )
            if each is not None
        ]
    return responses


def _answer(entries: list[dict[str, Any]], responses: list[dict[str, Any]]) -> None:
    """Puts responses before the results, or where those would be."""
    if entries and entries[0]["role"] == "tool":
        entries[0]["content"] = [*responses, *entries[0]["content"]]
    else:
        entries.insert(0, {"role": "tool", "content": responses})


def field_of(error: HistoryError) -> str | None:
    """The field for which a message cannot be read, where it is one."""
    _, dot, field = error.message.partition(" ")[0].partition(".")
    return field.partition("[")[0] if dot else None


def _ids(entries: list[Any]) -> set[str]:
    named = [if_object(entry).get("id") for entry in entries]
    return {id_ for id_ in named if type(id_) is str}


def _results(message: Message) -> list[int]:
    return [
        place for place, piece in enumerate(message.content) if isinstance(piece, ToolResultPart)
    ]


def _minted(number: int, taken: set[str]) -> str:
    """An id for a message that has none."""
    made = f"msg-{number}"
    while made in taken:
        made += "'"
    taken.add(made)
    return made
