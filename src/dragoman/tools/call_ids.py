"""Ids of tool calls: making them, and seeing that calls and results belong together.

Nothing here stops a run: a missing or repeated id is reported, never refused.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from dragoman.message import Message, Role, ToolCallPart, ToolResultPart

__all__ = [
    "ToolIdCoordinator",
    "assign_tool_call_ids",
    "check_tool_ids",
    "generate_tool_call_id",
    "is_valid_tool_call_id",
]

Piece = TypeVar("Piece")


class ToolIdCoordinator:
    """Keeps account of the calls of a conversation and of those still without a result."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._open: Counter[str] = Counter()

    def register(self, call: ToolCallPart) -> None:
        """Notes a call. An id that comes again counts again: providers repeat them."""
        self._names[call.id] = call.name
        self._open[call.id] += 1

    def validate(self, result: ToolResultPart) -> bool:
        """Notes a result by its call id. `False`: no call with its id waits for one."""
        waits = self._open[result.id] > 0
        if waits:
            self._open[result.id] -= 1
        return waits

    def name(self, call_id: str) -> str | None:
        """Returns the name of the tool that a call with this id asked for; `None`: there was no
        such call."""
        return self._names.get(call_id)

    def unmatched(self) -> list[str]:
        """Returns ids of the calls that have no result yet, in the order in which they were first
        registered."""
        return list(self._open.elements())

    def clear(self) -> None:
        """Forgets everything."""
        self._names.clear()
        self._open.clear()


def generate_tool_call_id() -> str:
    """Returns a new id (a random UUID), for a call that its provider gave none."""
    return str(uuid.uuid4())


def is_valid_tool_call_id(call_id: str | None) -> bool:
    """True if it is an id at all: not empty."""
    return bool(call_id)


def assign_tool_call_ids(
    content: Iterable[Piece], new_id: Callable[[], str] = generate_tool_call_id
) -> tuple[Piece, ...]:
    """Returns a message's content with an id in every tool call; calls that have one keep it."""
    return tuple(
        msgspec.structs.replace(piece, id=new_id())
        if isinstance(piece, ToolCallPart) and not piece.id
        else piece
        for piece in content
    )


def check_tool_ids(messages: Iterable[Message]) -> list[str]:
    """Says which tool calls and results do not belong together in a conversation by their ids, a
    sentence each; calls at its end may still wait."""
    coordinator = ToolIdCoordinator()
    faults: list[str] = []
    for position, message in enumerate(messages):
        for result in message.tool_results:
            if not coordinator.validate(result):
                faults.append(
                    f"Message {position}: Tool result {result.id!r} has no matching tool call"
                )
        if message.role is Role.MODEL:
            faults += [
                f"Message {position}: Tool call {call_id!r} before it has no result"
                for call_id in coordinator.unmatched()
            ]
            coordinator.clear()
        for call in message.tool_calls:
            if not is_valid_tool_call_id(call.id):
                faults.append(f"Message {position}: Tool call to {call.name!r} has no id")
            elif coordinator.name(call.id):
                faults.append(f"Message {position}: Tool call id {call.id!r} is used twice")
            coordinator.register(call)
    return faults
