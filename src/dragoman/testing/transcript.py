"""`format_transcript` turns messages into lines that a test can compare; `assert_calls` compares
the tool calls, and `collect_events` returns the events of a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec

from dragoman.arguments import expect_each
from dragoman.content import ResultPart
from dragoman.event import Event
from dragoman.fold import fold
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.request import ModelRequest
from dragoman.result import ChatResult
from dragoman.run import Run

__all__ = ["Source", "assert_calls", "collect_events", "list_messages", "format_transcript"]

Source: TypeAlias = ChatResult[Any] | ModelRequest | Message | Iterable[Message] | Iterable[Event]
"""Anything with messages: the result of a run, a request, a history, or events."""


def list_messages(source: Source) -> list[Message]:
    """Returns the messages of a source, for a transcript."""
    if isinstance(source, Message):
        return [source]
    if isinstance(source, ChatResult | ModelRequest):
        return list(source.messages)
    items = list(source)
    messages = [item for item in items if isinstance(item, Message)]
    return messages or fold([item for item in items if not isinstance(item, Message)])


def format_transcript(source: Source) -> list[str]:
    """Returns one line for each part of the messages, without ids, times and token counts, to
    compare with a list in a test.

    Examples: `user: How is it in Oslo?`, `model thinks: …`, `model calls get_weather
    {"city":"Oslo"}`, `get_weather gives "rain"`, `model: It rains.`
    """
    names: dict[str, str] = {}
    return [
        line
        for message in list_messages(source)
        for piece in message.content
        for line in _describe_part(message, piece, names)
    ]


def _describe_part(message: Message, piece: Content, names: dict[str, str]) -> Iterator[str]:
    """Yields the transcript's line of a part. `names`: the tool of each call id, for results of
    formats that give no name."""
    who = message.role.value
    match piece:
        case TextPart():
            yield f"{who}: {piece.text}"
        case ThinkingPart():
            yield f"{who} thinks: {piece.text}"
        case ToolCallPart():
            names[piece.id] = piece.name
            arguments = piece.raw
            if piece.state == "complete":
                arguments = _json(piece.arguments)
            yield f"{who} calls {piece.name} {arguments}"
        case ToolResultPart():
            if piece.is_content:
                result = _describe_content(piece.result)
            else:
                result = _json(piece.result)
            verb = "fails" if piece.is_error else "gives"
            yield f"{piece.name or names.get(piece.id, '')} {verb} {result}"
        case DataPart() | LinkPart() | FilePart():
            yield f"{who}: {_describe_media(piece)}"
        case _:
            yield f"{who}: [{piece.kind}]"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _describe_content(parts: Sequence[ResultPart]) -> str:
    """Returns for a transcript the parts of a tool result in one line."""
    texts: list[str] = []
    for part in parts:
        texts.append(part.text if isinstance(part, TextPart) else _describe_media(part))
    return " ".join(texts)


def _describe_media(part: DataPart | LinkPart | FilePart) -> str:
    """Returns for a transcript a file in words: its type, and its name or address, but not its
    bytes."""
    if isinstance(part, LinkPart):
        where = part.url
    elif isinstance(part, FilePart):
        where = part.id
    else:
        where = f"{len(part.data)} bytes"
    return f"[{part.mime_type or 'file'} {part.name or where}]"


async def collect_events(run: Run[Any]) -> list[Event]:
    """Returns for a transcript all events of a run that has not started: `await
    collect_events(agent.run("Hi"))`. A failed run ends with a `RunError`."""
    async with run:
        return [event async for event in run]


def assert_calls(source: Source, *calls: ToolCallPart, any_order: bool = False) -> None:
    """Asserts the model's tool calls in a transcript by name and arguments: `assert_calls(result,
    call("get_weather", city="Oslo"))`.

    Raises:
        AssertionError: the calls differ, or are in another order without `any_order`.
    """
    __tracebackhide__ = True
    calls_made = [
        _describe_call(tool_call)
        for message in list_messages(source)
        for tool_call in message.tool_calls
    ]
    wanted = [_describe_call(tool_call) for tool_call in expect_each("calls", calls, ToolCallPart)]
    if any_order:
        calls_made, wanted = sorted(calls_made), sorted(wanted)
    if calls_made != wanted:
        raise AssertionError(
            f"the calls are\n  {_join_calls(calls_made)}\nand must be\n  {_join_calls(wanted)}"
        )


def _describe_call(call: ToolCallPart) -> str:
    """Returns for a transcript a call as one line, with its raw text if its arguments are
    incomplete."""
    if call.state == "complete":
        return f"{call.name} {_json(call.arguments)}"
    return f"{call.name} {call.state}: {call.raw}"


def _join_calls(calls: list[str]) -> str:
    return "\n  ".join(calls) or "none"
