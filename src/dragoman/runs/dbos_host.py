"""The DBOS of this process (`DbosHost`), of which there can be one: the user's, or one that is
launched for as long as somebody works."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from time import monotonic, sleep
from typing import ClassVar

from dbos import DBOS, DBOSClient
from sqlalchemy import Engine, make_url

from dragoman.errors import SettingsError
from dragoman.runs.engines import Limit
from dragoman.runtime import new_id
from dragoman.sql.address import create_private_file
from dragoman.sql.engine import open_engine

__all__ = ["DbosHost", "has_foreign_dbos", "open_client", "system_database"]

_NAME = "dragoman"
"""Name of the application that is launched here, and of its tables' schema in Postgres: those of an
application of the user's in the same database are left alone."""
_VERSION = "1"
"""The version of that application. It stays, because another version would neither begin nor take over
runs of this one. The workflow has no state of its own, so every release can go on with it."""
_CONNECTIONS = 5
"""Connections of a process to SQLite."""
_END_SECONDS = 5.0
"""Seconds that a process waits for its last workflows to be stored."""


def system_database(log_url: str) -> str:
    """Returns the URL of DBOS's tables for a log: the same database in Postgres, the file
    `PATH.dbos` beside it in SQLite."""
    if not log_url.startswith("sqlite"):
        return log_url
    url = make_url(log_url)
    return str(url.set(database=f"{url.database}.dbos"))


def has_foreign_dbos() -> bool:
    """True if this process has a DBOS that was not launched here: the user's."""
    # No public name tells whether there is one; `DBOS(config=…)` would be ignored without a word.
    instance = getattr(sys.modules["dbos._dbos"], "_dbos_global_instance", None)
    return instance is not None and DbosHost.url is None


def open_client(url: str, closing: ExitStack) -> DBOSClient:
    """Returns a client of the system database, with its tables made. `closing`: closes it."""
    if url.startswith("sqlite"):
        create_private_file(str(make_url(url).database))
    DBOS.migrate(url, schema=_NAME)
    client = DBOSClient(
        system_database_url=url,
        system_database_engine=_open_sqlite(url, closing),
        dbos_system_schema=_NAME,
        application_name=_NAME,
        retry_connection_errors=False,
    )
    closing.callback(client.destroy)
    return client


def _open_sqlite(url: str, closing: ExitStack) -> Engine | None:
    """Returns connections to a system database in SQLite; `None` for Postgres."""
    if not url.startswith("sqlite"):
        return None
    # DBOS's own would count the runs of a queue before their transaction has the lock, so two processes
    # could exceed a limit. They do not use WAL either, so that a commit takes twice the time.
    engine = open_engine(url, connections=_CONNECTIONS, writes=True)
    closing.callback(engine.dispose)
    return engine


class DbosHost:
    """Lets engines of this process use one DBOS. Its functions block; call them in a thread."""

    lock: ClassVar = threading.Lock()
    url: ClassVar[str | None] = None
    """System database of the DBOS that was launched here, if one was."""
    queues: ClassVar[frozenset[str]] = frozenset()
    users: ClassVar = 0
    closing: ClassVar = ExitStack()

    @classmethod
    def enter(
        cls, url: str, client: DBOSClient | None, queues: Mapping[str, Limit], poll: float
    ) -> None:
        """Sees to it that DBOS runs the workflows of these queues. `poll`: seconds from one look at a
        queue to the next.

        Raises:
            SettingsError: DBOS was launched here for another log or other queues.
        """
        with cls.lock:
            if has_foreign_dbos():
                _register(DBOS.register_queue, queues, poll)
                return
            assert client is not None
            _register(client.register_queue, queues, poll)
            if cls.url is None:
                cls._launch(url, frozenset(queues))
            elif cls.url != url or not cls.queues >= frozenset(queues):
                raise SettingsError(
                    "DBOS works on one log and one set of queues in each process: give all queues to one worker, "
                    "or start another process"
                )
            cls.users += 1

    @classmethod
    def leave(cls) -> None:
        """Ends what `enter` began."""
        with cls.lock:
            if cls.url is None:
                return
            cls.users -= 1
            if cls.users:
                return
            until = monotonic() + _END_SECONDS
            while monotonic() < until and DBOS.list_workflows(
                status="PENDING", executor_id=DBOS.executor_id, load_input=False, limit=1
            ):
                sleep(0.02)
            cls._close()

    @classmethod
    def _close(cls) -> None:
        DBOS.destroy()
        cls.closing.close()
        cls.url = None

    @classmethod
    def _launch(cls, url: str, queues: frozenset[str]) -> None:
        """Launches DBOS for some queues."""
        DBOS(
            config={
                "name": _NAME,
                "system_database_url": url,
                "system_database_engine": _open_sqlite(url, cls.closing),
                # `open_client` has made the tables.
                "run_migrations": False,
                "dbos_system_schema": _NAME,
                "application_version": _VERSION,
                # With an id that another process has, too, DBOS would run the workflows of a live one.
                "executor_id": new_id(),
                # Its warnings are of what it mends itself, such as two workers at one queue.
                "log_level": "ERROR",
            }
        )
        cls.url, cls.queues = url, queues
        try:
            DBOS.listen_queues(sorted(queues))
            DBOS.launch()
        except BaseException:
            cls._close()
            raise


def _register(register: Callable[..., object], queues: Mapping[str, Limit], poll: float) -> None:
    """Registers queues with their limits, in place of those that they had."""
    for name, limit in queues.items():
        limiter = None
        if (rate := limit.per_second) is not None:
            most = max(1, int(rate))
            limiter = {"limit": most, "period": most / rate}
        register(
            name,
            global_concurrency=limit.runs,
            limiter=limiter,
            polling_interval_sec=poll,
            on_conflict="always_update",
        )
