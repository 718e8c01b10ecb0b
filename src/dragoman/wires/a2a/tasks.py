"""Tasks: their states, the tokens they took, a stream's objects put together as every client of the protocol does it, and a conversation as a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.codec.json_values import Json, JsonMap, if_list, if_object, if_text
from dragoman.codec.response import dump_entries, load_entries
from dragoman.event import Custom, Event
from dragoman.fold import fold
from dragoman.message import FinishReason, Message, Origin, Role, Usage
from dragoman.wires.a2a.messages import dump_messages, load_messages
from dragoman.wires.a2a.quirks import REPLY, json_of, text_of

__all__ = [
    "NO_STATE",
    "STAGES",
    "STATES",
    "TERMINAL",
    "aggregated",
    "cancelled",
    "dump_finish",
    "dump_task",
    "dump_usage",
    "is_over",
    "load_finish",
    "load_task",
    "load_usage",
    "reply_of",
    "state_of",
]

TERMINAL = (
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
)
"""States in which nothing more comes of a task."""
_WAITING = ("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED")
STATES = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", *TERMINAL, *_WAITING)
"""States of a task."""
_FINISH: Mapping[str, FinishReason] = {
    "TASK_STATE_COMPLETED": FinishReason.stop,
    "TASK_STATE_FAILED": FinishReason.error,
    "TASK_STATE_CANCELED": FinishReason.cancelled,
    "TASK_STATE_REJECTED": FinishReason.refusal,
    "TASK_STATE_INPUT_REQUIRED": FinishReason.stop,
    "TASK_STATE_AUTH_REQUIRED": FinishReason.stop,
}


def state_of(value: Any) -> str:
    """The name of a state as 1.0 has it, from any version's: `input-required` is `TASK_STATE_INPUT_REQUIRED`; else empty."""
    name = if_text(value)
    if not name.startswith("TASK_STATE_"):
        name = f"TASK_STATE_{name.upper().replace('-', '_')}"
    return name if name in STATES else ""


def is_over(state: str) -> bool:
    """Whether a turn ends in that state: the task does, or waits for its client."""
    return state in TERMINAL or state in _WAITING


def load_finish(state: str) -> FinishReason | None:
    """Why an answer ended, as far as the state of its task tells; `None`: it goes on."""
    return _FINISH.get(state)


def dump_finish(reason: FinishReason | None) -> str:
    """The inverse."""
    if reason is FinishReason.error:
        return "TASK_STATE_FAILED"
    return "TASK_STATE_CANCELED" if reason is FinishReason.cancelled else "TASK_STATE_COMPLETED"


def dump_usage(usage: Usage | None) -> dict[str, str]:
    """The field `usage`; none where nothing is known."""
    entries = dump_entries(usage)
    return {"usage": text_of(entries)} if entries else {}


def load_usage(fields: Mapping[str, str]) -> Usage | None:
    """The inverse: the sum of the entries."""
    return load_entries(json_of(fields.get("usage")))


STAGES: Mapping[str, tuple[str, ...]] = {
    "TASK_STATE_SUBMITTED": (),  # a task works from its beginning
    "TASK_STATE_WORKING": ("working",),
    "TASK_STATE_INPUT_REQUIRED": ("waiting",),
    "TASK_STATE_AUTH_REQUIRED": ("signing_in",),
    "TASK_STATE_COMPLETED": ("completed",),
    "TASK_STATE_FAILED": ("failed",),
    "TASK_STATE_REJECTED": ("refused",),
    "TASK_STATE_CANCELED": ("cancelled",),
}
"""State of a task → how a server that keeps it calls that."""
NO_STATE = ("TASK_STATE_UNSPECIFIED",)
"""What stands in the place of one where none is meant."""


def aggregated(objects: Iterable[JsonMap]) -> Json:
    """The objects of a stream → the task as it is after them. Texts that follow each other in an artifact are one."""
    task: Json = {}
    artifacts: dict[str, Json] = {}
    for each in objects:
        if "task" in each:
            task = dict(if_object(each["task"]))
            artifacts = {
                if_text(one.get("artifactId")): dict(one)
                for one in map(if_object, if_list(task.get("artifacts")))
            }
        elif "statusUpdate" in each:
            update = if_object(each["statusUpdate"])
            if message := if_object(task.get("status")).get("message"):
                task["history"] = [*if_list(task.get("history")), message]
            task["status"] = update.get("status", {})
        elif "artifactUpdate" in each:
            _add(artifacts, if_object(each["artifactUpdate"]))
    if artifacts:
        task["artifacts"] = list(artifacts.values())
    return task


def _add(artifacts: dict[str, Json], update: JsonMap) -> None:
    new = if_object(update.get("artifact"))
    known = artifacts.get(id_ := if_text(new.get("artifactId")))
    if known is None or update.get("append") is not True:
        artifacts[id_] = {**new, "parts": list(if_list(new.get("parts")))}
        return
    parts: list[Any] = known["parts"]
    for part in if_list(new.get("parts")):
        before = if_object(parts[-1]) if parts else {}
        if before.keys() == {"text"} and if_object(part).keys() == {"text"}:
            texts = parts[-1]["text"], part["text"]
            parts[-1] = {"text": "".join(map(if_text, texts))}
        else:
            parts.append(part)
    known["metadata"] = {**if_object(known.get("metadata")), **if_object(new.get("metadata"))}
    if not known["metadata"]:
        del known["metadata"]


def dump_task(
    messages: Iterable[Message],
    *,
    task_id: str,
    context_id: str,
    state: str = "TASK_STATE_COMPLETED",
    metadata: JsonMap = {},
    extras: bool = True,
) -> Json:
    """A conversation as a task: what was said before the agent's last word is its history, and that is its artifact."""
    listed = dump_messages(messages, extras=extras)
    last = listed[-1] if listed and listed[-1]["role"] == "ROLE_AGENT" else None
    history = listed[:-1] if last is not None else listed
    task: Json = {"id": task_id, "contextId": context_id, "status": {"state": state}}
    if history:
        task["history"] = [{**each, "taskId": task_id, "contextId": context_id} for each in history]
    if last is not None:
        artifact = {"artifactId": last["messageId"], "name": "response", "parts": last["parts"]}
        held = {key: last[key] for key in ("metadata", "extensions") if key in last}
        task["artifacts"] = [{**artifact, **held}]
    return {**task, "metadata": dict(metadata)} if metadata else task


def load_task(task: JsonMap, *, origin: Origin | None = None) -> list[Message]:
    """A task → the conversation that it holds.

    Raises:
        HistoryError: it is none.
    """
    return load_messages(task, origin=origin)


def cancelled(task: JsonMap) -> Json:
    """A task that was cancelled while it waited."""
    status = {
        name: value for name, value in if_object(task.get("status")).items() if name != "message"
    }
    return {**task, "status": {**status, "state": "TASK_STATE_CANCELED"}}


def reply_of(events: Iterable[Event], context_id: str) -> Json | None:
    """The message with which a run answers in the place of a task; `None`: it is a task."""
    listed = list(events)
    if not any(isinstance(event, Custom) and event.name == REPLY for event in listed):
        return None
    last = [message for message in fold(listed) if message.role is Role.MODEL][-1:]
    return next(
        ({**each, "contextId": context_id} for each in dump_messages(last, extras=False)), None
    )
