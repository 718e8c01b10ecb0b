"""The ordinary events of a stream: more of a text, of thinking or of a call's arguments, and nothing else.

Nearly all of a stream consists of them, so they are read by types of their own, which decode only what is used. What
does not fit them is read as the JSON object that it is.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

__all__ = ["DELTAS", "Delta", "decode_delta"]


class Text(msgspec.Struct, tag_field="type", tag="response.output_text.delta", gc=False):
    """More of a text."""

    delta: str
    output_index: int
    place: int = msgspec.field(name="content_index")


class Refusal(msgspec.Struct, tag_field="type", tag="response.refusal.delta", gc=False):
    """More of a refusal."""

    delta: str
    output_index: int
    place: int = msgspec.field(name="content_index")


class Summary(msgspec.Struct, tag_field="type", tag="response.reasoning_summary_text.delta", gc=False):
    """More of a summary of thinking."""

    delta: str
    output_index: int
    place: int = msgspec.field(name="summary_index")


class Thinking(msgspec.Struct, tag_field="type", tag="response.reasoning_text.delta", gc=False):
    """More of thinking itself."""

    delta: str
    output_index: int
    place: int = msgspec.field(name="content_index")


class Arguments(msgspec.Struct, tag_field="type", tag="response.function_call_arguments.delta", gc=False):
    """More of a call's arguments."""

    delta: str
    output_index: int
    place: int = 0


Delta = Text | Refusal | Summary | Thinking | Arguments
DELTAS: Mapping[type, str] = {
    Text: "text",
    Refusal: "refusal",
    Summary: "summary",
    Thinking: "content",
    Arguments: "call",
}
"""Type of a delta → what it is more of."""
decode_delta = msgspec.json.Decoder(Delta).decode
