"""One of our messages → the group of theirs.

Reasoning, each text with the calls behind it, what a user says without a result in between, and
each result are messages of their own. The table `WRITERS` says which pieces the protocol has a form
for; the others are carried (`more`). What would be read otherwise is found out by reading the group
again.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import msgspec

from dragoman.codec.difference import find_difference, is_equal
from dragoman.codec.ids import DistinctIds
from dragoman.codec.json_values import (
    if_object,
    merge_wire_fields,
    optional_field,
    read_extra_fields,
)
from dragoman.codec.native import read_signatures
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ag_ui.content import dump_content
from dragoman.wires.ag_ui.messages_load import ACTIVITY, load_group, load_thinking
from dragoman.wires.ag_ui.quirks import NAME, OWN, RESERVED, add_extras
from dragoman.wires.ag_ui.tools import dump_call, dump_result

__all__ = ["DumpedNames", "GroupIds", "dump_group", "dump_thinking", "split_signature"]

_SPEAKERS: Mapping[Role, str] = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}
_SPEAKING = frozenset([*_SPEAKERS.values(), "developer"])
"""Roles of messages that have the fields of ours as a whole."""


class DumpedNames:
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
        free = id_ if id_ and id_ not in self._call_ids else otherwise
        call_id = self._call_ids.take(free)
        self._waiting.setdefault(id_, []).append(call_id)
        return call_id

    def called(self, id_: str) -> str:
        """The id under which the protocol knows a call that waits."""
        waiting = self._waiting.get(id_)
        return waiting[0] if waiting else id_

    def meet(self, message: Message) -> None:
        """A message that the peer has already: its ids are taken, and its calls wait for
        results."""
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


class GroupIds:
    """The ids of the messages of theirs that one of ours becomes. The first that is no reasoning
    has the id by which the group is known."""

    def __init__(self, id_: str, group: DumpedNames) -> None:
        self.key = group.free(id_)
        self._group = group
        self._is_used = False

    def take(self, index: int, *, is_thinking: bool = False) -> str:
        """The id of the message that begins with the part of that index."""
        if is_thinking or self._is_used:
            return self._group.free(f"{self.key}:{index}")
        self._is_used = True
        return self.key


class _GroupWriter:
    """Writes one message of ours."""

    def __init__(self, message: Message, position: int, group: DumpedNames) -> None:
        self.message = message
        self.group = group
        self.ids = GroupIds(message.id or f"message-{position}", group)
        self.entries: list[tuple[Json, Json]] = []
        """Messages of theirs without their extras, and those."""
        self._names: dict[str, str] = {}
        """Names of the calls of this message."""
        self._speaker: Json | None = None
        """The message of theirs that calls are in."""
        self._blocks: list[tuple[int, Any]] = []
        """What a user said since the last result."""
        self._unwritten: list[list[Any]] = []
        self._next = 0

    def write(self) -> list[Json]:
        """The messages of theirs."""
        writers, message = self.WRITERS[self.message.role], self.message
        for index, piece in enumerate(message.content):
            writer = writers.get(type(piece))
            if writer is None or not writer(self, index, piece):
                self._unwritten.append([index, msgspec.to_builtins(piece)])
        self._end_blocks()
        is_speaking = any(entry["role"] in _SPEAKING for entry, _ in self.entries)
        if not is_speaking and (not self.entries or OWN.fields(message.native)):
            self._add({"id": self.ids.take(0), "role": self._role(), "content": ""}, {})
        group = self._finish()
        self.group.names.update(self._names)
        return group

    def _role(self) -> str:
        role = self.message.role
        developer = OWN.form(self.message.native).get("role") == "developer"
        return "developer" if developer and role is Role.SYSTEM else _SPEAKERS[role]

    def _add(self, entry: Json, extras: Json) -> Json:
        # a first message that speaks is known by its own id, without extras
        if entry["id"] != self.ids.key or entry["role"] in ("tool", "reasoning", ACTIVITY):
            extras = {"of": self.ids.key, **extras}
        self.entries.append((entry, extras))
        return entry

    def _place(self, index: int) -> Json:
        """Extras that say where a piece is, if that is not behind the one before it."""
        position_extras = {} if index == self._next else {"at": index}
        self._next = index + 1
        return position_extras

    # pieces: each says whether it is written

    def _speak(self, index: int, piece: TextPart) -> bool:
        """A text is a message of its own."""
        more = find_difference(piece, TextPart(piece.text))
        extras = {**self._place(index), **optional_field("part", more)}
        entry: Json = {"id": self.ids.take(index), "role": self._role()}
        self._speaker = self._add(entry, extras)
        self._speaker["content"] = piece.text
        return True

    def _block(self, index: int, piece: Content) -> bool:
        self._blocks.append((index, piece))
        return True

    def _end_blocks(self) -> None:
        """What a user says without a result in between is one message."""
        if not self._blocks:
            return
        places = [self._place(index) for index, _ in self._blocks]
        pieces = [piece for _, piece in self._blocks]
        content = dump_content(pieces, OWN.form(self.message.native))
        id_ = self.ids.take(self._blocks[0][0])
        self._add({"id": id_, "role": "user", "content": content}, places[0])
        self._blocks = []

    def _thinking(self, index: int, piece: ThinkingPart) -> bool:
        id_ = self.ids.take(index, is_thinking=True)
        self._add(*dump_thinking(piece, id_, self._place(index)))
        return True

    def _call(self, index: int, piece: ToolCallPart) -> bool:
        if self._speaker is None:
            self._speaker = self._add({"id": self.ids.take(index), "role": self._role()}, {})
        call_id = self.group.call_id(piece.id, f"{self.ids.key}:{index}")
        self._names[piece.id] = piece.name
        call = dump_call(piece, call_id, self._place(index), extras=self.group.extras)
        self._speaker.setdefault("toolCalls", []).append(call)
        return True

    def _result(self, index: int, piece: ToolResultPart) -> bool:
        self._end_blocks()
        id_, group = self.ids.take(index), self.group
        call_id = group.answered(piece.id)
        names = ChainMap(self._names, group.names)
        position_extras = self._place(index)
        self._add(
            *dump_result(
                piece, id_, call_id, position_extras, names, parts=group.parts, extras=group.extras
            )
        )
        self._speaker = None
        return True

    def _activity(self, index: int, piece: MarkPart) -> bool:
        """A mark that was a message of theirs is one again."""
        fields = OWN.fields(piece.native)
        id_ = fields.get("id")
        if piece.kind != ACTIVITY or not isinstance(id_, str) or "activityType" not in fields:
            return False
        # another message may have got its id since it was read
        if not self.group.is_free(id_):
            return False
        self._end_blocks()
        entry = {**fields, "id": self.group.free(id_), "role": ACTIVITY}
        self._add(entry, self._place(index))
        return True

    # the group

    def _finish(self) -> list[Json]:
        """The group with the fields of the message as a whole, and with what would be read
        otherwise."""
        entry, extras = self.entries[0]
        speaker = next((each for each, _ in self.entries if each["role"] in _SPEAKING), None)
        if speaker is entry:
            merge_wire_fields(entry, OWN.fields(self.message.native))
            metadata = self.message.own_metadata
            shown = {key: value for key, value in metadata.items() if key not in RESERVED}
            entry["metadata"] = {**if_object(entry.get("metadata")), **shown}
        if self._unwritten:
            extras["more"] = self._unwritten
        if self.group.extras:
            # read the group as its reader will, and carry what comes out otherwise
            names: ChainMap[str, str] = ChainMap({}, self.group.names)
            read = load_group(list(enumerate(self._dump())), None, names)[0]
            if more := _unread(self.message, read):
                extras["message"] = more
        return self._dump()

    def _dump(self) -> list[Json]:
        return [
            add_extras(entry, extras if self.group.extras else {}) for entry, extras in self.entries
        ]

    _TEXT = {TextPart: _speak, MarkPart: _activity}
    WRITERS: ClassVar[Mapping[Role, Mapping[type, Callable[..., bool]]]] = {
        Role.SYSTEM: _TEXT,
        Role.USER: {
            **dict.fromkeys([TextPart, DataPart, LinkPart, FilePart], _block),
            ToolResultPart: _result,
            MarkPart: _activity,
        },
        Role.MODEL: {
            **_TEXT,
            ThinkingPart: _thinking,
            ToolCallPart: _call,
            ToolResultPart: _result,
        },
    }
    """Role → type of a piece → what writes it; the protocol has no form for others."""


def dump_group(message: Message, position: int, group: DumpedNames) -> list[Json]:
    """A message → theirs. `position`: in the conversation, for one without an id."""
    return _GroupWriter(message, position, group).write()


def dump_thinking(piece: ThinkingPart, id_: str, position_extras: JsonMap) -> tuple[Json, Json]:
    """Thinking → a reasoning message without its extras, and those."""
    native_fields = read_extra_fields(OWN.fields(piece.native), "id")
    entry: Json = {"id": id_, "role": "reasoning", "content": piece.text}
    unsigned, signed, signature = (piece, None, None) if native_fields else split_signature(piece)
    entry = merge_wire_fields(entry, native_fields)
    if signature is not None:
        entry["encryptedValue"] = signature
    extras: Json = optional_field("signed", signed)
    more = find_difference(unsigned, load_thinking(entry, {"of": "", **extras, "part": None}))
    if signed and not more:
        more = find_difference(unsigned, ThinkingPart(piece.text))
    if more:
        extras["part"] = more
    return entry, {**position_extras, **extras}


def split_signature(piece: ThinkingPart) -> tuple[ThinkingPart, Sequence[str] | None, str | None]:
    """Thinking without the text that its provider signed or hid it with, where that stood, and that
    text: the peer has a field for it."""
    native_fields = OWN.fields(piece.native).get("encryptedValue")
    signed = (
        {NAME: native_fields} if isinstance(native_fields, str) else read_signatures(piece.native)
    )
    if len(signed) != 1:
        return piece, None, None
    ((wire, signature),) = signed.items()
    native = dict(piece.native or {})
    fields = if_object(native[wire])
    field = next(
        name for name, text in fields.items() if isinstance(text, str) and text == signature
    )
    native[wire] = {**fields, field: None}
    return msgspec.structs.replace(piece, native=native), [wire, field], signature


def _unread(message: Message, read: Message) -> Json:
    """The fields of a message that would be read otherwise."""
    more = read_extra_fields(find_difference(message, read), "metadata")
    if not is_equal(message.own_metadata, read.own_metadata):
        more["metadata"] = message.own_metadata
    return more
