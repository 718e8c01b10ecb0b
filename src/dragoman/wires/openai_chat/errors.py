"""Errors of Chat Completions, in the shapes that its vendors give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from dragoman.codec import error_rules
from dragoman.codec.error_rules import ErrorInfo, ErrorRules, vendor_status
from dragoman.codec.json_values import as_list, if_object, if_objects, if_text
from dragoman.errors import DragomanError, OverloadedError
from dragoman.wires.chat.dialect import Chat
from dragoman.wires.chat.errors import as_error

__all__ = ["RULES", "error_info", "error_of"]

RULES = ErrorRules(statuses={498: OverloadedError})  # Groq's flex tier has no room


def error_of(chat: Chat, chunk: Mapping[str, Any]) -> DragomanError | None:
    """An error in the place of an answer, or of a choice; some vendors have a shape of their own, with a status of success."""
    if chunk.get("error"):
        return as_error(chat, chunk)
    for one in as_list(chunk.get("choices"), "choices"):
        if isinstance(one, dict) and (error := cast("dict[str, Any]", one).get("error")):
            return as_error(chat, {**chunk, "error": error})
    return as_error(chat, chunk) if "base_resp" in chunk and vendor_status(chunk) else None


def error_info(payload: Any) -> ErrorInfo:
    """An error's JSON → what it says."""
    info = error_rules.error_info(payload)
    outer = next(iter(if_objects(payload)), if_object(payload))
    return msgspec.structs.replace(
        info, request_id=info.request_id or if_text(outer.get("id")) or None
    )
