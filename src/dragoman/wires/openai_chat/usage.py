"""Tokens and the reason to stop, as the many vendors of Chat Completions have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.message import FinishReason, Usage
from dragoman.wires.chat import usage
from dragoman.wires.chat.dialect import Chat

__all__ = ["COUNTS", "FINISH", "WORDS", "load_usage"]

_CACHED = "prompt_tokens_details"
COUNTS = {
    **usage.COUNTS,
    "cache_read_tokens": (
        (_CACHED, "cached_tokens"),
        ("prompt_cache_hit_tokens",),
        ("cache_read_input_tokens",),
        ("cached_tokens",),
    ),
    "cache_write_tokens": ((_CACHED, "cache_write_tokens"), ("cache_creation_input_tokens",)),
    "reasoning_tokens": (*usage.COUNTS["reasoning_tokens"], ("reasoning_tokens",)),
}
FINISH = {
    **usage.FINISH,
    "eos": FinishReason.stop,
    "end_turn": FinishReason.stop,
    "function_call": FinishReason.tool_calls,
}
_ANY = ("stop", "length", "tool_calls", "content_filter")
WORDS = {
    **usage.WORDS,
    FinishReason.tool_calls: ("tool_calls", "function_call"),
    FinishReason.refusal: ("content_filter", "stop", "length", "tool_calls"),
    FinishReason.unspecified: _ANY,
}


def load_usage(chat: Chat, fields: Mapping[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
    """What a vendor says of tokens → the neutral counts, and the rest.

    Some count thinking, or the cache, beside the tokens of answer and prompt instead of within them; where the total
    shows it, they are counted in.
    """
    counts, left = usage.load_usage(chat, fields)
    if counts is None or counts.input_tokens is None or counts.output_tokens is None:
        return counts, left
    prompt, answer, total = counts.input_tokens, counts.output_tokens, counts.total_tokens
    cached, thought = (
        (counts.cache_read_tokens or 0) + (counts.cache_write_tokens or 0),
        counts.reasoning_tokens,
    )
    if total is None:
        total = prompt + answer
    elif thought and total == prompt + answer + thought:
        answer += thought
    elif cached and total == prompt + cached + answer:
        prompt += cached
    return replace(counts, input_tokens=prompt, output_tokens=answer, total_tokens=total), left
