"""The messages of a turn, as chunks tell of them: the model's of each step, and the user's with the
results of its calls.

A chunk is one piece of a UI message's part. When the part is complete it is put together and loaded
as the format `ai_sdk_ui` loads it, so that stream and message cannot be read differently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from dragoman.codec import run_decoder
from dragoman.codec.json_values import if_object, if_text, pick, read_extra_fields
from dragoman.codec.run_decoder import RunDecoder, Step
from dragoman.errors import DecodeError, HistoryError
from dragoman.event import MessageFinished, MessageStarted, OpenText, PartFinished, PartStarted
from dragoman.fold import parse_call
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    FinishReason,
    Origin,
    Role,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk.quirks import OURS
from dragoman.wires.ai_sdk_messages.read_parts import Reading, load_parts
from dragoman.wires.ai_sdk_messages.ui_messages import UI_DIALECT

__all__ = ["PendingPart", "TurnDecoder"]

_INPUT = "tool-input"
_OUTPUT_PREFIX = "tool-output-"
_OUTPUT_FIELDS = ("output", "errorText", "providerExecuted")
_CALL_FIELDS = ("title", "toolMetadata", "providerExecuted")


class PendingPart(run_decoder.DecodedPart):
    """An open part, with the provider's metadata."""

    __slots__ = ("metadata",)

    def __init__(
        self,
        message_id: str,
        index: int,
        begun: Content | OpenText,
    ) -> None:
        """Opens a part of an AI SDK UI message stream."""
        super().__init__(message_id, index, begun)
        self.metadata: Any = None

    def text(self) -> str:
        """Returns the text of its deltas."""
        return "".join([delta for delta in self.deltas if isinstance(delta, str)])


class UnansweredCall:
    """A call without a result, the UI message part that shows it, and its message's id."""

    __slots__ = ("call", "message_id", "part")

    def __init__(
        self,
        call: ToolCallPart,
        part: Json,
        message_id: str,
    ) -> None:
        """Keeps a call of an AI SDK UI message stream until its result comes."""
        self.call, self.part, self.message_id = call, part, message_id


class TurnDecoder(RunDecoder[PendingPart]):
    """Reads the messages of one turn. The key of an open part is the type of its chunks and its
    id."""

    def __init__(
        self, origin: Origin | None = None, new_id: Callable[[], str] | None = None
    ) -> None:
        """Creates the decoder of an AI SDK turn. `origin`: that of the model's messages."""
        super().__init__(origin, new_id)
        self._model = origin
        self._turn = ""
        self._count = 0
        self._message_id: str | None = None
        """Id of the open message."""
        self._step_ids: list[str] = []
        """Ids of the messages in the current step."""
        self._role = Role.MODEL
        self._index = 0
        self._calls: dict[str, UnansweredCall] = {}
        self._metadata: Json = {}
        """Metadata of the UI message, which goes to the next message that ends."""

    @property
    def waiting_calls(self) -> list[ToolCallPart]:
        """Returns the calls without a result."""
        return [waiting.call for waiting in self._calls.values()]

    def name_turn(self, turn: str) -> None:
        """Sets the id of the UI message."""
        self._turn = turn or self._turn

    def describe_turn(self, metadata: JsonMap) -> None:
        """Merges metadata into that of the AI SDK UI message, objects at every depth."""
        merges = [(self._metadata, read_extra_fields(metadata, OURS))]
        while merges:
            target, fields = merges.pop()
            for name, value in fields.items():
                known_value = target.get(name)
                if isinstance(known_value, dict) and isinstance(value, dict):
                    merges.append((if_object(known_value), if_object(value)))
                else:
                    target[name] = value

    def begin_step(self) -> None:
        """Begins the next step of an AI SDK stream's turn, which is another message."""
        # The first step of a message, and one of which nothing came, is no other message.
        if self._message_id is not None and (self._role is Role.USER or self._index):
            self._close_message(None)
        self._step_ids = [] if self._message_id is None else [self._message_id]

    def drop_step(self) -> list[str]:
        """Forgets the current step of an AI SDK stream. Returns the ids of its messages."""
        dropped, self._step_ids, self._message_id = self._step_ids, [], None
        self.open.clear()
        self._calls = {
            id_: waiting
            for id_, waiting in self._calls.items()
            if waiting.message_id not in dropped
        }
        return dropped

    def end_turn(self, reason: FinishReason | None) -> None:
        """Ends the AI SDK turn. Open parts are cut: texts first, then calls."""
        parts = sorted(
            self.open.items(), key=lambda entry: isinstance(entry[1].begun, ToolCallPart)
        )
        self.open.clear()
        for _, part in parts:
            if isinstance(part.begun, ToolCallPart):
                id_, name = part.begun.id, part.begun.name
                self.finish_part(part, ToolCallPart(id_, name, {}, raw=part.text(), state="cut"))
            elif part.deltas or part.metadata is not None:
                self._finish_text(part, {})
        if self._message_id is not None:
            self._close_message(reason)

    def read_whole(self, chunk: Json) -> None:
        """Adds a part that arrives complete."""
        for piece in self._load(dict(chunk))[0]:
            self._add_whole(piece)

    # steps: texts

    def _start_text(self, chunk: Json) -> None:
        """Opens a text or reasoning of an AI SDK UI message stream."""
        is_text = chunk["type"] == "text-start"
        part = self._open_part(_text_key(chunk), OpenText() if is_text else ThinkingPart(""))
        part.metadata = chunk.get("providerMetadata")

    def _read_text(self, chunk: Json) -> PendingPart:
        """Returns the open part of an AI SDK chunk, and keeps the chunk's metadata.

        Raises:
            DecodeError: the part is not open.
        """
        _, id_ = key = _text_key(chunk)
        part = self.open.get(key)
        if part is None:
            raise DecodeError(f"a {chunk['type']} for {id_!r:.100} comes without its start")
        part.metadata = chunk.get("providerMetadata") or part.metadata
        return part

    def _describe_text(self, chunk: Json) -> None:
        """Reads metadata of an open text."""
        self._read_text(chunk)

    def _add_text(self, chunk: Json) -> None:
        """Adds a delta to an open text or reasoning."""
        self.add_delta(self._read_text(chunk), if_text(chunk.get("delta")))

    def _end_text(self, chunk: Json) -> None:
        """Ends a text or reasoning of an AI SDK UI message stream."""
        part = self._read_text(chunk)
        del self.open[_text_key(chunk)]
        self._finish_text(part, chunk)

    def _finish_text(self, part: PendingPart, chunk: Json) -> None:
        """Ends a text with what a complete UI message part would say."""
        part_type = "text"
        if isinstance(part.begun, ThinkingPart):
            part_type = "reasoning"
        whole: Json = {"type": part_type, "text": part.text(), "state": "done"}
        if part.metadata is not None:
            whole["providerMetadata"] = part.metadata
        if "citations" in chunk:
            whole["citations"] = chunk["citations"]
        for piece in self._load(whole)[0][:1]:
            self.finish_part(part, piece)

    # steps: calls

    def _start_input(self, chunk: Json) -> None:
        """Opens a call."""
        id_ = if_text(chunk.get("toolCallId"))
        self._open_part((_INPUT, id_), ToolCallPart(id_, if_text(chunk.get("toolName")), {}))

    def _add_input(self, chunk: Json) -> None:
        """Adds a piece of an AI SDK call's arguments."""
        id_ = if_text(chunk.get("toolCallId"))
        part = self.open.get((_INPUT, id_))
        if part is None:
            raise DecodeError(f"a tool-input-delta for {id_!r:.100} comes without its start")
        self.add_delta(part, if_text(chunk.get("inputTextDelta")))

    def _end_input(self, chunk: Json) -> None:
        """Ends an AI SDK call with its arguments, or with the text that is no valid JSON."""
        id_, name = if_text(chunk.get("toolCallId")), if_text(chunk.get("toolName"))
        call, key = ToolCallPart(id_, name, {}), (_INPUT, id_)
        part = self.open.get(key) or self._open_part(key, call)
        del self.open[key]
        part_name = _tool_part(id_, name, chunk)
        part_name |= {"state": "input-available", "input": chunk.get("input")}
        if chunk["type"] == "tool-input-error":
            raw = part.text() or chunk.get("input")
            call = parse_call(call, raw if isinstance(raw, str) else "{")
        else:
            pieces = self._load(part_name)[0]
            call = next((piece for piece in pieces if isinstance(piece, ToolCallPart)), call)
        self.finish_part(part, call)
        self._calls[id_] = UnansweredCall(call, part_name, part.message_id)

    def _read_output(self, chunk: Json) -> None:
        """Adds the result of a call in an AI SDK UI message stream."""
        # It is shown while the tool works, and replaced by what the tool returns.
        if chunk.get("preliminary") is True:
            return
        id_ = if_text(chunk.get("toolCallId"))
        waiting = self._calls.pop(id_, None)
        # An approval's result may come in a stream that does not have its call.
        if waiting is None:
            unknown = {"type": "dynamic-tool", "toolName": "", "toolCallId": id_}
            waiting = UnansweredCall(ToolCallPart(id_, "", {}), unknown, "")
        state = chunk["type"].removeprefix(_OUTPUT_PREFIX)
        part = {**waiting.part, "state": f"output-{state}"}
        part |= pick(chunk, _OUTPUT_FIELDS)
        if (metadata := chunk.get("providerMetadata")) is not None:
            part["resultProviderMetadata"] = metadata
        part.setdefault("input", dict(waiting.call.arguments))
        pieces, answers = self._load(part)
        results = [piece for piece in (*answers, *pieces) if isinstance(piece, ToolResultPart)]
        for result in results[:1]:
            # The results of our calls are a user's message behind the model's; a provider's own is
            # part of the answer.
            if result.run_by != "provider" and not self._is_in(Role.USER):
                self._begin_message(Role.USER)
            self._add_whole(result)

    PART_STEPS: ClassVar[Mapping[str, Step]] = {
        "text-start": _start_text,
        "text-delta": _add_text,
        "text-end": _end_text,
        "reasoning-start": _start_text,
        "reasoning-delta": _add_text,
        "reasoning-end": _end_text,
        "tool-input-start": _start_input,
        "tool-input-delta": _add_input,
        "file": read_whole,
        "source-url": read_whole,
        "source-document": read_whole,
        "reasoning-file": read_whole,
        "custom": read_whole,
    }
    PREFIX_STEPS: ClassVar[Mapping[str, Step]] = {
        "text-": _describe_text,
        "reasoning-": _describe_text,
        "tool-input-": _end_input,
        _OUTPUT_PREFIX: _read_output,
    }
    """Beginning of a type → a method for chunks of that family that the table does not name,
    such as those of later versions."""

    # messages

    def _is_in(self, role: Role) -> bool:
        """True if a message of this role is open."""
        return self._message_id is not None and self._role is role

    def _open_part(self, key: tuple[str, str], begun: Content | OpenText) -> PendingPart:
        """Opens an AI SDK part in the model's message."""
        part = self._next_part(begun)
        self.start_part(key, part)
        return part

    def _next_part(self, begun: Content | OpenText) -> PendingPart:
        """Returns the next part of the model's message in an AI SDK stream."""
        if not self._is_in(Role.MODEL):
            self._begin_message(Role.MODEL)
        return self._part_of_message(begun)

    def _part_of_message(self, begun: Content | OpenText) -> PendingPart:
        """Returns the next part of the message that is open in an AI SDK stream."""
        assert self._message_id is not None
        part = PendingPart(self._message_id, self._index, begun)
        self._index += 1
        return part

    def _add_whole(self, piece: Content) -> None:
        """Adds a complete AI SDK part. A result goes into the open message, whatever its role."""
        is_result = isinstance(piece, ToolResultPart) and self._message_id is not None
        if is_result:
            part = self._part_of_message(piece)
        else:
            part = self._next_part(piece)
        self._events.append(PartStarted(part.message_id, part.index, piece))
        self._events.append(PartFinished(part.message_id, part.index, piece))

    def _begin_message(self, role: Role) -> None:
        """Starts a message of an AI SDK stream, and ends the one before it."""
        if self._message_id is not None:
            self._close_message(None)
        self._count += 1
        if self._new_id is not None:
            id_ = self._new_id()
        else:
            id_ = f"message-{self._count}"
        if self._turn:
            if self._count == 1:
                id_ = self._turn
            else:
                id_ = f"{self._turn}:{self._count - 1}"
        self._turn = self._turn or id_
        self._message_id, self._role, self._index = id_, role, 0
        self._step_ids.append(id_)
        origin = None
        if role is Role.MODEL:
            origin = self._model
        self._events.append(MessageStarted(id_, role, origin=origin, turn=self._turn))

    def _close_message(self, reason: FinishReason | None) -> None:
        """Ends the open message of an AI SDK UI message stream."""
        assert self._message_id is not None
        message_id, self._message_id = self._message_id, None
        if self._role is not Role.MODEL:
            reason = None
        elif any(waiting.message_id == message_id for waiting in self._calls.values()):
            reason = reason or FinishReason.tool_calls
        metadata, self._metadata = self._metadata, {}
        self._events.append(MessageFinished(message_id, reason, metadata=metadata))

    def _load(self, part: Json) -> tuple[list[Content], list[Content]]:
        """Returns the pieces and the results in an AI SDK UI message part.

        Raises:
            DecodeError: it cannot be read.
        """
        reading = Reading(UI_DIALECT, Role.MODEL)
        try:
            load_parts([part], reading, "the stream")
        except HistoryError as error:
            raise DecodeError(error.message) from error
        return list(reading.pieces), list(reading.answers)


def _text_key(chunk: Json) -> tuple[str, str]:
    """Returns the key of the open text or reasoning that a chunk belongs to."""
    return chunk["type"].partition("-")[0], if_text(chunk.get("id"))


def _tool_part(id_: str, name: str, chunk: Json) -> Json:
    """Returns the AI SDK UI message part of a call without its state and arguments."""
    part: Json = {"type": f"tool-{name}"}
    if chunk.get("dynamic") is True:
        part = {"type": "dynamic-tool", "toolName": name}
    part["toolCallId"] = id_
    part |= {field: chunk[field] for field in _CALL_FIELDS if chunk.get(field) is not None}
    if chunk.get("providerMetadata") is not None:
        part["callProviderMetadata"] = if_object(chunk["providerMetadata"])
    return part
