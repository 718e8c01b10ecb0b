"""Whether a message is one of the family's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.wires.ai_sdk_messages.model_parts import CORE, LOADERS, MODEL
from dragoman.wires.ai_sdk_messages.own import UI
from dragoman.wires.ai_sdk_messages.v4_parts import V4

__all__ = ["dialect_in", "is_v4", "model_votes", "row_votes", "split_row_votes", "ui_votes"]

_ROLES = ("system", "user", "assistant")
_V4_FIELDS = frozenset(
    ["toolInvocations", "reasoning", "experimental_attachments", "data", "annotations"]
)
_KNOWN = (
    "text",
    "reasoning",
    "file",
    "dynamic-tool",
    "step-start",
    "source-url",
    "source-document",
    "source",
)


_MODEL_FIELDS = frozenset(
    ["role", "content", "id", "providerOptions", "experimental_providerMetadata"]
)
_MODEL_MARKS = frozenset(["providerOptions", "mediaType", "mimeType", "image", "filename"])
_PLAIN_FIELDS = frozenset(["id", "role", "content"])


def dialect_in(fields: Mapping[str, Any], *, is_model: bool = False) -> str:
    """The dialect of a message, told by its structure. `is_model`: where that may be either, it is a model message."""
    content, parts = fields.get("content"), fields.get("parts")
    if isinstance(parts, list):
        return V4 if is_v4(fields) else UI
    if (isinstance(content, list) and _V4_FIELDS.isdisjoint(fields)) or fields.get(
        "role"
    ) == "tool":
        return CORE if _is_core(if_list(content), fields) else MODEL
    if isinstance(content, str):
        own = (
            not _V4_FIELDS.isdisjoint(fields)
            or ("id" in fields and not is_model)
            or "createdAt" in fields
        )
        return V4 if own else CORE if "experimental_providerMetadata" in fields else MODEL
    return V4 if not _V4_FIELDS.isdisjoint(fields) else UI


def _is_core(parts: Sequence[Any], fields: Mapping[str, Any]) -> bool:
    """Whether parts of a model message are those of ai 4; where nothing tells it they are not."""
    for each in parts:
        part = if_object(each)
        type_ = part.get("type")
        if type_ == "tool-call" and "input" not in part and "args" in part:
            return True
        if type_ == "tool-result" and "output" not in part:
            return True
        if (
            "mimeType" in part
            or type_ == "redacted-reasoning"
            or "experimental_providerMetadata" in part
        ):
            return True
        if type_ == "reasoning" and "signature" in part:
            return True
    return "experimental_providerMetadata" in fields


def is_v4(fields: Mapping[str, Any]) -> bool:
    """Whether a UI message is one of ai 4: it has a `content`, or fields and parts of no other."""
    if isinstance(fields.get("content"), str) or not _V4_FIELDS.isdisjoint(fields):
        return True
    for part in if_list(fields.get("parts")):
        if type(part) is dict and (
            "toolInvocation" in part or "source" in part or "reasoning" in part
        ):
            return True
    return False


def ui_votes(message: Any) -> int:
    """How surely a message is a UI message: 0 = cannot be, 1 = could be, 2 = likely, 3 = hardly anything else."""
    fields = if_object(message)
    parts, content = fields.get("parts"), fields.get("content")
    if fields.get("role") not in (*_ROLES, "data") or (
        "content" in fields and not isinstance(content, str)
    ):
        return 0
    if parts is None and isinstance(content, str):
        if not _V4_FIELDS.isdisjoint(fields) and "id" in fields:
            return 3
        # No API of a model takes an id here: it is a front end's, whose edits name messages by it.
        has_id = isinstance(fields.get("id"), str) and fields.keys() == _PLAIN_FIELDS
        return 2 if has_id or "createdAt" in fields else 0
    if not isinstance(parts, list):
        return 0
    types = [if_text(if_object(part).get("type")) for part in if_list(parts)]
    if not all(types):
        return 0
    return (
        3 if any(type_ in _KNOWN or type_.startswith(("tool-", "data-")) for type_ in types) else 2
    )


def model_votes(message: Any) -> int:
    """The same of a model message."""
    fields = if_object(message)
    content, role = fields.get("content"), fields.get("role")
    if role not in (*_ROLES, "tool") or not fields.keys() <= _MODEL_FIELDS:
        return 0
    if isinstance(content, str):
        return 0 if role == "tool" else 3 if "providerOptions" in fields else 1
    if role == "system" or not isinstance(content, list):
        return 0
    parts = [if_object(part) for part in if_list(content)]
    types = [if_text(part.get("type")) for part in parts]
    if not all(type_ in LOADERS or type_.startswith("tool-approval-") for type_ in types):
        return 0
    if any("-" in type_ for type_ in types):
        return (
            3
            if all(
                type_ in ("custom", "text") or len(part) > 1
                for type_, part in zip(types, parts, strict=True)
            )
            else 0
        )
    if any(
        _MODEL_MARKS & part.keys() or (part.get("type") == "reasoning" and "text" in part)
        for part in parts
    ):
        return 2
    return int(
        all(
            type_ == "text" and part.keys() == {"type", "text"}
            for type_, part in zip(types, parts, strict=True)
        )
    )


def row_votes(message: Any) -> int:
    """How surely a message is a row of Mastra's storage."""
    fields = if_object(message)
    content = if_object(fields.get("content"))
    known = (
        fields.get("role") in (*_ROLES, "signal")
        and type(content.get("format")) is int
        and content["format"] == 2
    )
    return 3 if known and isinstance(content.get("parts", []), list) else 0


def split_row_votes(message: Any) -> int:
    """How surely a message is a row of Mastra's first versions."""
    fields = if_object(message)
    if fields.get("role") not in (*_ROLES, "tool", "signal") or not isinstance(
        fields.get("content"), str | list
    ):
        return 0
    if "parts" in fields:
        return 0
    typed = fields.get("type") in ("text", "tool-call", "tool-result")
    placed = "threadId" in fields or "resourceId" in fields
    return 3 if typed and placed else 2 if placed or (typed and "id" in fields) else 0
