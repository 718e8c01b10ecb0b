"""Prints the events of a run while they come: as text (`Follower`), or as lines of JSON
(`print_event`)."""

from __future__ import annotations

import sys

import msgspec

from dragoman.cli.terminal import echo, echo_json, escape, to_one_line
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunFinished,
    event_to_json,
)
from dragoman.inner_runs import InnerRuns
from dragoman.message import Role, TextPart, ToolCallPart, ToolResultPart
from dragoman.pending_text import summarize

__all__ = ["Follower", "print_event"]

_WIDTH = 200
"""Most characters of arguments or a result."""


def print_event(offset: int, event: Event) -> None:
    """Prints an event as a line of JSON."""
    echo_json({"offset": offset, "event": msgspec.Raw(event_to_json(event))}, indent=0)
    sys.stdout.flush()


class Follower:
    """Shows a run as text: what its model says, and in brackets its tools. Runs in tools are left
    out."""

    def __init__(self) -> None:
        """Starts before the first event."""
        self._inner = InnerRuns()
        self._prompts: set[str] = set()
        """Ids of messages that are open and not the model's."""
        self._other_parts: set[tuple[str, int]] = set()
        """Parts that are open and no text."""
        self._streamed: set[tuple[str, int]] = set()
        """Parts that were shown piece by piece."""
        self._is_in_line = False

    def show(self, event: Event) -> None:
        """Shows the next event."""
        if self._inner.has(event):
            return
        if isinstance(event, MessageStarted) and event.role is not Role.MODEL:
            self._prompts.add(event.message_id)
        elif isinstance(event, PartStarted) and not isinstance(event.part, OpenText):
            self._other_parts.add((event.message_id, event.index))
        elif isinstance(event, PartDelta):
            self._show_delta(event)
        elif isinstance(event, PartFinished):
            self._show_part(event)
        elif isinstance(event, MessageFinished):
            self._end_line()
        elif isinstance(event, MessageDropped):
            self._show_line(f"[retracted: {to_one_line(event.reason)}]")
        elif isinstance(event, RunFinished):
            for interrupt in event.pending:
                echo(f"pending: {to_one_line(summarize(interrupt))}", err=True)

    def _show_delta(self, event: PartDelta) -> None:
        part_key = event.message_id, event.index
        if isinstance(event.delta, str) and part_key not in self._other_parts:
            is_first = event.message_id in self._prompts and part_key not in self._streamed
            sys.stdout.write("> " * is_first + escape(event.delta))
            sys.stdout.flush()
            self._is_in_line = True
            self._streamed.add(part_key)

    def _show_part(self, event: PartFinished) -> None:
        part, part_key = event.part, (event.message_id, event.index)
        if isinstance(part, ToolCallPart):
            self._show_line(f"[calls {to_one_line(part.name)} {_format_json(part.arguments)}]")
        elif isinstance(part, ToolResultPart):
            self._show_line(f"[{to_one_line(part.name)}: {_format_json(part.result)}]")
        elif isinstance(part, TextPart) and part_key not in self._streamed:
            mark = "> " if event.message_id in self._prompts else ""
            self._show_line(mark + part.text)

    def _show_line(self, line: str) -> None:
        self._end_line()
        echo(line)
        sys.stdout.flush()

    def _end_line(self) -> None:
        if self._is_in_line:
            echo()
        self._is_in_line = False


def _format_json(value: object) -> str:
    line = to_one_line(msgspec.json.encode(value, enc_hook=str).decode(errors="replace"))
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"
