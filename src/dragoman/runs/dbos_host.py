"""The DBOS of this process (`DbosHost`), of which there can be one: the user's, or one that is
launched for as long as somebody works."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from time import monotonic, sleep
from typing import ClassVar

from dbos import DBOS, DBOSClient
from sqlalchemy import make_url

from dragoman.errors import SettingsError
from dragoman.runs.engines import Limit
from dragoman.runtime import new_id
from dragoman.sql.address import create_private_file

__all__ = ["DbosHost", "has_foreign_dbos", "open_client", "system_database"]

_NAME = "dragoman"
"""Name of the application that is launched here, and of its tables' schema in Postgres: those of an
application of the user's in the same database are left alone."""
_VERSION = "1"
"""The version of that application. It stays, because another version would neither begin nor take over
runs of this one. The workflow has no state of its own, so every release can go on with it."""
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


def open_client(url: str) -> DBOSClient:
    """Returns a client of the system database, with its tables made."""
    if url.startswith("sqlite"):
        path = make_url(url).database
        assert path is not None
        create_private_file(path)
        with closing(sqlite3.connect(path)) as connection:
            # Half the price of a commit; it holds for the file, whoever opens it.
            connection.execute("PRAGMA journal_mode=WAL")
    DBOS.migrate(url, schema=_NAME)
    return DBOSClient(
        system_database_url=url,
        dbos_system_schema=_NAME,
        application_name=_NAME,
        retry_connection_errors=False,
    )


class DbosHost:
    """Lets engines of this process use one DBOS. Its functions block; call them in a thread."""

    lock: ClassVar = threading.Lock()
    url: ClassVar[str | None] = None
    """System database of the DBOS that was launched here, if one was."""
    queues: ClassVar[frozenset[str]] = frozenset()
    users: ClassVar = 0

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
            DBOS.destroy()
            cls.url = None

    @classmethod
    def _launch(cls, url: str, queues: frozenset[str]) -> None:
        """Launches DBOS for some queues."""
        DBOS(
            config={
                "name": _NAME,
                "system_database_url": url,
                "dbos_system_schema": _NAME,
                "application_version": _VERSION,
                # With an id that another process has, too, DBOS would run the workflows of a live one.
                "executor_id": new_id(),
                "log_level": "WARNING",
            }
        )
        cls.url, cls.queues = url, queues
        try:
            DBOS.listen_queues(sorted(queues))
            DBOS.launch()
        except BaseException:
            DBOS.destroy()
            cls.url = None
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
