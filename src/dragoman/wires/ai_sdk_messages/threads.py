"""Fields of the family that a history acts on: the approval of a call, the thread of a row of Mastra's and whose it is, the marks of steps."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.codec.layout import FormatFields
from dragoman.message import Native
from dragoman.wires.ai_sdk_messages.own import NAME, OWN

__all__ = ["MESSAGE_FIELDS", "ROW_FIELDS", "thread_of"]

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


def _named_thread(native: Native) -> dict[str, Any]:
    """The thread that a message names: in a field of its own in any dialect, or in the row that it was read from."""
    if not native:
        return {}
    own = if_object(native.get(NAME))
    return {**{key: own[key] for key in _FIELDS if key in own}, **thread_of(native)}


MESSAGE_FIELDS = FormatFields(NAME, approval="approval", step_time="createdAt", step_model="model")
"""Of messages of the AI SDK."""
ROW_FIELDS = msgspec.structs.replace(
    MESSAGE_FIELDS,
    thread="threadId",
    resource="resourceId",
    thread_of=_named_thread,
    seal=("mastra", "sealed"),
    done=("completionResult", "isTaskCompleteResult"),
)
"""Of rows of Mastra's storage."""
