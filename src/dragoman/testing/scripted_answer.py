"""Answers of a scripted model: the forms in which a test may write one, and how its bytes arrive.

`as_answer` turns what the test wrote into an `Answer`. `make_events` returns the events of a
complete answer, `live_events` yields those of a generator's pieces. `deliver` yields the bytes of a
body, up to where the connection breaks or waits.
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
"""A piece of an answer: text, a part (a call, thinking, …), or an event."""

_EVENTS: tuple[type, ...] = get_args(Event)
_PIECES: tuple[type, ...] = (str, *get_args(Content), *_EVENTS)


class Gate(Protocol):
    """Something to wait for, such as an `anyio.Event` or an `asyncio.Event`."""

    async def wait(self) -> Any:
        """Returns when the answer may continue."""
        ...


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to one request, and how its delivery fails."""

    content: (
        Message
        | Piece
        | Sequence[Piece]
        | Exception
        | AsyncIterator[Piece]
        | Iterator[Piece]
        | None
    ) = None
    """What the model says, or the error that refuses the request; `None` if `body` is everything.
    Pieces of an iterator are sent as they come, whatever the fields below say. A
    `ProviderConnectionError` that it raises breaks the connection; another error is sent within the
    stream."""
    status: int | None = None
    """HTTP status; by default 200, or the wire's status for an error."""
    headers: Mapping[str, str] = {}
    """HTTP headers of the response."""
    body: bytes | None = None
    """The response body, in place of what the wire writes."""
    garbage: bytes = b""
    """Bytes that follow the first `share` of the body and end it."""
    cut: bool = False
    """The connection breaks after the first `share` of the body."""
    gate: Gate | None = None
    """The rest of the body after the first `share` waits for it. If it never opens, nothing more
    comes and the connection stays open."""
    share: float = 0.5
    """A share of the body's bytes, from 0 to 1."""
    stream: bool | None = None
    """Streams the response or not; by default as the model is set."""


Answerable: TypeAlias = Message | Piece | Sequence[Piece] | Exception | bytes | Exchange | Answer
"""What a test may write for an answer: text, a message, a part, or several of these; an error,
which refuses the request or breaks the connection; bytes as the body; a recorded exchange; an
`Answer`."""

AnswerFunction: TypeAlias = Callable[
    [ModelRequest], Answerable | Awaitable[Answerable] | AsyncIterator[Piece] | Iterator[Piece]
]
"""A function that answers a request, plain or async, or a generator whose pieces are sent as they
come."""


def as_answer(given: Answerable | AsyncIterator[Piece] | Iterator[Piece]) -> Answer:
    """Returns what a test wrote as an `Answer`."""
    if isinstance(given, Answer):
        return given
    if isinstance(given, bytes):
        return Answer(body=given)
    return Answer(content=cast("Any", given))


def check_answer(given: Any) -> None:
    """Raises `TypeError` if a value cannot be a scripted answer. The results of functions and
    iterators are checked later."""
    if isinstance(given, type) or not (
        isinstance(given, _WHOLE) or callable(given) or isinstance(given, AsyncIterator | Iterator)
    ):
        as_message(given)


def as_message(content: Any) -> Message | None:
    """Returns the texts and parts of a scripted answer as a model message, or None if there are
    events among them.

    Raises:
        TypeError: a model cannot say it.
    """
    if isinstance(content, Message):
        return content
    pieces: list[Any] = [content]
    if isinstance(content, list | tuple):
        pieces = [*cast("Sequence[Any]", content)]
    for piece in pieces:
        if not isinstance(piece, _PIECES):
            raise TypeError(
                f"a scripted model cannot say {piece!r:.100}: give text, parts, a message or events"
            )
    if any(isinstance(piece, _EVENTS) for piece in pieces):
        return None
    return Message.model(*[piece for piece in pieces if piece != ""])


def finish_message(message: Message, request: ModelRequest, number: int) -> Message:
    """Returns a scripted answer's message as a model finishes it: with ids for calls that have
    none, a finish reason, and estimated usage. `number`: the number of the request, from 1."""
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
    """Returns a scripted call without an id with this one, and any other part unchanged."""
    if isinstance(piece, ToolCallPart) and not piece.id:
        return msgspec.structs.replace(piece, id=id)
    return piece


def count_usage(request: ModelRequest, content: Sequence[Content]) -> Usage:
    """Returns the estimated tokens of a request and its scripted answer, at four bytes per
    token."""
    input_tokens = _estimate_tokens(
        [message.content for message in request.messages]
    ) + _estimate_tokens(request.tools)
    answered = _estimate_tokens(content)
    return Usage(
        input_tokens=input_tokens, output_tokens=answered, total_tokens=input_tokens + answered
    )


def call(name: str, /, **arguments: Any) -> ToolCallPart:
    """Returns a tool call. The scripted model gives it an id: `call_2_1` is the first call of its
    second answer."""
    return ToolCallPart("", name, arguments)


def answer_with(value: Any) -> Callable[[ModelRequest], Message]:
    """Returns a scripted answer to `send_for` that gives a value in the form that the request asks
    for, by a schema or a tool.

    `value`: anything that pydantic can write as JSON, such as a number, a model, a dataclass, or a
    list of these.
    """

    def answer(request: ModelRequest) -> Message:
        """Answers a request with the scripted messages."""
        from pydantic_core import to_jsonable_python

        value_as_json: Any = to_jsonable_python(value, fallback=msgspec.to_builtins)
        tools = {
            tool.name: tool.input_schema for tool in request.tools if isinstance(tool, ToolSpec)
        }
        by_tool = request.output_schema is None and RETURN_RESULT in tools
        schema: JsonMap = request.output_schema or tools.get(RETURN_RESULT, {})
        # A type that is not an object is wrapped in `{"result": …}`.
        if [*schema.get("properties", {})] == ["result"] and "result" not in if_object(
            value_as_json
        ):
            value_as_json = {"result": value_as_json}
        if by_tool:
            return Message.model(call(RETURN_RESULT, **value_as_json))
        return Message.model(msgspec.json.encode(value_as_json).decode())

    return answer


_WHOLE = (Exception, bytes, Exchange, Answer)


def _estimate_tokens(value: Any) -> int:
    return len(msgspec.json.encode(value)) // 4


class ScriptedResponse:
    """A `Response` of a scripted server. It calls `ended` with itself when it is read or closed."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes],
        ended: Callable[[object], None],
    ) -> None:
        """Creates a scripted HTTP response, whose body comes in these pieces."""
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
    """Yields the bytes of a scripted answer, `size` at a time, as far as the answer says.

    Raises:
        StreamCutError: the answer is cut.
    """
    first = len(data)
    if answer.cut or answer.garbage or answer.gate is not None:
        first = int(len(data) * answer.share)
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
    """Returns the events of a scripted answer: the test's own events, or those of the message that
    its texts and parts make."""
    message = as_message(content)
    if message is None:
        return list(content)
    return make_stream_events(finish_message(message, request, number))


async def live_events(
    pieces: AsyncIterator[Piece] | Iterator[Piece], request: ModelRequest, number: int
) -> AsyncGenerator[list[Event]]:
    """Yields the events of each piece of a scripted answer as it comes. An error that ends the
    pieces is the last event. Adjacent texts are one part.

    Raises:
        ProviderConnectionError, ProviderTimeoutError: the pieces broke the connection.
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
    # Pieces of text and parts have no end of their own; a test's own events may.
    if not any(isinstance(event, MessageFinished) for event in events_so_far):
        emitter.close_all()
        emitter.start()
        message = finish_message(fold([*events_so_far, *emitter.events])[0], request, number)
        emitter.finish(message.finish_reason or FinishReason.stop, message.usage)
        yield emitter.take()


async def _iterate_pieces(pieces: AsyncIterator[Piece] | Iterator[Piece]) -> AsyncGenerator[Piece]:
    """Yields the pieces of a scripted answer: of a plain or async iterator, and closes it."""
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
