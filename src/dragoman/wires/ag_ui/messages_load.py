"""A group of their messages → one of ours."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.carried import changed
from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, rest
from dragoman.codec.serving import Problem, noted
from dragoman.errors import HistoryError
from dragoman.message import (
    Content,
    MarkPart,
    Message,
    Native,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
)
from dragoman.wires.ag_ui.content import load_content
from dragoman.wires.ag_ui.quirks import OWN, native_of, others, unpacked
from dragoman.wires.ag_ui.tools import load_call, load_result

__all__ = [
    "ACTIVITY",
    "ROLES",
    "changed_signature",
    "held_by",
    "index_of",
    "key_of",
    "load_group",
    "load_piece",
    "load_thinking",
]

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "tool": Role.USER,
    "reasoning": Role.MODEL,
    "activity": Role.USER,
}
"""Their roles → ours."""
ACTIVITY = "activity"
"""Kind of the mark of what a client shows beside the messages."""
_MESSAGE_FIELDS = frozenset(Message.__struct_fields__)
Placed = tuple[int | None, Content]
"""A piece, and its place where that is carried."""


def load_group(
    entries: Sequence[tuple[int, Mapping[str, Any]]],
    origin: Origin | None,
    names: MutableMapping[str, str],
    problems: list[Problem] | None = None,
) -> list[Message]:
    """The messages of a group, each with its place in the list → the one that they are; none where nothing can be read. `names` takes
    those of calls, by id.

    Raises:
        HistoryError: one cannot be read, and no problems are noted.
    """
    pieces: list[Placed] = []
    more: list[Placed] = []
    first: Mapping[str, Any] | None = None
    form: dict[str, Any] = {}
    for index, entry in entries:
        held = unpacked(entry.get("metadata"))
        try:
            read = _pieces(entry, held, names, form, is_first=first is None)
        except HistoryError as error:
            noted(error, problems, index, "toolCalls" if entry.get("toolCalls") else "content")
            continue
        first = (
            entry
            if first is None or (first["role"] in ("reasoning", ACTIVITY) and not _held(first))
            else first
        )
        pieces += read
        more += _unwritten(held.get("more"))
        names.update({call.id: call.name for _, call in read if isinstance(call, ToolCallPart)})
    if first is None:
        return []
    held = held_by(entries[0][1])
    made = _message(first, _ordered([*pieces, *more]), form, origin if not held else None)
    if held:
        given = held.get("m")
        made = made.replace(id=given if isinstance(given, str) else key_of(entries[0][1]) or None)
    return [_carried(made, held.get("message") or _begun(held.get("start")))]


def held_by(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The extras of a message; those of its first call, where a stream began it with that."""
    held = unpacked(entry.get("metadata"))
    calls = if_objects(entry.get("toolCalls"))
    if held or not calls:
        return held
    return {
        key: value
        for key, value in unpacked(calls[0].get("metadata")).items()
        if key in ("of", "start", "m")
    }


def key_of(entry: Mapping[str, Any]) -> str:
    """By which the group of a message is known."""
    return of if isinstance(of := held_by(entry).get("of"), str) else if_text(entry.get("id"))


def _begun(start: Any) -> dict[str, Any]:
    """What a stream carried of the start of a message → what is carried of the message."""
    fields = dict(if_object(start))
    if "message_id" in fields:
        fields["id"] = fields["message_id"]
    return fields


def _held(entry: Mapping[str, Any]) -> bool:
    return bool(unpacked(entry.get("metadata")))


def _message(
    entry: Mapping[str, Any], content: tuple[Content, ...], form: dict[str, Any], origin: Any
) -> Message:
    role = ROLES[entry["role"]]
    metadata: dict[str, Any] = {}
    native: Native = None
    if entry["role"] not in ("tool", "reasoning", ACTIVITY):
        metadata = others(entry.get("metadata"))
        own = rest(entry, "id", "role", "content", "toolCalls", "metadata")
        form = {**form, **({"role": "developer"} if entry["role"] == "developer" else {})}
        native = OWN.note(own, form)
    return Message(
        role,
        content,
        id=if_text(entry.get("id")) or None,
        origin=origin if role is Role.MODEL else None,
        metadata=metadata,
        native=native,
    )


def _pieces(
    entry: Mapping[str, Any],
    held: Mapping[str, Any],
    names: Mapping[str, str],
    form: dict[str, Any],
    *,
    is_first: bool,
) -> list[Placed]:
    """What one message says."""
    role, at = entry["role"], index_of(held)
    if role == "tool":
        result = load_result(entry, held, names)
        return [(at, result if is_first or held else _with_id(result, entry))]
    if role == "reasoning":
        return [(at, load_thinking(entry, held))]
    if role == ACTIVITY:
        return [(at, MarkPart(ACTIVITY, OWN.note(_activity(entry), mark=True)))]
    pieces = load_content(entry.get("content"), form)
    if pieces:
        pieces[0] = changed(pieces[0], held.get("part"), Content) if len(pieces) == 1 else pieces[0]
    calls = entry.get("toolCalls")
    if calls is not None and len(if_objects(calls)) != len(if_list(calls)):
        raise HistoryError("the toolCalls of an AG-UI message are a list of objects")
    placed: list[Placed] = [
        (at if not place else None, piece) for place, piece in enumerate(pieces)
    ]
    if role != "assistant":
        return placed
    return placed + [
        (index_of(unpacked(call.get("metadata"))), load_call(call)) for call in if_objects(calls)
    ]


def _activity(entry: Mapping[str, Any]) -> dict[str, Any]:
    metadata = others(entry.get("metadata"))
    return {**rest(entry, "role", "metadata"), **({"metadata": metadata} if metadata else {})}


def load_thinking(entry: Mapping[str, Any], held: Mapping[str, Any]) -> ThinkingPart:
    """A reasoning message → thinking."""
    signed = held.get("signed")
    neutral = ["role", "content"]
    neutral += ["id"] if held else []
    neutral += ["encryptedValue"] if isinstance(signed, list) else []
    read = ThinkingPart(if_text(entry.get("content")), native_of(entry, *neutral))
    read = changed(read, held.get("part"), ThinkingPart)
    return changed_signature(read, signed, entry.get("encryptedValue"))


def changed_signature(piece: ThinkingPart, signed: Any, value: Any) -> ThinkingPart:
    """Thinking with its signature where it was. `signed`: wire and field."""
    path = if_list(signed)
    if (
        len(path) != 2
        or not isinstance(value, str)
        or not all(isinstance(name, str) for name in path)
    ):
        return piece
    wire, field = path
    native = dict(piece.native or {})
    fields = if_object(native.get(wire))
    native[wire] = {name: value if name == field else each for name, each in fields.items()}
    return msgspec.structs.replace(piece, native=native)


def load_piece(read: Content | None, carried: Any) -> Content | None:
    """What was read of a part, with what was carried of it; `None`: nothing was read, and what was carried is no part."""
    if read is not None:
        return changed(read, carried, Content)
    try:
        return msgspec.convert(carried, Content)
    except (ValueError, TypeError):
        return None


def _with_id(result: Any, entry: Mapping[str, Any]) -> Any:
    """A result that is a message of its own there and not here, with its id."""
    if not (id_ := if_text(entry.get("id"))):
        return result
    own = {**OWN.fields(result.native), "id": id_}
    return msgspec.structs.replace(result, native=OWN.note(own, OWN.form(result.native)))


def index_of(held: Mapping[str, Any]) -> int | None:
    """The index of a part that its extras say; `None`: they say none."""
    at = held.get("at")
    return at if isinstance(at, int) and not isinstance(at, bool) and at >= 0 else None


def _unwritten(more: Any) -> list[Placed]:
    """Pieces that the protocol has no form for, with their places."""
    read: list[Placed] = []
    for each in if_list(more):
        pair = if_list(each)
        index = index_of({"at": pair[0]}) if len(pair) == 2 else None
        piece = None if index is None else load_piece(None, pair[1])
        if piece is not None:
            read.append((index, piece))
    return read


def _ordered(pieces: Sequence[Placed]) -> tuple[Content, ...]:
    """The pieces by their places; one without a place stands behind the one before it."""
    placed: list[tuple[int, Content]] = []
    last = -1
    for at, piece in pieces:
        last = last + 1 if at is None else at
        placed.append((last, piece))
    return tuple([piece for _, piece in sorted(placed, key=_first)])


def _first(pair: tuple[int, Content]) -> int:
    return pair[0]


def _carried(message: Message, fields: Any) -> Message:
    """A message with what was carried of it; itself where that cannot be read."""
    known = {name: value for name, value in if_object(fields).items() if name in _MESSAGE_FIELDS}
    if not known:
        return message
    bare = message.replace(content=())  # which may be large, and is carried seldom
    read = changed(bare, known, Message)
    return (
        read if "content" in known and read is not bare else read.replace(content=message.content)
    )
