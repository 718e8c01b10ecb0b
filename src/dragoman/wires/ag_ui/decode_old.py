"""Events of AG-UI as others have written them → those of 1.0: names of the time before it, chunks, which stand for a start, content and an end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.codec.json_values import if_object, if_text, rest, text_or_json
from dragoman.wires.ag_ui.decode_seed import SeedEvents

__all__ = ["Older"]

_CAMEL: Mapping[str, str] = {
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
"""Names of fields of old → today's."""
_RENAMED: Mapping[str, str] = {
    "THINKING_START": "REASONING_START",
    "THINKING_END": "REASONING_END",
    "THINKING_TEXT_MESSAGE_START": "REASONING_MESSAGE_START",
    "THINKING_TEXT_MESSAGE_CONTENT": "REASONING_MESSAGE_CONTENT",
    "THINKING_TEXT_MESSAGE_END": "REASONING_MESSAGE_END",
}
_CHUNKS: Mapping[str, tuple[str, str, str]] = {
    "TEXT_MESSAGE_CHUNK": ("TEXT_MESSAGE", "TEXT_MESSAGE_CONTENT", "messageId"),
    "TOOL_CALL_CHUNK": ("TOOL_CALL", "TOOL_CALL_ARGS", "toolCallId"),
    "REASONING_MESSAGE_CHUNK": ("REASONING_MESSAGE", "REASONING_MESSAGE_CONTENT", "messageId"),
}
"""Type of a chunk → the family that it stands for, the type of its content, the field of its id."""
_KEEPS_OPEN = (
    "RAW",
    "ACTIVITY_SNAPSHOT",
    "ACTIVITY_DELTA",
    "REASONING_ENCRYPTED_VALUE",
    "SUBAGENT_STARTED",
)
"""What may stand between chunks."""
_CLOSES_ALL = ("RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT")
_MOST_LANES = 1024


class Older:
    """Objects as they come → objects of 1.0 without chunks."""

    def __init__(self) -> None:
        self._lanes: dict[str, tuple[str, str]] = {}
        """Owner → kind and id of what its chunks have opened."""
        self._seed = SeedEvents()
        self._thoughts = 0
        self._thinking = ""

    @property
    def is_within_chunks(self) -> bool:
        """Whether chunks have opened what is not closed, or calls wait for their arguments."""
        return bool(self._lanes) or self._seed.is_open

    def read(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        """One object → those that it stands for."""
        fields = dict(event)
        kind = fields.get("type")
        if not isinstance(kind, str):
            return [fields]
        is_old = "-" in kind or kind.islower()
        if is_old:
            kind = kind.replace("-", "_").replace(".", "_").upper()
            fields = {_CAMEL.get(name, name): value for name, value in fields.items()}
        fields["type"] = _RENAMED.get(kind, kind)
        if kind in _RENAMED:
            fields = self._thought(kind, fields)
        kind = fields["type"]
        if kind == "RUN_ERROR" and not isinstance(fields.get("message"), str):
            fields["message"] = if_text(if_object(fields.get("error")).get("message")) or if_text(
                fields.get("error")
            )
        if (read := self._seed.read(fields, is_old=is_old)) is not None:
            return [*self._closed(None), *read]
        told = [] if kind in _KEEPS_OPEN or kind.startswith("STEP_") else self._seed.close()
        return [*told, *self._read_new(kind, fields)]

    def close(self) -> list[dict[str, Any]]:
        """What is still to be told where the stream ends."""
        return self._seed.close()

    def _read_new(self, kind: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        """One object of today's shape."""
        if kind in _CHUNKS:
            return self._chunk(kind, fields)
        closed = (
            []
            if kind in _KEEPS_OPEN
            else self._closed(None if kind in _CLOSES_ALL else _owner(fields))
        )
        return [*closed, *_calls(fields)]

    def _thought(self, kind: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Thinking of old has no id: one is made for each span."""
        if kind == "THINKING_START" or not self._thinking:
            self._thoughts += 1
            self._thinking = f"thinking-{self._thoughts}"
        fields.setdefault("messageId", self._thinking)
        if kind == "THINKING_END":
            self._thinking = ""
        return fields

    def _closed(self, owner: str | None) -> list[dict[str, Any]]:
        if not self._lanes:
            return []
        owners = list(self._lanes) if owner is None else [owner] if owner in self._lanes else []
        return [each for lane in owners for each in _end(*self._lanes.pop(lane), lane)]

    def _chunk(self, kind: str, fields: dict[str, Any]) -> list[dict[str, Any]]:
        family, content, key = _CHUNKS[kind]
        owner = _owner(fields)
        lane = self._lanes.get(owner)
        id_ = if_text(fields.get(key)) or (lane[1] if lane and lane[0] == family else "")
        common = {"subagentRunId": owner} if owner else {}
        made: list[dict[str, Any]] = []
        if lane != (family, id_):
            made += self._closed(owner)
            if len(self._lanes) < _MOST_LANES:
                self._lanes[owner] = (family, id_)
            if family == "REASONING_MESSAGE":
                made.append({"type": "REASONING_START", "messageId": id_, **common})
            made.append({**rest(fields, "type", "delta"), "type": f"{family}_START", key: id_})
        delta = fields.get("delta")
        if isinstance(delta, str) and delta:
            made.append({"type": content, key: id_, "delta": delta, **common})
        return made


def _owner(fields: Mapping[str, Any]) -> str:
    return if_text(fields.get("subagentRunId"))


def _end(family: str, id_: str, owner: str) -> list[dict[str, Any]]:
    common = {"subagentRunId": owner} if owner else {}
    key = "toolCallId" if family == "TOOL_CALL" else "messageId"
    ends = [{"type": f"{family}_END", key: id_, **common}]
    return (
        [*ends, {"type": "REASONING_END", "messageId": id_, **common}]
        if family == "REASONING_MESSAGE"
        else ends
    )


def _calls(fields: dict[str, Any]) -> list[dict[str, Any]]:
    """A start of old that held the arguments → a start, the arguments and an end; a result of old → today's."""
    kind = fields["type"]
    if kind == "TOOL_CALL_RESULT" and "content" not in fields and "result" in fields:
        return [{**rest(fields, "result"), "content": text_or_json(fields["result"])}]
    if kind != "TOOL_CALL_START" or "arguments" not in fields:
        return [fields]
    function = if_object(fields.get("function")) or fields
    id_ = if_text(fields.get("toolCallId")) or if_text(fields.get("id"))
    name = if_text(fields.get("toolCallName")) or if_text(function.get("name"))
    start = {**rest(fields, "arguments"), "toolCallId": id_, "toolCallName": name}
    text = function.get("arguments", {})
    content = {
        "type": "TOOL_CALL_ARGS",
        "toolCallId": id_,
        "delta": "" if text is None else text_or_json(text),
    }
    return [start, content, {"type": "TOOL_CALL_END", "toolCallId": id_}]
