"""Messages as lines to read and to compare, one for each thing that was said; the events of a run,
and its calls of tools."""

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
"""What has messages: the result of a run, a request, a history, events."""


def list_messages(source: Source) -> list[Message]:
    """Returns the messages of a result, of a request, of events, or those that are given."""
    if isinstance(source, Message):
        return [source]
    if isinstance(source, ChatResult | ModelRequest):
        return list(source.messages)
    items = list(source)
    messages = [item for item in items if isinstance(item, Message)]
    return messages or fold([item for item in items if not isinstance(item, Message)])


def format_transcript(source: Source) -> list[str]:
    """Returns what was said, line by line, to compare with a list in a test: without ids, times and
    counts.

    `user: How is it in Oslo?`, `model thinks: …`, `model calls get_weather {"city":"Oslo"}`,
    `get_weather gives "rain"`, `model: It rains.`
    """
    names: dict[str, str] = {}
    return [
        line
        for message in list_messages(source)
        for piece in message.content
        for line in _describe_part(message, piece, names)
    ]


def _describe_part(message: Message, piece: Content, names: dict[str, str]) -> Iterator[str]:
    """Yields what a piece says. `names`: id of a call → its tool, for results that a format gives
    without."""
    who = message.role.value
    match piece:
        case TextPart():
            yield f"{who}: {piece.text}"
        case ThinkingPart():
            yield f"{who} thinks: {piece.text}"
        case ToolCallPart():
            names[piece.id] = piece.name
            yield f"{who} calls {piece.name} {_json(piece.arguments) if piece.state == 'complete' else piece.raw}"
        case ToolResultPart():
            result = _describe_content(piece.result) if piece.is_content else _json(piece.result)
            yield f"{piece.name or names.get(piece.id, '')} {'fails' if piece.is_error else 'gives'} {result}"
        case DataPart() | LinkPart() | FilePart():
            yield f"{who}: {_describe_media(piece)}"
        case _:
            yield f"{who}: [{piece.kind}]"


def _json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


def _describe_content(parts: Sequence[ResultPart]) -> str:
    return " ".join(
        part.text if isinstance(part, TextPart) else _describe_media(part) for part in parts
    )


def _describe_media(part: DataPart | LinkPart | FilePart) -> str:
    """Returns a file in words: by what it is and not by its bytes."""
    if isinstance(part, LinkPart):
        where = part.url
    elif isinstance(part, FilePart):
        where = part.id
    else:
        where = f"{len(part.data)} bytes"
    return f"[{part.mime_type or 'file'} {part.name or where}]"


async def collect_events(run: Run[Any]) -> list[Event]:
    """Returns all events of a run that has not begun: `await collect_events(agent.run("Hi"))`. One that
    fails ends with a `RunError`."""
    async with run:
        return [event async for event in run]


def assert_calls(source: Source, *calls: ToolCallPart, any_order: bool = False) -> None:
    """Asserts which tools the model called, by name and arguments: `assert_calls(result,
    call("get_weather", city="Oslo"))`.

    Raises:
        AssertionError: it called others, or in another order, where `any_order` does not allow that.
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
    arguments = msgspec.json.encode(call.arguments, order="sorted").decode()
    return f"{call.name} {arguments if call.state == 'complete' else f'{call.state}: {call.raw}'}"


def _join_calls(calls: list[str]) -> str:
    return "\n  ".join(calls) or "none"
