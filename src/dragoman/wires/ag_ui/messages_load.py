"""Reads a group of AG-UI messages as one message.

What we wrote ourselves carries extras: `at` is the index of a piece, `of` the id by which its group
is known, `more` the pieces that the protocol has no form for, `message` the fields of the message
that would be read otherwise. Clients also keep messages as a stream told them: those carry `start`
and `m` (the id of our message) in their place.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman.codec.json_difference import apply_difference
from dragoman.codec.json_values import (
    if_list,
    if_object,
    if_objects,
    if_text,
    pick,
    read_extra_fields,
)
from dragoman.codec.serving import Problem, note_problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    MarkPart,
    Message,
    Native,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ag_ui.content import load_content
from dragoman.wires.ag_ui.quirks import OWN, app_metadata, load_extras, load_native
from dragoman.wires.ag_ui.tools import load_call, load_result

__all__ = [
    "ACTIVITY",
    "ROLES",
    "AguiMessage",
    "open_entry",
    "load_group",
    "load_index",
    "load_piece",
    "load_thinking",
    "restore_signature",
]

Placed = tuple[int | None, Content]
"""A piece, and its index if that is carried."""
ACTIVITY = "activity"
"""Kind of the mark for what a client shows beside the messages."""
ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.MODEL,
    "tool": Role.USER,
    "reasoning": Role.MODEL,
    ACTIVITY: Role.USER,
}
"""Role of an AG-UI message → role of a message."""
_BESIDE = ("reasoning", ACTIVITY)
"""Roles of AG-UI messages that seldom have the fields of the whole message."""
_MESSAGE_FIELDS = frozenset(Message.__struct_fields__)


class AguiMessage(NamedTuple):
    """An AG-UI message, with what it carries, which is decoded once."""

    position: int
    """In the list of AG-UI messages."""
    fields: Json
    """The AG-UI message under the protocol's names."""
    extras: Json
    """Its extras; empty if it has none."""
    group_extras: Json
    """Its extras, or those of its first call if a stream began it with that."""

    @property
    def group_key(self) -> str:
        """Returns the id of the group that the AG-UI message belongs to."""
        key = self.group_extras.get("of")
        if isinstance(key, str):
            return key
        return if_text(self.fields.get("id"))


def open_entry(position: int, fields: Json) -> AguiMessage:
    """Returns an AG-UI message of a list with its extras."""
    extras = load_extras(fields.get("metadata"))
    calls = if_objects(fields.get("toolCalls"))
    if extras or not calls:
        return AguiMessage(position, fields, extras, extras)
    of_call = load_extras(calls[0].get("metadata"))
    return AguiMessage(position, fields, extras, pick(of_call, ("of", "start", "m")))


def load_group(
    entries: Sequence[AguiMessage],
    origin: Origin | None,
    names: MutableMapping[str, str],
    problems: list[Problem] | None = None,
) -> list[Message]:
    """Returns the message that a group of AG-UI messages is, or an empty list if none can be read.

    Args:
        entries: the AG-UI messages.
        origin: for a model message that brings none.
        names: grows with the tool of each call, by call id.
        problems: takes what cannot be read; None to raise.

    Raises:
        HistoryError: a message cannot be read and `problems` is None.
    """
    pieces: list[Placed] = []
    # parts for which AG-UI has no place; they stand in the extras
    unwritten: list[Placed] = []
    head: AguiMessage | None = None
    # how the entries were spelled; filled as they are read
    form: Json = {}
    for entry in entries:
        try:
            read = _load_pieces(entry.fields, entry.extras, names, form, is_first=head is None)
        except HistoryError as error:
            field = "toolCalls" if entry.fields.get("toolCalls") else "content"
            note_problem(error, problems, entry.position, field)
            continue
        head = _choose_head(head, entry)
        pieces += read
        unwritten += _load_unwritten(entry.extras.get("more"))
        names.update({call.id: call.name for _, call in read if isinstance(call, ToolCallPart)})
    if head is None:
        return []
    # A message that this library wrote has its own origin in the extras of its first entry.
    extras = entries[0].group_extras
    message = _load_message(head.fields, _sort_pieces([*pieces, *unwritten]), form)
    if not extras:
        return [message.replace(origin=origin if message.role is Role.MODEL else None)]
    id_ = extras.get("m")
    message = message.replace(id=id_ if isinstance(id_, str) else entries[0].group_key or None)
    return [_apply_extras(message, extras)]


def _choose_head(head: AguiMessage | None, entry: AguiMessage) -> AguiMessage:
    """Returns the AG-UI message of a group with the fields of the whole: the first, but not foreign
    reasoning."""
    if head is None or (head.fields["role"] in _BESIDE and not head.extras):
        return entry
    return head


def _load_message(entry: JsonMap, content: tuple[Content, ...], form: Json) -> Message:
    """Returns an AG-UI message with the fields of the group's head."""
    role = entry["role"]
    metadata: Json = {}
    native: Native = None
    # results and reasoning keep their fields in their pieces, not in the message
    if role not in ("tool", *_BESIDE):
        metadata = app_metadata(entry.get("metadata"))
        native_fields = read_extra_fields(entry, "id", "role", "content", "toolCalls", "metadata")
        form = {**form, **({"role": role} if role == "developer" else {})}
        native = OWN.note(native_fields, form)
    id_ = if_text(entry.get("id")) or None
    return Message(ROLES[role], content, id=id_, metadata=metadata, native=native)


def _apply_extras(message: Message, extras: JsonMap) -> Message:
    """Returns an AG-UI message with what its extras carry, or unchanged if they are unreadable."""
    fields = if_object(extras.get("message"))
    if not extras.get("message"):
        start = if_object(extras.get("start"))
        fields = {**start, **({"id": start["message_id"]} if "message_id" in start else {})}
    fields = {name: value for name, value in fields.items() if name in _MESSAGE_FIELDS}
    if not fields:
        return message
    # the content may be large, and is seldom carried: keep it out of what is converted
    bare = message.replace(content=())
    read = apply_difference(bare, fields, Message)
    if "content" in fields and read is not bare:
        return read
    return read.replace(content=message.content)


# pieces


def _load_pieces(
    entry: JsonMap,
    extras: JsonMap,
    names: Mapping[str, str],
    form: Json,
    *,
    is_first: bool,
) -> list[Placed]:
    """Returns the pieces in one AG-UI message, with their indexes.

    Args:
        entry: the AG-UI message.
        extras: what it carries.
        names: call id → tool, of the calls before it.
        form: takes a note of how its content was written.
        is_first: True if it begins its group.
    """
    role, index = entry["role"], load_index(extras)
    if role == "tool":
        result = load_result(entry, extras, names)
        return [(index, result if is_first or extras else _add_id(result, entry))]
    if role == "reasoning":
        return [(index, load_thinking(entry, extras))]
    if role == ACTIVITY:
        return [(index, _load_activity(entry))]
    pieces = load_content(entry.get("content"), form)
    if len(pieces) == 1:
        pieces = [apply_difference(pieces[0], extras.get("part"), Content)]
    calls = _list_calls(entry)
    placed = [(None if position else index, piece) for position, piece in enumerate(pieces)]
    if role != "assistant":
        return placed
    return placed + [
        (load_index(load_extras(call.get("metadata"))), load_call(call)) for call in calls
    ]


def _list_calls(entry: JsonMap) -> list[Json]:
    """Returns the elements of `toolCalls` in an AG-UI message.

    Raises:
        HistoryError: they are no list of objects.
    """
    calls = if_list(entry.get("toolCalls"))
    if len(if_objects(calls)) != len(calls):
        raise HistoryError("the toolCalls of an AG-UI message are a list of objects")
    return calls


def _load_activity(entry: JsonMap) -> MarkPart:
    """Returns the mark of an AG-UI activity message."""
    fields = read_extra_fields(entry, "role", "metadata")
    if metadata := app_metadata(entry.get("metadata")):
        fields["metadata"] = metadata
    return MarkPart(ACTIVITY, OWN.note(fields, mark=True))


def load_thinking(entry: JsonMap, extras: JsonMap) -> ThinkingPart:
    """Returns the thinking in an AG-UI reasoning message."""
    signed = extras.get("signed")
    neutral = ["role", "content"]
    neutral += ["id"] if extras else []
    neutral += ["encryptedValue"] if isinstance(signed, list) else []
    read = ThinkingPart(if_text(entry.get("content")), load_native(entry, *neutral))
    read = apply_difference(read, extras.get("part"), ThinkingPart)
    return restore_signature(read, signed, entry.get("encryptedValue"))


def restore_signature(piece: ThinkingPart, signed: Any, signature: Any) -> ThinkingPart:
    """Returns thinking of an AG-UI message with its signature in the place where its provider had
    it.

    Args:
        piece: the thinking.
        signed: the wire and the field of the signature; anything else changes nothing.
        signature: the text.
    """
    path = if_list(signed)
    if len(path) != 2 or not all(isinstance(name, str) for name in (*path, signature)):
        return piece
    wire, field = path
    native = dict(piece.native or {})
    fields = if_object(native.get(wire))
    native[wire] = {**fields, **({field: signature} if field in fields else {})}
    return msgspec.structs.replace(piece, native=native)


def load_piece(read: Content | None, carried: Any) -> Content | None:
    """Returns an AG-UI part with what is carried of it, or None if there is neither.

    Args:
        read: the part as it was read, or None.
        carried: the fields that differ, or the whole part.
    """
    if read is not None:
        return apply_difference(read, carried, Content)
    try:
        return msgspec.convert(carried, Content)
    except (ValueError, TypeError):
        return None


def _add_id(result: ToolResultPart, entry: JsonMap) -> ToolResultPart:
    """Returns a tool result that keeps the id of its AG-UI message, since it is no message of its
    own here."""
    if not (id_ := if_text(entry.get("id"))):
        return result
    native = {**OWN.fields(result.native), "id": id_}
    return msgspec.structs.replace(result, native=OWN.note(native, OWN.form(result.native)))


def load_index(extras: JsonMap) -> int | None:
    """Returns the index of an AG-UI part from its extras, or None if they have none."""
    index = extras.get("at")
    is_index = isinstance(index, int) and not isinstance(index, bool) and index >= 0
    return index if is_index else None


def _load_unwritten(more: Any) -> list[Placed]:
    """Returns the pieces that AG-UI has no form for, with their indexes."""
    placed: list[Placed] = []
    for pair in map(if_list, if_list(more)):
        index = None
        if len(pair) == 2:
            index = load_index({"at": pair[0]})
        if index is None:
            piece = None
        else:
            piece = load_piece(None, pair[1])
        if piece is not None:
            placed.append((index, piece))
    return placed


def _sort_pieces(pieces: Sequence[Placed]) -> tuple[Content, ...]:
    """Returns the pieces read from AG-UI messages by their indexes; one without an index is behind
    the one before it."""
    placed: list[tuple[int, Content]] = []
    last = -1
    for index, piece in pieces:
        last = last + 1 if index is None else index
        placed.append((last, piece))
    placed.sort(key=lambda pair: pair[0])
    return tuple([piece for _, piece in placed])
