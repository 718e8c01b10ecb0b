"""Draws the rows of a timeline as lines of text, for terminals and traces, with long texts cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import msgspec

from dragoman.json_bytes import Json
from dragoman.message import Usage
from dragoman.timeline import TimelineRow, name_model
from dragoman.visible_text import shorten, to_one_line

__all__ = ["dump_arguments", "draw_row", "draw_timeline", "dump_row", "format_json"]

_BAR = 20
"""Characters of the bar that shows when something happened."""
_LONGEST_NOTE = 400


def draw_timeline(rows: Sequence[TimelineRow]) -> list[str]:
    """Returns the lines that show a timeline."""
    lines: list[str] = []
    times = [time for row in rows for time in (row.began_at, row.ended_at) if time is not None]
    for row in rows:
        first, *more = draw_row(row)
        space, margin = "  " * row.depth, ""
        if times:
            margin = _draw_time(row, min(times), max(times))
        lines.append(margin + space + first)
        lines += [" " * len(margin) + space + line for line in more]
    return lines


def draw_row(row: TimelineRow) -> list[str]:
    """Returns the lines of a row without its times."""
    return _DRAWERS.get(row.category, _draw_note)(row)


def dump_arguments(row: TimelineRow) -> str:
    """Returns the arguments of a tool as JSON, or an empty text if they are unknown."""
    if row.arguments is None:
        return ""
    return format_json(row.arguments)


def dump_row(row: TimelineRow) -> Json:
    """Returns a row as JSON, without what only its provider reads."""
    usage = row.usage or Usage()
    is_tool = row.category == "tool"
    return {
        "category": row.category,
        "label": row.label,
        "depth": row.depth,
        "text": dump_arguments(row) if is_tool else row.text,
        "result": None if row.result is None else format_json(row.result.result),
        "is_error": row.is_bad,
        "model": name_model(row.origin),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": row.cost_text,
        "retracted": row.retracted,
        "began_at": row.began_at,
        "ended_at": row.ended_at,
    }


def format_json(value: object) -> str:
    """Returns a value as JSON in one line."""
    return msgspec.json.encode(value, enc_hook=str).decode(errors="replace")


def _draw_time(row: TimelineRow, first: datetime, last: datetime) -> str:
    """Returns the seconds from the start of the run to that of a row, how many it took, and both as a
    bar."""
    if row.began_at is None:
        return " " * (_BAR + 19)
    start = (row.began_at - first).total_seconds()
    length = max(0.0, ((row.ended_at or last) - row.began_at).total_seconds())
    scale = _BAR / ((last - first).total_seconds() or 1.0)
    # At least one sign, and none beyond the end.
    column = min(int(start * scale), _BAR - 1)
    bar = " " * column + "=" * min(max(1, round(length * scale)), _BAR - column)
    took = "" if row.began_at == row.ended_at else f"{length:.1f}s"
    return f"{start:7.1f}s {took:>6} |{bar:{_BAR}}| "


def _draw_user(row: TimelineRow) -> list[str]:
    return [f"> {shorten(row.text)}"]


def _draw_model(row: TimelineRow) -> list[str]:
    """Returns a line with model, tokens and cost, and one with the text."""
    usage = row.usage or Usage()
    facts = [row.label, name_model(row.origin) or ""]
    if usage.input_tokens is not None or usage.output_tokens is not None:
        facts.append(f"{usage.input_tokens or 0} → {usage.output_tokens or 0} tokens")
    if row.cost_text is not None:
        facts.append(f"${row.cost_text}")
    lines = ["  ".join(to_one_line(fact) for fact in facts if fact)]
    if row.text:
        lines.append(f"  {shorten(row.text)}")
    if row.retracted is not None:
        lines.append(f"  retracted: {shorten(row.retracted)}")
    return lines


def _draw_tool(row: TimelineRow) -> list[str]:
    line = f"  {to_one_line(row.label)} {shorten(dump_arguments(row))}"
    if row.result is None:
        return [line]
    mark = "error" if row.result.is_error else "→"
    return [line, f"    {mark} {shorten(format_json(row.result.result))}"]


def _draw_note(row: TimelineRow) -> list[str]:
    return [f"{row.category}: {shorten(row.label, _LONGEST_NOTE)}"]


_DRAWERS: Mapping[str, Callable[[TimelineRow], list[str]]] = {
    "user": _draw_user,
    "model": _draw_model,
    "tool": _draw_tool,
}
"""Category → what draws a row of it."""
