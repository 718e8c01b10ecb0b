"""Tokens and the reason to stop, both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from dragoman.codec.json_values import if_object, merge_wire_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Usage
from dragoman.wires.chat.record import DialectRecord

__all__ = ["COUNTS", "FINISH", "WORDS", "dump_finish", "dump_usage", "load_finish", "load_usage"]

Path = tuple[str, ...]
COUNTS: Mapping[str, Sequence[Path]] = MappingProxyType(
    {
        "input_tokens": (("prompt_tokens",),),
        "output_tokens": (("completion_tokens",),),
        "total_tokens": (("total_tokens",),),
        "cache_read_tokens": (("prompt_tokens_details", "cached_tokens"),),
        "reasoning_tokens": (("completion_tokens_details", "reasoning_tokens"),),
    }
)
"""Neutral count → where it may stand; it is written to the first."""
FINISH: Mapping[str, FinishReason] = MappingProxyType(
    {
        "stop": FinishReason.stop,
        "length": FinishReason.length,
        "tool_calls": FinishReason.tool_calls,
        "content_filter": FinishReason.content_filter,
        "error": FinishReason.error,
    }
)
"""Word → neutral reason."""
WORDS: Mapping[FinishReason, Sequence[str]] = MappingProxyType(
    {
        FinishReason.stop: ("stop",),
        FinishReason.length: ("length",),
        FinishReason.tool_calls: ("tool_calls",),
        FinishReason.content_filter: ("content_filter",),
        FinishReason.recitation: ("content_filter",),
    }
)
"""Neutral reason → the words that may stand for it; the first is the usual one. What is missing is
a `stop`."""


def load_usage(chat: DialectRecord, fields: JsonMap) -> tuple[Usage | None, Json]:
    """What a vendor says of tokens → the neutral counts, and the rest that says anything (cost,
    times, …)."""
    numbers = _numbers(fields)
    if not numbers:
        return None, _drop_counted(fields, set())
    # so that the first wins
    ways = [(name, path) for name, paths in chat.counts.items() for path in reversed(paths)]
    counts = {name: numbers[path] for name, path in ways if path in numbers}
    return (Usage(**counts) if counts else None), _drop_counted(fields, {path for _, path in ways})


def dump_usage(chat: DialectRecord, usage: Usage, beside: Any = None) -> Json:
    """The neutral counts → `usage`. `beside`: what the vendor said beside them."""
    prompt, answer = usage.input_tokens or 0, usage.output_tokens or 0
    total = prompt + answer if usage.total_tokens is None else usage.total_tokens
    totals = {"input_tokens": prompt, "output_tokens": answer, "total_tokens": total}
    body: Json = {}
    for name, paths in chat.counts.items():
        if (number := totals.get(name, getattr(usage, name))) is not None:
            *above, field = paths[0]
            inner = body.setdefault(above[0], {}) if above else body
            inner[field] = number
    return merge_wire_fields(body, if_object(beside))


def load_finish(
    chat: DialectRecord, vendor_reason: str | None, *, calls: bool, refused: bool
) -> FinishReason:
    """The vendor's word → the neutral reason. A refusal, and calls that wait for an answer, count
    for more."""
    reason = chat.finish.get(vendor_reason or "", FinishReason.unspecified)
    if refused and reason in (
        FinishReason.stop,
        FinishReason.unspecified,
        FinishReason.content_filter,
    ):
        return FinishReason.refusal
    if calls and (reason is FinishReason.stop or not vendor_reason):
        return FinishReason.tool_calls
    return reason


def dump_finish(
    chat: DialectRecord, reason: FinishReason | None, vendor_reason: object = None
) -> str:
    """The neutral reason → one of the format's words. `vendor_reason`: the vendor's own, which is
    kept where it may stand for it."""
    names = chat.words.get(reason or FinishReason.stop) or chat.words[FinishReason.stop]
    return vendor_reason if isinstance(vendor_reason, str) and vendor_reason in names else names[0]


def _numbers(fields: JsonMap, above: Path = ()) -> dict[Path, int]:
    """Every number, by where it stands."""
    numbers: dict[Path, int] = {}
    for name, value in fields.items():
        if type(value) is int:
            numbers[*above, name] = value
        else:
            numbers |= _numbers(if_object(value), (*above, name))
    return numbers


def _drop_counted(fields: JsonMap, neutral: set[Path], above: Path = ()) -> Json:
    """What stands beside the neutral counts, without what is zero or empty."""
    unread_fields: Json = {}
    for name, value in fields.items():
        if (*above, name) in neutral:
            continue
        if (
            value_left := _drop_counted(inner, neutral, (*above, name))
            if (inner := if_object(value))
            else value
        ):
            unread_fields[name] = value_left
    return unread_fields
