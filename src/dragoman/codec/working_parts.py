"""What of a conversation belongs to a working memory, and how it is hidden from people.

A model changes its working memory by a call of a tool, or between two tags in its answer. Both stay
in what is stored: a model's signed thinking holds only with what it was sent with. User interfaces
and search leave them out.
"""

from __future__ import annotations

from msgspec.structs import replace

from dragoman.message import (
    Content,
    Message,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = [
    "WORKING_MEMORY",
    "WORKING_TAGS",
    "WORKING_TOOL",
    "find_working_memory",
    "hide_working",
    "hide_working_text",
    "is_working_part",
]

WORKING_MEMORY = "working_memory"
"""Key in the metadata of a memo that shows a working memory, and of an answer that holds one; its
value is the version."""
WORKING_TAGS = ("<working_memory>", "</working_memory>")
"""What is around a working memory in an answer."""
WORKING_TOOL = "updateWorkingMemory"
"""Name of the tool with which a model changes its working memory."""
_OF_TOOLS = (ToolCallPart, ToolResultPart)


def find_working_memory(text: str) -> str | None:
    """Returns what is between the first `<working_memory>` of an answer and the
    `</working_memory>` that follows it, or None if it does not end. Takes linear time."""
    span = _find_span(text)
    if span is None:
        return None
    start_tag, end_tag = WORKING_TAGS
    return text[span[0] + len(start_tag) : span[1] - len(end_tag)].strip()


def hide_working_text(text: str) -> str:
    """Returns the text of an answer without the working memory that it holds."""
    span = _find_span(text)
    return text if span is None else text[: span[0]] + text[span[1] :]


def is_working_part(part: object) -> bool:
    """True for a call with which the agent's model changes its working memory, and for its
    result."""
    return isinstance(part, _OF_TOOLS) and part.name == WORKING_TOOL and part.run_by == "agent"


def hide_working(message: Message) -> Message | None:
    """Returns a message without what it says of the working memory; `None` if nothing but thinking
    and blank text is left of it."""
    if not message.metadata and not any(map(is_working_part, message.content)):
        return message
    return _leave_out_working(message)


def _leave_out_working(message: Message) -> Message | None:
    """Returns a message that may say something of a working memory, as `hide_working` does."""
    content = [piece for piece in message.content if not is_working_part(piece)]
    if message.role is Role.MODEL and WORKING_MEMORY in message.metadata:
        content = [part for piece in content for part in _hide_in_text(piece)]
    elif len(content) == len(message.content):
        return message
    if all(_is_blank(piece) for piece in content):
        return None
    return message.replace(content=tuple(content))


def _hide_in_text(piece: Content) -> list[Content]:
    """Returns a text part without the working memory in it."""
    if not isinstance(piece, TextPart):
        return [piece]
    text = hide_working_text(piece.text)
    return [replace(piece, text=text)] if text else []


def _is_blank(piece: Content) -> bool:
    return isinstance(piece, ThinkingPart) or (
        isinstance(piece, TextPart) and not piece.text.strip()
    )


def _find_span(text: str) -> tuple[int, int] | None:
    """Returns where a working memory with its tags begins and ends, or None."""
    start_tag, end_tag = WORKING_TAGS
    start = text.find(start_tag)
    if start < 0:
        return None
    end = text.find(end_tag, start + len(start_tag))
    return None if end < 0 else (start, end + len(end_tag))
