"""Reads a response: the ordinary chunk, and what a candidate has beyond the family's.

An ordinary chunk is more text, or more thinking, and nothing else. Nine of ten chunks are ordinary,
so they have struct types of their own, which decode only what is used. Any other chunk does not fit
these types. It is decoded as a whole JSON object and takes the family's way.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from dragoman.codec.emitter import OpenPart
from dragoman.codec.json_values import (
    as_list,
    as_object,
    as_text,
    if_objects,
    read_extra_fields,
    select_unread,
)
from dragoman.codec.message_list import plain_text
from dragoman.event import PartDelta
from dragoman.json_bytes import Json
from dragoman.message import Origin, ThinkingPart, ToolResultPart, Usage
from dragoman.wires.chat.content import load_block
from dragoman.wires.chat.decode import Decoder as ChatDecoder
from dragoman.wires.chat.decode_parts import ChatCandidate
from dragoman.wires.mistral.quirks import OWN

__all__ = ["Decoder"]


class _Text(msgspec.Struct, gc=False, tag_field="type", tag="text", forbid_unknown_fields=True):
    """More text of a thought."""

    text: str


class _Thought(
    msgspec.Struct, gc=False, tag_field="type", tag="thinking", forbid_unknown_fields=True
):
    """More thinking."""

    thinking: Annotated[list[_Text], msgspec.Meta(min_length=1, max_length=1)]
    closed: bool | None = None


class _Delta(msgspec.Struct, gc=False):
    """What an ordinary chunk adds. A field of type None must be absent or null."""

    content: str | Annotated[list[_Thought], msgspec.Meta(min_length=1, max_length=1)]
    role: Literal["assistant", ""] | None = None
    tool_calls: None = None
    tool_call_id: None = None
    metadata: None = None


class _Choice(msgspec.Struct, gc=False):
    """The candidate of an ordinary chunk."""

    delta: _Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None
    prompt_logprobs: None = None
    message: None = None
    messages: None = None


class _Ordinary(msgspec.Struct, gc=False):
    """An ordinary chunk."""

    choices: Annotated[list[_Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: None = None
    error: None = None


_ordinary = msgspec.json.Decoder(_Ordinary).decode


class Candidate(ChatCandidate):
    """Turns the choices of one index into the events of one message."""

    READ: ClassVar[frozenset[str]] = ChatCandidate.READ | {
        "tool_call_id",
        "name",
        "index",
        "prefix",
    }
    CHOICE_READ: ClassVar[frozenset[str]] = ChatCandidate.CHOICE_READ | {"messages"}
    closed: bool | None = None
    """What the provider said last about whether the open thinking is closed."""
    _divided = 0
    """Number of deltas of the open thinking that its wire form counts already."""

    def add(self, choice: Json, *, whole: bool) -> None:
        """Adds a delta of a Mistral stream. A choice may hold several messages."""
        if whole or "delta" not in choice:
            messages = as_list(choice.get("messages"), "messages")
            for message in messages[:-1]:
                self.emitter.start()
                self.add_message(as_object(message, "message"), whole=True)
            if messages:
                choice = {**choice, "message": messages[-1]}
        super().add(choice, whole=whole)

    def add_message(self, message: Json, *, whole: bool) -> None:
        """Adds a piece of the Mistral message, or all of it. A message with a `tool_call_id` is the
        result of a tool that the provider ran: it becomes a part behind its call."""
        if call_id := message.get("tool_call_id"):
            self.end()
            call = self.calls.close_answered_call(as_text(call_id))
            # Only the call names the tool: the result of a call that is not in this answer is dropped.
            if call is not None:
                result = message.get("content")
                self.emitter.add_whole_part(
                    ToolResultPart(call.id, call.name, result, run_by="provider")
                )
            message = read_extra_fields(message, "content", "tool_calls")
        super().add_message(message, whole=whole)

    def add_content(self, content: Any, *, whole: bool) -> None:
        """See the family's. The chunks of a Mistral stream come in pieces, those of a whole answer
        do not."""
        if not isinstance(content, list):
            self.add_text("text", as_text(content))
            return
        for entry in as_list(content, "content"):
            block = as_object(entry, "content chunk")
            type_name = block.get("type")
            if whole or type_name not in ("text", "thinking"):
                self._add_whole_block(block)
            elif type_name == "thinking":
                self._think_block(block)
            else:
                self.add_text("text", as_text(block.get("text")))
                further = select_unread(block, ("type", "text"))
                if further and self.open_part is not None:
                    OWN.open_fields(self.open_part.native).update(further)

    def _add_whole_block(self, block: Json) -> None:
        """Adds a Mistral content chunk that comes in one piece. Empty thinking and texts add
        nothing."""
        self.end()
        part = load_block(self.chat, block)
        if part != ThinkingPart() and getattr(part, "kind", None) != "text":
            self.emitter.add_whole_part(part)

    def end(self) -> None:
        """Ends the candidate of Mistral's answer."""
        if self.open_part is not None:
            if self.closed is not None:
                OWN.open_fields(self.open_part.native)["closed"] = self.closed
            if OWN.form(self.open_part.native):
                self._divide_thinking(self.open_part)
        super().end()
        self.closed, self._divided = None, 0

    def finish(self, usage: Usage | None, origin: Origin | None, response: Json) -> None:
        """Finishes the candidate of Mistral's answer with its reason and usage."""
        self.emitter.start()
        self.end()
        super().finish(usage, origin, response)

    def _think_block(self, block: Json) -> None:
        """Adds thinking. A chunk without any ends it. An item that is no text goes to the Mistral
        wire form `items`."""
        value = block.get("thinking")
        items = [{"type": "text", "text": value}] if isinstance(value, str) else if_objects(value)
        further = select_unread(block, ("type", "thinking"))
        if items or further:
            part = self.open_part if self.open_key == "thinking" else None
            if part is None:
                part = self.begin("thinking", ThinkingPart())
            for item in items:
                is_text = item.get("type") == "text"
                text = as_text(item.get("text")) if is_text else ""
                if not is_text and plain_text(item) is None:
                    self._divide_thinking(part).append(item)
                self.emitter.add(part, text)
            self.closed = further.pop("closed", self.closed)
            if further:
                OWN.open_fields(part.native).update(further)
        if not items and self.open_key == "thinking":
            self.end()

    def _divide_thinking(self, part: OpenPart) -> list[Any]:
        """Returns the Mistral wire form `items` of the open thinking, up to the text that has
        come."""
        items: list[Any] = OWN.open_form(part.native).setdefault("items", [])
        length = sum([len(delta) for delta in part.deltas[self._divided :]])
        if length:
            items.append(length)
        self._divided = len(part.deltas)
        return items


class Decoder(ChatDecoder):
    """Reads one response of Mistral's."""

    CANDIDATE: ClassVar[type[ChatCandidate]] = Candidate
    # `p` is padding that hides the length of a chunk.
    READ: ClassVar[frozenset[str]] = frozenset({"id", "object", "model", "choices", "usage", "p"})

    def read_fast(self, payload: bytes) -> bool:
        """Reads an ordinary chunk of a Mistral stream. False if it is another one."""
        try:
            choice = _ordinary(payload).choices[0]
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return False
        content, candidate = choice.delta.content, self._candidates.get(choice.index)
        if candidate is None:
            return False
        if isinstance(content, str):
            if (
                candidate.open_key == "text"
                and content
                and (run := candidate.open_part) is not None
            ):
                run.deltas.append(content)
                self._events.append(PartDelta(candidate.message_id, run.index, content))
            else:
                candidate.add_text("text", content)
        else:
            candidate.add_text("thinking", content[0].thinking[0].text, ThinkingPart())
            if content[0].closed is not None and candidate.open_key == "thinking":
                candidate.closed = content[0].closed
        return True
