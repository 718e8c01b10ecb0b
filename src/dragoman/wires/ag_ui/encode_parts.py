"""The parts of a message as AG-UI has them: texts, reasoning and calls that are open, and results,
which come whole.

Each text, each reasoning and each result is a message of theirs. The extras of an object say where
its part is, and what of it would be read otherwise: `m` the message of ours, `of` the message of
theirs that its group is known by, `at` the index, `part` and `start` the fields of the part and of
its message that differ, `signed` where a signature belongs, `made` that no event of ours is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import msgspec

from dragoman.codec.json_difference import find_difference, is_equal
from dragoman.codec.json_values import optional_field, read_extra_fields
from dragoman.codec.run_encoder import EncodedPart
from dragoman.event import MessageStarted, OpenText, PartStarted
from dragoman.fold import close_part
from dragoman.json_bytes import Json
from dragoman.message import Content, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.ag_ui.events import CALL, REASONING, TEXT, Family
from dragoman.wires.ag_ui.messages_dump import DumpedNames, GroupIds, split_signature
from dragoman.wires.ag_ui.quirks import RESERVED
from dragoman.wires.ag_ui.tools import dump_output, load_result, text_of

__all__ = ["WrittenMessage", "WrittenPart"]

Meta = Callable[..., Json]
"""(extras, the application's metadata) → the field `metadata`."""
_ROLES: Mapping[Role, str] = {
    Role.SYSTEM: "system",
    Role.USER: "user",
    Role.MODEL: "assistant",
}
_TAKES: Mapping[Role, tuple[type, ...]] = {
    Role.SYSTEM: (OpenText,),
    Role.USER: (OpenText, ToolResultPart),
    Role.MODEL: (OpenText, ThinkingPart, ToolCallPart, ToolResultPart),
}
"""Role → types of parts that the protocol has a form for."""


class WrittenPart(EncodedPart):
    """A part that is open or was written."""

    __slots__ = ("_base", "_owner", "extras", "family", "id", "metadata", "parent", "piece", "role")

    def __init__(
        self, family: Family, id_: str, base: Content, begun: Content, extras: Json, owner: Json
    ) -> None:
        """Opens a part.

        Args:
            family: texts, calls or reasoning.
            id_: id of its AG-UI message or call.
            base: what a reader makes of its start.
            begun: what it holds at its start.
            extras: where it stands in its message.
            owner: the field that names the run of a tool, or empty.
        """
        super().__init__(begun)
        self.family = family
        self.id = id_
        self.role = "reasoning" if family is REASONING else "assistant"
        self.parent: str | None = None
        """Id of the AG-UI message that a call is in."""
        self.metadata: Json = {}
        self.extras = extras
        self.piece: Content | None = None
        """The whole part, once it has ended."""
        self._base = base
        self._owner = owner
        if more := find_difference(begun, base):
            self.extras["part"] = more

    def dump_start(self, meta: Meta, start: MessageStarted | None) -> list[Json]:
        """Returns the AG-UI objects that start the part, and with `start` its message."""
        if start is not None:
            self.metadata, self.extras["start"] = _dump_start_extras(start, Role.MODEL, self._owner)
        fields: Json = {"type": self.family.start, self.family.key: self.id}
        if isinstance(self.begun, ToolCallPart):
            fields["toolCallName"] = self.begun.name
            fields["parentMessageId"] = self.parent
        else:
            fields["role"] = self.role
        fields |= {**self._owner, **meta(self.extras, self.metadata)}
        # reasoning is enclosed in a span of its own
        if self.family is REASONING:
            return [
                {
                    "type": "REASONING_START",
                    "messageId": self.id,
                    **self._owner,
                },
                fields,
            ]
        return [fields]

    def dump_delta(self, delta: str) -> Json:
        """Returns the AG-UI event for a delta of an open part."""
        return {
            "type": self.family.content,
            self.family.key: self.id,
            **self._owner,
            "delta": delta,
        }

    def dump_end(self, piece: Content, meta: Meta) -> list[Json]:
        """Returns the AG-UI objects that end the part. `meta` makes the field `metadata`, in which
        dragoman's extras travel.

        A call that had no delta first gets one with all of its arguments, marked `made` for
        dragoman's decoder: no event of the run was this delta.
        """
        self.piece = piece
        out: list[Json] = []
        # no delta told the arguments, and an end cannot
        if isinstance(piece, ToolCallPart) and not self.deltas and (text := text_of(piece)):
            out.append({**self.dump_delta(text), **meta({"made": True})})
        extras, signature = self._end_extras(piece)
        if extras:
            self.extras = extras
        return [*out, *self._end_events(meta(extras), signature)]

    def _end_extras(self, piece: Content) -> tuple[Json, str | None]:
        """Returns the extras that an AG-UI end carries, and the thinking's signature, for which
        AG-UI has a field of its own."""
        unsigned, signed, signature = piece, None, None
        if isinstance(piece, ThinkingPart):
            unsigned, signed, signature = split_signature(piece)
        if not signed and is_equal(piece, close_part(self.begun, self.deltas)):
            return {}, None
        read = close_part(self._base, self.deltas)
        if read is None:
            more = msgspec.to_builtins(unsigned)
        else:
            more = find_difference(unsigned, read)
        # clients overwrite the metadata of the start by that of the end: repeat where the part is
        extras = {**read_extra_fields(self.extras, "part"), "part": more}
        if signed:
            extras["signed"] = signed
        return extras, signature

    def dump_cut(self, meta: Meta) -> list[Json]:
        """Returns the objects that close the part although no event ended it."""
        self.piece = close_part(self.begun, self.deltas, cut=True)
        return self._end_events(meta({**self.extras, "made": True}), None)

    def _end_events(self, metadata: Json, signature: str | None) -> list[Json]:
        """Returns the AG-UI objects that end the part."""
        end = {
            "type": self.family.end,
            self.family.key: self.id,
            **self._owner,
            **metadata,
        }
        if self.family is not REASONING:
            return [end]
        out = [end]
        if signature is not None:
            out.append(
                {
                    "type": "REASONING_ENCRYPTED_VALUE",
                    "subtype": "message",
                    "entityId": self.id,
                    **self._owner,
                    "encryptedValue": signature,
                }
            )
        return [
            *out,
            {
                "type": "REASONING_END",
                "messageId": self.id,
                **self._owner,
            },
        ]

    def dump_entry(self, meta: Meta) -> Json:
        """Returns the part as a message in a list of AG-UI messages, or as an element of
        `toolCalls`."""
        metadata = meta(self.extras, self.metadata)
        if self.family is CALL:
            piece = self.piece or close_part(self.begun, self.deltas, cut=True)
            assert isinstance(piece, ToolCallPart)
            function = {"name": piece.name, "arguments": text_of(piece)}
            return {
                "id": self.id,
                "type": "function",
                "function": function,
                **metadata,
            }
        text = "".join(map(str, self.deltas))
        if isinstance(self.piece, TextPart | ThinkingPart):
            text = self.piece.text
        entry = {
            "id": self.id,
            "role": self.role,
            "content": text,
            **self._owner,
            **metadata,
        }
        signature = None
        if isinstance(self.piece, ThinkingPart):
            signature = split_signature(self.piece)[2]
        if signature is None:
            return entry
        return {**entry, "encryptedValue": signature}


class WrittenMessage:
    """A message that has begun, and what was written of it."""

    def __init__(
        self,
        event: MessageStarted,
        owner: str | None,
        group: DumpedNames,
    ) -> None:
        """Begins a message that is written as AG-UI objects."""
        self.id = event.message_id
        self.owner = owner
        self._event = event
        self._owner: Json = optional_field("subagentRunId", owner)
        self._group = group
        self._speaker: str | None = None
        """Id of the AG-UI message that calls go into."""
        self._written: list[WrittenPart | Json] = []
        """Parts and results, in order."""

    @property
    def is_written(self) -> bool:
        """True if any part of it was written."""
        return bool(self._written)

    def can_write(self, part: Content | OpenText) -> bool:
        """True if the protocol has a form for a part of this message."""
        return self._event.candidate == 0 and isinstance(part, _TAKES[self._event.role])

    def open_part(self, event: PartStarted) -> WrittenPart:
        """Opens a part that AG-UI has a form for."""
        piece = event.part
        if isinstance(piece, ToolCallPart):
            part = self._start_call(event.index, piece)
        elif isinstance(piece, ThinkingPart):
            id_, extras = self._next_place(event.index, is_thinking=True)
            part = WrittenPart(REASONING, id_, ThinkingPart(), piece, extras, self._owner)
        else:
            id_, extras = self._next_place(event.index)
            part = WrittenPart(TEXT, id_, OpenText(), piece, extras, self._owner)
            part.role = _ROLES[self._event.role]
            self._speaker = id_
        self._written.append(part)
        return part

    def _start_call(self, index: int, call: ToolCallPart) -> WrittenPart:
        """Opens a call, in the AG-UI message of the text before it or in one of its own."""
        extras: Json = {}
        if self._speaker is None:
            self._speaker, extras = self._next_place(index)
        elif self._key != self.id:
            extras = {"m": self.id}
        call_id = self._group.add_call(call.id, f"{self._key}:{index}")
        self._group.names[call.id] = call.name
        base = ToolCallPart(call_id, call.name)
        part = WrittenPart(CALL, call_id, base, call, {**extras, "at": index}, self._owner)
        part.parent = self._speaker
        return part

    @cached_property
    def _ids(self) -> GroupIds:
        """Returns the ids of the message's AG-UI messages, made with the first part so that an
        unwritten message takes none."""
        return GroupIds(self.id, self._group)

    @property
    def _key(self) -> str:
        """Returns the id by which the message's AG-UI messages are grouped."""
        return self._ids.key

    def _next_place(self, index: int, *, is_thinking: bool = False) -> tuple[str, Json]:
        """Returns the id of its next AG-UI message, and the extras that say where it stands."""
        key = self._key
        extras: Json = optional_field("at", index)
        if key != self.id:
            extras["m"] = self.id
        id_ = self._ids.take(index, is_thinking=is_thinking)
        return id_, extras if id_ == key else {"of": key, **extras}

    def dump_result(
        self, index: int, result: ToolResultPart, start: MessageStarted | None, meta: Meta
    ) -> Json:
        """Returns the AG-UI object of a tool result, and with `start` of its message."""
        id_, position = self._next_place(index)
        self._speaker = None
        call_id = self._group.take_call_id(result.id)
        content, form = dump_output(result, parts=self._group.parts, extras=self._group.extras)
        fields: Json = {"toolCallId": call_id, "content": content, "role": "tool"}
        extras = {"of": self._key, **position, **form}
        if more := find_difference(result, load_result(fields, form, self._group.names)):
            extras["part"] = more
        metadata: Json = {}
        if start is not None:
            metadata, extras["start"] = _dump_start_extras(start, Role.USER, self._owner)
        common = {**fields, **self._owner, **meta(extras, metadata)}
        self._written.append({**common, "id": id_})
        return {"type": "TOOL_CALL_RESULT", "messageId": id_, **common}

    def dump_void(self, meta: Meta) -> list[Json]:
        """Returns an empty reasoning message, which makes a client forget the AG-UI reasoning that
        was retracted.

        Clients keep their own reasoning unless they are sent some.
        """
        thoughts = [
            part
            for part in self._written
            if isinstance(part, WrittenPart) and part.family is REASONING
        ]
        return [
            {
                "id": part.id,
                "role": "reasoning",
                "content": "",
                **meta({"void": True}),
            }
            for part in thoughts[:1]
        ]

    def dump_entries(self, meta: Meta) -> list[Json]:
        """Returns its AG-UI messages as far as they were written. Calls are in the message of the
        text before them, or in one of their own."""
        entries: list[Json] = []
        speakers: dict[str | None, Json] = {}
        for part in self._written:
            if not isinstance(part, WrittenPart):
                entries.append(part)
            elif part.family is not CALL:
                entries.append(part.dump_entry(meta))
                if part.family is TEXT:
                    speakers[part.id] = entries[-1]
            else:
                if part.parent not in speakers:
                    speakers[part.parent] = {
                        "id": part.parent,
                        "role": "assistant",
                        **self._owner,
                    }
                    entries.append(speakers[part.parent])
                speakers[part.parent].setdefault("toolCalls", []).append(part.dump_entry(meta))
        return entries


def _dump_start_extras(event: MessageStarted, role: Role, owner: Json) -> tuple[Json, Json]:
    """Returns the application's metadata of an AG-UI message's start, and what else of it a reader
    would miss."""
    metadata = read_extra_fields(event.metadata, *RESERVED)
    run_id = event.run_id if owner else None
    read = MessageStarted(event.message_id, role, metadata=metadata, run_id=run_id)
    return metadata, find_difference(event, read)
