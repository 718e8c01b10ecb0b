"""Tasks in pages: a client's tasks that it asks for, without reading those that it does not."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.serve.apis.a2a_frames import TaskError
from dragoman.serve.apis.a2a_tasks import load_task
from dragoman.serve.core.call import Call
from dragoman.serve.core.threads import resource_of, thread_id
from dragoman.serve.store.answer_store import TaskQuery
from dragoman.serve.store.stored_answer import Stage
from dragoman.wires import a2a

__all__ = ["list_tasks", "trim_history"]

_MOST_TASKS = 100
"""Tasks of a page."""
_DEFAULT_SIZE = 50
"""Of one whose client does not say how many."""
_MOST_DIGITS = 18
"""Digits of the place of a task."""


async def list_tasks(call: Call, params: JsonMap) -> Json:
    """Returns a page of a client's tasks, the latest first.

    Raises:
        TaskError: what is asked for is no page.
    """
    size, token = (
        _read_number(params.get("pageSize"), _DEFAULT_SIZE, "pageSize"),
        if_text(params.get("pageToken")),
    )
    if not 0 < size <= _MOST_TASKS:
        raise TaskError(f"pageSize must be a number from 1 to {_MOST_TASKS}", "INVALID_PARAMS")
    history = params.get("historyLength")
    trim_history({}, history)
    query = TaskQuery(
        thread=_read_thread(call, params.get("contextId")),
        stages=_read_stages(params.get("status")),
        since=_read_time(params.get("statusTimestampAfter")),
        after=_read_token(token),
        most=size,
    )
    page = await call.service.answers.tasks(call.caller.id, query)
    tasks = [await load_task(call, run) for _, run in page.runs]
    if params.get("includeArtifacts") in (True, "true"):
        left_out = ()
    else:
        left_out = ("artifacts",)
    return {
        "tasks": [trim_history(_without(task, left_out), history) for task in tasks],
        "nextPageToken": _make_token(page.runs[-1][0]) if page.more else "",
        "pageSize": size,
        "totalSize": page.total,
    }


def trim_history(task: Json, most: Any) -> Json:
    """Returns a listed A2A task with only the end of its history, if its client wants no more.

    Raises:
        TaskError: `most` is no number.
    """
    if most is None:
        return task
    count = _read_number(most, 0, "historyLength")
    if count < 0:
        raise TaskError("historyLength must be 0 or more", "INVALID_PARAMS")
    history = if_list(task.get("history"))
    trimmed = _without(task, ["history"])
    if count and history:
        return {**trimmed, "history": history[-count:]}
    return trimmed


def _read_thread(call: Call, context: Any) -> str | None:
    """Returns the stored thread id for the `contextId` whose A2A tasks a client lists, or None if
    it gives none."""
    if context in (None, ""):
        return None
    if not isinstance(context, str):
        raise TaskError("contextId must be text", "INVALID_PARAMS")
    return thread_id(resource_of(call), context)


def _read_stages(status: Any) -> tuple[Stage, ...] | None:
    """Returns the stages that the task status in a list request stands for, or None for any
    status."""
    if status in (None, "", *a2a.NO_STATE):
        return None
    if not isinstance(status, str) or status not in a2a.STAGES:
        raise TaskError(f"status must be one of {', '.join(a2a.STAGES)}", "INVALID_PARAMS")
    return cast("tuple[Stage, ...]", a2a.STAGES[status])


def _read_time(text: Any) -> datetime | None:
    """Parses the list parameter `statusTimestampAfter` as a time with a zone, UTC by default, or
    None if it is absent."""
    if text in (None, ""):
        return None
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time
        return time.replace(tzinfo=UTC)
    except (TypeError, ValueError) as error:
        raise TaskError(
            "statusTimestampAfter must be a time such as 2026-01-02T03:04:05Z", "INVALID_PARAMS"
        ) from error


def _without(task: Json, names: Sequence[str]) -> Json:
    return {name: value for name, value in task.items() if name not in names}


def _read_number(value: Any, default: int, name: str) -> int:
    """Parses a whole number in the params of an A2A list request, or returns `default` if
    absent."""
    if value is None or value == "":
        return default
    if isinstance(value, str):
        digits = value.removeprefix("-")
    else:
        digits = ""
    if isinstance(value, str) and digits.isascii() and digits.isdigit() and len(digits) < 10:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TaskError(f"{name} must be a whole number", "INVALID_PARAMS")


def _make_token(position: int) -> str:
    return base64.urlsafe_b64encode(b"%d" % position).decode()


def _read_token(token: str) -> int | None:
    """Returns the position that the page token of a task list stands for, or None for the first
    page."""
    if not token:
        return None
    try:
        digits = base64.urlsafe_b64decode(token.encode())
    except ValueError:
        digits = b""
    if not digits.isdigit() or len(digits) > _MOST_DIGITS:
        raise TaskError("pageToken is none of this server's", "INVALID_PARAMS")
    return int(digits)
