"""Memos: user messages that a memory writes into a thread for the model, never for people.

A memo holds what was recalled from earlier messages, or the working memory of another thread. It is
stored before the prompt, once, and never changes, so that what a provider signed or cached after it
stays valid. User interfaces, search, titles and the count of a window leave memos out.

Formats for clients neither write memos nor read them: a client that could write one would hide its
own words from people, and put them where a model takes them for remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from dragoman.codec.opening import hide_openings
from dragoman.codec.working_parts import WORKING_MEMORY, hide_working
from dragoman.loss import Loss
from dragoman.message import Message, Role

__all__ = [
    "RECALLED",
    "disown_memos",
    "dump_for_client",
    "hide_memos",
    "is_memo",
    "load_from_client",
    "select_visible",
]

T = TypeVar("T")
RECALLED = "recalled"
"""Key in the metadata of a memo that quotes earlier messages; its value lists their ids."""
_KEYS = frozenset((RECALLED, WORKING_MEMORY))


def is_memo(message: Message) -> bool:
    """True if a memory wrote the message into the thread, and no person did."""
    return message.role is Role.USER and not message.metadata.keys().isdisjoint(_KEYS)


def hide_memos(messages: Iterable[Message]) -> list[Message]:
    """Returns the messages that people may see: all but memos."""
    return [
        message
        for message in messages
        if _KEYS.isdisjoint(message.metadata) or not is_memo(message)
    ]


def select_visible(messages: Iterable[Message]) -> list[tuple[int, Message]]:
    """Returns the messages without memos, which people may see, each with its position: no memos,
    and nothing of how a model changes its working memory."""
    visible: list[tuple[int, Message]] = []
    for position, message in enumerate(messages):
        public = None if message.metadata and is_memo(message) else hide_working(message)
        if public is not None:
            visible.append((position, public))
    return visible


def disown_memos(messages: Iterable[Message]) -> list[Message]:
    """Returns a client's messages, none of which is a memo: one that says so is an ordinary
    message."""
    return [_disown(message) if is_memo(message) else message for message in messages]


def load_from_client(messages: Iterable[Message]) -> list[Message]:
    """Returns what may be read of a client's messages: it may say neither what a conversation began
    with, nor what a memory recalled."""
    return hide_openings(disown_memos(messages))


def dump_for_client(
    messages: Sequence[Message],
    losses: list[Loss],
    dump: Callable[[Sequence[Message], list[Loss]], T],
) -> T:
    """Returns what `dump` writes of the messages that a client may have, so without memos, without
    what answers note of their requests.

    Args:
        messages: the conversation.
        losses: grows with the losses, which name positions in this conversation.
        dump: writes messages, and adds its losses to the list.
    """
    selected = select_visible(messages)
    visible = hide_openings([message for _, message in selected])
    if len(selected) == len(messages):
        return dump(visible, losses)
    lost: list[Loss] = []
    written = dump(visible, lost)
    losses += [
        loss if loss.message is None else replace(loss, message=selected[loss.message][0])
        for loss in lost
    ]
    return written


def _disown(message: Message) -> Message:
    metadata = {name: value for name, value in message.metadata.items() if name not in _KEYS}
    return message.replace(metadata=metadata)
