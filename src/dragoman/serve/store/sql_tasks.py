"""Tasks and their push configurations in SQLite or Postgres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, exists, func, insert, select

from dragoman import json_bytes
from dragoman.codec.json_values import if_object
from dragoman.serve.store.answers import TaskQuery
from dragoman.serve.store.records import Answered
from dragoman.serve.store.sql_tables import answers, push_configs

__all__ = [
    "delete_push",
    "forget_push",
    "microseconds",
    "read_push",
    "read_task",
    "read_tasks",
    "save_push",
    "task_columns",
]


def task_columns(answered: Answered, thread: str) -> dict[str, Any]:
    """What the columns of an answer say of its task. `thread`: its conversation, as it is kept."""
    if answered.task_id is None:
        return {}
    changed = microseconds(answered.updated_at or answered.created_at)
    return {
        "task": answered.task_id,
        "thread": thread,
        "stage": answered.stage,
        "updated_at": changed,
    }


def read_task(connection: Connection, owner: str, task_id: str) -> Sequence[Row[Any, Any]]:
    """Number and body of each run of a task."""
    runs = select(answers.c.number, answers.c.body).where(
        answers.c.owner == owner, answers.c.task == task_id
    )
    return connection.execute(runs.order_by(answers.c.number)).all()


def read_tasks(
    connection: Connection, owner: str, wanted: TaskQuery, thread: str | None
) -> tuple[Sequence[Row[Any, Any]], int]:
    """Number and body of the latest run of each task of a page, and of one more where there is one; how many are wanted in all."""
    newer = answers.alias("newer")
    goes_on = exists().where(
        newer.c.owner == answers.c.owner,
        newer.c.task == answers.c.task,
        newer.c.number > answers.c.number,
    )
    conditions: list[ColumnElement[bool]] = [
        answers.c.owner == owner,
        answers.c.task.is_not(None),
        ~goes_on,
    ]
    if thread is not None:
        conditions.append(answers.c.thread == thread)
    if wanted.stages is not None:
        conditions.append(answers.c.stage.in_(wanted.stages))
    if wanted.since is not None:
        conditions.append(answers.c.updated_at >= microseconds(wanted.since))
    total = connection.execute(
        select(func.count()).select_from(answers).where(*conditions)
    ).scalar_one()
    if wanted.after is not None:
        conditions.append(answers.c.number < wanted.after)
    page = select(answers.c.number, answers.c.body).where(*conditions)
    return connection.execute(
        page.order_by(answers.c.number.desc()).limit(wanted.most + 1)
    ).all(), total


def save_push(
    connection: Connection, owner: str, task_id: str, config: Mapping[str, Any], now: datetime
) -> None:
    """Keeps where notifications of a task go."""
    values = {
        "owner": owner,
        "task": task_id,
        "config_id": config["id"],
        "created_at": microseconds(now),
    }
    connection.execute(delete(push_configs).where(_is_config(owner, task_id, config["id"])))
    connection.execute(insert(push_configs).values(**values, body=json_bytes.encode(dict(config))))


def read_push(connection: Connection, owner: str, task_id: str) -> list[dict[str, Any]]:
    """All of a task, the oldest first."""
    mine = select(push_configs.c.body).where(
        push_configs.c.owner == owner, push_configs.c.task == task_id
    )
    ordered = mine.order_by(push_configs.c.created_at, push_configs.c.config_id)
    return [
        dict(if_object(json_bytes.decode(body))) for body in connection.execute(ordered).scalars()
    ]


def delete_push(connection: Connection, owner: str, task_id: str, config_id: str) -> None:
    """Forgets one."""
    connection.execute(delete(push_configs).where(_is_config(owner, task_id, config_id)))


def forget_push(connection: Connection, *conditions: ColumnElement[bool]) -> None:
    """Forgets those, of these, of which the task is gone."""
    is_there = exists().where(
        answers.c.owner == push_configs.c.owner, answers.c.task == push_configs.c.task
    )
    connection.execute(delete(push_configs).where(~is_there, *conditions))


def _is_config(owner: str, task_id: str, config_id: str) -> ColumnElement[bool]:
    return and_(
        push_configs.c.owner == owner,
        push_configs.c.task == task_id,
        push_configs.c.config_id == config_id,
    )


def microseconds(time: datetime) -> int:
    """A time as a column has it: since 1970."""
    return int(time.timestamp() * 1_000_000)
