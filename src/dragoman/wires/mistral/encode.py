"""Events → a response: the chunks of a stream, or one body that says the same.

Candidate 0 only. Several model messages (a run with tools of its own) become one answer, as the format has no other way.
Calls are told whole, as this API tells them; tools that the provider ran are not told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import if_object, merged, rest
from dragoman.codec.response import ResponseState, model_of, whole_message
from dragoman.errors import DragomanError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
)
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, Native, Origin, TextPart, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.mistral.calls import dump_call
from dragoman.wires.mistral.chunks import dump_chunk, dump_content
from dragoman.wires.mistral.errors import dump_error
from dragoman.wires.mistral.outcome import dump_finish, dump_usage
from dragoman.wires.mistral.quirks import OWN

__all__ = ["Encoder", "dump_response", "encoder"]

_OF_CHOICE = ("logprobs", "prompt_logprobs")
"""Fields of a message's `response` that stand in its choice; the others stand beside the choices."""
_encode = json_bytes.encode


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one streamed response. `envelope`: fields of every chunk (`id`, `model`, `created` …)."""
    return Encoder(**envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response, or, where one of them is an error, the body that tells of it. `envelope`: as for `encoder`."""
    said = whole_message(events, losses)
    if isinstance(said, DragomanError):
        return dump_error(said)[1]
    calls = [part for part in said.content if isinstance(part, ToolCallPart) and part.run_by != "provider"]
    chunks = [chunk for part in said.content if (chunk := _chunk(part)) is not None]
    told = [_call(call, index) for index, call in enumerate(calls)]
    message = {"role": "assistant", **dump_content(chunks, {}), "tool_calls": told or None}
    message = merged(message, _beside(said.native))
    around, response_id = OWN.response(said.native), said.origin and said.origin.response_id
    return {
        **_envelope("chat.completion", response_id or said.id or "", said.origin, around, envelope),
        "choices": [{"index": 0, "message": message, **_outcome(said.finish_reason, around)}],
        "usage": dump_usage(said.usage, around.get("usage", {})),
    }


class Encoder:
    """Writes one streamed response."""

    def __init__(self, **envelope: Any) -> None:
        self._given = envelope
        self._answer = ResponseState(OWN.response)
        self._open: dict[tuple[str, int], Content] = {}
        self._said: dict[tuple[str, int], list[str]] = {}
        self._beside: dict[str, dict[str, Any]] = {}
        self._texts: set[str] = set()
        """Messages of which text went out."""
        self._void = False
        """Whether the text so far is void: what comes now begins on a line of its own."""
        self._calls = 0
        self._last = ""
        self._head = b""
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the chunks that tell of it."""
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, RunError):
            self._over = True
            return event_bytes(_encode(dump_error(event.error)[1]))
        return b"".join(
            [self._head + _encode(delta) + b',"finish_reason":null}]}\n\n' for delta in self._deltas(event)]
        )

    def close(self) -> bytes:
        """The end: why it stopped, the usage, and the mark that nothing follows."""
        if self._over:
            return b""
        self._over = True
        answer = self._answer
        choice: dict[str, Any] = {"index": 0, "delta": {"content": ""}, **_outcome(answer.reason, answer.envelope)}
        chunk: dict[str, Any] = {**self._envelope(), "choices": [choice]}
        if answer.usage is not None:
            chunk["usage"] = dump_usage(answer.usage, answer.envelope.get("usage", {}))
        return event_bytes(_encode(chunk)) + event_bytes(b"[DONE]")

    def _envelope(self) -> dict[str, Any]:
        answer = self._answer
        return _envelope("chat.completion.chunk", answer.response_id, answer.origin, answer.envelope, self._given)

    def _deltas(self, event: Event) -> list[dict[str, Any]]:
        """One event of this answer → what it adds to the message."""
        if isinstance(event, MessageStarted):
            self._beside[event.message_id] = _beside(event.native)
            return self._start()
        if isinstance(event, MessageFinished):
            beside = {**self._beside[event.message_id], **_beside(event.native)}
            return [merged({"content": ""}, beside)] if beside else []
        if isinstance(event, MessageDropped):
            self._drop(event.message_id)
        if not isinstance(event, (PartStarted, PartDelta, PartFinished)):
            return []
        place = event.message_id, event.index
        if isinstance(event, PartFinished):
            return self._end(place, event.part)
        if isinstance(event, PartDelta):
            return self._more(place, event.delta) if isinstance(event.delta, str) else []
        self._open[place], self._said[place] = event.part, []
        return []

    def _drop(self, message_id: str) -> None:
        """A message is retracted. What went out of it stays; what comes now is kept apart from it."""
        self._open = {place: part for place, part in self._open.items() if place[0] != message_id}
        self._void |= message_id in self._texts
        self._last = "dropped" if self._last != "thinking" else self._last

    def _start(self) -> list[dict[str, Any]]:
        if self._head:
            return []
        self._head = b"data: " + _encode(self._envelope())[:-1] + b',"choices":[{"index":0,"delta":'
        return [{"role": "assistant", "content": ""}]

    def _more(self, place: tuple[str, int], delta: str) -> list[dict[str, Any]]:
        """More of an open text, or of open thinking."""
        part = self._open.get(place)
        if not delta or not isinstance(part, (TextPart, ThinkingPart)):
            return []
        first = not self._said[place]
        self._said[place].append(delta)
        kind = "thinking" if isinstance(part, ThinkingPart) else "text"
        end = [_thinking([])] if first and kind == self._last == "thinking" else []  # else the two would be read as one
        self._last = kind
        if kind == "text":
            delta, self._void = f"\n{delta}" if self._void else delta, False
            self._texts.add(place[0])
        return [*end, _thinking([{"type": "text", "text": delta}]) if kind == "thinking" else {"content": delta}]

    def _end(self, place: tuple[str, int], part: Content) -> list[dict[str, Any]]:
        """A part is closed: whatever of it is not told yet."""
        self._open.setdefault(place, part)
        said = "".join(self._said.setdefault(place, []))
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            self._last = "call"
            self._calls += 1
            return [{"tool_calls": [_call(part, self._calls - 1)]}]
        if isinstance(part, (TextPart, ThinkingPart)):
            deltas = self._more(place, part.text[len(said) :] if part.text.startswith(said) else "")
            own = OWN.fields(part.native)
            if isinstance(part, ThinkingPart) and own:
                self._last = "thinking ended"
                deltas.append({"content": [{"type": "thinking", "thinking": [], **own}]})
            return deltas
        chunk = _chunk(part)
        self._last = "chunk" if chunk is not None else self._last
        return [] if chunk is None else [{"content": [chunk]}]


def _beside(native: Native) -> dict[str, Any]:
    """Fields of the message beside its content."""
    return rest({**if_object(OWN.notes(native).get("message")), **OWN.fields(native)}, "role", "content", "tool_calls")


def _envelope(
    kind: str, id_: str, origin: Origin | None, around: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What stands around the choices."""
    beside = rest(around, *_OF_CHOICE, "usage", "finish_reason")
    return {"id": id_, "object": kind, "created": 0, "model": model_of(origin), **beside, **given}


def _outcome(reason: FinishReason | None, around: Mapping[str, Any]) -> dict[str, Any]:
    """What a choice says beside its message."""
    beside = {name: around[name] for name in _OF_CHOICE if name in around}
    return {**beside, "finish_reason": dump_finish(reason, around.get("finish_reason"))}


def _thinking(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": [{"type": "thinking", "thinking": items}]}


def _call(part: ToolCallPart, index: int) -> dict[str, Any]:
    entry = dump_call(part, part.id, part.name, exact=True)
    if part.state != "complete":  # whoever asked shall see what the model wrote
        entry["function"]["arguments"] = part.raw or ""
    return {**entry, "index": index}


def _chunk(part: Content) -> dict[str, Any] | None:
    return None if isinstance(part, (ToolCallPart, ToolResultPart)) else dump_chunk(part)
