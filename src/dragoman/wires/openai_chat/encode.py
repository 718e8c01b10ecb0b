"""Writes a response of Chat Completions: what it has beyond the family's.

Tools that the provider ran stand in `executed_tools` and images in `images`: fields that vendors
use and official clients ignore.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import ClassVar

from dragoman.codec.json_values import read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Citation,
    Content,
    DataPart,
    LinkPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.chat.citations import BESIDE, dump_annotations
from dragoman.wires.chat.content import dump_block
from dragoman.wires.chat.encode import Encoder as ChatEncoder
from dragoman.wires.chat.encode_parts import ChatParts, Delta, SentPart
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.openai_chat.messages import FIELDS
from dragoman.wires.openai_chat.quirks import OWN
from dragoman.wires.openai_chat.tools import dump_executed_tool

__all__ = ["Encoder"]


class Parts(ChatParts):
    """Writes the parts of one answer."""

    FIELDS: ClassVar[frozenset[str]] = ChatParts.FIELDS | frozenset(FIELDS)

    def __init__(self, chat: DialectRecord) -> None:
        super().__init__(chat)
        self._executed: dict[str, tuple[int, ToolCallPart]] = {}

    def choose_text_field(self, part: TextPart) -> str:
        if OWN.form(part.native).get("field") == "refusal":
            return "refusal"
        return "content"

    def begin_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """Returns the deltas that begin a call in an OpenAI stream. A custom call is sent whole."""
        if _is_function_call(part):
            return [{"function_call": {"name": part.name, "arguments": ""}}]
        # Called for a custom call too, since it takes the next index.
        deltas = super().begin_call(opened, part)
        if _is_custom(part):
            return []
        return deltas

    def add_call_arguments(self, opened: SentPart, part: ToolCallPart, delta: str) -> list[Delta]:
        """Returns the OpenAI deltas for call arguments: of a `function_call`, of a custom call
        none."""
        if _is_function_call(part):
            return [{"function_call": {"arguments": delta}}]
        if _is_custom(part):
            return []
        return super().add_call_arguments(opened, part, delta)

    def end_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:
        """Returns the deltas that end an OpenAI Chat call: a custom call comes whole."""
        if _is_custom(part):
            body = {"name": part.name, "input": part.arguments.get("input", "")}
            call_fields = read_extra_fields(OWN.fields(part.native), "id")
            call = {"id": part.id, "type": "custom", "custom": body, **call_fields}
            return [self.dump_call_piece(opened, call)]
        if not _is_function_call(part):
            return super().end_call(opened, part)
        has_new_name = isinstance(opened.part, ToolCallPart) and opened.part.name != part.name
        if has_new_name:
            return [{"function_call": {"name": part.name}}]
        return []

    def dump_whole_part(self, part: Content) -> list[Delta]:
        """Returns the deltas for a tool that the provider ran (its call, later its result), an image or
        spoken audio."""
        if isinstance(part, ToolCallPart):
            index = self.next_index("executed_tools")
            self._executed[part.id] = (index, part)
            return [{"executed_tools": [dump_executed_tool(part, None, index)]}]
        if isinstance(part, ToolResultPart):
            return self._dump_executed_result(part)
        if isinstance(part, DataPart) and part.mime_type.startswith("audio/"):
            data = b64encode(part.data).decode()
            audio = {"id": "", "data": data, "expires_at": 0, "transcript": ""}
            return [{"audio": {**audio, **OWN.fields(part.native)}}]
        if not isinstance(part, (DataPart, LinkPart)):
            return []
        block = dump_block(self.chat, part)
        if block is None or block.get("type") != "image_url":
            return []
        return [{"images": [{"index": self.next_index("images"), **block}]}]

    def _dump_executed_result(self, part: ToolResultPart) -> list[Delta]:
        """Returns the delta for the result of a tool that the provider ran, if its OpenAI Chat call
        was sent."""
        if part.run_by != "provider" or part.id not in self._executed:
            return []
        index, call = self._executed[part.id]
        return [
            {
                "executed_tools": [
                    read_extra_fields(dump_executed_tool(call, part, index), "arguments")
                ]
            }
        ]


class Encoder(ChatEncoder):
    """Writes one streamed response of Chat Completions."""

    PARTS: ClassVar[type[ChatParts]] = Parts
    OF_CHOICE: ClassVar[tuple[str, ...]] = (
        "logprobs", "native_finish_reason", "content_filter_results", "stop_reason", "matched_stop", "seed",
    )  # fmt: skip
    LISTS: ClassVar[frozenset[str]] = ChatEncoder.LISTS | {"images"}
    INDEXED: ClassVar[frozenset[str]] = frozenset({"executed_tools"})
    WHOLE: ClassVar[JsonMap] = {"refusal": None}

    def dump_citations(self, citations: Sequence[Citation]) -> Json:
        """Returns the fields for the sources of an answer in an OpenAI stream."""
        if not self._state.envelope.keys().isdisjoint(BESIDE):
            # They go back to where they came from.
            return {}
        annotations = dump_annotations(citations)
        if annotations:
            return {"annotations": annotations}
        return {}


def _is_custom(part: ToolCallPart) -> bool:
    return OWN.form(part.native).get("type") == "custom"


def _is_function_call(part: ToolCallPart) -> bool:
    """True if a call came as the older `function_call`, of which a message has one."""
    return OWN.form(part.native).get("field") == "function_call"
