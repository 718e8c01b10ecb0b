"""Writes a response where it differs from the family's: thinking stands in the content, calls are
sent whole, and tools that the provider ran are left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from dragoman.codec.json_values import merge_wire_fields, read_extra_fields
from dragoman.codec.message_list import dump_content
from dragoman.codec.response_state import join_messages
from dragoman.errors import DragomanError
from dragoman.event import Event, MessageFinished, MessageStarted
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Content, Role, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.wires.chat.content import dump_block
from dragoman.wires.chat.encode import Encoder as ChatEncoder
from dragoman.wires.chat.encode_parts import ChatParts, Delta, Place, SentPart
from dragoman.wires.chat.errors import dump_error
from dragoman.wires.chat.record import DialectRecord
from dragoman.wires.chat.tools import dump_call
from dragoman.wires.mistral.citations import dump_references
from dragoman.wires.mistral.quirks import OWN

__all__ = ["Encoder", "dump_response"]


def dump_response(encoder: ChatEncoder, events: Iterable[Event], losses: list[Loss] | None) -> Json:
    """Writes a whole Mistral response. If one of the events is an error, returns the error's
    body."""
    chat, whole = encoder.chat, join_messages(events, losses)
    if isinstance(whole, DragomanError):
        return dump_error(chat, whole).body
    # The message is written from its parts. The encoder is shown its start and end, because it
    # collects the id, the usage and the finish reason.
    message_id = whole.id or ""
    encoder.objects(
        MessageStarted(
            message_id, Role.MODEL, 0, whole.origin, {}, whole.native, anonymous=not whole.id
        )
    )
    end = encoder.objects(MessageFinished(message_id, whole.finish_reason, whole.usage))
    (fields,) = end or ({},)
    calls = whole.tool_calls
    blocks: list[Json] = []
    for part in whole.content:
        if (block := _block(chat, part)) is not None:
            blocks.append(block)
        blocks += dump_references(part)
    message = {
        "role": "assistant",
        **dump_content(blocks, "", {}),
        "tool_calls": [_call(chat, call, index) for index, call in enumerate(calls)] or None,
    }
    message = merge_wire_fields(message, read_extra_fields(fields, "content"))
    choice = {"index": 0, "message": message, **encoder.dump_finish()}
    envelope = encoder.dump_envelope(chunk=False)
    return {"usage": {}, **envelope, "choices": [choice], **encoder.dump_usage()}


class Parts(ChatParts):
    """Writes the parts of one answer."""

    _thinks = False
    """True if the last delta was thinking that has not ended."""

    def dump_fields(self, fields: JsonMap) -> Delta:
        """See the family's. Lists stay as they are."""
        return read_extra_fields(fields, "role", "content", "tool_calls")

    def dump_text(self, place: Place, fields: Any, delta: str) -> Delta:
        self._thinks = False
        return super().dump_text(place, fields, delta)

    def add_thinking(
        self,
        key: Place,  # noqa: ARG002
        opened: SentPart,  # noqa: ARG002
        part: ThinkingPart,  # noqa: ARG002
        delta: str,
        *,
        first: bool,
    ) -> list[Delta]:
        """Returns the Mistral deltas for thinking. An empty piece between two thoughts keeps
        clients from joining them."""
        end = [_thinking([])] if first and self._thinks else []
        self._thinks = True
        return [*end, _thinking([{"type": "text", "text": delta}])]

    def end_thinking(self, opened: SentPart, part: ThinkingPart) -> list[Delta]:  # noqa: ARG002
        """Returns the Mistral delta that ends thinking with its signature, if it has one."""
        further = OWN.fields(part.native)
        self._thinks = self._thinks and not further
        if further:
            return [_thinking([], further)]
        return []

    def begin_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:  # noqa: ARG002
        return []

    def add_call_arguments(self, opened: SentPart, part: ToolCallPart, delta: str) -> list[Delta]:  # noqa: ARG002
        return []

    def end_call(self, opened: SentPart, part: ToolCallPart) -> list[Delta]:  # noqa: ARG002
        self._thinks = False
        return [{"tool_calls": [_call(self.chat, part, self.next_index("tool_calls"))]}]

    def end(self, key: Place, part: Content) -> list[Delta]:
        """Returns the Mistral deltas that end a part. Behind a text stand its sources."""
        deltas = super().end(key, part)
        if references := dump_references(part):
            deltas = [*deltas, {"content": references}]
        return deltas

    def dump_whole_part(self, part: Content) -> list[Delta]:
        """Returns the delta of a part that Mistral sends whole."""
        block = _block(self.chat, part)
        self._thinks = self._thinks and block is None
        if block is None:
            return []
        return [{"content": [block]}]


class Encoder(ChatEncoder):
    """Writes one streamed response of Mistral's."""

    PARTS: ClassVar[type[ChatParts]] = Parts
    OF_CHOICE: ClassVar[tuple[str, ...]] = ("logprobs", "prompt_logprobs")


def _thinking(items: list[Json], further: JsonMap = {}) -> Delta:
    return {"content": [{"type": "thinking", "thinking": items, **further}]}


def _call(chat: DialectRecord, part: ToolCallPart, index: int) -> Json:
    """Returns a tool call as an entry of Mistral's `tool_calls`."""
    entry = dump_call(chat, part, part.id, part.name, exact=True)
    # The client sees what the model wrote, also where it does not parse.
    if part.state != "complete":
        entry["function"]["arguments"] = part.raw or ""
    return {**entry, "index": index}


def _block(chat: DialectRecord, part: Content) -> Json | None:
    """Returns the Mistral content chunk of a part. Calls and results have none."""
    if isinstance(part, (ToolCallPart, ToolResultPart)):
        return None
    return dump_block(chat, part)
