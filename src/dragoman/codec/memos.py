"""Memos: user messages that a memory writes into a thread for the model, never for people.

A memo holds what was recalled from earlier messages, or the working memory of another thread. It is
stored before the prompt, once, and never changes, so that what a provider signed or cached after it
stays valid. User interfaces, search, titles and the count of a window leave memos out.
"""

from __future__ import annotations

from dragoman.message import Message, Role, ToolCallPart, ToolResultPart

__all__ = [
    "RECALLED",
    "WORKING_MEMORY",
    "WORKING_TAGS",
    "WORKING_TOOL",
    "find_working_memory",
    "hide_working_text",
    "is_memo",
    "is_working_part",
]

RECALLED = "recalled"
"""Key in the metadata of a memo that quotes earlier messages; its value lists their ids."""
WORKING_MEMORY = "working_memory"
"""Key in the metadata of a memo that shows a working memory, and of an answer that holds one; its
value is the version."""
WORKING_TAGS = ("<working_memory>", "</working_memory>")
"""What is around a working memory in an answer."""
WORKING_TOOL = "updateWorkingMemory"
"""Name of the tool with which a model changes its working memory."""


def find_working_memory(text: str) -> str | None:
    """Returns what is between the first `<working_memory>` of an answer and the
    `</working_memory>` that follows it, or None if it does not end. Takes linear time."""
    span = _find_working_span(text)
    if span is None:
        return None
    start_tag, end_tag = WORKING_TAGS
    return text[span[0] + len(start_tag) : span[1] - len(end_tag)].strip()


def hide_working_text(text: str) -> str:
    """Returns the text of an answer without the working memory that it holds."""
    span = _find_working_span(text)
    return text if span is None else text[: span[0]] + text[span[1] :]


def is_working_part(part: object) -> bool:
    """True for a call with which the agent's model changes its working memory, and for its
    result."""
    return (
        isinstance(part, ToolCallPart | ToolResultPart)
        and part.name == WORKING_TOOL
        and part.run_by == "agent"
    )


def _find_working_span(text: str) -> tuple[int, int] | None:
    """Returns where a working memory with its tags begins and ends, or None."""
    start_tag, end_tag = WORKING_TAGS
    start = text.find(start_tag)
    if start < 0:
        return None
    end = text.find(end_tag, start + len(start_tag))
    return None if end < 0 else (start, end + len(end_tag))


def is_memo(message: Message) -> bool:
    """True if a memory wrote the message into the thread, and no person did."""
    return message.role is Role.USER and not message.metadata.keys().isdisjoint(_KEYS)


_KEYS = frozenset((RECALLED, WORKING_MEMORY))
