"""Draws the content of messages as figures. What only a provider reads is not drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from dragoman.content import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.figure import Figure
from dragoman.visible_text import shorten

__all__ = ["draw_content"]

_LONGEST_URL = 300


def draw_content(content: Iterable[Content]) -> tuple[Figure, ...]:
    """Returns figures of the pieces of a message."""
    figures = [
        drawer(piece) for piece in content if (drawer := _DRAWERS.get(type(piece))) is not None
    ]
    return tuple(figure for figure in figures if figure is not None)


def _draw_text(part: TextPart) -> Figure:
    return Figure("text", text=part.text)


def _draw_thinking(part: ThinkingPart) -> Figure | None:
    return Figure("fold", "Thought", part.text) if part.text else None


def _draw_call(part: ToolCallPart) -> Figure:
    return _fold(f"{part.name} called with", part.raw or part.arguments)


def _draw_result(part: ToolResultPart) -> Figure:
    if not part.is_content:
        return _fold(_name_result(part), part.result, is_bad=part.is_error)
    return Figure(
        "fold", _name_result(part), is_bad=part.is_error, figures=draw_content(part.result)
    )


def _name_result(part: ToolResultPart) -> str:
    return f"{part.name} {'failed' if part.is_error else 'gave'}"


def _draw_data(part: DataPart) -> Figure:
    name = part.name or part.mime_type
    return Figure("image", name, image=part.data, mime_type=part.mime_type)


def _draw_link(part: LinkPart) -> Figure:
    # As text: whoever wrote the address could otherwise have a reader follow it.
    return Figure("note", text=shorten(part.url, _LONGEST_URL))


def _draw_file(part: FilePart) -> Figure:
    return Figure("note", text=part.name or part.id)


def _fold(title: str, value: object, *, is_bad: bool = False) -> Figure:
    """Returns a value behind a line that opens it."""
    text = value if isinstance(value, str) else _format_json(value)
    return Figure("fold", title, text, is_bad)


def _format_json(value: object) -> str:
    """Returns a value as indented JSON, or as Python writes it if JSON cannot hold it."""
    try:
        return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()
    except (TypeError, ValueError, RecursionError):
        return repr(value)


_DRAWERS: Mapping[type, Callable[[Any], Figure | None]] = {
    TextPart: _draw_text,
    ThinkingPart: _draw_thinking,
    ToolCallPart: _draw_call,
    ToolResultPart: _draw_result,
    DataPart: _draw_data,
    LinkPart: _draw_link,
    FilePart: _draw_file,
}
"""Type of a piece → what draws it; others have nothing to read."""
