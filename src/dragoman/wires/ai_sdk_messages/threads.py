"""The thread of a row of Mastra's, and whose it is: in a message that was read from one."""

from __future__ import annotations

from typing import Any

from dragoman.codec.json_values import if_object
from dragoman.message import Native
from dragoman.wires.ai_sdk_messages.own import OWN

__all__ = ["thread_of"]

_FIELDS = ("threadId", "resourceId")


def thread_of(native: Native) -> dict[str, Any]:
    """The fields of a row that say it; empty where the message is from none."""
    if not native or not OWN.is_ours(native):
        return {}
    row = if_object(OWN.notes(native).get("row"))
    rows = row.get("rows")
    first = if_object(rows[0]) if isinstance(rows, list) and rows else row
    held = (
        OWN.fields(native)
        if OWN.form(native).get("in") == "mastra_v2"
        else if_object(first.get("fields"))
    )
    return {key: held[key] for key in _FIELDS if isinstance(held.get(key), str)}
