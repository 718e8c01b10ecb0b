"""What a conversation began with: the system text and the tools of its first request.

Some models bind what they sign to everything before it: system text, tools and messages. So the
first answer notes the system text and the tools that it was asked with (its *opening*), and the
answer to a request that changed them notes the message which said so (a *change*). Each later
request is made of these notes again: it begins with the opening, and has each change at its place.

The notes stand in the answer's `native`, where no wire writes them and no digest counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from dragoman.codec import digest
from dragoman.codec.json_values import if_object
from dragoman.json_bytes import Json
from dragoman.message import OURS, Message, Native, Origin, Role
from dragoman.request import ServerTool, ToolSpec

__all__ = ["Change", "Opening", "digest_system", "digest_tools", "find_opening", "head_length"]

Tools = tuple[ToolSpec | ServerTool, ...]
_KEY = "prefix"
_CACHE_MARK = "cache_control"


class Change(msgspec.Struct, frozen=True, omit_defaults=True):
    """System text or tools that changed in the middle of a conversation."""

    message: Message
    """The system message that says so, as it was sent."""
    system: tuple[Message, ...]
    """The system text from here on."""
    tools: Tools
    """The tools from here on."""


class _Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """What an answer notes. An opening has no `change`."""

    system: tuple[Message, ...] = ()
    tools: Tools = ()
    change: Change | None = None


class Opening(NamedTuple):
    """How a conversation began, and what has changed since."""

    system: tuple[Message, ...]
    """The system messages at its head."""
    tools: Tools
    """The tools of its first request."""
    changes: tuple[tuple[int, Change], ...] = ()
    """Each with the position of the answer before which it is sent, oldest first."""

    @property
    def latest(self) -> tuple[tuple[Message, ...], Tools]:
        """The system text and the tools that the model knows of by now."""
        if not self.changes:
            return self.system, self.tools
        change = self.changes[-1][1]
        return change.system, change.tools

    def restore(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Returns the messages behind the head, with each change before its answer."""
        restored: list[Message] = []
        begin = head_length(messages)
        for position, change in self.changes:
            restored += messages[begin:position]
            restored.append(change.message)
            begin = position
        return (*restored, *messages[begin:])

    def note(self, native: Native = None) -> Native:
        """Returns the `native` of the first answer, which notes this opening."""
        return _with_note(native, _Note(self.system, self.tools))


def note_change(change: Change, native: Native = None) -> Native:
    """Returns the `native` of the answer to a request that had this change."""
    return _with_note(native, _Note(change=change))


def find_opening(messages: Sequence[Message], target: Origin) -> Opening | None:
    """Returns how the conversation began for `target`, and what has changed since.

    Args:
        messages: the conversation, whose answers have notes. The newest opening counts: all that
            was signed before it is void.
        target: who reads the conversation; notes of other providers' answers are passed over.
    """
    changes: list[tuple[int, Change]] = []
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.native is None or OURS not in message.native:
            continue
        note = _read_note(message)
        if note is None or message.origin is None or message.origin.provider != target.provider:
            continue
        if note.change is None:
            return Opening(note.system, note.tools, tuple(reversed(changes)))
        changes.append((position, note.change))
    return None


def head_length(messages: Sequence[Message]) -> int:
    """Returns how many system messages a conversation begins with."""
    for position, message in enumerate(messages):
        if message.role is not Role.SYSTEM:
            return position
    return len(messages)


def digest_system(system: Sequence[Message]) -> str:
    """Returns the digest of the system text that `Origin.system` holds; cache marks do not
    count."""
    return digest.neutral_chain(system)[-1]


def digest_tools(tools: Sequence[ToolSpec | ServerTool]) -> str:
    """Returns the digest of the tools that `Origin.tools` holds, in their order."""
    return digest.of_value([_plain_tool(tool) for tool in tools]) if tools else ""


def _plain_tool(tool: ToolSpec | ServerTool) -> ToolSpec | ServerTool:
    """The tool without its cache mark, which a request may move."""
    if not tool.native:
        return tool
    native = {
        wire: {name: value for name, value in fields.items() if name != _CACHE_MARK}
        for wire, fields in tool.native.items()
        if isinstance(fields, Mapping)
    }
    return msgspec.structs.replace(tool, native={key: own for key, own in native.items() if own} or None)


def _with_note(native: Native, note: _Note) -> Native:
    ours = if_object((native or {}).get(OURS))
    return {**(native or {}), OURS: {**ours, _KEY: msgspec.to_builtins(note)}}


def _read_note(message: Message) -> _Note | None:
    """The note of an answer; `None`: it has none, or one that somebody else wrote."""
    note: Json = if_object(if_object((message.native or {}).get(OURS)).get(_KEY))
    if not note:
        return None
    try:
        return msgspec.convert(note, _Note)
    except (msgspec.ValidationError, ValueError):
        return None
