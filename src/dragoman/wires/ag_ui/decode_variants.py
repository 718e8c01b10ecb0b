"""Events of AG-UI as others have written them → those of 1.0.

Read are the names of the time before 1.0 (`run-started`, `THINKING_START`, `thread_id`), objects
that hold a whole call or its result, and chunks, which stand for a start, content and an end. A
chunk leaves what it opened open until something else comes in its lane: the run whose stream it is,
and each run within a tool, has a lane of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import (
    if_object,
    if_text,
    optional_field,
    read_extra_fields,
    text_or_json,
)
from dragoman.json_bytes import Json, JsonMap
from dragoman.wires.ag_ui.decode_seed import SeedEvents
from dragoman.wires.ag_ui.events import CALL, REASONING, TEXT, Family

__all__ = ["OldEvents"]

_FIELDS: Mapping[str, str] = {
    "message_id": "messageId",
    "tool_call_id": "toolCallId",
    "tool_call_name": "toolCallName",
    "toolName": "toolCallName",
    "parent_message_id": "parentMessageId",
    "thread_id": "threadId",
    "run_id": "runId",
    "step_name": "stepName",
    "activity_type": "activityType",
}
"""Old name of a field → today's."""
_TYPES: Mapping[str, str] = {
    "THINKING_START": "REASONING_START",
    "THINKING_END": "REASONING_END",
    "THINKING_TEXT_MESSAGE_START": REASONING.start,
    "THINKING_TEXT_MESSAGE_CONTENT": REASONING.content,
    "THINKING_TEXT_MESSAGE_END": REASONING.end,
}
"""Old type → today's."""
_CHUNKS: Mapping[str, Family] = {
    "TEXT_MESSAGE_CHUNK": TEXT,
    "TOOL_CALL_CHUNK": CALL,
    "REASONING_MESSAGE_CHUNK": REASONING,
}
"""Type of a chunk → its family."""
_KEEPS_OPEN = (
    "RAW",
    "ACTIVITY_SNAPSHOT",
    "ACTIVITY_DELTA",
    "REASONING_ENCRYPTED_VALUE",
    "SUBAGENT_STARTED",
)
"""Types that may come between chunks and leave open what the chunks opened."""
_CLOSES_ALL = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT")
_MOST_LANES = 1024


class OldEvents:
    """Rewrites objects of old versions as objects of 1.0 without chunks."""

    def __init__(self) -> None:
        """Creates the reader of AG-UI objects of any version."""
        self._lanes: dict[str, tuple[Family, str]] = {}
        """Id of the run within a tool, empty for the stream's own run → family and id of what its
        chunks opened."""
        self._seed = SeedEvents()
        """Reads events whose text, calls or results are whole objects."""
        self._thoughts = 0
        self._thinking = ""

    @property
    def is_within_chunks(self) -> bool:
        """True if a text or call that chunks opened is open, or a call waits for its arguments."""
        return bool(self._lanes) or self._seed.is_open

    def read(self, event: JsonMap) -> list[Json]:
        """Returns the AG-UI objects of 1.0 for one object of any version: with today's names, and
        without chunks and objects that hold a whole call."""
        fields = dict(event)
        event_type = fields.get("type")
        if not isinstance(event_type, str):
            return [fields]
        # Types of 1.0 are in capitals with underscores, those of old versions `run-started` or
        # `run.started`.
        is_old = "-" in event_type or event_type.islower()
        if is_old:
            event_type = event_type.replace("-", "_").replace(".", "_").upper()
            fields = {_FIELDS.get(name, name): value for name, value in fields.items()}
        if event_type in _TYPES:
            self._name_thought(event_type, fields)
        event_type = fields["type"] = _TYPES.get(event_type, event_type)
        if event_type == "RUN_ERROR" and not isinstance(fields.get("message"), str):
            fields["message"] = _error_text(fields.get("error"))
        if (seed := self._seed.read(fields, is_old=is_old)) is not None:
            return [*self._close_lanes(list(self._lanes)), *seed]
        if event_type in _KEEPS_OPEN or event_type.startswith("STEP_"):
            return self._read_current(event_type, fields)
        return [*self._seed.close(), *self._read_current(event_type, fields)]

    def close(self) -> list[Json]:
        """Returns the objects that are still due when the stream ends."""
        return self._seed.close()

    def _name_thought(self, event_type: str, fields: Json) -> None:
        """Gives thinking of an old AG-UI version an id, the same for one span."""
        if event_type == "THINKING_START" or not self._thinking:
            self._thoughts += 1
            self._thinking = f"thinking-{self._thoughts}"
        fields.setdefault("messageId", self._thinking)
        if event_type == "THINKING_END":
            self._thinking = ""

    def _read_current(self, event_type: str, fields: Json) -> list[Json]:
        """Returns the AG-UI 1.0 objects for an object that has the field names of 1.0. Chunks
        become start and content. Any other object first ends what chunks have opened in its
        lane."""
        if event_type in _CHUNKS:
            return self._read_chunk(_CHUNKS[event_type], fields)
        closing: list[str] = []
        if event_type not in _KEEPS_OPEN:
            if event_type in _CLOSES_ALL:
                closing = list(self._lanes)
            else:
                closing = [_owner_of(fields)]
        return [*self._close_lanes(closing), *_split_call(fields)]

    def _close_lanes(self, owners: list[str]) -> list[Json]:
        """Returns the ends of what AG-UI chunk events opened in the lanes of these owners."""
        ends: list[Json] = []
        for owner in owners:
            if owner in self._lanes:
                ends += _end_events(*self._lanes.pop(owner), owner)
        return ends

    def _read_chunk(self, family: Family, fields: Json) -> list[Json]:
        """Returns the AG-UI objects for a chunk: a start if it begins something, and its
        content."""
        owner = _owner_of(fields)
        lane = self._lanes.get(owner)
        id_ = if_text(fields.get(family.key))
        if not id_ and lane is not None and lane[0] is family:
            id_ = lane[1]
        common = optional_field("subagentRunId", owner)
        out: list[Json] = []
        if lane != (family, id_):
            out += self._close_lanes([owner])
            # a stream may name any number of runs; those beyond are never closed
            if len(self._lanes) < _MOST_LANES:
                self._lanes[owner] = (family, id_)
            if family is REASONING:
                out.append({"type": "REASONING_START", "messageId": id_, **common})
            out.append(
                {
                    **read_extra_fields(fields, "type", "delta"),
                    "type": family.start,
                    family.key: id_,
                }
            )
        if delta := if_text(fields.get("delta")):
            out.append(
                {
                    "type": family.content,
                    family.key: id_,
                    "delta": delta,
                    **common,
                }
            )
        return out


def _error_text(error: Any) -> str:
    """Returns the message of an error, which may be an object or a text."""
    return if_text(if_object(error).get("message")) or if_text(error)


def _owner_of(fields: JsonMap) -> str:
    """Returns the id of the run within a tool that an object belongs to, or an empty text."""
    return if_text(fields.get("subagentRunId"))


def _end_events(family: Family, id_: str, owner: str) -> list[Json]:
    """Returns the AG-UI objects that end a text, a call or reasoning."""
    common = optional_field("subagentRunId", owner)
    ends: list[Json] = [{"type": family.end, family.key: id_, **common}]
    if family is REASONING:
        ends.append({"type": "REASONING_END", "messageId": id_, **common})
    return ends


def _split_call(fields: Json) -> list[Json]:
    """Returns start, arguments and end for an AG-UI object that holds a whole call, and an old
    result with today's field."""
    event_type = fields["type"]
    if event_type == "TOOL_CALL_RESULT" and "content" not in fields and "result" in fields:
        return [{**read_extra_fields(fields, "result"), "content": text_or_json(fields["result"])}]
    if event_type != CALL.start or "arguments" not in fields:
        return [fields]
    function = if_object(fields.get("function")) or fields
    id_ = if_text(fields.get("toolCallId")) or if_text(fields.get("id"))
    name = if_text(fields.get("toolCallName")) or if_text(function.get("name"))
    start = {**read_extra_fields(fields, "arguments"), "toolCallId": id_, "toolCallName": name}
    arguments = function.get("arguments", {})
    text = "" if arguments is None else text_or_json(arguments)
    return [
        start,
        {"type": CALL.content, "toolCallId": id_, "delta": text},
        {"type": CALL.end, "toolCallId": id_},
    ]
