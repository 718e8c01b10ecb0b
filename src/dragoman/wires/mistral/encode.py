"""Events → a response, where it is other than the family's: thinking stands in the content, calls
are sent whole, and tools that the provider ran are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dragoman.codec.json_values import merge_wire_fields, read_extra_fields
from dragoman.codec.message_list import dump_content
from dragoman.codec.response import join_messages
from dragoman.errors import DragomanError
from dragoman.event import Event, MessageFinished, MessageStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Content, Role, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.chat.content import dump_block
from dragoman.wires.chat.encode import Encoder as ChatEncoder
from dragoman.wires.chat.encode_parts import ChatParts as ChatParts
from dragoman.wires.chat.encode_parts import Delta, Place, SentPart
from dragoman.wires.chat.errors import dump_error
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.chat.tools import dump_call
from dragoman.wires.mistral.quirks import OWN

__all__ = ["Encoder", "ChatParts", "dump_response"]


def dump_response(encoder: ChatEncoder, events: Iterable[Event], losses: list[Loss] | None) -> Json:
    """Events → a whole response, or, where one of them is an error, its body."""
    chat, whole = encoder.chat, join_messages(events, losses)
    if isinstance(whole, DragomanError):
        return dump_error(chat, whole).body
    encoder.objects(
        MessageStarted(
            whole.id or "", Role.MODEL, 0, whole.origin, {}, whole.native, anonymous=not whole.id
        )
    )
    (fields,) = encoder.objects(
        MessageFinished(whole.id or "", whole.finish_reason, whole.usage)
    ) or ({},)
    calls = [
        part
        for part in whole.content
        if isinstance(part, ToolCallPart) and part.run_by != "provider"
    ]
    blocks = [block for part in whole.content if (block := _block(chat, part)) is not None]
    message = {
        "role": "assistant",
        **dump_content(blocks, "", {}),
        "tool_calls": [_call(chat, call, index) for index, call in enumerate(calls)] or None,
    }
    choice = {
        "index": 0,
        "message": merge_wire_fields(message, read_extra_fields(fields, "content")),
        **encoder.finish(),
    }
    return {"usage": {}, **encoder.envelope(False), "choices": [choice], **encoder.usage()}


class Parts(ChatParts):
    """Sends the parts of one answer."""

    _thinks = False
    """Whether the last that went out was thinking that has not ended."""

    def fields(self, fields: JsonMap) -> Delta:
        """See the family's; lists stay as they are."""
        return read_extra_fields(fields, "role", "content", "tool_calls")

    def text(self, place: Place, fields: Any, delta: str) -> Delta:
        self._thinks = False
        return super().text(place, fields, delta)

    def add_thinking(
        self,
        key: Place,  # noqa: ARG002
        opened: SentPart,  # noqa: ARG002
        part: ThinkingPart,  # noqa: ARG002
        delta: str,
        *,
        first: bool,
    ) -> list[Delta]:
        """See the family's. Two thoughts in a row would be read as one."""
        end = [_thinking([])] if first and self._thinks else []
        self._thinks = True
        return [*end, _thinking([{"type": "text", "text": delta}])]

    def end_thinking(self, opened: SentPart, part: ThinkingPart) -> list[Delta]:  # noqa: ARG002
        further = OWN.fields(part.native)
        self._thinks = self._thinks and not further
        return [_thinking([], further)] if further else []

    def begin_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:  # noqa: ARG002
        return []

    def add_call_arguments(self, opened: SentPart, part: ToolCallPart, delta: str) -> list[Delta]:  # noqa: ARG002
        return []

    def end_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:  # noqa: ARG002
        self._thinks = False
        return [{"tool_calls": [_call(self.chat, part, self.number("tool_calls"))]}]

    def whole(self, part: Content) -> list[Delta]:
        block = _block(self.chat, part)
        self._thinks = self._thinks and block is None
        return [] if block is None else [{"content": [block]}]


class Encoder(ChatEncoder):
    """Writes one streamed response of Mistral's."""

    PARTS: ClassVar[type[ChatParts]] = Parts
    OF_CHOICE: ClassVar[tuple[str, ...]] = ("logprobs", "prompt_logprobs")


def _thinking(items: list[Json], further: JsonMap = {}) -> Delta:
    return {"content": [{"type": "thinking", "thinking": items, **further}]}


def _call(chat: DialectRecord, part: ToolCallPart, index: int) -> Json:
    entry = dump_call(chat, part, part.id, part.name, exact=True)
    # whoever asked shall see what the model wrote
    if part.state != "complete":
        entry["function"]["arguments"] = part.raw or ""
    return {**entry, "index": index}


def _block(chat: DialectRecord, part: Content) -> Json | None:
    return None if isinstance(part, (ToolCallPart, ToolResultPart)) else dump_block(chat, part)
