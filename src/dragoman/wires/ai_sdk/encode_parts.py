"""Parts of messages as chunks: texts and thinking with their deltas, calls with their results,
files, marks.

The start of a text is written with the first delta that it has, so that an empty one leaves
nothing; a call starts when its name is known. What a chunk says of a part is what the format
`ai_sdk_ui` says of it (`UI_DIALECT`), taken apart.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dragoman.codec import run_encoder
from dragoman.codec.json_values import if_object, pick
from dragoman.codec.run_encoder import RunEncoder, Step
from dragoman.event import PartDelta, PartFinished, PartStarted
from dragoman.json_bytes import Json
from dragoman.message import (
    Citation,
    DataPart,
    FilePart,
    LinkPart,
    MarkPart,
    Message,
    ProviderPart,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk.quirks import part_id
from dragoman.wires.ai_sdk_messages.files import dump_file
from dragoman.wires.ai_sdk_messages.marks import dump_mark
from dragoman.wires.ai_sdk_messages.texts_and_thinking import dump_reasoning, dump_text
from dragoman.wires.ai_sdk_messages.ui_messages import UI_DIALECT
from dragoman.wires.ai_sdk_messages.ui_tool_parts import add_result, dump_call

__all__ = ["StreamPart", "PartEncoder"]

_DYNAMIC = "dynamic-tool"
_OF_TEXT = ("providerMetadata", "citations")
_OF_CALL = ("providerExecuted", "title", "toolMetadata")
_MARKS = ("source-url", "source-document", "custom", "reasoning-file", "file")
"""Types of marks that become chunks unchanged."""


class StreamPart(run_encoder.EncodedPart):
    """An open part of the stream."""

    __slots__ = ("call", "id", "is_begun", "part_type")

    def __init__(
        self, part_type: str, id_: str, begun: TextPart | ThinkingPart | ToolCallPart
    ) -> None:
        """Opens an AI SDK part. `part_type` is `text`, `reasoning` or `tool-input`."""
        super().__init__(begun)
        self.part_type = part_type
        self.id = id_
        self.call = begun if isinstance(begun, ToolCallPart) else None
        self.is_begun = False

    def delta(self, text: str) -> Json:
        """Returns the chunk of a delta."""
        name, field = ("id", "delta") if self.call is None else ("toolCallId", "inputTextDelta")
        return {"type": f"{self.part_type}-delta", name: self.id, field: text}


class PartEncoder(RunEncoder[StreamPart]):
    """Writes the parts of messages."""

    def __init__(self, before: Sequence[Message]) -> None:
        """Creates an encoder. `before` is the AI SDK conversation that the run continues."""
        super().__init__()
        self.calls: dict[str, tuple[ToolCallPart, Json]] = {}
        """Call id → the latest call with this id, and its part."""
        self.seen: set[str] = set()
        """Ids of the messages that the client has seen anything of."""
        self._sources: set[str] = set()
        """Sources that the stream has named."""
        self.has_unanswered_calls = False
        """True if calls of the earlier conversation have no result."""
        answered = {result.id for message in before for result in message.tool_results}
        for message in before:
            for call in message.tool_calls if message.role is Role.MODEL else ():
                self.calls[call.id] = call, dump_call(call, UI_DIALECT)
                self.has_unanswered_calls |= call.id not in answered

    @abstractmethod
    def begin_stream(self) -> None:
        """Writes the start of the stream once."""

    def end_parts(self, message_id: str | None = None) -> None:
        """Ends the open text parts of one message, or of all, in the AI SDK stream."""
        for _, part in self.take_parts(None if message_id is None else [message_id]):
            if part.is_begun and part.call is None:
                self.write({"type": f"{part.part_type}-end", "id": part.id})

    # steps

    def part_started(self, event: PartStarted) -> None:
        """Opens an AI SDK part. Its start is written with its first delta, or now for a call with a
        name."""
        piece, key = event.part, (event.message_id, event.index)
        if isinstance(piece, TextPart | ThinkingPart):
            part_type = "reasoning"
            if isinstance(piece, TextPart):
                part_type = "text"
            self.open[key] = StreamPart(part_type, part_id(*key), piece)
        elif isinstance(piece, ToolCallPart):
            part = self.open[key] = StreamPart("tool-input", piece.id, piece)
            if piece.name:
                self._begin_part(event.message_id, part)

    def part_delta(self, event: PartDelta) -> None:
        """Writes a delta of an open AI SDK part."""
        part = self.open.get((event.message_id, event.index))
        if part is None or not event.delta or not isinstance(event.delta, str):
            return
        part.deltas.append(event.delta)
        self._begin_part(event.message_id, part)
        self.write(part.delta(event.delta))

    def part_finished(self, event: PartFinished) -> None:
        """Ends an AI SDK part, and writes what its deltas did not say."""
        part = self.take_part((event.message_id, event.index))
        if isinstance(event.part, TextPart | ThinkingPart):
            part_type = "reasoning"
            if isinstance(event.part, TextPart):
                part_type = "text"
            id_ = part_id(event.message_id, event.index)
            self._finish_text(
                event.message_id, event.part, part or StreamPart(part_type, id_, event.part)
            )
        elif isinstance(event.part, ToolCallPart):
            part = part or StreamPart("tool-input", event.part.id, event.part)
            self._finish_call(event.message_id, event.part, part)
        elif isinstance(event.part, ToolResultPart):
            self.begin_stream()
            self._write_result(event.part)
        elif isinstance(event.part, DataPart | LinkPart | FilePart):
            dumped = dump_file(event.part, UI_DIALECT)
            if isinstance(dumped.get("url"), str) and isinstance(dumped.get("mediaType"), str):
                self._write_whole(event.message_id, dumped)
        else:
            self._write_mark(event.message_id, event.part)

    PART_STEPS: ClassVar[Mapping[type, Step]] = {
        PartStarted: part_started,
        PartDelta: part_delta,
        PartFinished: part_finished,
    }

    def _begin_part(self, message_id: str, part: StreamPart) -> None:
        """Writes the start of an AI SDK part once."""
        if part.is_begun:
            return
        part.is_begun = True
        self.seen.add(message_id)
        if part.call is None:
            self.write({"type": f"{part.part_type}-start", "id": part.id})
        else:
            dumped = dump_call(part.call, UI_DIALECT)
            named = {"toolCallId": part.id, **_name_call(dumped, part.call)}
            self.write({"type": "tool-input-start", **named})
        # Before its start is written a delta must take the long way, so the frame is made here.
        part.frame = run_encoder.split_frame(self.frame(part.delta("")))

    def _finish_text(
        self, message_id: str, piece: TextPart | ThinkingPart, part: StreamPart
    ) -> None:
        """Ends a text part of the AI SDK stream. A missing end is added; what was streamed cannot
        be withdrawn."""
        if isinstance(piece, TextPart):
            dumped = dump_text(piece, UI_DIALECT, True)
        else:
            dumped = _dump_thinking(piece)
        if not piece.text and not part.is_begun and not dumped:
            return
        self._begin_part(message_id, part)
        streamed = "".join([delta for delta in part.deltas if isinstance(delta, str)])
        if piece.text.startswith(streamed) and piece.text != streamed:
            self.write(part.delta(piece.text.removeprefix(streamed)))
        fields = pick(dumped, _OF_TEXT)
        self.write({"type": f"{part.part_type}-end", "id": part.id, **fields})
        if isinstance(piece, TextPart):
            self._write_sources(message_id, piece.citations)

    def _write_sources(self, message_id: str, citations: Sequence[Citation]) -> None:
        """Writes each source of a text that the AI SDK stream has not named before."""
        for citation in citations:
            name = citation.url or citation.file_id or citation.title
            if name is None or name in self._sources:
                continue
            self._sources.add(name)
            source: Json = {"sourceId": f"source-{len(self._sources)}"}
            if citation.url:
                source |= {"type": "source-url", "url": citation.url}
            else:
                source |= {"type": "source-document", "mediaType": "application/octet-stream"}
            if title := citation.title or (None if citation.url else name):
                source["title"] = title
            self._write_whole(message_id, source)

    def _finish_call(
        self,
        message_id: str,
        call: ToolCallPart,
        part: StreamPart,
    ) -> None:
        """Ends an AI SDK call with its complete arguments, or with the text that is no valid
        JSON."""
        dumped = dump_call(call, UI_DIALECT)
        self.calls[call.id] = call, dumped
        # Some providers give a call its id, or its name, with its last delta.
        part.call, part.id = call, call.id
        self._begin_part(message_id, part)
        end: Json = {"toolCallId": call.id, **_name_call(dumped, call)}
        if metadata := dumped.get("callProviderMetadata"):
            end["providerMetadata"] = metadata
        if "errorText" in dumped:
            arguments = dumped.get("rawInput", dumped.get("input"))
            end |= {"input": arguments, "errorText": dumped["errorText"]}
            self.write({"type": "tool-input-error", **end})
        else:
            arguments = dumped.get("input", dict(call.arguments))
            self.write({"type": "tool-input-available", **end, "input": arguments})

    def _write_result(self, result: ToolResultPart) -> None:
        """Writes a tool result, or that the AI SDK call was denied. A result without its call is
        skipped."""
        if result.id not in self.calls:
            return
        # The chunk has the fields that the result adds to the part of its call.
        call, before = self.calls[result.id]
        dumped = add_result(before, result, call, UI_DIALECT)
        chunk: Json = {"type": f"tool-{dumped['state']}", "toolCallId": result.id}
        if dumped["state"] == "output-denied":
            self.write(chunk)
            return
        if dumped["state"] == "output-error":
            chunk["errorText"] = dumped.get("errorText", "")
        else:
            chunk["output"] = dumped.get("output")
        if (metadata := dumped.get("resultProviderMetadata")) is not None:
            chunk["providerMetadata"] = metadata
        if dumped.get("providerExecuted") is not None:
            chunk["providerExecuted"] = dumped["providerExecuted"]
        self.write(chunk)

    def _write_mark(self, message_id: str, piece: MarkPart | ProviderPart) -> None:
        """Writes a mark that has an AI SDK chunk."""
        dumped = if_object(dump_mark(piece, UI_DIALECT))
        part_type = dumped.get("type")
        if part_type == "step-start":
            self.write({"type": "start-step"})
        elif isinstance(part_type, str) and (part_type in _MARKS or part_type.startswith("data-")):
            self._write_whole(message_id, dumped)

    def _write_whole(self, message_id: str, chunk: Json) -> None:
        """Writes a part that has no deltas."""
        self.seen.add(message_id)
        self.write(chunk)


def _dump_thinking(piece: ThinkingPart) -> Json:
    """Returns the AI SDK UI message part of thinking, or an empty object if nothing in it is
    readable."""
    if not piece.text and not piece.native:
        return {}
    parts = dump_reasoning([piece], UI_DIALECT)
    return parts[0] if parts else {}


def _name_call(part: Json, call: ToolCallPart) -> Json:
    """Returns the fields of an AI SDK call's chunk beside its id."""
    named: Json = {"toolName": call.name}
    if part.get("type") == _DYNAMIC:
        named["dynamic"] = True
    return named | {name: part[name] for name in _OF_CALL if part.get(name) is not None}
