"""Parts of messages as chunks: texts and thinking with their deltas, calls with their results, files, marks.

The start of a text is written with the first delta that it has, so that an empty one leaves nothing; a call starts when its name is
known. What a chunk says of a part is what the format `ai_sdk_ui` says of it (`UI_DIALECT`), taken apart.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dragoman.codec import run_encoder
from dragoman.codec.json_values import Json, if_object
from dragoman.codec.run_encoder import RunEncoder, Step
from dragoman.event import PartDelta, PartFinished, PartStarted
from dragoman.message import (
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
from dragoman.wires.ai_sdk_messages.texts import dump_reasoning, dump_text
from dragoman.wires.ai_sdk_messages.tools import add_result, dump_call
from dragoman.wires.ai_sdk_messages.ui import UI_DIALECT

__all__ = ["OpenPart", "PartEncoder"]

_DYNAMIC = "dynamic-tool"
_OF_CALL = ("providerExecuted", "title", "toolMetadata")
_MARKS = ("source-url", "source-document", "custom", "reasoning-file", "file")
"""Types of marks that are chunks as they are."""


class OpenPart(run_encoder.OpenPart):
    """A part that may get more."""

    __slots__ = ("call", "id", "is_begun", "kind")

    def __init__(self, kind: str, id_: str, begun: TextPart | ThinkingPart | ToolCallPart) -> None:
        """`kind`: `text`, `reasoning` or `tool-input`."""
        super().__init__(begun)
        self.kind = kind
        self.id = id_
        self.call = begun if isinstance(begun, ToolCallPart) else None
        self.is_begun = False

    def delta(self, text: str) -> Json:
        """Returns the chunk of a delta."""
        name, field = ("id", "delta") if self.call is None else ("toolCallId", "inputTextDelta")
        return {"type": f"{self.kind}-delta", name: self.id, field: text}


class PartEncoder(RunEncoder[OpenPart]):
    """Writes the parts of a run's messages."""

    def __init__(self, before: Sequence[Message]) -> None:
        """`before`: the conversation that the run goes on with."""
        super().__init__()
        self.calls: dict[str, tuple[ToolCallPart, Json]] = {}
        """Id of a call → the latest call of that id, and its part."""
        self.seen: set[str] = set()
        """Ids of messages of which something is shown."""
        self.waits = False
        """Whether calls of the conversation before have no result."""
        answered = {result.id for message in before for result in message.tool_results}
        for message in before:
            for call in message.tool_calls if message.role is Role.MODEL else ():
                self.calls[call.id] = call, dump_call(call, UI_DIALECT)
                self.waits |= call.id not in answered

    @abstractmethod
    def begin_stream(self) -> None:
        """Writes the start of the stream, if it is not written yet."""

    def end_parts(self, message_id: str | None = None) -> None:
        """Ends the texts that are open, of one message or of all."""
        for _, part in self.take_parts(None if message_id is None else [message_id]):
            if part.is_begun and part.call is None:
                self.write({"type": f"{part.kind}-end", "id": part.id})

    # steps

    def part_started(self, event: PartStarted) -> None:
        """The start of a part. It is written with what the part holds first, but for a call whose name is known."""
        piece, key = event.part, (event.message_id, event.index)
        if isinstance(piece, TextPart | ThinkingPart):
            kind = "text" if isinstance(piece, TextPart) else "reasoning"
            self.open[key] = OpenPart(kind, part_id(*key), piece)
        elif isinstance(piece, ToolCallPart):
            part = self.open[key] = OpenPart("tool-input", piece.id, piece)
            if piece.name:
                self._begin(event.message_id, part)

    def part_delta(self, event: PartDelta) -> None:
        """More of an open part, where it is the first of it."""
        part = self.open.get((event.message_id, event.index))
        if part is None or not event.delta or not isinstance(event.delta, str):
            return
        part.deltas.append(event.delta)
        self._begin(event.message_id, part)
        self.write(part.delta(event.delta))

    def part_finished(self, event: PartFinished) -> None:
        """The end of a part, and what no delta told of it."""
        part = self.take_part((event.message_id, event.index))
        if isinstance(event.part, TextPart | ThinkingPart):
            kind = "text" if isinstance(event.part, TextPart) else "reasoning"
            id_ = part_id(event.message_id, event.index)
            self._finish_text(event.message_id, event.part, part or OpenPart(kind, id_, event.part))
        elif isinstance(event.part, ToolCallPart):
            part = part or OpenPart("tool-input", event.part.id, event.part)
            self._finish_call(event.message_id, event.part, part)
        elif isinstance(event.part, ToolResultPart):
            self.begin_stream()
            self._write_result(event.part)
        elif isinstance(event.part, DataPart | LinkPart | FilePart):
            shown = dump_file(event.part, UI_DIALECT)
            if isinstance(shown.get("url"), str) and isinstance(shown.get("mediaType"), str):
                self._write_whole(event.message_id, shown)
        else:
            self._write_mark(event.message_id, event.part)

    PART_STEPS: ClassVar[Mapping[type, Step]] = {
        PartStarted: part_started,
        PartDelta: part_delta,
        PartFinished: part_finished,
    }

    def _begin(self, message_id: str, part: OpenPart) -> None:
        if part.is_begun:
            return
        part.is_begun = True
        self.seen.add(message_id)
        if part.call is None:
            self.write({"type": f"{part.kind}-start", "id": part.id})
        else:
            shown = dump_call(part.call, UI_DIALECT)
            named = {"toolCallId": part.id, **_named(shown, part.call)}
            self.write({"type": "tool-input-start", **named})
        part.frame = run_encoder.split_frame(self.frame(part.delta("")))

    def _finish_text(self, message_id: str, piece: TextPart | ThinkingPart, part: OpenPart) -> None:
        """What was told cannot be taken back; what is missing at the end is added."""
        if isinstance(piece, TextPart):
            shown = dump_text(piece, UI_DIALECT, True)
        else:
            shown = _dump_thinking(piece)
        if not piece.text and not part.is_begun and not shown:
            return
        self._begin(message_id, part)
        told = "".join([delta for delta in part.deltas if isinstance(delta, str)])
        if piece.text.startswith(told) and len(piece.text) > len(told):
            self.write(part.delta(piece.text[len(told) :]))
        end: Json = {"type": f"{part.kind}-end", "id": part.id}
        if metadata := shown.get("providerMetadata"):
            end["providerMetadata"] = metadata
        if "citations" in shown:
            end["citations"] = shown["citations"]
        self.write(end)

    def _finish_call(self, message_id: str, call: ToolCallPart, part: OpenPart) -> None:
        shown = dump_call(call, UI_DIALECT)
        self.calls[call.id] = call, shown
        part.call, part.id = call, call.id
        self._begin(message_id, part)
        end: Json = {"toolCallId": call.id, **_named(shown, call)}
        if metadata := shown.get("callProviderMetadata"):
            end["providerMetadata"] = metadata
        if "errorText" in shown:
            given = shown.get("rawInput", shown.get("input"))
            end |= {"input": given, "errorText": shown["errorText"]}
            self.write({"type": "tool-input-error", **end})
        else:
            given = shown.get("input", dict(call.arguments))
            self.write({"type": "tool-input-available", **end, "input": given})

    def _write_result(self, result: ToolResultPart) -> None:
        """What a call returned, or that it was not run. A result without its call is not shown."""
        if result.id not in self.calls:
            return
        call, before = self.calls[result.id]
        shown = add_result(before, result, call, UI_DIALECT)
        chunk: Json = {"type": f"tool-{shown['state']}", "toolCallId": result.id}
        if shown["state"] == "output-denied":
            self.write(chunk)
            return
        if shown["state"] == "output-error":
            chunk["errorText"] = shown.get("errorText", "")
        else:
            chunk["output"] = shown.get("output")
        if (metadata := shown.get("resultProviderMetadata")) is not None:
            chunk["providerMetadata"] = metadata
        if shown.get("providerExecuted") is not None:
            chunk["providerExecuted"] = shown["providerExecuted"]
        self.write(chunk)

    def _write_mark(self, message_id: str, piece: MarkPart | ProviderPart) -> None:
        shown = if_object(dump_mark(piece, UI_DIALECT))
        kind = shown.get("type")
        if kind == "step-start":
            self.write({"type": "start-step"})
        elif isinstance(kind, str) and (kind in _MARKS or kind.startswith("data-")):
            self._write_whole(message_id, shown)

    def _write_whole(self, message_id: str, chunk: Json) -> None:
        self.seen.add(message_id)
        self.write(chunk)


def _dump_thinking(piece: ThinkingPart) -> Json:
    """Returns thinking as a part; empty: nothing of it can be read."""
    shown = dump_reasoning([piece], UI_DIALECT) if piece.text or piece.native else ()
    return next(iter(shown)) if shown else {}


def _named(part: Json, call: ToolCallPart) -> Json:
    """Returns what a chunk of a call says of it, beside its id."""
    named: Json = {"toolName": call.name}
    if part.get("type") == _DYNAMIC:
        named["dynamic"] = True
    return named | {name: part[name] for name in _OF_CALL if part.get(name) is not None}
