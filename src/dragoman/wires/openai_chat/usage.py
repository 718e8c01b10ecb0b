"""Tokens and the reason to stop, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object, merged
from dragoman.message import FinishReason, Usage

__all__ = ["dump_finish", "dump_usage", "load_finish", "load_usage"]

_CACHE_READ = (
    ("prompt_tokens_details", "cached_tokens"),
    ("prompt_cache_hit_tokens",),
    ("cache_read_input_tokens",),
    ("cached_tokens",),
)
_CACHE_WRITE = (("prompt_tokens_details", "cache_write_tokens"), ("cache_creation_input_tokens",))
_REASONING = (("completion_tokens_details", "reasoning_tokens"), ("reasoning_tokens",))
_PROMPT, _ANSWER, _TOTAL = ("prompt_tokens",), ("completion_tokens",), ("total_tokens",)
_NEUTRAL = frozenset({_PROMPT, _ANSWER, _TOTAL, *_CACHE_READ, *_CACHE_WRITE, *_REASONING})
_FINISH = {
    "stop": FinishReason.stop,
    "eos": FinishReason.stop,
    "end_turn": FinishReason.stop,
    "length": FinishReason.length,
    "tool_calls": FinishReason.tool_calls,
    "function_call": FinishReason.tool_calls,
    "content_filter": FinishReason.content_filter,
    "error": FinishReason.error,
}
_SAID = {
    FinishReason.length: "length",
    FinishReason.tool_calls: "tool_calls",
    FinishReason.content_filter: "content_filter",
    FinishReason.recitation: "content_filter",
}


def load_usage(told: Mapping[str, Any]) -> tuple[Usage | None, dict[str, Any]]:
    """What a vendor tells of tokens → the neutral counts, and the rest that says anything (cost, times, …).

    Some count thinking, or the cache, beside the tokens of answer and prompt instead of within them; where the total
    shows it, they are counted in.
    """
    counts = _counts(told)
    prompt, answer, total = counts.get(_PROMPT), counts.get(_ANSWER), counts.get(_TOTAL)
    read, written, thought = _first(counts, _CACHE_READ), _first(counts, _CACHE_WRITE), _first(counts, _REASONING)
    if prompt is not None and answer is not None and total is not None:
        cached = (read or 0) + (written or 0)
        if thought and total == prompt + answer + thought:
            answer += thought
        elif cached and total == prompt + cached + answer:
            prompt += cached
    elif prompt is not None and answer is not None:
        total = prompt + answer
    usage = Usage(
        input_tokens=prompt,
        output_tokens=answer,
        total_tokens=total,
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=thought,
    )
    return (usage if usage != Usage() else None), _left(told, ())


def dump_usage(usage: Usage, beside: Any = None) -> dict[str, Any]:
    """The neutral counts → `usage`. `beside`: what the vendor told beside them."""
    prompt, answer = usage.input_tokens or 0, usage.output_tokens or 0
    total = prompt + answer if usage.total_tokens is None else usage.total_tokens
    body: dict[str, Any] = {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": total}
    details = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_write_tokens}
    if told := {name: number for name, number in details.items() if number is not None}:
        body["prompt_tokens_details"] = told
    if usage.reasoning_tokens is not None:
        body["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return merged(body, if_object(beside))


def load_finish(said: str | None, *, calls: bool, refused: bool) -> FinishReason:
    """The vendor's word → the neutral reason. A refusal, and calls that wait for an answer, count for more."""
    reason = _FINISH.get(said or "", FinishReason.unspecified)
    if refused and reason in (FinishReason.stop, FinishReason.unspecified, FinishReason.content_filter):
        return FinishReason.refusal
    if calls and (reason is FinishReason.stop or not said):
        return FinishReason.tool_calls
    return reason


def dump_finish(reason: FinishReason | None, said: object = None) -> str:
    """The neutral reason → one of this format's words. `said`: the vendor's own, for reasons that have none here."""
    if reason in (FinishReason.refusal, FinishReason.unspecified) and said in _SAID.values():
        return str(said)
    if reason is FinishReason.tool_calls and said == "function_call":
        return "function_call"
    return _SAID.get(reason or FinishReason.stop, "stop")


_Path = tuple[str, ...]


def _counts(told: Mapping[str, Any], above: _Path = ()) -> dict[_Path, int]:
    """Every number that is told, by where it stands."""
    counts: dict[_Path, int] = {}
    for name, value in told.items():
        if type(value) is int:
            counts[*above, name] = value
        else:
            counts |= _counts(if_object(value), (*above, name))
    return counts


def _first(counts: Mapping[_Path, int], paths: tuple[_Path, ...]) -> int | None:
    for path in paths:
        if path in counts:
            return counts[path]
    return None


def _left(told: Mapping[str, Any], above: _Path) -> dict[str, Any]:
    """What is told beside the neutral counts, without what is zero or empty."""
    left: dict[str, Any] = {}
    for name, value in told.items():
        if (*above, name) in _NEUTRAL:
            continue
        if kept := _left(inner, (*above, name)) if (inner := if_object(value)) else value:
            left[name] = kept
    return left
