"""Tasks, found by how far they are, and where notifications of them go."""

from __future__ import annotations

import json
from datetime import datetime
from hashlib import blake2b

import sqlalchemy as sa
from alembic import op

from dragoman.json_bytes import Json, JsonMap

__all__ = ["down_revision", "downgrade", "revision", "upgrade"]

revision = "0003"
down_revision: str | None = "0002"

_INDEXES = {
    "ix_dragoman_answers_tasks": ["owner", "number"],
    "ix_dragoman_answers_task": ["owner", "task", "number"],
    "ix_dragoman_answers_stage": ["owner", "stage", "number"],
    "ix_dragoman_answers_thread": ["owner", "thread", "number"],
}
_FEW = 200
_LONGEST = 400
"""Characters of a conversation's id that an index has room for."""


def _stage(run: JsonMap) -> str:
    """Returns the stage of a task in a stored run."""
    state, pending = run.get("state", "completed"), run.get("pending", ())
    if state == "completed" and pending:
        return (
            "signing_in"
            if all(interrupt["reason"] == "auth" for interrupt in pending)
            else "waiting"
        )
    return "working" if state == "in_progress" else state


def upgrade() -> None:
    """Makes the columns, and fills them for the tasks that are there."""
    for name, column_type in {
        "task": sa.String,
        "thread": sa.String,
        "stage": sa.String,
        "updated_at": sa.BigInteger,
    }.items():
        op.add_column("dragoman_answers", sa.Column(name, column_type))
    _fill(op.get_bind())
    of_tasks = sa.text("task IS NOT NULL")
    for name, columns in _INDEXES.items():
        op.create_index(
            name, "dragoman_answers", columns, sqlite_where=of_tasks, postgresql_where=of_tasks
        )
    op.create_table(
        "dragoman_push_configs",
        sa.Column("owner", sa.String, primary_key=True),
        sa.Column("task", sa.String, primary_key=True),
        sa.Column("config_id", sa.String, primary_key=True),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )


def _fill(connection: sa.Connection) -> None:
    """Fills the tasks' new columns from the stored answers."""
    after = 0
    wanted = sa.text(
        "SELECT DISTINCT a.number, a.body FROM dragoman_answers a JOIN dragoman_answer_keys k ON k.number = a.number "
        "WHERE substr(k.key, 1, 5) = 'task:' AND a.number > :after ORDER BY a.number LIMIT :few"
    )
    filled = sa.text(
        "UPDATE dragoman_answers SET task = :task, thread = :thread, stage = :stage, updated_at = :changed WHERE number = :number"
    )
    while rows := connection.execute(wanted, {"after": after, "few": _FEW}).all():
        values: list[Json] = []
        for number, body in rows:
            run = json.loads(bytes(body))
            changed = int(datetime.fromisoformat(run["created_at"]).timestamp() * 1_000_000)
            fields = {
                "task": run["task_id"],
                "thread": _short(run.get("thread_id") or ""),
                "stage": _stage(run),
            }
            values.append({**fields, "changed": changed, "number": number})
        connection.execute(filled, values)
        after = rows[-1][0]


def _short(thread: str) -> str:
    if len(thread) <= _LONGEST:
        return thread
    return f"{thread[:_LONGEST]}#{blake2b(thread.encode(), digest_size=16).hexdigest()}"


def downgrade() -> None:
    """Takes them away."""
    op.drop_table("dragoman_push_configs")
    for name in _INDEXES:
        op.drop_index(name, "dragoman_answers")
    for name in ("task", "thread", "stage", "updated_at"):
        op.drop_column("dragoman_answers", name)
