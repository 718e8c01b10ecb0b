"""A list as JSON, and back: its messages, and what it knows of each beside them.

`dump` writes the messages as one array. Beside it stand lists of the same length that say when
each message came and from which sources; a set of sources is one number, a bit for each source.
System messages and replaced branches have arrays of their own.

`load` first decodes the frame with the messages still raw, and checks the depth and the version.
Then it reads the messages, and refuses lists of different lengths and roles in the wrong array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from dragoman import json_bytes
from dragoman.errors import HistoryError
from dragoman.history.add import ReplacedBranch
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import SOURCES
from dragoman.history.system_messages import System, Systems
from dragoman.message import Message, Role, dump_messages, load_messages

__all__ = ["ListContents", "dump", "load"]

_VERSION = 1


class ListContents(NamedTuple):
    """What a list holds."""

    rows: Rows
    """Its messages."""
    systems: Systems
    """Its system messages."""
    branches: list[ReplacedBranch]
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
    """A list as JSON has it: beside its messages a list each of what rows know of them, sources as
    bits."""

    list_version: int
    messages: msgspec.Raw
    order: list[int]
    live: list[int]
    origins: list[int]
    system: list[_System] = []
    branches: list[_Branch] = []
    thread_id: str | None = None
    resource_id: str | None = None


def dump(contents: ListContents) -> bytes:
    """Writes a message list as JSON.

    Raises:
        HistoryError: a message holds what JSON cannot.
    """
    rows = list(contents.rows)
    return msgspec.json.encode(
        _Stored(
            _VERSION,
            msgspec.Raw(dump_messages([row.message for row in rows])),
            [row.order for row in rows],
            [_bits(row.live) for row in rows],
            [_bits(row.origins) for row in rows],
            [
                _System(msgspec.Raw(item.message.to_json()), item.tag, item.behind)
                for item in contents.systems.every
            ],
            [
                _Branch(item.behind, msgspec.Raw(dump_messages(item.messages)))
                for item in contents.branches
            ],
            contents.thread_id,
            contents.resource_id,
        )
    )


def load(data: bytes | str) -> ListContents:
    """Reads a message list from JSON.

    Raises:
        HistoryError: it is no list that `dump` wrote.
    """
    stored_list = _decode_stored_list(data)
    messages = load_messages(bytes(stored_list.messages))
    systems = [
        System(Message.from_json(bytes(item.message)), item.tag, item.behind)
        for item in stored_list.system
    ]
    if {len(stored_list.order), len(stored_list.live), len(stored_list.origins)} != {len(messages)}:
        raise HistoryError(
            "not a stored list of messages: it does not know of each message when it came, and from where"
        )
    if any(item.message.role is not Role.SYSTEM for item in systems) or any(
        message.role is Role.SYSTEM for message in messages
    ):
        raise HistoryError(
            "not a stored list of messages: system messages stand in `system`, all others in `messages`"
        )
    rows = Rows()
    entries = zip(
        messages,
        stored_list.order,
        map(_sources, stored_list.live),
        map(_sources, stored_list.origins),
        strict=True,
    )
    for message, order, live, origins in entries:
        rows.append(Row(message, order, live, origins))
    branches = [
        ReplacedBranch(item.behind, tuple(load_messages(bytes(item.messages))))
        for item in stored_list.branches
    ]
    return ListContents(
        rows, Systems(systems), branches, stored_list.thread_id, stored_list.resource_id
    )


def _decode_stored_list(data: bytes | str) -> _Stored:
    """Decodes a stored list from JSON, without reading its messages.

    Raises:
        HistoryError: it is no such list, or one of another version.
    """
    if not isinstance(cast(object, data), bytes | bytearray | str):
        raise HistoryError(
            f"a stored list of messages is bytes or a string, not {type(data).__name__}"
        )
    try:
        json_bytes.check_depth(data, 2 + 2 * json_bytes.MOST_DEPTH)
        stored_list = msgspec.json.decode(data, type=_Stored)
    except (ValueError, RecursionError) as error:
        raise HistoryError(
            f"not a stored list of messages: {error}. Write it with MessageList.dump()."
        ) from error
    if stored_list.list_version != _VERSION:
        raise HistoryError(
            f"a list of messages of version {stored_list.list_version}; this release reads version {_VERSION}"
        )
    return stored_list


def _bits(sources: frozenset[str]) -> int:
    return sum(1 << bit for bit, source in enumerate(SOURCES) if source in sources)


_SETS: Sequence[frozenset[str]] = [
    frozenset(source for place, source in enumerate(SOURCES) if bits & 1 << place)
    for bits in range(1 << len(SOURCES))
]


def _sources(bits: int) -> frozenset[str]:
    if not 0 <= bits < len(_SETS):
        raise HistoryError(f"not a stored list of messages: {bits} is no set of sources")
    return _SETS[bits]
