"""Memos: user messages that a memory writes into a thread for the model, never for people.

A memo holds what was recalled from earlier messages, or the working memory of another thread. It is
stored before the prompt, once, and never changes, so that what a provider signed or cached after it
stays valid. User interfaces, search, titles and the count of a window leave memos out.
"""

from __future__ import annotations

from dragoman.message import Message, Role

__all__ = ["RECALLED", "WORKING_MEMORY", "WORKING_TOOL", "is_memo"]

RECALLED = "recalled"
"""Key in the metadata of a memo that quotes earlier messages; its value lists their ids."""
WORKING_MEMORY = "working_memory"
"""Key in the metadata of a memo that holds a working memory; its value is the version."""
WORKING_TOOL = "updateWorkingMemory"
"""Name of the tool with which a model changes its working memory."""


def is_memo(message: Message) -> bool:
    """True if a memory wrote the message into the thread, and no person did."""
    return message.role is Role.USER and not message.metadata.keys().isdisjoint(_KEYS)


_KEYS = frozenset((RECALLED, WORKING_MEMORY))
