"""Reads and writes token counts and finish reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
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
"""Neutral count → the paths where it may stand in `usage`. It is written to the first."""
FINISH: Mapping[str, FinishReason] = MappingProxyType(
    {
        "stop": FinishReason.stop,
        "length": FinishReason.length,
        "tool_calls": FinishReason.tool_calls,
        "content_filter": FinishReason.content_filter,
        "error": FinishReason.error,
    }
)
"""A vendor's finish reason → the neutral one."""
WORDS: Mapping[FinishReason, Sequence[str]] = MappingProxyType(
    {
        FinishReason.stop: ("stop",),
        FinishReason.length: ("length",),
        FinishReason.tool_calls: ("tool_calls",),
        FinishReason.content_filter: ("content_filter",),
        FinishReason.recitation: ("content_filter",),
    }
)
"""Neutral reason → the vendor's words for it, the usual one first. A reason that is missing is
written as `stop`."""


def load_usage(chat: DialectRecord, fields: JsonMap) -> tuple[Usage | None, Json]:
    """Reads token counts. Returns the neutral counts, and what else the vendor says (cost, times, …)
    without zeros."""
    numbers = _collect_numbers(fields)
    if not numbers:
        return None, _drop_counted(fields, set())
    paths, counted = _list_paths(chat)
    counts = {name: numbers[path] for name, path in paths if path in numbers}
    usage = Usage(**counts) if counts else None
    return usage, _drop_counted(fields, counted)


@lru_cache
def _list_paths(chat: DialectRecord) -> tuple[list[tuple[str, Path]], set[Path]]:
    """Returns the paths of a dialect's neutral counts by their names, and all of them."""
    # Reversed, so that of several paths for one count the first wins.
    paths = [(name, path) for name, paths in chat.counts.items() for path in reversed(paths)]
    return paths, {path for _, path in paths}


def dump_usage(chat: DialectRecord, usage: Usage, beside: Any = None) -> Json:
    """Writes `usage`. `beside`: what the vendor said beside the neutral counts."""
    prompt, answer = usage.input_tokens or 0, usage.output_tokens or 0
    total = usage.total_tokens
    if total is None:
        total = prompt + answer
    totals = {"input_tokens": prompt, "output_tokens": answer, "total_tokens": total}
    body: Json = {}
    for name, paths in chat.counts.items():
        number = totals.get(name, getattr(usage, name))
        if number is not None:
            *above, field = paths[0]
            inner = body.setdefault(above[0], {}) if above else body
            inner[field] = number
    return merge_wire_fields(body, if_object(beside))


def load_finish(
    chat: DialectRecord, vendor_reason: str | None, *, calls: bool, refused: bool
) -> FinishReason:
    """Returns the neutral finish reason of a Chat answer, which stands beside its usage. A refusal,
    and calls that wait for an answer, come before the vendor's word."""
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
    """Returns Chat's word for a finish reason, which stands beside the usage. `vendor_reason`: the
    word that the vendor used, which is kept if it fits the reason."""
    names = chat.words.get(reason or FinishReason.stop) or chat.words[FinishReason.stop]
    if isinstance(vendor_reason, str) and vendor_reason in names:
        return vendor_reason
    return names[0]


def _collect_numbers(fields: JsonMap, above: Path = ()) -> dict[Path, int]:
    """Returns every number of a Chat answer's usage, by its path."""
    numbers: dict[Path, int] = {}
    for name, value in fields.items():
        if type(value) is int:
            numbers[*above, name] = value
        else:
            numbers |= _collect_numbers(if_object(value), (*above, name))
    return numbers


def _drop_counted(fields: JsonMap, counted: set[Path], above: Path = ()) -> Json:
    """Returns what stands in the usage of Chat Completions beside the neutral counts, without what
    is zero or empty."""
    fields_left: Json = {}
    for name, value in fields.items():
        path = (*above, name)
        if path in counted:
            continue
        if inner := if_object(value):
            value = _drop_counted(inner, counted, path)
        if value:
            fields_left[name] = value
    return fields_left
