"""Events → a response, streamed or whole, as the official clients read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heappop, heappush
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import if_object
from dragoman.codec.response import ResponseState, model_of, whole_message
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
)
from dragoman.fold import close_part
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Origin, Role, TextPart, ThinkingPart, Usage
from dragoman.wires.google.errors import dump_error
from dragoman.wires.google.pieces import Writer
from dragoman.wires.google.quirks import OWN, Quirks
from dragoman.wires.google.usage import BLOCKED, dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder"]

_WRITER = Writer(Quirks(), [], role=Role.MODEL)
_OUTSIDE = ("createTime", "modelStatus", "promptFeedback", "turnToken")
"""Fields of a response that stand beside its candidates; all others are the candidate's."""


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: `id` and `model`, where the events' own are not to be told."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error."""
    message = whole_message(events, losses)
    if isinstance(message, DragomanError):
        return dump_error(message)[1]
    content: dict[str, Any] = {"role": "model"}
    if parts := [part for piece in message.content for part in _parts(piece)]:
        content["parts"] = parts
    end = _end(content, message.finish_reason, message.usage, OWN.response(message.native))
    return {**end, **_identity(message.origin, envelope)}


_NOTHING = OpenText()
"""What became of a text that never came."""


class _Part:
    """A part that is being told."""

    def __init__(self, part: Content) -> None:
        self.began = part
        self.waiting: list[str | bytes] = []
        self.finished: Content | None = None
        self.said = False  # some of its text is written


class _Open:
    """The parts of a message that are not written yet."""

    def __init__(self) -> None:
        self.parts: dict[int, _Part] = {}
        self.order: list[int] = []
        """A heap of their indexes."""

    def add(self, index: int, part: Content) -> None:
        """A part begins."""
        if index not in self.parts:
            heappush(self.order, index)
        self.parts[index] = _Part(part)


class Encoder:
    """Events of the model's messages → Server-Sent Events. Several messages become one candidate.

    Parts are written in their order: what is told of a later part waits until those before it are finished. Text and
    thinking are written as they come, unless they have native fields, which a chunk must hold together with the text.
    """

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self._envelope = envelope
        self._answer = ResponseState(OWN.response)
        self._identity: dict[str, Any] = {}
        self._parts: dict[str, _Open] = {}  # message → what is not written of it yet
        self._text: type[Content] | None = None  # what the last chunk's text would be taken to go on with
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none, or not yet)."""
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, PartDelta | PartFinished | PartStarted):
            return self._part(self._parts[event.message_id], event)
        if isinstance(event, MessageStarted):
            self._parts[event.message_id] = _Open()
            self._identity = self._identity or _identity(event.origin, self._envelope)
        elif isinstance(event, MessageFinished):
            return self._flush(event.message_id)
        elif isinstance(event, MessageDropped):  # what is written already, no client of this format can take back
            self._parts[event.message_id] = _Open()
            self._text = None
        elif isinstance(event, RunError):
            self._over = True
            return event_bytes(json_bytes.encode(dump_error(event.error)[1]))
        elif isinstance(event, RunFinished):
            return self.close()
        return b""

    def close(self) -> bytes:
        """The end of the events → the end of the response."""
        if self._over or not self._parts:
            return b""
        rest = b"".join([self._flush(message_id) for message_id in self._parts])
        self._over = True
        answer = self._answer
        return rest + self._chunk(_end({"role": "model"}, answer.reason, answer.usage, answer.envelope))

    def _part(self, open_parts: _Open, event: PartDelta | PartFinished | PartStarted) -> bytes:
        if isinstance(event, PartStarted):
            open_parts.add(event.index, event.part)
            return b""
        if (part := open_parts.parts.get(event.index)) is None:
            return b""
        if isinstance(event, PartDelta):
            part.waiting.append(event.delta)
        else:
            part.finished = event.part
        return self._write(open_parts)

    def _write(self, open_parts: _Open) -> bytes:
        """All that may be written now."""
        out: list[bytes] = []
        while open_parts.order:
            index = open_parts.order[0]
            part = open_parts.parts[index]
            if isinstance(part.began, OpenText | ThinkingPart) and not OWN.is_ours(part.began.native) and part.waiting:
                out.append(self._say(part, "".join(map(str, part.waiting))))
                part.waiting.clear()
            if part.finished is None:
                break
            if part.finished is not _NOTHING:
                out.append(self._finish(part, part.finished))
            del open_parts.parts[heappop(open_parts.order)]
        return b"".join(out)

    def _flush(self, message_id: str) -> bytes:
        """The rest of a message, whose parts nobody finished."""
        open_parts = self._parts[message_id]
        for part in open_parts.parts.values():
            part.finished = part.finished or close_part(part.began, part.waiting, cut=True) or _NOTHING
        return self._write(open_parts)

    def _say(self, part: _Part, text: str) -> bytes:
        piece: dict[str, Any] = (
            {"text": text, "thought": True} if isinstance(part.began, ThinkingPart) else {"text": text}
        )
        apart = not part.said and self._text is type(part.began)
        self._text, part.said = type(part.began), True
        return self._content([{"text": ""}, piece] if apart else [piece])

    def _finish(self, part: _Part, finished: Content) -> bytes:
        """The end of a part: what its text did not tell."""
        if part.said and not OWN.is_ours(finished.native):
            return b""
        if part.said:
            signature = OWN.fields(finished.native).get("thoughtSignature")
            self._text = None
            return self._content([{"text": "", "thoughtSignature": signature}]) if signature else b""
        if isinstance(finished, TextPart | ThinkingPart) and not OWN.is_ours(finished.native) and finished.text:
            return self._say(_Part(part.began if isinstance(part.began, OpenText) else finished), finished.text)
        self._text = None
        parts = _parts(finished)
        return self._content(parts) if parts else b""

    def _content(self, parts: list[dict[str, Any]]) -> bytes:
        return self._chunk({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}]})

    def _chunk(self, chunk: dict[str, Any]) -> bytes:
        return event_bytes(json_bytes.encode({**chunk, **self._identity}))


def _parts(piece: Content) -> list[dict[str, Any]]:
    """A piece as clients are shown it: also the thinking of other providers, without what they signed."""
    if isinstance(piece, ThinkingPart) and piece.text and not OWN.is_ours(piece.native):
        piece = ThinkingPart(piece.text)
    return _WRITER.parts((piece,))


def _identity(origin: Origin | None, envelope: Mapping[str, Any]) -> dict[str, Any]:
    model = envelope.get("model") or model_of(origin)
    id_ = envelope.get("id") or (origin and origin.response_id)
    return {**({"modelVersion": model} if model else {}), **({"responseId": id_} if id_ else {})}


def _end(
    content: dict[str, Any], reason: FinishReason | None, usage: Usage | None, around: Mapping[str, Any]
) -> dict[str, Any]:
    """The fields of a response, or of the last chunk of one."""
    told = dict(around)
    outside = {key: told.pop(key) for key in _OUTSIDE if key in told}
    if (blocked := told.pop(BLOCKED, None)) is not None:
        outside["promptFeedback"] = {"blockReason": blocked, **if_object(outside.get("promptFeedback"))}
    counted = dump_usage(usage, if_object(told.pop("usageMetadata", None)))
    original = told.pop("finishReason", None)
    finish = dump_finish(reason, original if isinstance(original, (str, int)) else None)
    candidates = (
        []
        if "blockReason" in if_object(outside.get("promptFeedback")) and "parts" not in content
        else [{"content": content, "finishReason": finish, "index": 0, **told}]
    )
    return {"candidates": candidates, **({"usageMetadata": counted} if counted else {}), **outside}
