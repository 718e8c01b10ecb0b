"""The parts of a run: texts, reasoning and calls with their deltas, and results, which come whole.

In a stream that our own encoder wrote (`is_own`), the extras of an object say of which message of
ours it is, at which index, and what of its event would be read otherwise; messages are told by
events that are carried. In a stream of others nothing of it is believed: there the order of the
objects tells the messages (`decode_messages`).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from dragoman.codec.json_difference import apply_difference
from dragoman.codec.json_values import if_text, optional_field, read_extra_fields
from dragoman.errors import DecodeError
from dragoman.event import MessageStarted, OpenText, PartFinished, PartStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Content, Origin, Role, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.ag_ui.decode_messages import MessagesDecoder, ReadMessage, ReadPart
from dragoman.wires.ag_ui.events import CALL, FAMILIES, REASONING, TEXT, Family
from dragoman.wires.ag_ui.messages_load import ROLES, load_index
from dragoman.wires.ag_ui.quirks import OWN, app_metadata, load_extras
from dragoman.wires.ag_ui.tools import load_result

__all__ = ["PartsDecoder"]

_COMMON = ("type", "timestamp", "rawEvent", "subagentRunId")
_OF_START = ("messageId", "role", "toolCallId", "toolCallName", "parentMessageId")


class PartsDecoder(MessagesDecoder):
    """Reads the parts of messages."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """See `MessagesDecoder`."""
        super().__init__(origin, new_id)
        self.is_own = False
        """True if dragoman's own encoder wrote the run."""
        self.runs: dict[str, str] = {}
        """The protocol's id of a run within a tool → dragoman's."""
        self._names: dict[str, str] = {}
        """Call id → name of its tool."""
        self._message_ids: dict[str, str] = {}
        """Id of an AG-UI message → id of its message, in dragoman's own stream."""

    def begin_run(self) -> None:
        """Implements `MessagesDecoder.begin_run` for AG-UI."""
        super().begin_run()
        self.runs.clear()
        self._message_ids.clear()

    def extras(self, fields: Json) -> Json:
        """Returns what an AG-UI object carries, or an empty object in a foreign stream."""
        if self.is_own:
            return load_extras(fields.get("metadata"))
        return {}

    def _start(self, fields: Json) -> None:
        """Opens an AG-UI text, a call or reasoning."""
        family = FAMILIES[fields["type"]]
        id_ = if_text(fields.get(family.key))
        # the extras of others could say anything, so they are not even looked at
        if self.is_own:
            start = self._start_own
        else:
            start = self._start_foreign
        part = start(family, id_, fields)
        if isinstance(part.begun, ToolCallPart):
            self._names[part.begun.id] = part.begun.name
        key = (family.name, id_)
        if key in self.open and not self.is_own:
            raise DecodeError(f"{family.start} opens {id_!r}, which is open already")
        self.start_part(key, part)

    def _start_own(
        self,
        family: Family,
        id_: str,
        fields: Json,
    ) -> ReadPart:
        """Returns the part that an AG-UI object of dragoman's own stream opens."""
        extras = self.extras(fields)
        entry = id_
        if family is CALL:
            entry = if_text(fields.get("parentMessageId"))
        message_id = self._message_of(entry, extras, fields, Role.MODEL)
        base = _base_of(family, id_, fields)
        begun = apply_difference(base, extras.get("part"), type(base))
        return ReadPart(message_id, load_index(extras) or 0, begun, base)

    def _message_of(
        self,
        entry: str,
        extras: JsonMap,
        fields: Json,
        role: Role,
    ) -> str:
        """Returns the id of the message that an AG-UI message belongs to, and starts it if the
        object says so."""
        first, message_id = extras.get("of"), extras.get("m")
        if not isinstance(message_id, str):
            if not isinstance(first, str):
                first = entry
            message_id = self._message_ids.get(first, first)
        self._message_ids[entry] = message_id
        if "start" in extras:
            owner = fields.get("subagentRunId")
            run_id = None
            if isinstance(owner, str):
                run_id = self.runs.get(owner, owner)
            metadata = app_metadata(fields.get("metadata"))
            start = MessageStarted(message_id, role, metadata=metadata, run_id=run_id)
            self._events.append(apply_difference(start, extras["start"], MessageStarted))
        return message_id

    def _start_foreign(
        self,
        family: Family,
        id_: str,
        fields: Json,
    ) -> ReadPart:
        """Returns the part that an AG-UI object of a foreign stream opens, in the message that its
        order implies."""
        owner = if_text(fields.get("subagentRunId"))
        native_fields = read_extra_fields(fields, *_COMMON, "metadata", *_OF_START)
        metadata = app_metadata(fields.get("metadata"))
        part = _base_of(family, id_, fields)
        if family is TEXT:
            role = if_text(fields.get("role"))
            form = None
            if role == "developer":
                form = {"role": role}
            our_role = ROLES.get(role, Role.MODEL)
            message = self.take_message(
                id_, our_role, owner, metadata, OWN.note(native_fields, form)
            )
            message.has_spoken = True
            message.spoken_entries.add(id_)
        else:
            native_fields |= {"id": id_} if family is REASONING else {}
            native_fields |= optional_field("metadata", metadata)
            part = replace(part, native=OWN.note(native_fields))
            if family is CALL:
                find_message = self._message_of_call
            else:
                find_message = self._message_of_thinking
            message = find_message(id_, owner, if_text(fields.get("parentMessageId")))
        message.parts.append((family.name, id_))
        message.next_index += 1
        return ReadPart(message.id, message.next_index - 1, part, message=message)

    def _message_of_thinking(
        self,
        id_: str,
        owner: str,
        _: str,
    ) -> ReadMessage:
        """Returns the message of AG-UI reasoning: a new one if the open one has more than
        thinking."""
        message = self.take_message(id_, Role.MODEL, owner, {})
        if message.has_spoken:
            self.leave_message(owner)
            message = self.take_message(id_, Role.MODEL, owner, {})
        return message

    def _message_of_call(
        self,
        id_: str,
        owner: str,
        parent: str,
    ) -> ReadMessage:
        """Returns the AG-UI message of a call: its parent, else the open one."""
        message = self.current.get(owner)
        if parent or message is None or message.role is not Role.MODEL:
            message = self.take_message(parent or id_, Role.MODEL, owner, {})
        message.has_spoken = True
        message.calls.add(id_)
        if parent:
            message.spoken_entries.add(parent)
        return message

    def _open_part(self, fields: Json) -> tuple[Family, ReadPart]:
        """Returns the open part that an AG-UI object names, and its family.

        Raises:
            DecodeError: it is not open.
        """
        family = FAMILIES[fields["type"]]
        part = self.open.get((family.name, if_text(fields.get(family.key))))
        if part is None or part.is_ended:
            raise DecodeError(f"{fields['type']} names nothing that is open")
        return family, part

    def _content(self, fields: Json) -> None:
        """Adds a delta to an open part of an AG-UI stream."""
        _, part = self._open_part(fields)
        if not self.extras(fields).get("made"):
            self.add_delta(part, if_text(fields.get("delta")))

    def _end(self, fields: Json) -> None:
        """Ends a part of an AG-UI stream. Reasoning stays open for its signature."""
        family, part = self._open_part(fields)
        key = (family.name, if_text(fields.get(family.key)))
        part.extras = self.extras(fields)
        if part.extras.get("made"):  # no event of ours ended it
            del self.open[key]
            return
        part.is_ended = True
        if family is not REASONING:  # its signature may follow
            del self.open[key]
            self.close_part(part)
        self.finish_ended(part.message)

    def _read_signature(self, fields: Json) -> None:
        """Reads the signature of reasoning that is still open in AG-UI's stream."""
        part = self.open.get((REASONING.name, if_text(fields.get("entityId"))))
        value = fields.get("encryptedValue")
        if part is not None and isinstance(value, str):
            part.signature = value

    def _reasoning_end(self, fields: Json) -> None:
        """Closes reasoning in AG-UI's stream."""
        part = self.open.pop((REASONING.name, if_text(fields.get("messageId"))), None)
        # some servers end the span alone; in our own stream such a part was cut
        if part is not None and (part.is_ended or not self.is_own):
            self.close_part(part)

    def _result(self, fields: Json) -> None:
        """Adds a tool result of AG-UI's stream as a message."""
        extras, id_ = self.extras(fields), if_text(fields.get("messageId"))
        # in our own stream the metadata is that of the message
        neutral = read_extra_fields(
            fields, *_COMMON, "messageId", *(["metadata"] if self.is_own else [])
        )
        result = load_result(neutral, extras, self._names)
        if self.is_own:
            message_id = self._message_of(id_, extras, fields, Role.USER)
            index = load_index(extras) or 0
        else:
            message_id, index, result = self._place_result(id_, fields, result)
        self._events += [
            PartStarted(message_id, index, result),
            PartFinished(message_id, index, result),
        ]

    def _place_result(
        self, id_: str, fields: Json, result: ToolResultPart
    ) -> tuple[str, int, ToolResultPart]:
        """Returns the AG-UI message and index of a foreign result, and the result. It keeps its id
        if it begins no message."""
        owner = if_text(fields.get("subagentRunId"))
        message = self.current.get(owner)
        if message is None or message.role is not Role.USER or message.has_spoken:
            self.leave_message(owner)
            message = self.take_message(id_, Role.USER, owner, {})
        elif id_:
            native_fields = {**OWN.fields(result.native), "id": id_}
            result = replace(result, native=OWN.note(native_fields, OWN.form(result.native)))
        message.spoken_entries.add(id_)
        message.calls.add(result.id)
        message.next_index += 1
        return message.id, message.next_index - 1, result

    STEPS = {
        **dict.fromkeys([TEXT.start, CALL.start, REASONING.start], _start),
        **dict.fromkeys([TEXT.content, CALL.content, REASONING.content], _content),
        **dict.fromkeys([TEXT.end, CALL.end, REASONING.end], _end),
        "REASONING_ENCRYPTED_VALUE": _read_signature,
        "REASONING_END": _reasoning_end,
        "TOOL_CALL_RESULT": _result,
    }


def _base_of(family: Family, id_: str, fields: Json) -> Content:
    """Returns an empty part for an AG-UI start event."""
    if family is CALL:
        return ToolCallPart(id_, if_text(fields.get("toolCallName")))
    if family is REASONING:
        return ThinkingPart()
    return OpenText()
