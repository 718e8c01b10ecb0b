"""Events → a response of Chat Completions: what it has beyond the family's.

What the provider ran itself stands in `executed_tools`, images in `images`: fields that vendors use
and official clients pass over.
"""

from __future__ import annotations

from base64 import b64encode
from typing import ClassVar

from dragoman.codec.json_values import read_extra_fields
from dragoman.json_bytes import JsonMap
from dragoman.message import Content, DataPart, LinkPart, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.chat.content import dump_block
from dragoman.wires.chat.encode import Encoder as ChatEncoder
from dragoman.wires.chat.encode_parts import ChatParts as ChatParts
from dragoman.wires.chat.encode_parts import Delta, SentPart
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.openai_chat.messages import FIELDS
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.tools import dump_executed_tool

__all__ = ["Encoder", "ChatParts"]


class Parts(ChatParts):
    """Sends the parts of one answer."""

    FIELDS: ClassVar[frozenset[str]] = ChatParts.FIELDS | frozenset(FIELDS)

    def __init__(self, chat: DialectRecord) -> None:
        super().__init__(chat)
        self._executed: dict[str, tuple[int, ToolCallPart]] = {}

    def choose_text_field(self, part: TextPart) -> str:
        return "refusal" if OWN.form(part.native).get("field") == "refusal" else "content"

    def begin_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """See the family's; a custom call is sent whole."""
        if _is_function_call(part):
            return [{"function_call": {"name": part.name, "arguments": ""}}]
        deltas = super().begin_call(opened, part)
        return [] if _is_custom(part) else deltas

    def add_call_arguments(self, opened: SentPart, part: ToolCallPart, delta: str) -> list[Delta]:
        if _is_function_call(part):
            return [{"function_call": {"arguments": delta}}]
        return [] if _is_custom(part) else super().add_call_arguments(opened, part, delta)

    def end_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        if _is_custom(part):
            body = {"name": part.name, "input": part.arguments.get("input", "")}
            call_fields = read_extra_fields(OWN.fields(part.native), "id")
            return [
                self.call(opened, {"id": part.id, "type": "custom", "custom": body, **call_fields})
            ]
        if not _is_function_call(part):
            return super().end_call(opened, part)
        renamed = isinstance(opened.part, ToolCallPart) and opened.part.name != part.name
        return [{"function_call": {"name": part.name}}] if renamed else []

    def whole(self, part: Content) -> list[Delta]:
        """A tool that the provider ran (its call, later its result), an image, spoken audio."""
        if isinstance(part, ToolCallPart):
            number = self.number("executed_tools")
            self._executed[part.id] = (number, part)
            return [{"executed_tools": [dump_executed_tool(part, None, number)]}]
        if (
            isinstance(part, ToolResultPart)
            and part.run_by == "provider"
            and part.id in self._executed
        ):
            number, call = self._executed[part.id]
            return [
                {
                    "executed_tools": [
                        read_extra_fields(dump_executed_tool(call, part, number), "arguments")
                    ]
                }
            ]
        if isinstance(part, DataPart) and part.mime_type.startswith("audio/"):
            audio = {
                "id": "",
                "data": b64encode(part.data).decode(),
                "expires_at": 0,
                "transcript": "",
            }
            return [{"audio": {**audio, **OWN.fields(part.native)}}]
        block = (
            dump_block(self.chat, part) if isinstance(part, (DataPart, LinkPart)) else None
        ) or {}
        return (
            [{"images": [{"index": self.number("images"), **block}]}]
            if block.get("type") == "image_url"
            else []
        )


class Encoder(ChatEncoder):
    """Writes one streamed response of Chat Completions."""

    PARTS: ClassVar[type[ChatParts]] = Parts
    OF_CHOICE: ClassVar[tuple[str, ...]] = (
        "logprobs", "native_finish_reason", "content_filter_results", "stop_reason", "matched_stop", "seed",
    )  # fmt: skip
    LISTS: ClassVar[frozenset[str]] = ChatEncoder.LISTS | {"images"}
    INDEXED: ClassVar[frozenset[str]] = frozenset({"executed_tools"})
    WHOLE: ClassVar[JsonMap] = {"refusal": None}


def _is_custom(part: ToolCallPart) -> bool:
    return OWN.form(part.native).get("type") == "custom"


def _is_function_call(part: ToolCallPart) -> bool:
    """Whether it came as the older `function_call`, of which a message has one."""
    return OWN.form(part.native).get("field") == "function_call"
