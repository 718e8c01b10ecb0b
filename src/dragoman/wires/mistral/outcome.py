"""Tokens and the reason to stop, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object, merged, rest
from dragoman.message import FinishReason, Usage

__all__ = ["AT_LIMIT", "dump_finish", "dump_usage", "load_finish", "load_usage"]

AT_LIMIT = ("length", "model_length")
"""The reasons by which a token limit cut the answer: the request's, or the model's."""
_FINISH = {
    "stop": FinishReason.stop,
    "length": FinishReason.length,
    "model_length": FinishReason.length,
    "tool_calls": FinishReason.tool_calls,
    "error": FinishReason.error,
}
_SAID = {
    FinishReason.length: "length",
    FinishReason.tool_calls: "tool_calls",
    FinishReason.error: "error",
    FinishReason.cancelled: "error",
}
_READ = ("prompt_tokens", "completion_tokens", "total_tokens", "num_cached_tokens")


def load_usage(told: Mapping[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
    """What the provider tells of tokens → the neutral counts, and the rest that says anything (seconds of audio, tier, …)."""
    prompt, answer = if_object(told.get("prompt_tokens_details")), if_object(told.get("completion_tokens_details"))
    cached = _count(prompt, "cached_tokens")
    usage = Usage(
        input_tokens=_count(told, "prompt_tokens"),
        output_tokens=_count(told, "completion_tokens"),
        total_tokens=_count(told, "total_tokens"),
        cache_read_tokens=_count(told, "num_cached_tokens") if cached is None else cached,
        reasoning_tokens=_count(answer, "reasoning_tokens"),
    )
    left = {
        **rest(told, *_READ),
        "prompt_tokens_details": rest(prompt, "cached_tokens"),
        "completion_tokens_details": rest(answer, "reasoning_tokens"),
    }
    return (usage if usage != Usage() else None), {name: value for name, value in left.items() if value}


def dump_usage(usage: Usage | None, beside: Any) -> dict[str, Any]:
    """The neutral counts → `usage`; empty where there are none. `beside`: what the provider told beside them."""
    if usage is None:
        return {}
    prompt, answer = usage.input_tokens or 0, usage.output_tokens or 0
    total = prompt + answer if usage.total_tokens is None else usage.total_tokens
    body: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": total}
    if usage.cache_read_tokens is not None:
        body["prompt_tokens_details"] = {"cached_tokens": usage.cache_read_tokens}
    if usage.reasoning_tokens is not None:
        body["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return merged(body, if_object(beside))


def load_finish(said: str | None, *, calls: bool) -> FinishReason:
    """The provider's word → the neutral reason. Calls that wait for an answer count for more than a stop."""
    reason = _FINISH.get(said or "", FinishReason.unspecified)
    return FinishReason.tool_calls if calls and (reason is FinishReason.stop or not said) else reason


def dump_finish(reason: FinishReason | None, said: object = None) -> str:
    """The neutral reason → one of this format's words. `said`: the provider's own, where it means the same."""
    if isinstance(said, str) and said in _FINISH and _FINISH[said] is reason:
        return said
    return _SAID.get(reason or FinishReason.stop, "stop")


def _count(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    return value if type(value) is int else None
