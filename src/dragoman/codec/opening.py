"""What a conversation began with: the system text and the tools of its first request.

Some models bind what they sign to everything before it: system text, tools and messages. So the
first answer notes the system text and the tools that it was asked with (its *opening*), and the
answer to a request that changed them notes the message which said so (a *change*). Each later
request is made of these notes again: it begins with the opening, and has each change at its place.

The notes stand in the answer's `native`, where no wire writes them and no digest counts them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from operator import is_
from typing import NamedTuple

import msgspec

from dragoman.codec import digest
from dragoman.codec.json_values import if_object
from dragoman.json_bytes import Json
from dragoman.message import OURS, Message, Native, Origin, Role
from dragoman.request import ServerTool, ToolSpec

__all__ = [
    "Began",
    "Change",
    "Note",
    "Opening",
    "digest_system",
    "digest_tools",
    "find_opening",
    "hide_opening",
    "hide_openings",
    "count_system_messages",
]

Tools = tuple[ToolSpec | ServerTool, ...]
_KEY = "prefix"
_digested: deque[tuple[Tools, str]] = deque(maxlen=32)
"""Tools that were digested last, and their digests."""
_CACHE_MARK = "cache_control"


class Began(msgspec.Struct, frozen=True, omit_defaults=True):
    """The system text and the tools that a conversation began with."""

    system: tuple[Message, ...] = ()
    """The system messages at its head."""
    tools: Tools = ()
    """The tools of its first request."""


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """System text or tools that changed in the middle of a conversation."""

    message: Message
    """The system message that says so, as it was sent."""
    now: Began
    """The system text and the tools from here on."""


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an answer notes of its request."""

    began: Began | None = None
    """The conversation begins anew here."""
    change: Change | None = None
    """This has changed."""
    drops: bool = False
    """The provider was told to drop thinking that is bound to another conversation. It has to be
    told so with every later request."""

    def add_to(self, native: Native) -> Native:
        """Returns the `native` of the answer with this note of the opening."""
        if self == _NOTHING:
            return native
        ours = if_object((native or {}).get(OURS))
        # as a stored history has it when it is read again
        note = msgspec.json.decode(msgspec.json.encode(self))
        return {**(native or {}), OURS: {**ours, _KEY: note}}


_NOTHING = Note()


class Opening(NamedTuple):
    """How a conversation began, and what has changed since."""

    began: Began | None
    """`None`: no answer has noted it."""
    changes: tuple[tuple[int, Change], ...]
    """Each with the position of the answer before which it is sent, oldest first."""
    drops: bool
    """The provider drops thinking that is bound to another conversation."""

    def restore(self, messages: Sequence[Message]) -> tuple[tuple[Message, ...], list[int]]:
        """Returns the opening's messages: those behind the head with each change before its answer,
        and for each the position that it has in `messages`; a change has that of its answer."""
        restored: list[Message] = []
        moved: list[int] = []
        begin = count_system_messages(messages)
        for position, change in self.changes:
            restored += (*messages[begin:position], change.message)
            moved += (*range(begin, position), position)
            begin = position
        restored += messages[begin:]
        moved += range(begin, len(messages))
        return tuple(restored), moved


def find_opening(messages: Sequence[Message], target: Origin) -> Opening:
    """Returns how the conversation began for `target`, and what has changed since.

    Args:
        messages: the conversation, whose answers have notes. The newest beginning counts: all that
            was signed before it is void.
        target: who reads the conversation; notes of other providers' answers are passed over.
    """
    changes: list[tuple[int, Change]] = []
    drops = False
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.native is None or OURS not in message.native:
            continue
        note = _read_note(message)
        if note is None or message.origin is None or message.origin.provider != target.provider:
            continue
        # It must be said in every later request, so one note in any answer counts for all.
        drops = drops or note.drops
        if note.change is not None:
            changes.append((position, note.change))
        if note.began is not None:
            return Opening(note.began, tuple(reversed(changes)), drops)
    return Opening(None, (), drops)


def hide_opening(native: Native) -> Native:
    """Returns the `native` of a message without what it notes of its conversation's opening.

    Formats for clients neither write the note, since a system text is not for them, nor read it,
    since a forged one would put a client's words in the place of the agent's system text. Only the
    stored form (`dump_messages`) holds it.
    """
    if not native or OURS not in native or _KEY not in if_object(native[OURS]):
        return native
    ours = {name: value for name, value in native[OURS].items() if name != _KEY}
    rest = {name: value for name, value in native.items() if name != OURS}
    return {**rest, **({OURS: ours} if ours else {})} or None


def hide_openings(messages: Iterable[Message]) -> list[Message]:
    """Returns messages without what they note of their conversation's opening."""
    return [
        message
        if message.native is None or (native := hide_opening(message.native)) is message.native
        else message.replace(native=native)
        for message in messages
    ]


def digest_system(system: Sequence[Message]) -> str:
    """Returns the digest of the system text that `Origin.system` holds; cache marks do not
    count."""
    return digest.chain_neutral_digests(system)[-1]


def digest_tools(tools: Tools) -> str:
    """Returns the digest of the tools that `Origin.tools` holds of the opening, in their order."""
    if not tools:
        return ""
    for known, known_digest in _digested:
        # the same objects, as in nearly every request of an agent
        if len(known) == len(tools) and all(map(is_, known, tools)):
            return known_digest
    made = digest.digest_value([_plain_tool(tool) for tool in tools])
    _digested.appendleft((tools, made))
    return made


def _plain_tool(tool: ToolSpec | ServerTool) -> ToolSpec | ServerTool:
    """Returns a tool of the opening without its cache mark, which a request may move."""
    if not tool.native:
        return tool
    native = {
        wire: {name: value for name, value in if_object(fields).items() if name != _CACHE_MARK}
        for wire, fields in tool.native.items()
    }
    return msgspec.structs.replace(
        tool, native={key: own for key, own in native.items() if own} or None
    )


def _read_note(message: Message) -> Note | None:
    """Returns the note of the conversation's opening in an answer, or None if it has none that
    dragoman wrote."""
    note: Json = if_object(if_object((message.native or {}).get(OURS)).get(_KEY))
    if not note:
        return None
    try:
        return msgspec.convert(note, Note)
    except (msgspec.ValidationError, ValueError):
        return None


def count_system_messages(messages: Sequence[Message]) -> int:
    """Returns the number of system messages at the head of a conversation, which make its
    opening."""
    return next(
        (index for index, message in enumerate(messages) if message.role is not Role.SYSTEM),
        len(messages),
    )
