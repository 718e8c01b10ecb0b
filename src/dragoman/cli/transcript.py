"""A conversation or a run as one HTML file, which needs no script and nothing from elsewhere to be
read.

Thinking, arguments and results are folded (`details`). All text is escaped, and the page's policy
lets nothing run, so that what a model or a tool wrote stays text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from dragoman.content_figures import draw_content
from dragoman.cost import find_call_cost
from dragoman.figure import DrawingLimits, draw_figures
from dragoman.message import Message, Role, ThinkingPart, ToolResultPart, Usage
from dragoman.timeline import TimelineRow, name_model
from dragoman.timeline_drawing import dump_arguments
from dragoman.visible_text import STEERING

__all__ = ["write_run", "write_thread"]

_WHOLE = DrawingLimits(None, None, None, None, None)
"""A file has all of a conversation."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
:root { color-scheme: light dark; --ground: #fff; --soft: #f2f2ee; --line: #dedfd8; --ink: #1b1c1a; --mute: #5d5e57; --accent: #0b6454; --bad: #a32020 }
@media (prefers-color-scheme: dark) { :root { --ground: #171816; --soft: #282926; --line: #3a3b37; --ink: #ecebe6; --mute: #a9a9a0; --accent: #6fd0b9; --bad: #ff9d96 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.6 system-ui, sans-serif }
main { max-width: 760px; margin: 0 auto; padding: 40px 20px 80px }
h1 { font-size: 1.5rem; margin: 0 }
.mute, footer { color: var(--mute); font-size: 13px }
.user { margin: 28px 0 14px; padding: 9px 15px; border-radius: 14px; background: var(--soft) }
.text { margin: 10px 0; white-space: pre-wrap; overflow-wrap: anywhere }
details { margin: 8px 0; padding: 6px 12px; border: 1px solid var(--line); border-radius: 10px; font-size: 14px }
summary { cursor: pointer; color: var(--mute); overflow-wrap: anywhere }
summary b { font-family: ui-monospace, monospace; color: var(--accent) }
.bad, .bad summary b { color: var(--bad) }
pre { overflow: auto; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 13px }
img { max-width: 100%; border-radius: 8px }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin: 20px 0 }
th, td { text-align: left; padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; overflow-wrap: anywhere }
th { color: var(--mute); font-weight: 560 }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
"""


def write_thread(messages: Sequence[Message], title: str) -> str:
    """Returns a page with the messages of a conversation."""
    counts = [message.usage for message in messages if message.usage is not None]
    tokens = sum(usage.total_tokens or 0 for usage in counts)
    facts = f"{len(messages)} messages" + (f", {tokens:,} tokens" if tokens else "")
    return _write_page(title, facts, _write_messages(messages))


def write_run(rows: Sequence[TimelineRow], messages: Sequence[Message], title: str) -> str:
    """Returns a page with the timeline of a run, and what was said in it."""
    began = next((row.began_at for row in rows if row.began_at is not None), None)
    lines: list[str] = []
    for row in rows:
        begin, took = "", ""
        if began is not None and row.began_at is not None:
            begin = f"{(row.began_at - began).total_seconds():.2f} s"
            if row.ended_at is not None:
                took = f"{(row.ended_at - row.began_at).total_seconds():.2f} s"
        usage = row.usage or Usage()
        tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
        cells = (begin, took, f"{tokens:,}" if tokens else "", row.cost_text or "")
        text = dump_arguments(row) if row.category == "tool" else ""
        retracted = "" if row.retracted is None else f" (taken back: {row.retracted})"
        bad = ' class="bad"' if row.is_bad else ""
        name = f"{'&ensp;' * 2 * row.depth}<b>{_safe(row.label)}</b> {_safe(name_model(row.origin) or '')}"
        described = f"{_safe(text)}{_safe(retracted)}"
        numbers = "".join(f'<td class="number">{_safe(cell)}</td>' for cell in cells)
        lines.append(f"<tr{bad}><td>{name} {described}</td>{numbers}</tr>")
    head = "".join(
        f'<th class="number">{name}</th>' for name in ("at", "took", "tokens", "US dollars")
    )
    table = (
        f"<table><thead><tr><th>what</th>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )
    return _write_page(title, f"{len(rows)} steps", table + _write_messages(messages))


def _write_page(title: str, facts: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width"><meta name="referrer" content="no-referrer">'
        f"<title>{_safe(title)}</title><style>{_STYLE}</style></head>\n"
        f'<body><main><h1>{_safe(title)}</h1><p class="mute">{_safe(facts)}</p>\n{body}\n</main></body></html>\n'
    )


def _write_messages(messages: Iterable[Message]) -> str:
    return "\n".join(filter(None, map(_write_message, messages)))


def _write_message(message: Message) -> str:
    parts = draw_figures(draw_content(message.content), _WHOLE)
    if not parts:
        return ""
    if message.role is not Role.MODEL:
        is_said = any(not isinstance(part, ToolResultPart) for part in message.content)
        return f'<section class="{"user" if is_said else "results"}">{parts}</section>'
    return f"<section>{parts}<footer>{_safe(', '.join(_list_facts(message)))}</footer></section>"


def _list_facts(message: Message) -> list[str]:
    """Returns who made a model's message, with how many tokens and for how much."""
    facts: list[str] = []
    origin, usage = message.origin, message.usage
    if origin is not None:
        facts.append(f"{origin.provider}:{origin.model}")
    if usage is not None:
        facts.append(f"{usage.input_tokens or 0:,} tokens in, {usage.output_tokens or 0:,} out")
    if origin is not None and usage is not None and (cost := _find_cost(message)):
        facts.append(f"{cost} US dollars")
    if any(isinstance(part, ThinkingPart) and part.native for part in message.content):
        facts.append("thinking signed")
    if message.finish_reason is not None and message.finish_reason.value not in (
        "stop",
        "tool_calls",
    ):
        facts.append(message.finish_reason.value)
    return facts


def _find_cost(message: Message) -> str:
    cost = find_call_cost(message.origin, message.usage, message.created_at, message.native)
    return "" if cost is None else f"{cost:f}"


def _safe(text: str) -> str:
    """Returns a text for HTML. Signs that turn the direction of text are shown as escapes."""
    return escape(text.translate(STEERING))
