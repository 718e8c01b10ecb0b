"""The ordinary chunk of a stream: more text, more thinking, or more of a call's arguments, and nothing else.

Nine of ten chunks are of this kind, so it is read by types of its own, which decode only what is used. A chunk in which
anything else stands does not fit them, and is read as the whole JSON object that it is.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

__all__ = ["Delta", "Ordinary", "ordinary"]


class Arguments(msgspec.Struct, gc=False):
    """More of a call's arguments."""

    arguments: str
    name: None = None


class Piece(msgspec.Struct, gc=False):
    """More of a call that has begun."""

    index: int
    function: Arguments
    id: None = None
    custom: None = None
    extra_content: None = None


class Delta(msgspec.Struct, gc=False):
    """What an ordinary chunk adds. `None`-typed fields are those that must say nothing."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: None = None
    refusal: None = None
    tool_calls: Annotated[list[Piece], msgspec.Meta(min_length=1, max_length=1)] | None = None
    function_call: None = None
    audio: None = None
    images: None = None
    annotations: None = None
    executed_tools: None = None
    extra_content: None = None


class Choice(msgspec.Struct, gc=False):
    """The candidate of an ordinary chunk."""

    delta: Delta
    index: int = 0
    finish_reason: None = None
    logprobs: None = None
    error: None = None
    content_filter_results: dict[str, dict[str, bool | str]] | None = None
    """Azure: in every chunk."""


class Ordinary(msgspec.Struct, gc=False):
    """An ordinary chunk."""

    choices: Annotated[list[Choice], msgspec.Meta(min_length=1, max_length=1)]
    usage: None = None
    error: None = None
    x_groq: None = None
    citations: None = None
    search_results: None = None


ordinary = msgspec.json.Decoder(Ordinary).decode
