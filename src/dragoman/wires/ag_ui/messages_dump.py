"""One of our messages → the group of theirs."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping
from typing import Any

import msgspec

from dragoman.codec.carried import difference
from dragoman.codec.ids import DistinctIds
from dragoman.codec.json_values import if_object, merged, rest
from dragoman.codec.native import signatures
from dragoman.message import (
    Content,
    MarkPart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ag_ui.content import dump_content, is_block
from dragoman.wires.ag_ui.messages_load import ACTIVITY, load_group, load_thinking
from dragoman.wires.ag_ui.quirks import NAME, OWN, metadata_of
from dragoman.wires.ag_ui.tools import dump_call, dump_result

__all__ = ["Group", "dump_group", "dump_thinking", "lowered"]

_SPEAKERS: Mapping[Role, str] = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}

_ENCRYPTED = "encryptedValue"
_SPEAKING = frozenset([*_SPEAKERS.values(), "developer"])
"""Roles of messages that have the fields of ours as a whole."""


class Group:
    """What is known of the messages that are written: ids that are taken, names of calls."""

    def __init__(self, *, extras: bool = True, parts: bool = True) -> None:
        self.extras = extras
        self.parts = parts
        self.names: dict[str, str] = {}
        self._ids = DistinctIds()
        self._call_ids = DistinctIds()
        self._waiting: dict[str, list[str]] = {}

    def free(self, id_: str) -> str:
        """An id like this one that no message has yet."""
        return self._ids.take(id_)

    def is_free(self, id_: str) -> bool:
        """Whether no message has it yet."""
        return bool(id_) and id_ not in self._ids

    def call_id(self, id_: str, otherwise: str) -> str:
        """The id of a call: its own, unless that is empty or taken."""
        given = self._call_ids.take(id_ if id_ and id_ not in self._call_ids else otherwise)
        self._waiting.setdefault(id_, []).append(given)
        return given

    def called(self, id_: str) -> str:
        """The id under which the protocol knows a call that waits."""
        waiting = self._waiting.get(id_)
        return waiting[0] if waiting else id_

    def meet(self, message: Message) -> None:
        """A message that the peer has already: its ids are taken, and its calls wait for results."""
        base = self.free(message.id) if message.id else ""
        for index, piece in enumerate(message.content):
            if isinstance(piece, ToolCallPart):
                self.call_id(piece.id, f"{base}:{index}")
            elif isinstance(piece, ToolResultPart):
                self.answered(piece.id)

    def answered(self, id_: str) -> str:
        """The id of the call that a result answers: the earliest of that id that waits."""
        waiting = self._waiting.get(id_)
        return waiting.pop(0) if waiting else id_


class _Entries:
    """The messages of one group as they are made."""

    def __init__(self, message: Message, position: int, group: Group) -> None:
        self.made: list[tuple[dict[str, Any], dict[str, Any]]] = []
        """Each without its extras, and those."""
        self.more: list[list[Any]] = []
        self.speaker: tuple[dict[str, Any], dict[str, Any]] | None = None
        self.blocks: list[tuple[int, Any]] = []
        self.names: dict[str, str] = {}
        self.key = group.free(message.id or f"message-{position}")
        """By which the group is known: the id of the first of its messages that is no reasoning."""
        self._group = group
        self._next = 0
        self._is_used = False

    def at(self, index: int) -> dict[str, int]:
        """Extras that say where a piece stands, where that is not behind the one before it."""
        place = {} if index == self._next else {"at": index}
        self._next = index + 1
        return place

    def id(self, index: int, *, thinks: bool = False) -> str:
        if thinks or self._is_used:
            return self._group.free(f"{self.key}:{index}")
        self._is_used = True
        return self.key

    def add(
        self, entry: dict[str, Any], extras: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        if entry["id"] != self.key or entry["role"] in ("tool", "reasoning", ACTIVITY):
            extras = {"of": self.key, **extras}
        self.made.append((entry, extras))
        return self.made[-1]


def dump_group(message: Message, position: int, group: Group) -> list[dict[str, Any]]:
    """A message → theirs. `position`: in the conversation, for one without an id."""
    entries = _Entries(message, position, group)
    for index, piece in enumerate(message.content):
        if not _dumped(message, index, piece, entries, group):
            entries.more.append([index, msgspec.to_builtins(piece)])
    _end_blocks(message, entries)
    speaks = any(entry["role"] in _SPEAKING for entry, _ in entries.made)
    if not speaks and (not entries.made or OWN.fields(message.native)):
        entries.add({"id": entries.id(0), "role": _role(message), "content": ""}, {})
    dumped = _finished(message, entries, group)
    group.names.update(entries.names)
    return dumped


def _role(message: Message) -> str:
    developer = message.role is Role.SYSTEM and OWN.form(message.native).get("role") == "developer"
    return "developer" if developer else _SPEAKERS[message.role]


def _dumped(message: Message, index: int, piece: Content, entries: _Entries, group: Group) -> bool:
    """Whether the protocol has a form for a piece, and it is written."""
    role = message.role
    if role is Role.USER and is_block(piece):
        entries.blocks.append((index, piece))
        return True
    if isinstance(piece, ToolResultPart) and role is not Role.SYSTEM:
        _end_blocks(message, entries)
        id_ = entries.id(index)
        call_id = group.answered(piece.id)
        names = ChainMap(entries.names, group.names)
        at = entries.at(index)
        entries.add(
            *dump_result(piece, id_, call_id, at, names, parts=group.parts, extras=group.extras)
        )
        entries.speaker = None
        return True
    if isinstance(piece, MarkPart):
        return _is_activity_dumped(message, index, piece, entries, group)
    if role is Role.SYSTEM and isinstance(piece, TextPart):
        _speak(message, index, piece, entries)
        return True
    if role is not Role.MODEL:
        return False
    if isinstance(piece, TextPart):
        _speak(message, index, piece, entries)
        return True
    if isinstance(piece, ThinkingPart):
        entry, extras = dump_thinking(piece, entries.id(index, thinks=True), entries.at(index))
        entries.add(entry, extras)
        return True
    if not isinstance(piece, ToolCallPart):
        return False
    if entries.speaker is None:
        _open(message, index, entries)
    assert entries.speaker is not None
    call_id = group.call_id(piece.id, f"{entries.key}:{index}")
    entries.names[piece.id] = piece.name
    call = dump_call(piece, call_id, entries.at(index), extras=group.extras)
    entries.speaker[0].setdefault("toolCalls", []).append(call)
    return True


def _is_activity_dumped(
    message: Message, index: int, piece: MarkPart, entries: _Entries, group: Group
) -> bool:
    """Whether a mark was a message of theirs, and is again."""
    held = OWN.fields(piece.native)
    id_ = held.get("id")
    if (
        piece.kind != ACTIVITY
        or not isinstance(id_, str)
        or "activityType" not in held
        or not group.is_free(id_)
    ):
        return False
    _end_blocks(message, entries)
    entries.add({**held, "id": group.free(id_), "role": ACTIVITY}, entries.at(index))
    return True


def _open(message: Message, index: int, entries: _Entries, extras: Mapping[str, Any] = {}) -> None:
    entries.speaker = entries.add({"id": entries.id(index), "role": _role(message)}, dict(extras))


def _speak(message: Message, index: int, piece: TextPart, entries: _Entries) -> None:
    """A text is a message of its own."""
    more = difference(piece, TextPart(piece.text))
    extras = {**entries.at(index), **({"part": more} if more else {})}
    _open(message, index, entries, extras)
    assert entries.speaker is not None
    entries.speaker[0]["content"] = piece.text


def _end_blocks(message: Message, entries: _Entries) -> None:
    """What a user says without a result in between is one message."""
    if not entries.blocks:
        return
    index, pieces = entries.blocks[0][0], [piece for _, piece in entries.blocks]
    extras = entries.at(index)
    for later, _ in entries.blocks[1:]:
        entries.at(later)
    content = dump_content(pieces, OWN.form(message.native))
    entries.add({"id": entries.id(index), "role": "user", "content": content}, extras)
    entries.blocks = []


def dump_thinking(
    piece: ThinkingPart, id_: str, at: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Thinking → a reasoning message without its extras, and those."""
    own = rest(OWN.fields(piece.native), "id")
    entry: dict[str, Any] = {"id": id_, "role": "reasoning", "content": piece.text}
    left, signed, value = (piece, None, None) if own else lowered(piece)
    entry = merged(entry, own)
    if value is not None:
        entry["encryptedValue"] = value
    held = {"signed": signed} if signed else {}
    more = difference(left, load_thinking(entry, {"of": "", **held, "part": None}))
    if signed and not more:
        more = difference(left, ThinkingPart(piece.text))
    return entry, {**at, **held, **({"part": more} if more else {})}


def lowered(piece: ThinkingPart) -> tuple[ThinkingPart, list[str] | None, str | None]:
    """Thinking without the text that its provider signed or hid it with, where that stood, and that text: the peer has a field for it."""
    own = OWN.fields(piece.native).get(_ENCRYPTED)
    found = {NAME: own} if isinstance(own, str) else signatures(piece.native)
    if len(found) != 1:
        return piece, None, None
    ((wire, value),) = found.items()
    native = dict(piece.native or {})
    fields = if_object(native[wire])
    field = next(name for name, each in fields.items() if each == value and isinstance(each, str))
    native[wire] = {**fields, field: None}
    return msgspec.structs.replace(piece, native=native), [wire, field], value


def _finished(message: Message, entries: _Entries, group: Group) -> list[dict[str, Any]]:
    """The group with the fields of the message as a whole."""
    entry, extras = entries.made[0]
    speaking = next((each for each, _ in entries.made if each["role"] in _SPEAKING), None)
    metadata: dict[str, Any] = {}
    if speaking is entry:
        merged(entry, OWN.fields(message.native))
        metadata = {
            key: value
            for key, value in message.own_metadata.items()
            if key not in ("dragoman", "ag-ui")
        }
    if entries.more:
        extras["more"] = entries.more

    def made() -> list[dict[str, Any]]:
        first = {
            **entry,
            **metadata_of(
                {**if_object(entry.get("metadata")), **metadata}, extras if group.extras else {}
            ),
        }
        later = [
            {**each, **metadata_of(if_object(each.get("metadata")), held if group.extras else {})}
            for each, held in entries.made[1:]
        ]
        return [first, *later]

    if not group.extras:
        return made()
    dumped = made()
    read = load_group(list(enumerate(dumped)), None, ChainMap({}, group.names))[0]
    if more := _unread(message, read):
        extras["message"] = more
        dumped = made()
    return dumped


def _unread(message: Message, read: Message) -> dict[str, Any]:
    """The fields of a message that would be read otherwise."""
    more = rest(difference(message, read), "metadata")
    own = message.own_metadata
    if "metadata" in difference(
        msgspec.structs.replace(message, content=()), msgspec.structs.replace(read, content=())
    ):
        more["metadata"] = own
    return more
