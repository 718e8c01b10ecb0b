"""Tokens and the reason to stop, where they are told otherwise than in the family."""

from __future__ import annotations

from dragoman.message import FinishReason
from dragoman.wires.chat import usage

__all__ = ["COUNTS", "FINISH", "WORDS"]

COUNTS = {
    **usage.COUNTS,
    "cache_read_tokens": (*usage.COUNTS["cache_read_tokens"], ("num_cached_tokens",)),
}
FINISH = {
    "stop": FinishReason.stop,
    "length": FinishReason.length,
    "model_length": FinishReason.length,
    "tool_calls": FinishReason.tool_calls,
    "error": FinishReason.error,
}
WORDS = {
    FinishReason.stop: ("stop",),
    FinishReason.length: ("length", "model_length"),
    FinishReason.tool_calls: ("tool_calls",),
    FinishReason.error: ("error",),
    FinishReason.cancelled: ("error",),
}
