"""Events → a response: the chunks of a stream, or one body that says the same.

Candidate 0 only. Several model messages (a run with tools of its own) become one answer, as the format has no other way.
Calls are told whole, as this API tells them; tools that the provider ran are not told.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dragoman.event import Event, MessageFinished, MessageStarted, PartDelta, PartFinished, PartStarted, RunError
from dragoman.framing import event_bytes
from dragoman.message import Content, FinishReason, Role, TextPart, ThinkingPart, ToolCallPart, ToolResultPart, Usage
from dragoman.shapes import rest
from dragoman.wires.mistral.calls import dump_call
from dragoman.wires.mistral.chunks import dump_chunk, dump_content
from dragoman.wires.mistral.errors import dump_error
from dragoman.wires.mistral.native import extra, response_of
from dragoman.wires.mistral.outcome import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder"]

_OF_CHOICE = ("logprobs", "prompt_logprobs")
"""Fields of a message's `response` that stand in its choice; the others stand beside the choices."""
_encode = msgspec.json.Encoder().encode


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one streamed response. `envelope`: fields of every chunk (`id`, `model`, `created` …)."""
    return Encoder(**envelope)


def dump_response(events: Iterable[Event], **envelope: Any) -> dict[str, Any]:
    """Events → a whole response, or, where one of them is an error, the body that tells of it. `envelope`: as for `encoder`."""
    writer = Encoder(**envelope)
    chunks: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for event in events:
        if isinstance(event, RunError):
            return dump_error(event.error)[1]
        writer.feed(event)
        if not isinstance(event, PartFinished) or not writer.tells(event.message_id):
            continue
        if isinstance(event.part, ToolCallPart) and event.part.run_by != "provider":
            calls.append(_call(event.part, len(calls)))
        elif (chunk := _chunk(event.part)) is not None:
            chunks.append(chunk)
    message = {"role": "assistant", **dump_content(chunks, {}), "tool_calls": calls or None}
    choice = {"index": 0, "message": message, **writer.outcome()}
    return {**writer.envelope("chat.completion"), "choices": [choice], "usage": writer.usage()}


class Encoder:
    """Writes one streamed response."""

    def __init__(self, **envelope: Any) -> None:
        self._envelope = envelope
        self._usage: Usage | None = None
        self._messages: set[str] = set()
        self._open: dict[tuple[str, int], Content] = {}
        self._said: dict[tuple[str, int], str] = {}
        self._calls = 0
        self._last = ""
        self._reason: FinishReason | None = None
        self._response: dict[str, Any] = {}
        self._head = b""
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the chunks that tell of it."""
        if self._over:
            return b""
        if isinstance(event, RunError):
            self._over = True
            return event_bytes(_encode(dump_error(event.error)[1]))
        deltas = self._deltas(event)
        return b"".join([self._head + _encode(delta) + b',"finish_reason":null}]}\n\n' for delta in deltas])

    def close(self) -> bytes:
        """The end: why it stopped, the usage, and the mark that nothing follows."""
        if self._over:
            return b""
        self._over = True
        choice: dict[str, Any] = {"index": 0, "delta": {"content": ""}, **self.outcome()}
        chunk: dict[str, Any] = {**self.envelope("chat.completion.chunk"), "choices": [choice]}
        if self._usage is not None:
            chunk["usage"] = self.usage()
        return event_bytes(_encode(chunk)) + event_bytes(b"[DONE]")

    def tells(self, message_id: str) -> bool:
        """Whether that message is told."""
        return message_id in self._messages

    def envelope(self, kind: str) -> dict[str, Any]:
        """What stands around the choices."""
        beside = rest(self._response, *_OF_CHOICE, "usage", "finish_reason")
        return {"id": "", "object": kind, "created": 0, "model": "", **beside, **self._envelope}

    def outcome(self) -> dict[str, Any]:
        """What a choice says beside its message."""
        beside = {name: self._response[name] for name in _OF_CHOICE if name in self._response}
        return {**beside, "finish_reason": dump_finish(self._reason, self._response.get("finish_reason"))}

    def usage(self) -> dict[str, Any]:
        """The usage, as this format tells it."""
        return dump_usage(self._usage, self._response.get("usage", {}))

    def _deltas(self, event: Event) -> list[dict[str, Any]]:
        """One event → what it adds to the message."""
        if isinstance(event, MessageStarted):
            return self._start(event)
        if isinstance(event, (PartStarted, PartDelta, PartFinished)) and self.tells(event.message_id):
            place = event.message_id, event.index
            if isinstance(event, PartStarted):
                self._open[place], self._said[place] = event.part, ""
            elif isinstance(event, PartFinished):
                return self._end(place, event.part)
            elif isinstance(event.delta, str):
                return self._more(place, event.delta)
        elif isinstance(event, MessageFinished) and self.tells(event.message_id):
            self._reason = event.finish_reason
            self._response |= response_of(event.native)
            if event.usage is not None:
                self._usage = event.usage if self._usage is None else self._usage + event.usage
        return []

    def _start(self, event: MessageStarted) -> list[dict[str, Any]]:
        if event.role is not Role.MODEL or event.candidate != 0:
            return []
        first = not self._messages
        self._messages.add(event.message_id)
        if not first:
            return []
        origin = event.origin
        served = (origin.served_model or origin.model or "") if origin is not None else ""
        self._envelope = {"id": event.message_id, "model": served, **self._envelope}
        envelope = _encode(self.envelope("chat.completion.chunk"))
        self._head = b"data: " + envelope[:-1] + b',"choices":[{"index":0,"delta":'
        return [{"role": "assistant", "content": ""}]

    def _more(self, place: tuple[str, int], delta: str) -> list[dict[str, Any]]:
        """More of an open text, or of open thinking."""
        part = self._open.get(place)
        if not delta or not isinstance(part, (TextPart, ThinkingPart)):
            return []
        first = not self._said[place]
        self._said[place] += delta
        kind = "thinking" if isinstance(part, ThinkingPart) else "text"
        end = [_thinking([])] if first and kind == self._last == "thinking" else []  # else the two would be read as one
        self._last = kind
        return [*end, _thinking([{"type": "text", "text": delta}]) if kind == "thinking" else {"content": delta}]

    def _end(self, place: tuple[str, int], part: Content) -> list[dict[str, Any]]:
        """A part is closed: whatever of it is not told yet."""
        self._open.setdefault(place, part)
        said = self._said.setdefault(place, "")
        if isinstance(part, ToolCallPart) and part.run_by != "provider":
            self._last = "call"
            self._calls += 1
            return [{"tool_calls": [_call(part, self._calls - 1)]}]
        if isinstance(part, (TextPart, ThinkingPart)):
            deltas = self._more(place, part.text[len(said) :] if part.text.startswith(said) else "")
            own = extra(part.native)
            if isinstance(part, ThinkingPart) and own:
                self._last = "thinking ended"
                deltas.append({"content": [{"type": "thinking", "thinking": [], **own}]})
            return deltas
        chunk = _chunk(part)
        self._last = "chunk" if chunk is not None else self._last
        return [] if chunk is None else [{"content": [chunk]}]


def _thinking(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"content": [{"type": "thinking", "thinking": items}]}


def _call(part: ToolCallPart, index: int) -> dict[str, Any]:
    entry = dump_call(part, part.id, part.name, exact=True)
    if part.state != "complete":  # whoever asked shall see what the model wrote
        entry["function"]["arguments"] = part.raw or ""
    return {**entry, "index": index}


def _chunk(part: Content) -> dict[str, Any] | None:
    return None if isinstance(part, (ToolCallPart, ToolResultPart)) else dump_chunk(part)
