"""A list as JSON, and back: its messages, and what it knows of each beside them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from dragoman import json_bytes
from dragoman.errors import HistoryError
from dragoman.history.add import Branch
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import SOURCES
from dragoman.history.systems import System, Systems
from dragoman.message import Message, Role, dump_messages, load_messages

__all__ = ["Held", "dump", "load"]

_VERSION = 1


class Held(NamedTuple):
    """What a list holds."""

    rows: Rows
    """Its messages."""
    systems: Systems
    """Its system messages."""
    branches: list[Branch]
    """What was edited, replaced or summarised."""
    thread_id: str | None
    """Which conversation it is."""
    resource_id: str | None
    """Whose."""


class _Branch(msgspec.Struct, frozen=True):
    behind: str | None
    messages: msgspec.Raw


class _System(msgspec.Struct, frozen=True):
    message: msgspec.Raw
    tag: str | None
    behind: int


class _Stored(msgspec.Struct, frozen=True):
    """A list as JSON has it: beside its messages a list each of what rows know of them, sources as bits."""

    list_version: int
    messages: msgspec.Raw
    order: list[int]
    live: list[int]
    origins: list[int]
    system: list[_System] = []
    branches: list[_Branch] = []
    thread_id: str | None = None
    resource_id: str | None = None


def dump(held: Held) -> bytes:
    """A list → JSON.

    Raises:
        HistoryError: a message holds what JSON cannot.
    """
    rows = list(held.rows)
    return msgspec.json.encode(
        _Stored(
            _VERSION,
            msgspec.Raw(dump_messages([row.message for row in rows])),
            [row.order for row in rows],
            [_bits(row.live) for row in rows],
            [_bits(row.origins) for row in rows],
            [
                _System(msgspec.Raw(each.message.to_json()), each.tag, each.behind)
                for each in held.systems.every
            ],
            [
                _Branch(each.behind, msgspec.Raw(dump_messages(each.messages)))
                for each in held.branches
            ],
            held.thread_id,
            held.resource_id,
        )
    )


def load(data: bytes | str) -> Held:
    """JSON → what a list holds.

    Raises:
        HistoryError: it is no list that `dump` wrote.
    """
    if not isinstance(cast(object, data), bytes | bytearray | str):
        raise HistoryError(
            f"a stored list of messages is bytes or a string, not {type(data).__name__}"
        )
    try:
        json_bytes.bound(data, 2 + 2 * json_bytes.MOST_DEPTH)
        found = msgspec.json.decode(data, type=_Stored)
    except (ValueError, RecursionError) as error:
        raise HistoryError(
            f"not a stored list of messages: {error}. Write it with MessageList.dump()."
        ) from error
    if found.list_version != _VERSION:
        raise HistoryError(
            f"a list of messages of version {found.list_version}; this release reads version {_VERSION}"
        )
    messages = load_messages(bytes(found.messages))
    systems = [
        System(Message.from_json(bytes(each.message)), each.tag, each.behind)
        for each in found.system
    ]
    if {len(found.order), len(found.live), len(found.origins)} != {len(messages)}:
        raise HistoryError(
            "not a stored list of messages: it does not know of each message when it came, and from where"
        )
    if any(each.message.role is not Role.SYSTEM for each in systems) or any(
        one.role is Role.SYSTEM for one in messages
    ):
        raise HistoryError(
            "not a stored list of messages: system messages stand in `system`, all others in `messages`"
        )
    rows = Rows()
    known = zip(
        messages, found.order, map(_sources, found.live), map(_sources, found.origins), strict=True
    )
    for message, order, live, origins in known:
        rows.append(Row(message, order, live, origins))
    branches = [
        Branch(each.behind, tuple(load_messages(bytes(each.messages)))) for each in found.branches
    ]
    return Held(rows, Systems(systems), branches, found.thread_id, found.resource_id)


def _bits(sources: frozenset[str]) -> int:
    return sum(1 << place for place, source in enumerate(SOURCES) if source in sources)


_SETS: Sequence[frozenset[str]] = [
    frozenset(source for place, source in enumerate(SOURCES) if bits & 1 << place)
    for bits in range(1 << len(SOURCES))
]


def _sources(bits: int) -> frozenset[str]:
    if not 0 <= bits < len(_SETS):
        raise HistoryError(f"not a stored list of messages: {bits} is no set of sources")
    return _SETS[bits]
