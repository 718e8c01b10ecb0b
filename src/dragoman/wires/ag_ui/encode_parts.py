"""The parts of a message as AG-UI has them: texts, reasoning and calls that are open, and results, which come whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman import json_bytes
from dragoman.codec.json_values import rest
from dragoman.event import MessageStarted, OpenText, PartFinished, PartStarted
from dragoman.fold import close_part
from dragoman.message import Content, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.ag_ui.extras import difference, is_equal
from dragoman.wires.ag_ui.messages_dump import Group, lowered
from dragoman.wires.ag_ui.quirks import RESERVED
from dragoman.wires.ag_ui.tools import dump_output, load_result, text_of

__all__ = ["MessageParts", "Part", "natural_start"]

Object = dict[str, Any]
Meta = Callable[..., Object]
_ROLES: Mapping[Role, str] = {Role.SYSTEM: "system", Role.USER: "user", Role.MODEL: "assistant"}
_TAKES: Mapping[Role, tuple[type, ...]] = {
    Role.SYSTEM: (OpenText,),
    Role.USER: (OpenText, ToolResultPart),
    Role.MODEL: (OpenText, ThinkingPart, ToolCallPart, ToolResultPart),
}
"""Role → parts that the protocol has a form for."""
_TEXT, _REASONING, _CALL = "TEXT_MESSAGE", "REASONING_MESSAGE", "TOOL_CALL"


def natural_start(
    message_id: str, role: Role, metadata: Mapping[str, Any], run_id: str | None
) -> MessageStarted:
    """The start of a message as it is read where nothing else of it is carried."""
    return MessageStarted(message_id, role, metadata=metadata, run_id=run_id)


class Part:
    """A part that is open."""

    def __init__(
        self, kind: str, id_: str, base: Content, begun: Content, extras: Object, owner: Object
    ) -> None:
        """`base`: what would be read of its start; `begun`: what it is; `extras`: where it stands."""
        self.kind = kind
        self.id = id_
        self.deltas: list[str | bytes] = []
        self.metadata: Object = {}
        self.role = "assistant"
        self.parent: str | None = None
        self.extras = extras
        self.piece: Content | None = None
        """What it was at its end."""
        self._base = base
        self.begun = begun
        self._owner = owner
        if more := difference(begun, base):
            self.extras["part"] = more

    @property
    def _key(self) -> str:
        return "toolCallId" if self.kind == _CALL else "messageId"

    @property
    def _content(self) -> str:
        return "TOOL_CALL_ARGS" if self.kind == _CALL else f"{self.kind}_CONTENT"

    def started(self, meta: Meta, start: MessageStarted | None) -> list[Object]:
        """What tells of its start, and of that of its message where it is given."""
        if start is not None:
            self.metadata = {
                key: value for key, value in start.metadata.items() if key not in RESERVED
            }
            run_id = start.run_id if self._owner else None
            natural = natural_start(start.message_id, Role.MODEL, self.metadata, run_id)
            self.extras["start"] = difference(start, natural)
        fields: Object = {"type": f"{self.kind}_START", self._key: self.id}
        if self.kind == _TEXT:
            fields["role"] = self.role
        elif self.kind == _REASONING:
            fields["role"] = "reasoning"
        elif isinstance(self.begun, ToolCallPart):
            fields["toolCallName"] = self.begun.name
            fields["parentMessageId"] = self.parent
        fields = {**fields, **self._owner, **meta(self.extras, self.metadata)}
        return (
            [{"type": "REASONING_START", "messageId": self.id, **self._owner}, fields]
            if self.kind == _REASONING
            else [fields]
        )

    def prefix(self) -> bytes:
        """A delta's frame up to its value."""
        owner = b"".join(
            [
                b',"%s":%s' % (key.encode(), json_bytes.encode(value))
                for key, value in self._owner.items()
            ]
        )
        id_ = json_bytes.encode(self.id)
        return b'data: {"type":"%s","%s":%s%s,"delta":' % (
            self._content.encode(),
            self._key.encode(),
            id_,
            owner,
        )

    def delta(self, delta: str) -> Object:
        """More of it."""
        return {"type": self._content, self._key: self.id, **self._owner, "delta": delta}

    def finished(self, event: PartFinished, meta: Meta) -> list[Object]:
        """What tells of its end, and of what no delta told."""
        piece = self.piece = event.part
        out: list[Object] = []
        if isinstance(piece, ToolCallPart) and not self.deltas and (text := text_of(piece)):
            out.append({**self.delta(text), **meta({"made": True})})
        extras: Object = {}
        value = signed = None
        left: Content = piece
        if isinstance(piece, ThinkingPart):
            left, signed, value = lowered(piece)
        if signed or not is_equal(piece, close_part(self.begun, self.deltas)):
            read = close_part(self._base, self.deltas)
            more = msgspec.to_builtins(left) if read is None else difference(left, read)
            extras = {
                **rest(self.extras, "part"),
                "part": more,
                **({"signed": signed} if signed else {}),
            }
        if extras:
            self.extras = extras
        return [*out, *self._end(meta(extras), value)]

    def cut(self, meta: Meta) -> list[Object]:
        """What closes it where no event did."""
        self.piece = close_part(self.begun, self.deltas, cut=True)
        return self._end(meta({**self.extras, "made": True}), None)

    def _end(self, metadata: Object, value: str | None) -> list[Object]:
        out: list[Object] = [
            {"type": f"{self.kind}_END", self._key: self.id, **self._owner, **metadata}
        ]
        if self.kind != _REASONING:
            return out
        if value is not None:
            sealed = {
                "type": "REASONING_ENCRYPTED_VALUE",
                "subtype": "message",
                "entityId": self.id,
            }
            out.append({**sealed, **self._owner, "encryptedValue": value})
        return [*out, {"type": "REASONING_END", "messageId": self.id, **self._owner}]


class MessageParts:
    """A message that was begun: which of its parts are open, and what was told of it."""

    def __init__(self, event: MessageStarted, owner: str | None, group: Group) -> None:
        self.id = event.message_id
        self.owner = owner
        self.open: dict[int, Part] = {}
        self._event = event
        self._owner: Object = {} if owner is None else {"subagentRunId": owner}
        self._group = group
        self._key: str | None = None
        self._is_used = False
        self._speaker: str | None = None
        self._written: list[Part | Object] = []
        """Parts and results, in order."""

    @property
    def shown(self) -> bool:
        """Whether anything of it was told."""
        return bool(self._written)

    def takes(self, event: PartStarted) -> bool:
        """Whether the protocol has a form for a part of it."""
        kinds = _TAKES[self._event.role] if self._event.candidate == 0 else ()
        return isinstance(event.part, kinds) and event.index not in self.open

    def holds(self, event: PartStarted) -> bool:
        """Whether a part is told of at its end alone."""
        return isinstance(event.part, ToolResultPart)

    def _place(self, index: int, *, thinks: bool = False) -> tuple[str, Object]:
        """The id of the next message of theirs, and the extras that say where it stands."""
        if self._key is None:
            self._key = self._group.free(self.id)
        extras: Object = {"at": index} if index else {}
        if self._key != self.id:
            extras["m"] = self.id
        if thinks or self._is_used:
            return self._group.free(f"{self._key}:{index}"), {"of": self._key, **extras}
        self._is_used = True
        return self._key, extras

    def start(self, event: PartStarted) -> Part:
        """Opens a part that the protocol has a form for."""
        part = event.part
        if isinstance(part, ToolCallPart):
            extras: Object = {}
            if self._speaker is None:
                self._speaker, extras = self._place(event.index)
            elif self._key != self.id:
                extras = {"m": self.id}
            call_id = self._group.call_id(part.id, f"{self._key}:{event.index}")
            self._group.names[part.id] = part.name
            base = ToolCallPart(call_id, part.name)
            made = Part(_CALL, call_id, base, part, {**extras, "at": event.index}, self._owner)
            made.parent = self._speaker
        else:
            id_, extras = self._place(event.index, thinks=isinstance(part, ThinkingPart))
            if isinstance(part, ThinkingPart):
                made = Part(_REASONING, id_, ThinkingPart(), part, extras, self._owner)
            else:
                made = Part(_TEXT, id_, OpenText(), part, extras, self._owner)
                made.role = _ROLES[self._event.role]
                self._speaker = id_
        self.open[event.index] = made
        self._written.append(made)
        return made

    def result(
        self, event: PartFinished, begun: PartStarted, start: MessageStarted | None, meta: Meta
    ) -> Object | None:
        """What tells of a result; `None`: its start and its end differ."""
        piece = event.part
        if not isinstance(piece, ToolResultPart) or not is_equal(piece, begun.part):
            return None
        id_, extras = self._place(event.index)
        self._speaker = None
        call_id = self._group.answered(piece.id)
        content, held = dump_output(piece, parts=self._group.parts, extras=self._group.extras)
        fields: Object = {
            "messageId": id_,
            "toolCallId": call_id,
            "content": content,
            "role": "tool",
        }
        extras = {"of": self._key, **extras, **held}
        if more := difference(
            piece, load_result(rest(fields, "messageId"), held, self._group.names)
        ):
            extras["part"] = more
        metadata: Object = {}
        if start is not None:
            metadata = {key: value for key, value in start.metadata.items() if key not in RESERVED}
            run_id = start.run_id if self._owner else None
            extras["start"] = difference(
                start, natural_start(start.message_id, Role.USER, metadata, run_id)
            )
        entry = {**fields, **self._owner, **meta(extras, metadata)}
        self._written.append({**rest(entry, "messageId"), "id": id_})
        return {"type": "TOOL_CALL_RESULT", **entry}

    def void(self, meta: Meta) -> list[Object]:
        """What makes a client forget its reasoning, where it is retracted: clients keep their own unless they are sent some."""
        thoughts = [
            part for part in self._written if isinstance(part, Part) and part.kind == _REASONING
        ]
        return [
            {"id": part.id, "role": "reasoning", "content": "", **meta({"void": True})}
            for part in thoughts[:1]
        ]

    def entries(self, meta: Meta) -> list[Object]:
        """Their messages, as far as they were told."""
        made: list[Object] = []
        speakers: dict[str, Object] = {}
        for each in self._written:
            if not isinstance(each, Part):
                made.append(each)
                continue
            metadata = meta(each.extras, each.metadata)
            if each.kind == _CALL:
                parent = str(each.parent)
                if parent not in speakers:
                    speakers[parent] = {"id": parent, "role": "assistant", **self._owner}
                    made.append(speakers[parent])
                piece = each.piece or close_part(each.begun, each.deltas, cut=True)
                if isinstance(piece, ToolCallPart):
                    function = {"name": piece.name, "arguments": text_of(piece)}
                    call = {"id": each.id, "type": "function", "function": function, **metadata}
                    speakers[parent].setdefault("toolCalls", []).append(call)
                continue
            text = (
                each.piece.text
                if isinstance(each.piece, TextPart | ThinkingPart)
                else "".join(map(str, each.deltas))
            )
            role = "reasoning" if each.kind == _REASONING else each.role
            entry = {"id": each.id, "role": role, "content": text, **self._owner, **metadata}
            if (
                isinstance(each.piece, ThinkingPart)
                and (value := lowered(each.piece)[2]) is not None
            ):
                entry["encryptedValue"] = value
            made.append(entry)
            if each.kind == _TEXT:
                speakers[each.id] = entry
        return made
