"""The field `content` of a message, as most APIs have it: one text, or a list of blocks with a type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_objects
from dragoman.errors import HistoryError
from dragoman.message import Content, TextPart

__all__ = ["ABSENT", "dump_content", "is_plain", "load_content", "plain_text"]

ABSENT = "absent"
"""Wire form: the field was not there at all."""


def load_content(
    message: Mapping[str, Any],
    empty: object,
    form: dict[str, Any],
    load: Callable[[Mapping[str, Any]], Content],
) -> list[Content]:
    """The `content` of a message → its pieces. `empty`: how no content is usually written; another way goes to `form`. `load` reads
    a block.

    Raises:
        HistoryError: it is neither a text nor a list of blocks.
    """
    content = message.get("content")
    if not content:
        how = content if "content" in message else ABSENT
        if how != empty:
            form["content"] = how
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not (blocks := if_objects(content)):
        raise HistoryError(
            f"the content of a {message.get('role')} message is neither a text nor a list of blocks"
        )
    if is_plain(blocks):
        form["content"] = "list"
    return [load(block) for block in blocks]


def dump_content(
    blocks: Sequence[dict[str, Any]],
    empty: object,
    form: Mapping[str, Any],
    *,
    string_only: bool = False,
) -> dict[str, Any]:
    """Blocks → the field `content`: a string for one plain text (and for several where the vendor takes nothing else),
    else a list."""
    how = form.get("content", empty)
    if not blocks:
        how = empty if how == "list" else how
        return {} if how == ABSENT else {"content": how}
    texts = [plain_text(block) for block in blocks]
    if None not in texts and (string_only or (len(texts) == 1 and how != "list")):
        return {"content": "".join(map(str, texts))}
    return {"content": list(blocks)}


def plain_text(block: Mapping[str, Any]) -> str | None:
    """The text of a block that is text and nothing else, and not empty."""
    text = block.get("text")
    return (
        text
        if len(block) == 2 and block.get("type") == "text" and isinstance(text, str) and text
        else None
    )


def is_plain(blocks: Sequence[Mapping[str, Any]]) -> bool:
    """Whether it is one text and nothing else."""
    return len(blocks) == 1 and plain_text(blocks[0]) is not None
