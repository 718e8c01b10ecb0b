"""The table of `bench/goals.py`: its jobs, and how it is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["BY_HAND", "OURS", "ROWS", "TABLE", "Row", "table"]

TABLE = "goals"
"""Its title in `numbers.json`."""
BY_HAND, OURS = "by hand", "dragoman"


class Row(NamedTuple):
    """A job of the table."""

    title: str
    unit: str
    larger_is_better: bool = False


ROWS = {
    "memory turn": Row("a turn of a memory on SQLite, 1,000 messages: newest 10, save 2", "ms"),
    "memory run": Row("a run of an agent with that memory", "ms"),
    "run": Row("the same without memory", "ms"),
    "short": Row("a short answer (by hand and dragoman stream it)", "ms"),
    "tool round": Row("a tool round", "ms"),
    "chunk openai_chat": Row("a chunk over HTTP: Chat", "µs"),
    "chunk anthropic": Row("… Anthropic", "µs"),
    "chunk openai_responses": Row("… Responses", "µs"),
    "chunk google": Row("… Gemini", "µs"),
    "dump openai_chat": Row("1,000 messages → Chat", "ms"),
    "dump openai_responses": Row("… → Responses", "ms"),
    "dump google": Row("… → Gemini", "ms"),
    "convert 1": Row("`dragoman convert`, Chat → Anthropic, one process", "MB/s", True),
    "convert 2": Row("… two processes", "MB/s", True),
    "gateway short": Row("gateway, a short request", "ms"),
    "gateway paced": Row("gateway, 100 streams of 50 events a second, an event", "µs"),
    "ag_ui paced": Row("AG-UI server, the same load, an event", "µs"),
    "ui in": Row("MessageList: 1,000 messages as UI messages, in", "ms"),
    "ui out": Row("… out", "ms"),
    "langchain load": Row("1,000 messages of LangChain, load", "ms"),
    "langchain dump": Row("… dump", "ms"),
    "ag_ui load": Row("1,000 messages of AG-UI, load", "ms"),
    "ag_ui dump": Row("… dump", "ms"),
    "streams kB": Row("1,000 slow streams: memory of one", "kB"),
    "streams lag": Row("… worst lag of the event loop", "ms"),
    "streams CPU": Row("… a piece", "µs"),
}
"""Row → what it says."""


def table(numbers: dict[str, dict[str, float]]) -> str:
    """Returns the table, in Markdown, of what `numbers.json` holds."""
    lines = [
        "| job | | by hand | dragoman | ÷ by hand | best peer | peer ÷ dragoman |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in ROWS.items():
        if name in numbers:
            lines.append(f"| {row.title} | {row.unit} | {' | '.join(_cells(row, numbers[name]))} |")
    return "\n".join(lines)


def _cells(row: Row, numbers: dict[str, float]) -> Iterator[str]:
    ours, floor = numbers[OURS], numbers.get(BY_HAND)
    yield _short(floor) if floor else "–"
    yield _short(ours)
    yield f"**{_times(row, ours, floor)}**" if floor else "–"
    best = max if row.larger_is_better else min
    peers = {name: each for name, each in numbers.items() if name not in (BY_HAND, OURS)}
    if not peers:
        yield from ("–", "–")
        return
    peer = best(peers, key=peers.__getitem__)
    yield f"{peer} {_short(peers[peer])}"
    yield _times(row, peers[peer], ours)


def _short(amount: float) -> str:
    """Returns a number with two or three digits that count."""
    return f"{amount:.3g}" if amount < 100 else f"{amount:.0f}"


def _times(row: Row, larger: float, smaller: float) -> str:
    """Returns how many times as much the first costs."""
    return f"{smaller / larger if row.larger_is_better else larger / smaller:.2g}"
