"""Parts of messages as chunks: texts and thinking with their deltas, calls with their results, files, marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman import json_bytes
from dragoman.codec.encoder import NONE, Objects
from dragoman.codec.json_values import if_object
from dragoman.event import OpenText, PartDelta, PartFinished, PartStarted
from dragoman.message import (
    Content,
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

__all__ = ["Parts"]

_Key = tuple[str, int]
_DYNAMIC = "dynamic-tool"
_OF_CALL = ("providerExecuted", "title", "toolMetadata")
_KINDS = ("source-url", "source-document", "custom", "reasoning-file", "file")
"""Types of marks that are chunks as they are."""


class _Open:
    """A part that may get more."""

    __slots__ = ("before", "begun", "call", "field", "id", "kind", "text")

    def __init__(self, kind: str, id: str, field: str) -> None:  # noqa: A002 the field's name
        self.kind = kind
        """`text`, `reasoning` or `tool-input`."""
        self.id = id
        self.field = field
        """Of its delta."""
        self.begun = False
        self.text: list[str] = []
        self.call: ToolCallPart | None = None
        self.before = (
            f'data: {{"type":"{kind}-delta","{"toolCallId" if kind == "tool-input" else "id"}":'.encode()
            + json_bytes.encode(id)
            + f',"{field}":'.encode()
        )


class Parts:
    """The parts of a run's messages."""

    def __init__(self, before: Sequence[Message]) -> None:
        """`before`: the conversation that the run goes on with."""
        self._open: dict[_Key, _Open] = {}
        self._calls: dict[str, tuple[ToolCallPart, dict[str, Any]]] = {}
        """Id of a call → itself and its part, the latest of that id."""
        self._shown: set[str] = set()
        """Ids of messages of which something is shown."""
        self.is_reset = False
        """The step was taken back, so that the next message is in it again."""
        self.waits = False
        """Whether calls of the conversation before have no result."""
        answered = {result.id for message in before for result in message.tool_results}
        for message in before:
            for call in message.tool_calls if message.role is Role.MODEL else ():
                self._calls[call.id] = call, dump_call(call, UI_DIALECT)
                self.waits |= call.id not in answered

    def knows(self, call_id: str) -> bool:
        """Whether the client has a call of that id."""
        return call_id in self._calls

    def delta_bytes(self, event: PartDelta) -> bytes | None:
        """The chunk of a delta as bytes; `None`: it is more than that."""
        found = self._open.get((event.message_id, event.index))
        delta = event.delta
        if found is None or not found.begun or not delta or not isinstance(delta, str):
            return None
        found.text.append(delta)
        return found.before + json_bytes.encode(delta) + b"}\n\n"

    def delta(self, event: PartDelta) -> Objects:
        """The chunks of a delta."""
        found = self._open.get((event.message_id, event.index))
        if found is None or not event.delta or not isinstance(event.delta, str):
            return NONE
        found.text.append(event.delta)
        name = "toolCallId" if found.kind == "tool-input" else "id"
        chunk = {"type": f"{found.kind}-delta", name: found.id, found.field: event.delta}
        return [*self._begun(event.message_id, found), chunk]

    def started(self, event: PartStarted) -> Objects:
        """The start of a part; it is told with what it holds first."""
        part, key = event.part, (event.message_id, event.index)
        if isinstance(part, OpenText | TextPart):
            self._open[key] = _Open("text", part_id(event.message_id, event.index), "delta")
        elif isinstance(part, ThinkingPart):
            self._open[key] = _Open("reasoning", part_id(event.message_id, event.index), "delta")
        elif isinstance(part, ToolCallPart):
            found = self._open[key] = _Open("tool-input", part.id, "inputTextDelta")
            found.call = part
            return self._begun(event.message_id, found) if part.name else NONE
        return NONE

    def finished(self, event: PartFinished) -> Objects:
        """The end of a part, and what no delta told of it."""
        part = event.part
        found = self._open.pop((event.message_id, event.index), None)
        if isinstance(part, ToolCallPart):
            return self._call(event.message_id, part, found)
        if isinstance(part, TextPart | ThinkingPart):
            kind = "text" if isinstance(part, TextPart) else "reasoning"
            found = found or _Open(kind, part_id(event.message_id, event.index), "delta")
            return self._text(event.message_id, part, found)
        return self._whole(event.message_id, part)

    def result(self, result: ToolResultPart) -> Objects:
        """What a call returned, or that it was not run."""
        known = self._calls.get(result.id)
        if known is None:
            return NONE
        call, before = known
        part = add_result(before, result, call, UI_DIALECT)
        if part["state"] == "output-denied":
            return [{"type": "tool-output-denied", "toolCallId": result.id}]
        chunk: dict[str, Any] = {"type": f"tool-{part['state']}", "toolCallId": result.id}
        if part["state"] == "output-error":
            chunk["errorText"] = part.get("errorText", "")
        else:
            chunk["output"] = part.get("output")
        if (metadata := part.get("resultProviderMetadata")) is not None:
            chunk["providerMetadata"] = metadata
        if part.get("providerExecuted") is not None:
            chunk["providerExecuted"] = part["providerExecuted"]
        return [chunk]

    def drop(self, message_id: str) -> bool:
        """Forgets a message that is taken back → whether something of it was shown."""
        for key in [key for key in self._open if key[0] == message_id]:
            del self._open[key]
        self.is_reset = message_id in self._shown
        self._shown.discard(message_id)
        return self.is_reset

    def end_of_step(self) -> Objects:
        """The end of a message of the model's."""
        self.is_reset = False
        return [{"type": "finish-step"}]

    def cut(self, message_id: str | None = None) -> Objects:
        """Ends the texts that are open, of one message or all."""
        keys = [key for key in self._open if message_id in (None, key[0])]
        ended = [self._open.pop(key) for key in keys]
        return [
            {"type": f"{each.kind}-end", "id": each.id}
            for each in ended
            if each.begun and each.call is None
        ]

    def _begun(self, message_id: str, found: _Open) -> list[dict[str, Any]]:
        if found.begun:
            return []
        found.begun = True
        self._shown.add(message_id)
        if found.call is None:
            return [{"type": f"{found.kind}-start", "id": found.id}]
        part = dump_call(found.call, UI_DIALECT)
        return [{"type": "tool-input-start", "toolCallId": found.id, **_named(part, found.call)}]

    def _text(self, message_id: str, part: TextPart | ThinkingPart, found: _Open) -> Objects:
        """The end of a text. What was told cannot be taken back; what is missing at its end is added."""
        shown = dump_text(part, UI_DIALECT, True) if isinstance(part, TextPart) else _thinking(part)
        if not part.text and not found.begun and not shown:
            return NONE
        chunks = self._begun(message_id, found)
        sent = "".join(found.text)
        if part.text.startswith(sent) and len(part.text) > len(sent):
            chunks.append(
                {"type": f"{found.kind}-delta", "id": found.id, "delta": part.text[len(sent) :]}
            )
        metadata = shown.get("providerMetadata")
        more = {"citations": shown["citations"]} if "citations" in shown else {}
        end = {
            "type": f"{found.kind}-end",
            "id": found.id,
            **({"providerMetadata": metadata} if metadata else {}),
            **more,
        }
        return [*chunks, end]

    def _call(self, message_id: str, call: ToolCallPart, found: _Open | None) -> Objects:
        part = dump_call(call, UI_DIALECT)
        self._calls[call.id] = call, part
        if found is None:
            found = _Open("tool-input", call.id, "inputTextDelta")
        found.call, found.id = call, call.id
        chunks = self._begun(message_id, found)
        metadata = part.get("callProviderMetadata")
        end = {
            "toolCallId": call.id,
            **_named(part, call),
            **({"providerMetadata": metadata} if metadata else {}),
        }
        if "errorText" in part:
            given = part.get("rawInput", part.get("input"))
            return [
                *chunks,
                {"type": "tool-input-error", **end, "input": given, "errorText": part["errorText"]},
            ]
        return [
            *chunks,
            {
                "type": "tool-input-available",
                **end,
                "input": part.get("input", dict(call.arguments)),
            },
        ]

    def _whole(self, message_id: str, part: Content) -> Objects:
        if isinstance(part, ToolResultPart):  # of a tool that the provider ran
            return self.result(part)
        if isinstance(part, DataPart | LinkPart | FilePart):
            shown = dump_file(part, UI_DIALECT)
            if not (isinstance(shown.get("url"), str) and isinstance(shown.get("mediaType"), str)):
                return NONE
            self._shown.add(message_id)
            return [shown]
        if isinstance(part, MarkPart | ProviderPart):
            shown = if_object(dump_mark(part, UI_DIALECT))
            kind = shown.get("type")
            if kind == "step-start":
                return [{"type": "start-step"}]
            if isinstance(kind, str) and (kind in _KINDS or kind.startswith("data-")):
                self._shown.add(message_id)
                return [shown]
        return NONE


def _thinking(part: ThinkingPart) -> dict[str, Any]:
    """As a part; empty: nothing of it can be read."""
    shown = dump_reasoning([part], UI_DIALECT) if part.text or part.native else ()
    return next(iter(shown)) if shown else {}


def _named(part: dict[str, Any], call: ToolCallPart) -> dict[str, Any]:
    """What a chunk of a call says of it, beside its id."""
    named: dict[str, Any] = {"toolName": call.name}
    if part.get("type") == _DYNAMIC:
        named["dynamic"] = True
    return named | {name: part[name] for name in _OF_CALL if part.get(name) is not None}
