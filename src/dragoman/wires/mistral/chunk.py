"""The ordinary chunk of a stream: more text, or more thinking, and nothing else.

Nine of ten chunks are of this kind, so it is read by types of its own, which decode only what is used. A chunk in which
anything else stands does not fit them, and is read as the whole JSON object that it is.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["Ordinary", "ordinary"]


class Said(msgspec.Struct, gc=False, tag_field="type", tag="text", forbid_unknown_fields=True):
    """More of a thought."""

    text: str


class Thought(msgspec.Struct, gc=False, tag_field="type", tag="thinking", forbid_unknown_fields=True):
    """More thinking."""

    thinking: Annotated[list[Said], msgspec.Meta(min_length=1, max_length=1)]
    closed: bool | None = None


class Delta(msgspec.Struct, gc=False):
    """What an ordinary chunk adds. `None`-typed fields are those that must say nothing."""

    content: str | Annotated[list[Thought], msgspec.Meta(min_length=1, max_length=1)]
    role: Literal["assistant", ""] | None = None
    tool_calls: None = None
    tool_call_id: None = None
    metadata: None = None


class Choice(msgspec.Struct, gc=False):
    """The candidate of an ordinary chunk."""

    delta: Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None
    prompt_logprobs: None = None
    message: None = None
    messages: None = None


class Ordinary(msgspec.Struct, gc=False):
    """An ordinary chunk."""

    choices: Annotated[list[Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: None = None
    error: None = None


ordinary = msgspec.json.Decoder(Ordinary).decode
