"""What the dump of a conversation must know in this family beside what it must know in all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.codec import outgoing
from dragoman.codec.ids import call_ids, fitted
from dragoman.loss import Loss
from dragoman.message import Message, Origin, Role, ToolCallPart, ToolResultPart
from dragoman.request import ToolSpec

if TYPE_CHECKING:
    from dragoman.wires.chat.dialect import Chat

__all__ = ["Outgoing", "named", "prepared", "usual"]

_NOTHING: dict[str, str] = {}


class Outgoing(outgoing.Outgoing[Any], frozen=True, kw_only=True, gc=False):
    """One conversation on its way out. The fields beyond the general ones are what a vendor's quirks say."""

    chat: Chat
    """The format in which it goes."""
    roles: Mapping[str, Role]
    """The roles that the target knows."""
    blocks: Mapping[str, str] = _NOTHING
    """Media type, or its first half → the block that carries it, beyond the usual ones."""
    string_only: bool = False
    """Text is one string only, never a list of blocks."""
    tool_media: bool = False
    """Tool messages may hold media; else they follow in a user message."""
    thinking: str | None = None
    """The field for thinking that came in no field of this format; `None`: it is left out."""
    json_schema: bool = True
    """The vendor takes a schema of the output; else JSON mode stands in for it."""
    refuses: Collection[str] = ()
    """Fields of the body that the vendor refuses."""
    ways: Mapping[str, str] = _NOTHING
    """Setting → the way in which the vendor takes it, where that is not the usual one."""
    bridge: str | None = None
    """What the model is made to say between results of tools and a user's message; `None`: nothing."""


def prepared(
    chat: Chat,
    messages: Sequence[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    **own: Any,
) -> Outgoing:
    """A conversation made ready for its dump; `own`: `ids`, `names` and what else differs from the usual."""
    fields = {"chat": chat, "roles": chat.roles, "tool_media": quirks.tool_media, **own}
    return outgoing.prepared(Outgoing, messages, target, quirks, losses, **fields)


def usual(
    chat: Chat,
    messages: Sequence[Message],
    target: Origin | None,
    quirks: Any,
    losses: list[Loss] | None,
    tools: Sequence[ToolSpec],
) -> Outgoing:
    """The same for a vendor that takes ids and names of the usual kind, and thinking in its first field for it."""
    ids, names = call_ids(messages), fitted([one.name for one in named(messages, tools)])
    thinking = next(iter(chat.thinking), None)
    return prepared(chat, messages, target, quirks, losses, ids=ids, names=names, thinking=thinking)


def named(messages: Iterable[Message], tools: Sequence[ToolSpec]) -> list[ToolSpec | ToolCallPart | ToolResultPart]:
    """All that has the name of a tool."""
    pieces = [piece for message in messages for piece in message.content]
    return [*tools, *(one for one in pieces if isinstance(one, (ToolCallPart, ToolResultPart)) and one.name)]
