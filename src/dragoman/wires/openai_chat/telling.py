"""The parts of one message → deltas. What the deltas of a part did not say is said when it ends."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.message import (
    Content,
    DataPart,
    LinkPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.openai_chat.calls import dump_executed
from dragoman.wires.openai_chat.content import dump_block
from dragoman.wires.openai_chat.native import extra, rest, spelling
from dragoman.wires.openai_chat.thinking import DETAILS, PLAIN, text_key

__all__ = ["Telling"]

_Deltas = list[dict[str, Any]]


class _Told:
    """A part that is being told."""

    __slots__ = ("number", "part", "said")

    def __init__(self, part: Content, number: int) -> None:
        self.part = part
        self.number = number
        self.said = ""


class Telling:
    """Tells the parts of one message.

    A call that somebody must answer is one of `tool_calls`. What the provider ran itself is told in `executed_tools`,
    thinking in `reasoning_content`, images in `images`: fields that vendors use and official clients pass over.
    """

    def __init__(self, next_number: Callable[[], int]) -> None:
        self._next_number = next_number
        self._open: dict[int, _Told] = {}
        self._executed: dict[str, tuple[int, ToolCallPart]] = {}

    def begin(self, index: int, part: Content) -> _Deltas:
        """A part is open."""
        called = isinstance(part, ToolCallPart) and part.run_by != "provider"
        self._open[index] = _Told(part, self._next_number() if called else 0)
        if not isinstance(part, ToolCallPart) or not called or _custom(part):
            return []
        start = {"id": part.id, "type": "function", "function": {"name": part.name, "arguments": ""}}
        return [{"tool_calls": [{"index": self._open[index].number, **start}]}]

    def more(self, index: int, delta: str | bytes) -> _Deltas:
        """More of an open part."""
        told = self._open.get(index)
        if told is None or not isinstance(delta, str) or not delta:
            return []
        said, told.said = told.said, told.said + delta
        part = told.part
        if isinstance(part, TextPart):
            return [{spelling(part.native).get("field", "content"): delta}]
        if isinstance(part, ThinkingPart):
            return [_thought(part, delta, first=not said)]
        if isinstance(part, ToolCallPart) and part.run_by != "provider" and not _custom(part):
            return [{"tool_calls": [{"index": told.number, "function": {"arguments": delta}}]}]
        return []

    def end(self, index: int, part: Content) -> _Deltas:
        """A part is closed: whatever of it is not told yet."""
        told = self._open.get(index)
        if told is None:
            return []
        if isinstance(part, (TextPart, ThinkingPart)):
            left = self.more(index, _left(part.text, told.said))
            return left + (_signed(part, told) if isinstance(part, ThinkingPart) else [])
        if isinstance(part, ToolCallPart) and part.run_by == "provider":
            self._executed[part.id] = (len(self._executed), part)
            return [{"executed_tools": [dump_executed(part, None, len(self._executed) - 1)]}]
        if isinstance(part, ToolResultPart) and part.id in self._executed:
            number, call = self._executed[part.id]
            return [{"executed_tools": [dump_executed(call, part, number)]}]
        if isinstance(part, ToolCallPart):
            return self._called(part, told, index)
        if isinstance(part, (DataPart, LinkPart)):
            return _shown(part)
        return []

    def _called(self, part: ToolCallPart, told: _Told, index: int) -> _Deltas:
        own = rest(extra(part.native), "id")
        if _custom(part):
            body = {"name": part.name, "input": part.arguments.get("input", "")}
            return [{"tool_calls": [{"index": told.number, "id": part.id, "type": "custom", "custom": body, **own}]}]
        text = part.raw if part.raw is not None else msgspec.json.encode(part.arguments).decode()
        named = told.part.name if isinstance(told.part, ToolCallPart) else part.name
        if named != part.name:  # the name came late
            own = {"function": {"name": part.name}, **own}
        return self.more(index, _left(text, told.said)) + (
            [{"tool_calls": [{"index": told.number, **own}]}] if own else []
        )


def _custom(part: ToolCallPart) -> bool:
    return spelling(part.native).get("type") == "custom"


def _left(text: str, said: str) -> str:
    """What is left of a text to say; what was said and is not of it cannot be taken back."""
    return text[len(said) :] if text.startswith(said) else ""


def _thought(part: ThinkingPart, text: str, *, first: bool) -> dict[str, Any]:
    own = extra(part.native)
    if not own:
        return dict.fromkeys(spelling(part.native).get("fields", PLAIN[:1]), text)
    fields = own if first else {name: own[name] for name in ("type", "index", "id") if name in own}
    return {DETAILS: [{**fields, text_key(own.get("type")): text}]}


def _signed(part: ThinkingPart, told: _Told) -> _Deltas:
    """What a detail of thinking holds beside its text, as far as that came late."""
    own, known = extra(part.native), extra(told.part.native) if told.said else {}
    late = {name: value for name, value in own.items() if name not in known or known[name] != value}
    if not late:
        return []
    return [{DETAILS: [{**{name: own[name] for name in ("type", "index", "id") if name in own}, **late}]}]


def _shown(part: DataPart | LinkPart) -> _Deltas:
    own = extra(part.native)
    if isinstance(part, DataPart) and part.mime_type.startswith("audio/"):
        audio = {"id": "", "data": b64encode(part.data).decode(), "expires_at": 0, "transcript": ""}
        return [{"audio": {**audio, **own}}]
    block = dump_block(part)
    return [{"images": [block]}] if block is not None and block.get("type") == "image_url" else []
