"""Which dialect a message is of, told by its structure, and how surely it is one of the family's at
all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text
from dragoman.wires.ai_sdk_messages.model_messages import MODEL_DIALECTS
from dragoman.wires.ai_sdk_messages.notes import CORE, MODEL, UI, V4, Fields

__all__ = ["dialect_in", "is_v4", "model_votes", "row_votes", "split_row_votes", "ui_votes"]

_ROLES = ("system", "user", "assistant")
_V4_FIELDS = frozenset(
    ["toolInvocations", "reasoning", "experimental_attachments", "data", "annotations"]
)
_V4_PART_FIELDS = frozenset(["toolInvocation", "source", "reasoning"])
_KNOWN = frozenset(
    ["text", "reasoning", "file", "dynamic-tool", "step-start", "source-url", "source-document", "source"]
)  # fmt: skip
"""Types of parts of UI messages. Those of calls and data begin with `tool-` and `data-`."""
_CORE_METADATA = "experimental_providerMetadata"
_MODEL_FIELDS = frozenset(["role", "content", "id", "providerOptions", _CORE_METADATA])
_MODEL_TYPES = frozenset(MODEL_DIALECTS[MODEL].loaders)
"""Types of parts of model messages. Those of approvals begin with `tool-approval-`."""
_MODEL_MARKS = frozenset(["providerOptions", "mediaType", "mimeType", "image", "filename"])
_PLAIN_FIELDS = {"id", "role", "content"}


def dialect_in(fields: Fields, *, is_model: bool = False) -> str:
    """Returns the dialect of a message. `is_model` decides where it may be a UI or a model
    message."""
    content = fields.get("content")
    if isinstance(fields.get("parts"), list):
        return V4 if is_v4(fields) else UI
    is_old = not _V4_FIELDS.isdisjoint(fields)
    if fields.get("role") == "tool" or (isinstance(content, list) and not is_old):
        if _is_core(if_list(content), fields):
            return CORE
        return MODEL
    if is_old:
        return V4
    if not isinstance(content, str):
        return UI
    # No model message has a time, and none needs an id: they are a front end's.
    if "createdAt" in fields or ("id" in fields and not is_model):
        return V4
    return CORE if _CORE_METADATA in fields else MODEL


def _is_core(parts: Sequence[Any], fields: Fields) -> bool:
    """True if the parts of a model message are those of ai 4. Without a sign they are not."""
    return _CORE_METADATA in fields or any(_is_core_part(if_object(part)) for part in parts)


def _is_core_part(part: Fields) -> bool:
    """True if a part of a model message can only be of ai 4."""
    type_ = part.get("type")
    if type_ == "redacted-reasoning" or "mimeType" in part or _CORE_METADATA in part:
        return True
    if type_ == "tool-call":
        return "input" not in part and "args" in part
    if type_ == "tool-result":
        return "output" not in part
    return type_ == "reasoning" and "signature" in part


def is_v4(fields: Fields) -> bool:
    """True if a UI message is of ai 4: it has a `content`, or fields and parts that no other
    release has."""
    if isinstance(fields.get("content"), str) or not _V4_FIELDS.isdisjoint(fields):
        return True
    parts = if_list(fields.get("parts"))
    return any(type(part) is dict and not _V4_PART_FIELDS.isdisjoint(part) for part in parts)


def ui_votes(message: Any) -> int:
    """Returns how likely a message is a UI message: 0 = no, 1 = possible, 2 = likely, 3 =
    certain."""
    fields = if_object(message)
    parts, content = fields.get("parts"), fields.get("content")
    is_text = isinstance(content, str)
    if fields.get("role") not in (*_ROLES, "data") or ("content" in fields and not is_text):
        return 0
    if parts is None and is_text:
        return _old_ui_votes(fields)
    types = _types_in(parts)
    if types is None:
        return 0
    return 3 if any(map(_is_ui_type, types)) else 2


def _is_ui_type(type_: str) -> bool:
    """True for the type of a part that only UI messages have."""
    return type_ in _KNOWN or type_.startswith(("tool-", "data-"))


def _old_ui_votes(fields: Fields) -> int:
    """Returns the votes for a message of ai 4 without parts."""
    if not _V4_FIELDS.isdisjoint(fields) and "id" in fields:
        return 3
    # No API of a model takes an id here: it is a front end's, whose edits name messages by it.
    has_id = isinstance(fields.get("id"), str) and set(fields) == _PLAIN_FIELDS
    if has_id or "createdAt" in fields:
        return 2
    return 0


def _types_in(parts: Any) -> list[str] | None:
    """Returns the types of parts, or None if they are no list of parts."""
    if not isinstance(parts, list):
        return None
    types = [if_text(if_object(part).get("type")) for part in if_list(parts)]
    return types if all(types) else None


def model_votes(message: Any) -> int:
    """Returns how likely a message is a model message, from 0 to 3 as in `ui_votes`."""
    fields = if_object(message)
    content, role = fields.get("content"), fields.get("role")
    if role not in (*_ROLES, "tool") or not fields.keys() <= _MODEL_FIELDS:
        return 0
    if isinstance(content, str) and role != "tool":
        return 3 if "providerOptions" in fields else 1
    types = _types_in(content)
    if role == "system" or types is None or not all(map(_is_model_type, types)):
        return 0
    return _part_votes(if_objects(content))


def _is_model_type(type_: str) -> bool:
    """True for the type of a part that model messages have."""
    return type_ in _MODEL_TYPES or type_.startswith("tool-approval-")


def _part_votes(parts: Sequence[Fields]) -> int:
    """Returns the votes for a model message whose parts all have known types."""
    # A type with a hyphen, such as `tool-call`, is the family's own.
    if any("-" in part["type"] for part in parts):
        return 3 if all(map(_has_content, parts)) else 0
    if any(map(_is_of_model, parts)):
        return 2
    return int(all(map(_is_text, parts)))


def _has_content(part: Fields) -> bool:
    """True if a part has more than its type, which a custom block alone need not have."""
    return part["type"] in ("custom", "text") or len(part) > 1


def _is_of_model(part: Fields) -> bool:
    """True for thinking, and for a part with a field that only model messages have."""
    is_thinking = part["type"] == "reasoning" and "text" in part
    return is_thinking or not _MODEL_MARKS.isdisjoint(part)


def _is_text(part: Fields) -> bool:
    """True for a text with nothing beside it."""
    return part["type"] == "text" and set(part) == {"type", "text"}


def row_votes(message: Any) -> int:
    """Returns how likely a message is a row of Mastra's storage, from 0 to 3 as in `ui_votes`."""
    fields = if_object(message)
    content = if_object(fields.get("content"))
    has_role = fields.get("role") in (*_ROLES, "signal")
    # `True == 1` and `2.0 == 2` in Python, but neither is the number that Mastra writes.
    format_ = content.get("format")
    is_row = has_role and type(format_) is int and format_ == 2
    if is_row and isinstance(content.get("parts", []), list):
        return 3
    return 0


def split_row_votes(message: Any) -> int:
    """Returns how likely a message is a row of Mastra's first versions, from 0 to 3 as in
    `ui_votes`."""
    fields = if_object(message)
    has_role = fields.get("role") in (*_ROLES, "tool", "signal")
    if not has_role or not isinstance(fields.get("content"), str | list) or "parts" in fields:
        return 0
    is_typed = fields.get("type") in ("text", "tool-call", "tool-result")
    is_placed = "threadId" in fields or "resourceId" in fields
    if is_typed and is_placed:
        return 3
    if is_placed or (is_typed and "id" in fields):
        return 2
    return 0
