"""What a scripted model answers to one request: all the ways in which a test may write it, and how
its bytes arrive.

`as_answer` makes an `Answer` of what the test wrote. `written_events` and `live_events` are the
events of its content, whole or piece by piece; `delivered` gives the bytes of a body in pieces, up
to where the connection breaks or waits.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from typing import Any, Protocol, TypeAlias, cast, get_args

import anyio.lowlevel
import msgspec

from dragoman.codec.emitter import Emitter
from dragoman.codec.json_values import if_object
from dragoman.errors import (
    DragomanError,
    ProviderConnectionError,
    ProviderTimeoutError,
    StreamCutError,
)
from dragoman.event import Event, MessageFinished, RunError
from dragoman.fold import fold
from dragoman.json_bytes import JsonMap
from dragoman.message import Content, FinishReason, Message, ToolCallPart, Usage
from dragoman.orchestration.iteration import RETURN_RESULT
from dragoman.request import ModelRequest, ToolSpec
from dragoman.testing.wire.bench import make_stream_events, split_bytes
from dragoman.transport.exchange import Exchange

__all__ = [
    "Answer",
    "Answerable",
    "AnswerFunction",
    "Gate",
    "Piece",
    "ScriptedResponse",
    "as_answer",
    "as_message",
    "call",
    "check_answer",
    "count_usage",
    "deliver",
    "finish_message",
    "live_events",
    "answer_with",
    "with_id",
    "make_events",
]

Piece: TypeAlias = str | Content | Event
"""Some of an answer: text, a part (a call, thinking, …), or an event."""

_EVENTS: tuple[type, ...] = get_args(Event)
_PIECES: tuple[type, ...] = (str, *get_args(Content), *_EVENTS)


class Gate(Protocol):
    """What an answer waits at, such as an `anyio.Event` or an `asyncio.Event`."""

    async def wait(self) -> Any:
        """Returns when the answer may go on."""
        ...


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to one request, and how it goes wrong."""

    content: (
        Message
        | Piece
        | Sequence[Piece]
        | Exception
        | AsyncIterator[Piece]
        | Iterator[Piece]
        | None
    ) = None
    """What the model says, or the error that it is refused with; `None`: `body` is all. Of an
    iterator each piece is sent when it comes, whatever the fields below say; a
    `ProviderConnectionError` that it raises breaks the connection, another error is told within the
    stream."""
    status: int | None = None
    """HTTP status; `None`: 200, or what the wire has for the error."""
    headers: Mapping[str, str] = {}
    """Sent with it."""
    body: bytes | None = None
    """In place of what the wire would write."""
    garbage: bytes = b""
    """Stands behind the first `share` of what the wire writes, and nothing after it."""
    cut: bool = False
    """The connection breaks after the first `share`."""
    gate: Gate | None = None
    """What follows the first `share` waits for it. One that never opens: nothing more comes, and
    the connection stands."""
    share: float = 0.5
    """Of the body's bytes, from 0 to 1."""
    stream: bool | None = None
    """Whether it comes as a stream; `None`: as the model does it."""


Answerable: TypeAlias = Message | Piece | Sequence[Piece] | Exception | bytes | Exchange | Answer
"""What may stand for an answer: text, a message, a part, several of these; an error, which refuses
the request (one of the connection breaks it off); bytes, which are the body; a recorded exchange;
an `Answer`."""

AnswerFunction: TypeAlias = Callable[
    [ModelRequest], Answerable | Awaitable[Answerable] | AsyncIterator[Piece] | Iterator[Piece]
]
"""A function that answers a request, plain or async; or a generator, whose pieces are sent when
they come."""


def as_answer(given: Answerable | AsyncIterator[Piece] | Iterator[Piece]) -> Answer:
    """Returns what a test wrote as an `Answer`. An `Exchange` is its status, headers and body."""
    if isinstance(given, Answer):
        return given
    if isinstance(given, bytes):
        return Answer(body=given)
    return Answer(content=cast("Any", given))


def check_answer(given: Any) -> None:
    """Raises `TypeError` where something is no answer. What a function or an iterator gives is not
    known yet."""
    if isinstance(given, type) or not (
        isinstance(given, _WHOLE) or callable(given) or isinstance(given, AsyncIterator | Iterator)
    ):
        as_message(given)


def as_message(content: Any) -> Message | None:
    """Returns texts and parts as a model's message, or None if there are events among them.

    Raises:
        TypeError: it is nothing that a model can say.
    """
    if isinstance(content, Message):
        return content
    pieces: list[Any] = (
        [*cast("Sequence[Any]", content)] if isinstance(content, list | tuple) else [content]
    )
    for piece in pieces:
        if not isinstance(piece, _PIECES):
            raise TypeError(
                f"a scripted model cannot say {piece!r:.100}: give text, parts, a message or events"
            )
    if any(isinstance(piece, _EVENTS) for piece in pieces):
        return None
    return Message.model(*[piece for piece in pieces if piece != ""])


def finish_message(message: Message, request: ModelRequest, number: int) -> Message:
    """Returns a message as the model ends it: with ids for calls that have none, a reason, and
    counts by the length of what was said. `number`: which request it answers, from 1."""
    calls = 0
    content: list[Content] = []
    for piece in message.content:
        calls += isinstance(piece, ToolCallPart)
        content.append(with_id(piece, f"call_{number}_{calls}"))
    usual = FinishReason.tool_calls if message.tool_calls else FinishReason.stop
    return message.replace(
        content=tuple(content),
        id=message.id or f"m{number}",
        finish_reason=message.finish_reason or usual,
        usage=message.usage or count_usage(request, content),
    )


def with_id(piece: Content, id: str) -> Content:  # noqa: A002
    """Returns a call that has no id with this one; everything else as it is."""
    return (
        msgspec.structs.replace(piece, id=id)
        if isinstance(piece, ToolCallPart) and not piece.id
        else piece
    )


def count_usage(request: ModelRequest, content: Sequence[Content]) -> Usage:
    """Returns the tokens of a request and its answer, four bytes each."""
    input_tokens = _estimate_tokens(
        [message.content for message in request.messages]
    ) + _estimate_tokens(request.tools)
    answered = _estimate_tokens(content)
    return Usage(
        input_tokens=input_tokens, output_tokens=answered, total_tokens=input_tokens + answered
    )


def call(name: str, /, **arguments: Any) -> ToolCallPart:
    """Returns a call of a tool, whose id the scripted model makes: `call_2_1` is the first of its
    second answer."""
    return ToolCallPart("", name, arguments)


def answer_with(value: Any) -> Callable[[ModelRequest], Message]:
    """Returns an answer to `send_for`: it gives a value as the request wants it, by its schema or
    by a tool.

    `value` is anything that pydantic can write as JSON: a number, a model, a dataclass, a list of
    these.
    """

    def answer(request: ModelRequest) -> Message:
        from pydantic_core import to_jsonable_python

        value_as_json: Any = to_jsonable_python(value, fallback=msgspec.to_builtins)
        tools = {
            tool.name: tool.input_schema for tool in request.tools if isinstance(tool, ToolSpec)
        }
        by_tool = request.output_schema is None and RETURN_RESULT in tools
        schema: JsonMap = request.output_schema or tools.get(RETURN_RESULT, {})
        if [*schema.get("properties", {})] == ["result"] and "result" not in if_object(
            value_as_json
        ):
            value_as_json = {"result": value_as_json}
        return Message.model(
            call(RETURN_RESULT, **value_as_json)
            if by_tool
            else msgspec.json.encode(value_as_json).decode()
        )

    return answer


_WHOLE = (Exception, bytes, Exchange, Answer)


def _estimate_tokens(value: Any) -> int:
    return len(msgspec.json.encode(value)) // 4


class ScriptedResponse:
    """A `Response` that is made up. `ended` is called with it when it is over."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes],
        ended: Callable[[object], None],
    ) -> None:
        self.status = status
        self.headers = headers
        self._pieces = pieces
        self._ended = ended
        self._closed = False

    async def read(self) -> bytes:
        """See `Response.read`."""
        if self._closed:
            raise ProviderConnectionError("the answer was closed before this read: read it first")
        await anyio.lowlevel.checkpoint()
        piece = await anext(self._pieces, b"")
        if not piece:
            self._ended(self)
        return piece

    async def close(self) -> None:
        """See `Response.close`."""
        self._closed = True
        self._ended(self)
        await self._pieces.aclose()


async def deliver(answer: Answer, data: bytes, size: int) -> AsyncGenerator[bytes]:
    """Yields the bytes of an answer, `size` at a time, as far as it lets them through.

    Raises:
        StreamCutError: the connection breaks.
    """
    first = (
        int(len(data) * answer.share)
        if answer.cut or answer.garbage or answer.gate is not None
        else len(data)
    )
    for piece in split_bytes(data[:first] + answer.garbage, size):
        yield piece
    if answer.gate is not None:
        await answer.gate.wait()
    if answer.cut:
        raise StreamCutError("the scripted connection breaks here")
    if not answer.garbage:
        for piece in split_bytes(data[first:], size):
            yield piece


def make_events(content: Any, request: ModelRequest, number: int) -> list[Event]:
    """Returns the events of an answer: those that were given, or those of the message that the
    texts and parts make."""
    message = as_message(content)
    return (
        list(content)
        if message is None
        else make_stream_events(finish_message(message, request, number))
    )


async def live_events(
    pieces: AsyncIterator[Piece] | Iterator[Piece], request: ModelRequest, number: int
) -> AsyncGenerator[list[Event]]:
    """Yields the events of pieces that come one by one, each as soon as it is there; an error that
    stops them is the last event. Texts that follow one another are one part.

    Raises:
        ProviderConnectionError: the pieces broke the connection off.
        ProviderTimeoutError: likewise.
    """
    emitter, calls = Emitter(lambda: f"m{number}"), 0
    events_so_far: list[Event] = []
    try:
        async with aclosing(_iterate_pieces(pieces)) as every:
            async for piece in every:
                if isinstance(piece, str):
                    emitter.add_text("text", piece)
                elif isinstance(piece, Content):
                    emitter.close_all()
                    calls += isinstance(piece, ToolCallPart)
                    emitter.add_whole_part(with_id(piece, f"call_{number}_{calls}"))
                else:
                    emitter.events.append(piece)
                events_so_far += (events := emitter.take())
                yield events
    except (ProviderConnectionError, ProviderTimeoutError):
        raise
    except DragomanError as error:
        yield [RunError(error)]
        return
    if not any(isinstance(event, MessageFinished) for event in events_so_far):
        emitter.close_all()
        emitter.start()
        message = finish_message(fold([*events_so_far, *emitter.events])[0], request, number)
        emitter.finish(message.finish_reason or FinishReason.stop, message.usage)
        yield emitter.take()


async def _iterate_pieces(pieces: AsyncIterator[Piece] | Iterator[Piece]) -> AsyncGenerator[Piece]:
    """Yields the pieces of an iterator of either kind, which is closed with it."""
    if isinstance(pieces, AsyncIterator):
        try:
            async for piece in pieces:
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
    else:
        for piece in pieces:
            yield piece
