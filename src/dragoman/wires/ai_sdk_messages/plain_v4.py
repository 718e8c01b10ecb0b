"""UI messages of ai 4 of texts alone, as most of a conversation are: read at once, as the records of functions would."""

from __future__ import annotations

from typing import Any, cast

from dragoman.message import Message, Role, ToolResultPart
from dragoman.wires.ai_sdk_messages.own import OWN
from dragoman.wires.ai_sdk_messages.plain_row import bare_texts
from dragoman.wires.ai_sdk_messages.times import date_of, is_js_date
from dragoman.wires.ai_sdk_messages.v4_parts import V4

__all__ = ["load_plain_v4"]

_ROLES = {"user": Role.USER, "assistant": Role.MODEL}


def load_plain_v4(entry: dict[str, Any], before: Message | None) -> Message | None:
    """A UI message of ai 4 → ours; `None`: it is more than texts with an id and a time. `before`: the message before it."""
    id_, name, parts = entry.get("id"), entry.get("role"), entry.get("parts")
    if (
        type(id_) is not str
        or type(name) is not str
        or name not in _ROLES
        or type(parts) is not list
    ):
        return None
    if before is not None and before.content and type(before.content[-1]) is ToolResultPart:
        return None
    dated = "createdAt" in entry
    made_at = date_of(entry["createdAt"]) if dated and is_js_date(entry["createdAt"]) else None
    if len(entry) != 4 + dated or (dated and made_at is None):
        return None
    read = bare_texts(cast("list[Any]", parts))
    if read is None or entry.get("content") != read[1]:
        return None
    return Message(_ROLES[name], tuple(read[0]), id_, made_at, native=OWN.note(None, {"in": V4}))
