"""What tests of lists are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from dragoman import (
    MarkPart,
    Message,
    MessageList,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.message import Content

__all__ = [
    "START",
    "STEP",
    "at",
    "call",
    "fresh",
    "model",
    "outline",
    "result",
    "results",
    "texts",
    "ticking",
    "user",
]

START = datetime(2026, 1, 1, tzinfo=UTC)
STEP = MarkPart("step-start")


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def ticking(step: float = 1.0) -> Callable[[], datetime]:
    numbers = count()
    return lambda: at(next(numbers) * step)


def fresh(**how: Any) -> MessageList:
    """A list with ids 1, 2, 3 … and a clock that stands still."""
    numbers = count(1)
    return MessageList(**{"id_factory": lambda: str(next(numbers)), "clock": lambda: START, **how})


def model(*content: Content | str, id: str | None = None, **fields: Any) -> Message:
    return Message.model(*content).replace(id=id, **fields)


def user(*content: Content | str, id: str | None = None, **fields: Any) -> Message:
    return Message.user(*content).replace(id=id, **fields)


def call(
    id: str = "c1", name: str = "f", arguments: dict[str, Any] | None = None, **fields: Any
) -> ToolCallPart:
    return ToolCallPart(id, name, {"a": 1} if arguments is None else arguments, **fields)


def result(id: str = "c1", value: Any = "r", name: str = "f", **fields: Any) -> ToolResultPart:
    return ToolResultPart(id, name, value, **fields)


def results(*pieces: ToolResultPart, id: str | None = None, **fields: Any) -> Message:
    return Message(Role.USER, pieces, id=id, **fields)


def texts(messages: Iterable[Message]) -> list[str]:
    return [message.text for message in messages]


def outline(messages: Iterable[Message]) -> list[str]:
    """Messages in words: `model: text, call c1`."""
    return [f"{message.role}: {', '.join(map(_word, message.content))}" for message in messages]


def _word(piece: Content) -> str:
    match piece:
        case TextPart():
            return piece.text
        case ThinkingPart():
            return f"({piece.text})"
        case ToolCallPart():
            return f"call {piece.id}"
        case ToolResultPart():
            return f"{'denied' if piece.denied else 'error' if piece.is_error else 'result'} {piece.id}={piece.result}"
        case MarkPart():
            return f"<{piece.kind}>"
        case _:
            return type(piece).__name__
