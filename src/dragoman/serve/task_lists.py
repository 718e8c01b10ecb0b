"""Tasks in pages: a client's tasks that it asks for, without reading those that it does not."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.serve.call import Call
from dragoman.serve.records import Answered
from dragoman.serve.task_frames import TaskError
from dragoman.serve.tasks import TaskRecord, record_of, tasks_of, whole_task
from dragoman.serve.threads import name_of, resource_of

__all__ = ["bounded", "listed_tasks"]

_MOST = 100
"""Tasks of a page."""
_FEW = 50
"""Of one whose client does not say how many."""


async def listed_tasks(call: Call, params: Mapping[str, Any]) -> dict[str, Any]:
    """A page of the tasks of a client, the latest first.

    Raises:
        TaskError: what is asked for is no page.
    """
    size, token = _number(params.get("pageSize"), _FEW, "pageSize"), if_text(params.get("pageToken"))
    if not 0 < size <= _MOST:
        raise TaskError(f"pageSize must be a number from 1 to {_MOST}", "INVALID_PARAMS")
    history = params.get("historyLength")
    bounded({}, history)
    context, state = params.get("contextId"), params.get("status")
    found = await tasks_of(call)
    if context not in (None, ""):
        found = [each for each in found if name_of(resource_of(call), each.thread_id or "") == context]
    if state:
        found = [each for each in found if await _state(call, each) == state]
    ids = [_id(each) for each in found]
    start = _start(token, ids)
    page = found[start : start + size]
    wholes = [await whole_task(call, await record_of(call, _id(each), each)) for each in page]
    left_out = () if params.get("includeArtifacts") in (True, "true") else ("artifacts",)
    more = base64.urlsafe_b64encode(ids[start + size - 1].encode()).decode() if start + size < len(found) else ""
    return {
        "tasks": [bounded(_without(whole, left_out), history) for whole in wholes],
        "nextPageToken": more,
        "pageSize": size,
        "totalSize": len(found),
    }


def bounded(task: dict[str, Any], most: Any) -> dict[str, Any]:
    """A task with the end of its history alone, where its client wants no more.

    Raises:
        TaskError: `most` is no number.
    """
    if most is None:
        return task
    count = _number(most, 0, "historyLength")
    if count < 0:
        raise TaskError("historyLength must be 0 or more", "INVALID_PARAMS")
    history = if_list(task.get("history"))
    left = _without(task, ["history"])
    return {**left, "history": history[-count:]} if count and history else left


async def _state(call: Call, last: Answered) -> Any:
    """The state of a task, which its latest run says."""
    whole = await whole_task(call, TaskRecord(_id(last), [last]))
    return if_object(whole.get("status")).get("state")


def _id(last: Answered) -> str:
    return last.task_id or last.id


def _without(task: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in task.items() if name not in names}


def _number(value: Any, default: int, name: str) -> int:
    if value is None or value == "":
        return default
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    if isinstance(value, str) and digits.isascii() and digits.isdigit() and len(digits) < 10:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TaskError(f"{name} must be a whole number", "INVALID_PARAMS")


def _start(token: str, ids: list[str]) -> int:
    if not token:
        return 0
    try:
        last = base64.urlsafe_b64decode(token.encode()).decode()
        return ids.index(last) + 1
    except ValueError as error:
        raise TaskError("pageToken is none of this server's", "INVALID_PARAMS") from error
