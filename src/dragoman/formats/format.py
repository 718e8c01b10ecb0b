"""What a format is: a way to write conversations as JSON. A protocol, which every wire satisfies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from dragoman.codec.serving import Problem
from dragoman.loss import Loss
from dragoman.message import Message, Origin

__all__ = ["Format"]


class Format(Protocol):
    """A way to write conversations as JSON, both ways. Sans-I/O, as a wire.

    It may have an attribute `layout`, a `Layout`: where its messages stand in the body of a request. Without one they are a list alone, which
    any body may hold. What a model reads has `mended`, the function by which a conversation is repaired before it is written (`repair.traced`,
    most often); wires need none. `fields`, a `FormatFields`, names its own fields that a history acts on. Where there are several versions of it, `versions` names them, and `dump_messages` takes one as `version=`.
    """

    @property
    def name(self) -> str:
        """By which it is known; an attribute."""
        ...

    def votes(self, message: Any) -> int:
        """How surely one element of a conversation, as JSON has it, is of this format: 0 it cannot be, 1 it could be, 2 it is likely,
        3 it is hardly anything else. Never raises."""
        ...

    def load_messages(
        self, payload: Any, *, origin: Origin | None = None, problems: list[Problem] | None = None
    ) -> list[Message]:
        """A conversation of the format → messages. `origin` is given to the model's messages where the format does not say whose they are.
        With `problems`, an element that cannot be read is left out and noted there.

        Raises:
            HistoryError: the payload is not of this format.
        """
        ...

    def dump_messages(
        self,
        messages: Iterable[Message],
        *,
        target: Origin | None = None,
        losses: list[Loss] | None = None,
    ) -> Any:
        """Messages → a conversation of the format. What it cannot hold is added to `losses`."""
        ...
