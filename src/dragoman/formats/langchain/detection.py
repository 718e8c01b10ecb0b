"""Whether a message is one of LangChain's."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.formats.langchain.envelope import CLASSES

__all__ = ["votes"]


def votes(message: Any) -> int:
    """How surely a message is of this format: 0 = cannot be, 1 = could be, 2 = likely, 3 = hardly anything else."""
    fields = if_object(message)
    if isinstance(fields.get("lc"), int) and fields.get("type") == "constructor":
        path = if_list(fields.get("id"))
        return (
            3
            if path
            and if_text(path[-1]) in CLASSES.values()
            and isinstance(fields.get("kwargs"), dict)
            else 0
        )
    type_ = if_text(fields.get("type"))
    if type_ not in CLASSES or ("role" in fields and type_ not in ("chat", "ChatMessageChunk")):
        return 0
    if isinstance(fields.get("data"), dict) and "content" not in fields:
        return 3 if "content" in fields["data"] else 2
    if not isinstance(fields.get("content"), (str, list)):
        return 0
    return (
        3
        if {"additional_kwargs", "response_metadata", "tool_calls", "tool_call_id"} & fields.keys()
        else 2
    )
