"""Typed output while it is being written: chunks with a `Partial`, or with each element of a list
once it is whole."""

from __future__ import annotations

import collections.abc
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Protocol, TypeAlias, cast, get_args, get_origin

import msgspec
from typing_extensions import TypeAliasType

from dragoman.event import Custom, Event
from dragoman.json_bytes import Json
from dragoman.message import FinishReason
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.output_type import TypedOutput, read_value
from dragoman.partial import Partial, view
from dragoman.partial_json import Node, PartialReader, Slice, to_builtins
from dragoman.result import ChatResult

__all__ = ["OutputEvents", "PartialOutput", "TypedRun", "find_element_type", "read_partials"]

_RESULT = "result"
"""Key of a value that is wrapped in an object."""
_LISTS: Collection[object] = (
    list,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Collection,
    collections.abc.Iterable,
    collections.abc.Set,
)
_LAST: Json = {
    "messages": (),
    "finish_reason": FinishReason.unspecified,
    "usage": None,
    "losses": (),
    "pending": (),
    "calls": (),
}
"""Fields that only the last chunk has."""

OUTPUT = "output"
"""Name of the `Custom` events with a typed output so far."""
_LEAST_GROWTH = 8
"""Characters after which a short value is told again."""
Chunk: TypeAlias = ChatResult[Any]


class TypedRun(Protocol):
    """What is read of a run."""

    exception: Exception | None

    @property
    def output(self) -> TypedOutput[Any] | None:
        """The type of its output; `None`: text."""
        ...

    @property
    def steps(self) -> Callable[[], AsyncGenerator[StreamingIterationResult, None]]:
        """As `Run.steps`."""
        ...

    async def result(self) -> Chunk:
        """As `Run.result`."""
        ...


async def read_partials(
    run: TypedRun, *, element_type: object = None, growing_text: bool = False
) -> AsyncGenerator[Chunk, None]:
    """Yields a run's output while it is being written; the last chunk is the run's result.

    Args:
        run: a run whose output has a type.
        element_type: that of the elements of its list, if each is a chunk; else `None`.
        growing_text: a text is shown while it is being written.

    Raises:
        TypeError: the output is text.
        Exception: as `Run.result`.
    """
    if run.output is None:
        raise TypeError("this run gives text; read it with send_stream or Run.steps")
    output = PartialOutput(run.output, growing_text=growing_text)
    elements: _Elements | None = None
    if element_type is not None:
        elements = _Elements(output, element_type)
    async with aclosing(run.steps()) as steps:
        async for step in steps:
            for piece in step.chunks():
                is_new = output.feed(piece)
                if elements is not None:
                    for element in elements.take(piece):
                        yield element
                elif is_new or _says_more(piece):
                    yield msgspec.structs.replace(
                        cast("Chunk", piece), output=output.view(), **_LAST
                    )
    if run.exception is not None:
        raise run.exception
    result = await run.result()
    if result.pending or result.finish_reason is FinishReason.cancelled:
        yield msgspec.structs.replace(result, output=output.view())
    else:
        yield msgspec.structs.replace(result, final=True)


class PartialOutput:
    """Follows the pieces of a typed output. A piece costs what it brings; only a retraction costs
    what remains."""

    def __init__(self, output: TypedOutput[Any], *, growing_text: bool = False) -> None:
        """Starts to read a typed output while it is written."""
        self._shape = output.shape
        self._is_wrapped = output.is_wrapped
        self._growing_text = growing_text
        self._pieces: list[str] = []
        self._reader = PartialReader(growing_text=growing_text)

    def feed(self, piece: ChatResult[str]) -> bool:
        """Takes the next piece of the partial output. Returns True if it changes what is
        certain."""
        if piece.retracted:
            text = "".join(self._pieces).removesuffix(piece.retracted)
            self._pieces = [text]
            self._reader = PartialReader(growing_text=self._growing_text)
            self._reader.feed(text)
            return True
        if not piece.output:
            return False
        self._pieces.append(piece.output)
        return self._reader.feed(piece.output)

    def view(self) -> Partial[Any]:
        """Returns what of the partial output is certain now."""
        part, shape = self._reader.slice(), self._shape
        if not self._is_wrapped:
            return view(part, shape)
        if part is not None:
            inner = view(part, shape)
            value = inner.get(_RESULT)
            # A text or a number is certain only with the end of the run.
            if isinstance(value, Partial):
                return cast("Partial[Any]", value)
        return view(None, shape.child(_RESULT))

    def find_list(self) -> Node | None:
        """Returns the list that is the partial output's value, if it is one and has begun."""
        part = self._reader.slice()
        if part is None or not self._is_wrapped:
            return None
        if isinstance(part.open, Slice) and part.open_key == _RESULT:
            return part.open.node
        index = (part.node.keys or {}).get(_RESULT)
        if index is None:
            return None
        node = part.node.values[index]
        return node if isinstance(node, Node) else None


class OutputEvents:
    """Tells a typed output while it is being written, as `Custom` events with its value so far.

    Each is sent once the text has grown by an eighth, so that all together have at most some nine
    times the bytes of the value.
    """

    def __init__(self, output: TypedOutput[Any]) -> None:
        self._output = PartialOutput(output, growing_text=True)
        self._size = self._told_size = 0

    def feed(self, pieces: Sequence[ChatResult[str]], *, is_last: bool = False) -> list[Event]:
        """Takes pieces of the partial output and returns the events that are due. `is_last`: the
        output has ended."""
        is_due = is_last and self._size > self._told_size
        for piece in pieces:
            self._output.feed(piece)
            self._size += len(piece.output)
            if piece.retracted:
                self._size, is_due = 0, True
        growth = self._size - self._told_size
        if not is_due and growth < max(_LEAST_GROWTH, self._told_size // 8):
            return []
        self._told_size = self._size
        return [Custom(OUTPUT, self._output.view().to_builtins())]


class _Elements:
    """Gives each element of a list once, when it is whole and valid."""

    def __init__(self, output: PartialOutput, element_type: Any) -> None:
        """Starts to yield the elements of an output list as they become whole."""
        from pydantic import TypeAdapter

        self._output = output
        self._adapter: TypeAdapter[Any] = TypeAdapter(element_type)
        self._given = 0
        self._is_wrong = False

    def take(self, piece: ChatResult[str]) -> list[Chunk]:
        """Returns chunks for the elements of the partial output that a piece made whole, or one for
        a retraction."""
        if piece.retracted:
            self._given, self._is_wrong = 0, False
            return [ChatResult(Partial[Any](), retracted=piece.retracted, id=piece.id)]
        node = self._output.find_list()
        chunks: list[Chunk] = []
        # One that is not of its type voids the whole answer, which is sent back at its end.
        while (
            node is not None
            and node.keys is None
            and not self._is_wrong
            and self._given < len(node.values)
        ):
            try:
                value = read_value(self._adapter, to_builtins(node.values[self._given]))
            except ValueError:
                self._is_wrong = True
                break
            self._given += 1
            chunks.append(ChatResult(value, id=piece.id))
        return chunks


def find_element_type(output_type: object) -> object:
    """Returns the type of the elements of a list.

    Raises:
        TypeError: the type is no list, no set and no sequence of one type.
    """
    bare = output_type
    while isinstance(bare, TypeAliasType) or get_origin(bare) is Annotated:
        bare = bare.__value__ if isinstance(bare, TypeAliasType) else get_args(bare)[0]
    origin, arguments = get_origin(bare) or bare, get_args(bare)
    if origin in _LISTS:
        return (*arguments, Any)[0]
    if origin is tuple and len(arguments) == 2 and arguments[1] is ...:
        return arguments[0]
    raise TypeError(
        f"elements=True gives the elements of a list one by one; {output_type!r} is no list: ask for list[…]"
    )


def _says_more(piece: ChatResult[str]) -> bool:
    """True if a piece has something beside output that is told while the run goes on."""
    return bool(piece.thinking or piece.custom or piece.metadata or piece.state is not None)
