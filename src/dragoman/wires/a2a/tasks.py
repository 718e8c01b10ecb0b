"""Tasks: their states, the tokens they took, a stream's objects put together as every client of the
protocol does it, and a conversation as a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text, pick, read_extra_fields
from dragoman.codec.response_state import dump_usage_entries, load_usage_entries
from dragoman.event import Custom, Event
from dragoman.fold import fold
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import FinishReason, Message, Origin, Role, Usage
from dragoman.wires.a2a.messages import dump_messages, load_messages
from dragoman.wires.a2a.quirks import REPLY, json_of, text_of

__all__ = [
    "NO_STATE",
    "STAGES",
    "STATES",
    "TERMINAL",
    "aggregate_task",
    "cancel_task",
    "dump_task",
    "dump_usage",
    "is_over",
    "load_finish",
    "load_task",
    "load_usage",
    "find_reply",
    "state_of",
]

TERMINAL = (
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_REJECTED",
)
"""States of a finished task."""
_WAITING = ("TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED")
STATES = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", *TERMINAL, *_WAITING)
"""All states of a task."""
_FINISH: Mapping[str, FinishReason] = {
    "TASK_STATE_COMPLETED": FinishReason.stop,
    "TASK_STATE_FAILED": FinishReason.error,
    "TASK_STATE_CANCELED": FinishReason.cancelled,
    "TASK_STATE_REJECTED": FinishReason.refusal,
    "TASK_STATE_INPUT_REQUIRED": FinishReason.stop,
    "TASK_STATE_AUTH_REQUIRED": FinishReason.stop,
}


def state_of(value: Any) -> str:
    """Returns a task state by its name in 1.0, for any version's name of it, or an empty text.

    For example `input-required` is `TASK_STATE_INPUT_REQUIRED`.
    """
    name = if_text(value)
    if not name.startswith("TASK_STATE_"):
        name = f"TASK_STATE_{name.upper().replace('-', '_')}"
    return name if name in STATES else ""


def is_over(state: str) -> bool:
    """True if a turn ends in that state: the task is done, or waits for its client."""
    return state in TERMINAL or state in _WAITING


def load_finish(state: str) -> FinishReason | None:
    """Returns the finish reason for a task state, or None if the task goes on."""
    return _FINISH.get(state)


def dump_usage(usage: Usage | None) -> dict[str, str]:
    """Returns the extension's `usage` field, or an empty object if nothing is known."""
    entries = dump_usage_entries(usage)
    if entries:
        return {"usage": text_of(entries)}
    return {}


def load_usage(fields: Mapping[str, str]) -> Usage | None:
    """Returns the sum of the extension's `usage` field, or None if nothing is known."""
    return load_usage_entries(json_of(fields.get("usage")))


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
"""State of a task → the stages of a stored run that it covers."""
NO_STATE = ("TASK_STATE_UNSPECIFIED",)
"""State in a request that matches every task."""


def aggregate_task(objects: Iterable[JsonMap]) -> Json:
    """Returns the task after all objects of its stream. Adjacent texts of an artifact are
    joined."""
    task: Json = {}
    artifacts: dict[str, Json] = {}
    for item in objects:
        if "task" in item:
            task = dict(if_object(item["task"]))
            listed = map(if_object, if_list(task.get("artifacts")))
            artifacts = {if_text(artifact.get("artifactId")): dict(artifact) for artifact in listed}
        elif "statusUpdate" in item:
            # The message of a status that is over is part of the history, as the protocol says.
            if message := if_object(task.get("status")).get("message"):
                task["history"] = [*if_list(task.get("history")), message]
            task["status"] = if_object(item["statusUpdate"]).get("status", {})
        elif "artifactUpdate" in item:
            _add_artifact(artifacts, if_object(item["artifactUpdate"]))
    if artifacts:
        task["artifacts"] = list(artifacts.values())
    return task


def _add_artifact(artifacts: dict[str, Json], update: JsonMap) -> None:
    """Adds an update to the artifact that it continues, or adds the artifact."""
    piece = if_object(update.get("artifact"))
    new_parts = if_list(piece.get("parts"))
    artifact = artifacts.get(id_ := if_text(piece.get("artifactId")))
    if artifact is None or update.get("append") is not True:
        artifacts[id_] = {**piece, "parts": list(new_parts)}
        return
    parts: list[Any] = artifact["parts"]
    for part in new_parts:
        # Readers get a text as one part, however many pieces it was streamed in.
        if parts and _is_text_alone(parts[-1]) and _is_text_alone(part):
            parts[-1] = {"text": if_text(parts[-1]["text"]) + if_text(part["text"])}
        else:
            parts.append(part)
    metadata = {**if_object(artifact.get("metadata")), **if_object(piece.get("metadata"))}
    if metadata:
        artifact["metadata"] = metadata


def _is_text_alone(part: Any) -> bool:
    """True if a part has a text and nothing else."""
    return if_object(part).keys() == {"text"}


def dump_task(
    messages: Iterable[Message],
    *,
    task_id: str,
    context_id: str,
    state: str = "TASK_STATE_COMPLETED",
    metadata: JsonMap = {},
    extras: bool = True,
) -> Json:
    """Returns a conversation as a task: its last answer is the artifact, everything before it the
    history.

    Args:
        messages: the conversation.
        task_id, context_id: ids of the task and of its conversation.
        state: the task's state.
        metadata: of the task.
        extras: False to leave the extension out.
    """
    history = dump_messages(messages, extras=extras)
    task: Json = {
        "id": task_id,
        "contextId": context_id,
        "status": {"state": state},
    }
    if history and history[-1]["role"] == "ROLE_AGENT":
        answers = history[-1:]
    else:
        answers = []
    if earlier := history[: len(history) - len(answers)]:
        ids = {"taskId": task_id, "contextId": context_id}
        task["history"] = [{**message, **ids} for message in earlier]
    for answer in answers:
        artifact = {"artifactId": answer["messageId"], "name": "response"}
        names = ("parts", "metadata", "extensions")
        task["artifacts"] = [{**artifact, **pick(answer, names)}]
    if metadata:
        return {**task, "metadata": dict(metadata)}
    return task


def load_task(task: JsonMap, *, origin: Origin | None = None) -> list[Message]:
    """Reads the conversation in an A2A task: its history and artifacts.

    Raises:
        HistoryError: the object is no task.
    """
    return load_messages(task, origin=origin)


def cancel_task(task: JsonMap) -> Json:
    """Returns a task as cancelled, without the question that it waited with."""
    # The message of a waiting task is its question, which is void now.
    status = read_extra_fields(if_object(task.get("status")), "message")
    return {**task, "status": {**status, "state": "TASK_STATE_CANCELED"}}


def find_reply(events: Iterable[Event], context_id: str) -> Json | None:
    """Returns the message that a run answers with in place of a task, or None if it made a task."""
    events = list(events)
    if not any(isinstance(event, Custom) and event.name == REPLY for event in events):
        return None
    answers = [message for message in fold(events) if message.role is Role.MODEL]
    if not answers:
        return None
    [message] = dump_messages(answers[-1:], extras=False)
    return {**message, "contextId": context_id}
