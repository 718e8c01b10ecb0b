"""Events → a response, streamed or whole, as the official client reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.framing import event_bytes
from dragoman.codec.json_values import if_list, merged, rest
from dragoman.codec.response import Answer, whole_answer
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
    RunFinished,
)
from dragoman.fold import arguments_text
from dragoman.loss import Loss
from dragoman.message import Content, FinishReason, TextPart, ThinkingPart, ToolCallPart, Usage
from dragoman.wires.cohere.calls import dump_call
from dragoman.wires.cohere.content import dump_block
from dragoman.wires.cohere.errors import dump_error
from dragoman.wires.cohere.messages import PLAN
from dragoman.wires.cohere.native import extra, response, spelling
from dragoman.wires.cohere.outcome import dump_finish, dump_usage

__all__ = ["Encoder", "dump_response", "encoder"]


def encoder(**envelope: Any) -> Encoder:
    """An encoder of one response. `envelope`: `id`, where the events' own is not to be told."""
    return Encoder(envelope)


def dump_response(events: Iterable[Event], *, losses: list[Loss] | None = None, **envelope: Any) -> dict[str, Any]:
    """Events → a whole response; an error's body where they tell of an error."""
    message = whole_answer(events, losses)
    if isinstance(message, DragomanError):
        return dump_error(message)[1]
    plan, blocks, calls = "", list[Any](), list[dict[str, Any]]()
    for piece in message.content:
        if _is_plan(piece):
            plan += _text(piece)
        elif isinstance(piece, ToolCallPart):
            calls += [_call(piece, _text(piece))] if piece.run_by != "provider" else []
        elif isinstance(block := dump_block(piece), dict):
            blocks.append(block)
    fields = {PLAN: plan, "content": blocks, "tool_calls": calls}
    said = {field: value for field, value in fields.items() if value}
    origin = message.origin
    return {
        "id": envelope.get("id") or (origin and origin.response_id) or message.id or "message-0",
        "message": merged({"role": "assistant", **said}, extra(message.native)),
        **_end(message.finish_reason, message.usage, rest(response(message.native), "id", "message")),
    }


class Encoder:
    """Events of the model's messages → Server-Sent Events. Several messages become one; parts may be open side by side."""

    def __init__(self, envelope: Mapping[str, Any]) -> None:
        self._envelope = envelope
        self._answer = Answer(response)
        self._open: dict[tuple[str, int], tuple[Content, int | None]] = {}  # open parts and their number on the wire
        self._told: set[tuple[str, int]] = set()
        self._whole: set[tuple[str, int]] = set()  # open parts that are told at their end
        self._numbers = {"content": 0, "call": 0}
        self._citations: dict[str, list[Any]] = {}  # of each message
        self._over = False

    def feed(self, event: Event) -> bytes:
        """One event → the bytes that tell of it (`b""`: none)."""
        first = not self._answer.started
        if self._over or not self._answer.takes(event):
            return b""
        if isinstance(event, PartDelta):
            key = (event.message_id, event.index)
            if key in self._open:
                self._told.add(key)
                return self._tell(*self._open[key], str(event.delta))
        elif isinstance(event, PartStarted):
            return self._begin((event.message_id, event.index), event.part)
        elif isinstance(event, PartFinished):
            return self._finish((event.message_id, event.index), event.part)
        elif isinstance(event, (MessageStarted, MessageFinished)):
            self._citations.setdefault(event.message_id, []).extend(if_list(extra(event.native).get("citations")))
            return self._start(event) if first else b""
        elif isinstance(event, MessageDropped):
            return self._drop(event.message_id)
        elif isinstance(event, RunError):
            self._over = True
            delta = {"finish_reason": "ERROR", "error": dump_error(event.error)[1]["message"]}
            return _event("message-end", delta=delta)
        elif isinstance(event, RunFinished):
            return self.close()
        return b""

    def close(self) -> bytes:
        """The end of the events → the end of the response."""
        answer = self._answer
        if self._over or not answer.started:
            return b""
        self._over = True
        cited = b"".join(
            _event("citation-start", index=n, delta={"message": {"citations": citation}})
            + _event("citation-end", index=n)
            for n, citation in enumerate(citation for told in self._citations.values() for citation in told)
        )
        end = _event("message-end", delta=_end(answer.reason, answer.usage, answer.around))
        return cited + end + event_bytes(b"[DONE]")

    def _start(self, event: Event) -> bytes:
        origin, native = self._answer.origin, event.native if isinstance(event, MessageStarted) else None
        message = {"role": "assistant", "content": (), PLAN: "", "tool_calls": (), "citations": ()}
        own = self._envelope.get("id") or (origin and origin.response_id) or self._answer.id or "message-0"
        return _event("message-start", id=own, delta={"message": merged(message, extra(native))})

    def _begin(self, key: tuple[str, int], part: Content) -> bytes:
        """The start of a part; a block that is neither text nor thinking is told whole at its end."""
        kind = "call" if isinstance(part, ToolCallPart) else "content"
        if _is_plan(part):
            self._open[key] = (part, None)
            return b""
        if not isinstance(part, (TextPart, ThinkingPart, ToolCallPart)):
            self._whole.add(key)
            return b""
        if isinstance(part, ToolCallPart) and part.run_by == "provider":
            return b""
        number = self._number(kind)
        self._open[key] = (part, number)
        if isinstance(part, ToolCallPart):
            return _event("tool-call-start", index=number, delta={"message": {"tool_calls": _call(part, "")}})
        block = {**_block(part, ""), **extra(part.native), "type": "text" if isinstance(part, TextPart) else "thinking"}
        return _event("content-start", index=number, delta={"message": {"content": block}})

    def _tell(self, part: Content, number: int | None, text: str) -> bytes:
        if number is None:
            return _event("tool-plan-delta", delta={"message": {PLAN: text}})
        if isinstance(part, ToolCallPart):
            calls = {"function": {"arguments": text}}
            return _event("tool-call-delta", index=number, delta={"message": {"tool_calls": calls}})
        return _event("content-delta", index=number, delta={"message": {"content": _block(part, text)}})

    def _tell_block(self, block: Mapping[str, Any]) -> bytes:
        number = self._number("content")
        start = _event("content-start", index=number, delta={"message": {"content": block}})
        return start + _event("content-end", index=number)

    def _number(self, kind: str) -> int:
        """That of the next block, or of the next call."""
        self._numbers[kind] += 1
        return self._numbers[kind] - 1

    def _finish(self, key: tuple[str, int], part: Content) -> bytes:
        """The end of a part, and what no delta told of it."""
        if key in self._whole:
            self._whole.remove(key)
            block = dump_block(part)
            return b"" if isinstance(block, str) else self._tell_block(block)
        if key not in self._open:
            return b""
        opened, number = self._open.pop(key)
        out = self._tell(opened, number, text) if key not in self._told and (text := _text(part)) else b""
        return out + _close(opened, number)

    def _drop(self, message_id: str) -> bytes:
        """A message is retracted: what is open of it ends, so that nothing that follows is added to it."""
        self._citations.pop(message_id, None)
        self._whole = {key for key in self._whole if key[0] != message_id}
        return b"".join(_close(*self._open.pop(key)) for key in list(self._open) if key[0] == message_id)


def _close(part: Content, number: int | None) -> bytes:
    """The end of a part; the plan has none."""
    if number is None:
        return b""
    return _event("tool-call-end" if isinstance(part, ToolCallPart) else "content-end", index=number)


def _is_plan(piece: Content) -> bool:
    return isinstance(piece, ThinkingPart) and spelling(piece.native).get("field") == PLAN


def _text(piece: Content) -> str:
    """What the deltas of a part would have been."""
    if isinstance(piece, (TextPart, ThinkingPart)):
        return piece.text
    if isinstance(piece, ToolCallPart):
        return arguments_text(piece) if piece.state == "complete" else piece.raw or ""
    return ""


def _block(part: Content, text: str) -> dict[str, str]:
    return {"thinking": text} if isinstance(part, ThinkingPart) else {"text": text}


def _call(call: ToolCallPart, text: str) -> dict[str, Any]:
    block = dump_call(call, call.id, call.name)
    return {**block, "function": {**block["function"], "arguments": text}}


def _end(reason: FinishReason | None, usage: Usage | None, around: Mapping[str, Any]) -> dict[str, Any]:
    """What ends a response."""
    end: dict[str, Any] = {"finish_reason": dump_finish(reason, around.get("finish_reason"))}
    if told := dump_usage(usage, around.get("usage", {})):
        end["usage"] = told
    return {**end, **rest(around, "finish_reason", "usage")}


def _event(kind: str, /, **fields: Any) -> bytes:
    return event_bytes(json_bytes.encode({"type": kind, **fields}), kind)
