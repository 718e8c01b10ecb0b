"""What a tool may know of the run that calls it: `ToolContext`."""

from __future__ import annotations

from typing import Any, Generic

import msgspec
from typing_extensions import TypeVar

from dragoman.message import Message, ToolCallPart

__all__ = ["ToolContext"]

Deps = TypeVar("Deps", default=Any)


class ToolContext(msgspec.Struct, Generic[Deps], frozen=True):
    """Given to a handler that has a parameter annotated `ToolContext` or `ToolContext[…]`; never shown to the model."""

    deps: Deps
    """What the caller of the run passed as `deps`."""
    run_id: str = ""
    """Id of the run."""
    messages: tuple[Message, ...] = ()
    """The conversation so far, up to and with the message that holds the call."""
    call: ToolCallPart = ToolCallPart("", "")
    """The call that is answered; the executor fills it in."""
