"""`send_stream_for`, a method of agents and chats."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, Literal, Protocol, TypeVar, Unpack, overload

from typing_extensions import TypeForm

from dragoman.partial import Partial
from dragoman.portal import Portal
from dragoman.prompt import Prompt, RunOptions
from dragoman.result import ChatResult
from dragoman.run import Run

__all__ = ["send_stream_for"]

T = TypeVar("T")


class _Streamer(Protocol):
    """An agent or a chat."""

    @property
    def portal(self) -> Portal:
        """Where its synchronous calls run."""
        ...

    @property
    def run(self) -> Callable[..., AbstractAsyncContextManager[Run[Any]]]:
        """As `Agent.run`."""
        ...


@overload
def send_stream_for(
    self: _Streamer,
    prompt: Prompt,
    output_type: type[T],
    *,
    elements: Literal[False] = False,
    growing_text: bool = False,
    **run_options: Unpack[RunOptions[Any]],
) -> AsyncGenerator[ChatResult[Partial[T] | T], None]: ...
@overload
def send_stream_for(
    self: _Streamer,
    prompt: Prompt,
    output_type: TypeForm[T],
    *,
    elements: Literal[False] = False,
    growing_text: bool = False,
    **run_options: Unpack[RunOptions[Any]],
) -> AsyncGenerator[ChatResult[Partial[T] | T], None]: ...
@overload
def send_stream_for(
    self: _Streamer,
    prompt: Prompt,
    output_type: object,
    *,
    elements: bool,
    growing_text: bool = False,
    **run_options: Unpack[RunOptions[Any]],
) -> AsyncGenerator[ChatResult[Any], None]: ...
async def send_stream_for(
    self: _Streamer,
    prompt: Prompt,
    output_type: object,
    *,
    elements: bool = False,
    growing_text: bool = False,
    **run_options: Unpack[RunOptions[Any]],
) -> AsyncGenerator[ChatResult[Any], None]:
    """Sends a prompt and yields the typed value while it is being written. `output` of a chunk is a
    `Partial` of the type: what is certain so far. The last chunk has `final`; it is the result of
    `send_for`, with the validated value.

    `elements`: of a list, each element is a chunk of its own, once and validated, as soon as it is
    whole. `growing_text`: a text counts while it is being written, for people who watch.

    A chunk with `retracted` begins anew: the answer was not valid, and all that came before is
    void. If the run waits for something, no chunk is final, and the last one has `pending`. Close
    the stream (`aclosing`) where you leave it early.

    Raises:
        TypedOutputError: the model's answer is not of the type, also after it was told so.
        TypeError: the type is `str`, or with `elements` no list.
    """
    async with (
        self.run(prompt, output_type=output_type, **run_options) as run,
        aclosing(run.partials(elements=elements, growing_text=growing_text)) as chunks,
    ):
        async for chunk in chunks:
            yield chunk
