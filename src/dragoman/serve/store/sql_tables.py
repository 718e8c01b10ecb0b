"""The tables of kept answers, and those of callers: their keys, budgets and usage."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    text,
)

from dragoman.sql.migrate import Migrations

__all__ = [
    "MIGRATIONS",
    "answers",
    "balances",
    "caller_keys",
    "keys",
    "metadata",
    "push_configs",
    "usage",
]

metadata = MetaData()
MIGRATIONS = Migrations(
    "dragoman.serve.store:migrations", "0004", "dragoman_serve_version", metadata
)
# In SQLite only an INTEGER key counts by itself.
_ID = BigInteger().with_variant(Integer, "sqlite")

push_configs = Table(
    "dragoman_push_configs",
    metadata,
    Column("owner", String, primary_key=True),
    Column("task", String, primary_key=True),
    Column("config_id", String, primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)
"""Where notifications of tasks go, as JSON."""
keys = Table(
    "dragoman_answer_keys",
    metadata,
    Column("owner", String, primary_key=True),
    Column("key", String, primary_key=True),
    Column(
        "number",
        _ID,
        ForeignKey("dragoman_answers.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Index("ix_dragoman_answer_keys_number", "number"),
)
"""Under which keys answers are found."""


def _of_tasks(name: str, *columns: str) -> Index:
    is_task = text("task IS NOT NULL")
    return Index(name, *columns, sqlite_where=is_task, postgresql_where=is_task)


answers = Table(
    "dragoman_answers",
    metadata,
    Column("number", _ID, primary_key=True),
    Column("owner", String, nullable=False),
    Column("answer_id", String, nullable=False),
    Column("parent", String),
    Column("created_at", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("task", String),
    Column("thread", String),
    Column("stage", String),
    Column("updated_at", BigInteger),
    UniqueConstraint("owner", "answer_id", name="uq_dragoman_answers_owner_answer_id"),
    Index("ix_dragoman_answers_created_at", "created_at"),
    Index("ix_dragoman_answers_owner_parent", "owner", "parent"),
    _of_tasks("ix_dragoman_answers_tasks", "owner", "number"),
    _of_tasks("ix_dragoman_answers_task", "owner", "task", "number"),
    _of_tasks("ix_dragoman_answers_stage", "owner", "stage", "number"),
    _of_tasks("ix_dragoman_answers_thread", "owner", "thread", "number"),
)
"""An answer as JSON. `number`: rises with each; `created_at`, `updated_at`: in microseconds since
1970. From `task` on: of the runs of tasks alone."""

caller_keys = Table(
    "dragoman_caller_keys",
    metadata,
    Column("owner", String, primary_key=True),
    Column("name", String, nullable=False),
    Column("prefix", String, nullable=False),
    Column("models", String),
    Column("budgets", String, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Index(
        "uq_dragoman_caller_keys_name",
        "name",
        unique=True,
        sqlite_where=text("revoked_at IS NULL"),
        postgresql_where=text("revoked_at IS NULL"),
    ),
)
"""Keys of callers. `owner`: the caller's id, a digest of the key; `models`, `budgets`: lists in JSON;
times in microseconds since 1970."""
balances = Table(
    "dragoman_balances",
    metadata,
    Column("owner", String, primary_key=True),
    Column("day", String, nullable=False),
    Column("month", String, nullable=False),
    Column("slot", BigInteger, nullable=False),
    *[
        Column(f"{column}_{unit}", BigInteger, nullable=False)
        for column in ("day", "month", "held", "held_before")
        for unit in ("dollars", "tokens")
    ],
)
"""What callers with budgets have spent in the UTC `day` and `month`, and what calls that run hold:
those that began in the `slot` of time, and in the one before. Dollars in billionths."""
usage = Table(
    "dragoman_usage",
    metadata,
    Column("owner", String, primary_key=True),
    Column("day", String, primary_key=True),
    Column("model", String, primary_key=True),
    Column("name", String, nullable=False),
    *[
        Column(name, BigInteger, nullable=False)
        for name in (
            *("requests", "input_tokens", "cached_tokens", "output_tokens"),
            *("cost", "unknown_cost"),
        )
    ],
    Index("ix_dragoman_usage_day", "day"),
)
"""What callers took of each model on each UTC day. `name`: of the key; `cost`: in billionths of a
dollar; `unknown_cost`: how many of the requests have a price that is not known."""
