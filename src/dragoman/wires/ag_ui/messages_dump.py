"""Writes one message as a group of AG-UI messages.

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

from dragoman.codec.fit_ids import DistinctIds
from dragoman.codec.json_difference import find_difference, is_equal
from dragoman.codec.json_values import (
    if_object,
    merge_wire_fields,
    optional_field,
    read_extra_fields,
)
from dragoman.codec.native import read_signatures
from dragoman.codec.opening import hide_openings
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
from dragoman.wires.ag_ui.messages_load import ACTIVITY, load_group, load_thinking, open_entry
from dragoman.wires.ag_ui.quirks import NAME, OWN, RESERVED, add_extras, app_metadata
from dragoman.wires.ag_ui.tools import dump_call, dump_result

__all__ = ["DumpedNames", "GroupIds", "dump_group", "dump_thinking", "split_signature"]

_SPEAKERS: Mapping[Role, str] = {
    Role.SYSTEM: "system",
    Role.USER: "user",
    Role.MODEL: "assistant",
}
_SPEAKING = frozenset([*_SPEAKERS.values(), "developer"])
"""Roles of AG-UI messages that hold the fields of the whole message."""


_USUAL: Mapping[tuple[Role, type], tuple[type, ...]] = {
    (Role.SYSTEM, TextPart): (),
    (Role.USER, TextPart): (),
    (Role.USER, ToolResultPart): (ToolResultPart,),
    (Role.MODEL, TextPart): (ToolCallPart,),
}
"""Role and first piece of a usual message → the pieces that may follow."""


class DumpedNames:
    """The ids that are in use, and the names of calls."""

    def __init__(self, *, extras: bool = True, parts: bool = True) -> None:
        """Starts without ids of dumped AG-UI messages."""
        self.extras = extras
        self.parts = parts
        self.names: dict[str, str] = {}
        self._ids = DistinctIds()
        self._call_ids = DistinctIds()
        self._waiting: dict[str, list[str]] = {}

    def take_id(self, id_: str) -> str:
        """Returns this id, changed if a message has it, and marks it as used."""
        return self._ids.take(id_)

    def is_free(self, id_: str) -> bool:
        """True if no message has this id."""
        return bool(id_) and id_ not in self._ids

    def add_call(self, id_: str, otherwise: str) -> str:
        """Returns AG-UI's id of a call: its own, or `otherwise` if that is empty or taken."""
        free = otherwise
        if id_ and id_ not in self._call_ids:
            free = id_
        call_id = self._call_ids.take(free)
        self._waiting.setdefault(id_, []).append(call_id)
        return call_id

    def find_call_id(self, id_: str) -> str:
        """Returns the protocol's id of a call that waits for its result."""
        waiting = self._waiting.get(id_)
        return waiting[0] if waiting else id_

    def add_known(self, message: Message) -> None:
        """Adds a message that the AG-UI peer has already: its ids are taken, and its calls wait for
        results."""
        base = ""
        if message.id:
            base = self.take_id(message.id)
        for index, piece in enumerate(message.content):
            if isinstance(piece, ToolCallPart):
                self.add_call(piece.id, f"{base}:{index}")
            elif isinstance(piece, ToolResultPart):
                self.take_call_id(piece.id)

    def take_call_id(self, id_: str) -> str:
        """Returns AG-UI's id of the call that a result answers, which is the earliest one that
        waits."""
        waiting = self._waiting.get(id_)
        return waiting.pop(0) if waiting else id_


class GroupIds:
    """The ids of the AG-UI messages that one message becomes. The first that is no reasoning has
    the id of the group."""

    def __init__(self, id_: str, group: DumpedNames) -> None:
        self.key = group.take_id(id_)
        self._group = group
        self._is_used = False

    def take(self, index: int, *, is_thinking: bool = False) -> str:
        """Returns the id of the AG-UI message that begins with the part of that index."""
        if is_thinking or self._is_used:
            return self._group.take_id(f"{self.key}:{index}")
        self._is_used = True
        return self.key


class _GroupWriter:
    """Writes one message as a group of AG-UI messages."""

    def __init__(
        self,
        message: Message,
        position: int,
        group: DumpedNames,
    ) -> None:
        """Creates the writer of one message as a group of AG-UI messages."""
        self.message = message
        self.group = group
        self.ids = GroupIds(message.id or f"message-{position}", group)
        self.entries: list[tuple[Json, Json]] = []
        """AG-UI messages, each with its extras beside it."""
        self._names: dict[str, str] = {}
        """Names of this message's calls, by id."""
        self._speaker: Json | None = None
        """The AG-UI message that calls go into."""
        self._blocks: list[tuple[int, Any]] = []
        """Index and piece of what a user said since the last result."""
        self._unwritten: list[list[Any]] = []
        self._next = 0

    def write(self) -> list[Json]:
        """Returns the AG-UI messages that one message becomes."""
        writers, message = self.WRITERS[self.message.role], self.message
        for index, piece in enumerate(message.content):
            writer = writers.get(type(piece))
            if writer is None or not writer(self, index, piece):
                self._unwritten.append([index, msgspec.to_builtins(piece)])
        self._write_blocks()
        is_speaking = any(entry["role"] in _SPEAKING for entry, _ in self.entries)
        if not is_speaking and (not self.entries or OWN.fields(message.native)):
            self._add_agui_message(
                {
                    "id": self.ids.take(0),
                    "role": self._agui_role(),
                    "content": "",
                },
                {},
            )
        group = self._finish_group()
        self.group.names.update(self._names)
        return group

    def _agui_role(self) -> str:
        """Returns the role of AG-UI messages that speak for the message."""
        role = self.message.role
        developer = OWN.form(self.message.native).get("role") == "developer"
        if developer and role is Role.SYSTEM:
            return "developer"
        return _SPEAKERS[role]

    def _add_agui_message(self, entry: Json, extras: Json) -> Json:
        """Adds an AG-UI message and its extras."""
        # a first message that speaks is known by its own id, without extras
        if entry["id"] != self.ids.key or entry["role"] in ("tool", "reasoning", ACTIVITY):
            extras = {"of": self.ids.key, **extras}
        self.entries.append((entry, extras))
        return entry

    def _position_extras(self, index: int) -> Json:
        """Returns the extras that give the index of a piece in an AG-UI message, empty if it
        follows the piece before it."""
        if index == self._next:
            position_extras = {}
        else:
            position_extras = {"at": index}
        self._next = index + 1
        return position_extras

    # pieces: each says whether it is written

    def _write_text(self, index: int, piece: TextPart) -> bool:
        """Writes a text as an AG-UI message. Returns True: it is written."""
        extras = self._position_extras(index)
        if piece.native is not None or piece.citations:
            extras["part"] = find_difference(piece, TextPart(piece.text))
        entry: Json = {"id": self.ids.take(index), "role": self._agui_role()}
        self._speaker = self._add_agui_message(entry, extras)
        self._speaker["content"] = piece.text
        return True

    def _add_block(self, index: int, piece: Content) -> bool:
        """Adds a piece to the user's next message. Returns True: it is written."""
        self._blocks.append((index, piece))
        return True

    def _write_blocks(self) -> None:
        """Writes the pieces since the last tool result as one AG-UI user message."""
        if not self._blocks:
            return
        positions = [self._position_extras(index) for index, _ in self._blocks]
        pieces = [piece for _, piece in self._blocks]
        content = dump_content(pieces, OWN.form(self.message.native))
        id_ = self.ids.take(self._blocks[0][0])
        self._add_agui_message({"id": id_, "role": "user", "content": content}, positions[0])
        self._blocks = []

    def _write_thinking(self, index: int, piece: ThinkingPart) -> bool:
        """Writes thinking as an AG-UI reasoning message. Returns True: it is written."""
        id_ = self.ids.take(index, is_thinking=True)
        self._add_agui_message(*dump_thinking(piece, id_, self._position_extras(index)))
        return True

    def _write_call(self, index: int, piece: ToolCallPart) -> bool:
        """Writes a call into the AG-UI message of the text before it. Returns True: it is
        written."""
        if self._speaker is None:
            self._speaker = self._add_agui_message(
                {"id": self.ids.take(index), "role": self._agui_role()}, {}
            )
        call_id = self.group.add_call(piece.id, f"{self.ids.key}:{index}")
        self._names[piece.id] = piece.name
        call = dump_call(piece, call_id, self._position_extras(index), extras=self.group.extras)
        self._speaker.setdefault("toolCalls", []).append(call)
        return True

    def _write_result(self, index: int, piece: ToolResultPart) -> bool:
        """Writes a tool result as an AG-UI tool message. Returns True: it is written."""
        self._write_blocks()
        id_, group = self.ids.take(index), self.group
        call_id = group.take_call_id(piece.id)
        names = ChainMap(self._names, group.names)
        position_extras = self._position_extras(index)
        self._add_agui_message(
            *dump_result(
                piece, id_, call_id, position_extras, names, parts=group.parts, extras=group.extras
            )
        )
        self._speaker = None
        return True

    def _write_activity(self, index: int, piece: MarkPart) -> bool:
        """Writes a mark that was an AG-UI activity message. Returns False if it was none, or its id
        is taken."""
        fields = OWN.fields(piece.native)
        id_ = fields.get("id")
        if piece.kind != ACTIVITY or not isinstance(id_, str) or "activityType" not in fields:
            return False
        # another message may have got its id since it was read
        if not self.group.is_free(id_):
            return False
        self._write_blocks()
        entry = {**fields, "id": self.group.take_id(id_), "role": ACTIVITY}
        self._add_agui_message(entry, self._position_extras(index))
        return True

    # the group

    def _finish_group(self) -> list[Json]:
        """Returns the group, with the fields of the whole AG-UI message and what its reader would
        miss."""
        entry, extras = self.entries[0]
        speaker = next((entry for entry, _ in self.entries if entry["role"] in _SPEAKING), None)
        if speaker is entry:
            merge_wire_fields(entry, OWN.fields(self.message.native))
            metadata = self.message.own_metadata
            app_fields = read_extra_fields(metadata, *RESERVED)
            if app_fields:
                entry["metadata"] = {**if_object(entry.get("metadata")), **app_fields}
        if self._unwritten:
            extras["more"] = self._unwritten
        entries = [
            add_extras(entry, extras if self.group.extras else {}) for entry, extras in self.entries
        ]
        if not self.group.extras:
            return entries
        # read the group as its reader will, and carry what comes out otherwise
        if more := _find_unread(self.message, self._read_back(entries)):
            entries[0] = add_extras(entry, {**extras, "message": more})
        return entries

    def _read_back(self, entries: Sequence[Json]) -> Message:
        """Returns the message that the reader of the group will have."""
        message, metadata = self.message, entries[0].get("metadata")
        if _is_usual(message):
            # Nearly every message: what is read of its pieces is known without reading them.
            read_metadata = app_metadata(metadata) if entries[0]["role"] in _SPEAKING else {}
            return Message(message.role, message.content, id=self.ids.key, metadata=read_metadata)
        names: ChainMap[str, str] = ChainMap({}, self.group.names)
        opened = [open_entry(index, fields) for index, fields in enumerate(entries)]
        return load_group(opened, None, names)[0]

    _TEXT = {TextPart: _write_text, MarkPart: _write_activity}
    WRITERS: ClassVar[Mapping[Role, Mapping[type, Callable[..., bool]]]] = {
        Role.SYSTEM: _TEXT,
        Role.USER: {
            **dict.fromkeys([TextPart, DataPart, LinkPart, FilePart], _add_block),
            ToolResultPart: _write_result,
            MarkPart: _write_activity,
        },
        Role.MODEL: {
            **_TEXT,
            ThinkingPart: _write_thinking,
            ToolCallPart: _write_call,
            ToolResultPart: _write_result,
        },
    }
    """Role → type of a piece → a method that writes it. The protocol has no form for others."""


def _is_usual(message: Message) -> bool:
    """True if a group of AG-UI messages certainly holds all pieces of a message in order, and
    nothing else that its reader could see in them: a text and calls, or results of tools."""
    if message.native is not None or not message.content:
        return False
    first, *others = message.content
    if isinstance(first, TextPart) and (first.native is not None or first.citations):
        return False
    followers = _USUAL.get((message.role, type(first)))
    return followers is not None and all(isinstance(piece, followers) for piece in others)


def dump_group(message: Message, position: int, group: DumpedNames) -> list[Json]:
    """Returns a message as AG-UI messages. `position` is its index, for a message without an id."""
    [message] = hide_openings([message])
    return _GroupWriter(message, position, group).write()


def dump_thinking(piece: ThinkingPart, id_: str, position_extras: JsonMap) -> tuple[Json, Json]:
    """Returns an AG-UI reasoning message for thinking, and its extras."""
    native_fields = read_extra_fields(OWN.fields(piece.native), "id")
    entry: Json = {"id": id_, "role": "reasoning", "content": piece.text}
    unsigned, signed, signature = (piece, None, None) if native_fields else split_signature(piece)
    entry = merge_wire_fields(entry, native_fields)
    if signature is not None:
        entry["encryptedValue"] = signature
    extras: Json = optional_field("signed", signed)
    more = find_difference(
        unsigned,
        load_thinking(
            entry,
            {
                "of": "",
                **extras,
                "part": None,
            },
        ),
    )
    if signed and not more:
        more = find_difference(unsigned, ThinkingPart(piece.text))
    if more:
        extras["part"] = more
    return entry, {**position_extras, **extras}


def split_signature(piece: ThinkingPart) -> tuple[ThinkingPart, Sequence[str] | None, str | None]:
    """Returns thinking for an AG-UI message without the text that its provider signed it with, the
    place of that text, and the text.

    The protocol has a field for such a text. Thinking with none, or with several, stays unchanged,
    and the others are None.
    """
    native_fields = OWN.fields(piece.native).get("encryptedValue")
    if isinstance(native_fields, str):
        signed = {NAME: native_fields}
    else:
        signed = read_signatures(piece.native)
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


def _find_unread(message: Message, read: Message) -> Json:
    """Returns the fields of an AG-UI message that its reader would read otherwise."""
    difference = find_difference(message, read)
    if not difference:
        return {}
    more = read_extra_fields(difference, "metadata")
    if not is_equal(message.own_metadata, read.own_metadata):
        more["metadata"] = message.own_metadata
    return more
