"""A response of Chat Completions → events: the ordinary chunk, and what a candidate has beyond the family's.

An ordinary chunk is more text, more thinking, or more of a call's arguments, and nothing else. Nine of ten are of this kind, so it
is read by types of its own, which decode only what is used. A chunk in which anything else stands does not fit them, and is read
as the whole JSON object that it is.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from dragoman.codec.json_values import as_object, unread
from dragoman.event import PartDelta
from dragoman.wires.chat.decode import Decoder as ChatDecoder
from dragoman.wires.openai_chat.decode_parts import Candidate

__all__ = ["Candidate", "Decoder"]


class _Arguments(msgspec.Struct, gc=False):
    """More of a call's arguments."""

    arguments: str
    name: None = None


class _Piece(msgspec.Struct, gc=False):
    """More of a call that has begun."""

    index: int
    function: _Arguments
    id: None = None
    custom: None = None
    extra_content: None = None


class _Delta(msgspec.Struct, gc=False):
    """What an ordinary chunk adds. `None`-typed fields are those that must say nothing."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: None = None
    refusal: None = None
    tool_calls: Annotated[list[_Piece], msgspec.Meta(min_length=1, max_length=1)] | None = None
    function_call: None = None
    audio: None = None
    images: None = None
    annotations: None = None
    executed_tools: None = None
    extra_content: None = None


class _Choice(msgspec.Struct, gc=False):
    """The candidate of an ordinary chunk."""

    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None
    error: None = None
    content_filter_results: dict[str, dict[str, bool | str]] | None = None
    """Azure: in every chunk."""


class _Ordinary(msgspec.Struct, gc=False):
    """An ordinary chunk."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: None = None
    error: None = None
    x_groq: None = None
    citations: None = None
    search_results: None = None


_ordinary = msgspec.json.Decoder(_Ordinary).decode


class Decoder(ChatDecoder):
    """Reads one response of Chat Completions."""

    READ: ClassVar[frozenset[str]] = ChatDecoder.READ | {"obfuscation", "prompt", "x_groq"}

    def ordinary(self, payload: bytes) -> bool:
        """More of a text, of thinking, or of a call's arguments, and nothing else."""
        try:
            choice = _ordinary(payload).choices[0]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        delta, candidate = choice.delta, self._candidates.get(choice.index)
        if candidate is None:
            return False
        if choice.content_filter_results:
            candidate.filtered(choice.content_filter_results)
        text, thought = delta.content, delta.reasoning_content or delta.reasoning
        if delta.tool_calls is not None:
            piece = delta.tool_calls[0]
            alone = not text and not thought and candidate.run is None
            return alone and candidate.calls.more(piece.index, piece.function.arguments)
        if text and not thought:
            if candidate.kind != "text":
                candidate.add_text("text", text)
                return True
            run: Any = candidate.run
            run.deltas.append(text)
            self._events.append(PartDelta(candidate.message_id, run.index, text))
            return True
        if thought and not text and not delta.reasoning:
            candidate.think(("reasoning_content",), thought)
            return True
        return False

    def note(self, chunk: dict[str, Any]) -> None:
        """See the family's; Groq has its usage elsewhere."""
        if "x_groq" not in chunk:
            super().note(chunk)
            return
        groq = as_object(chunk["x_groq"], "x_groq")
        self.add_usage(groq.get("usage"))
        super().note(chunk)
        if own := unread(groq, ("id", "usage")):
            self._response["x_groq"] = own
