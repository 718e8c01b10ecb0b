"""A log of runs in memory, for one process and one event loop: for tests, and for runs that may end
with their process."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import itemgetter
from time import monotonic, time
from typing import Any, Self

import msgspec

from dragoman.errors import LogFullError
from dragoman.event import Event
from dragoman.runs.batch import batches, events_of
from dragoman.runs.ledger import Append, Change, Ledger, Post, Take, new_run
from dragoman.runs.log import ControlMessage, Lease, RunState, RunStatus, state_after

__all__ = ["MemoryLog"]


_MOST_RUNS = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_MOST_CLAIMS = 100_000


class MemoryLog:
    """A `RunLog` that is gone with its process. Beyond so many runs that are over, or so many
    bytes, the first of them that ended go. A run that goes on ends with an error where the log has
    no room left for it."""

    def __init__(
        self,
        *,
        most: int = _MOST_RUNS,
        most_bytes: int = _MOST_BYTES,
        most_running_bytes: int = _MOST_BYTES,
    ) -> None:
        """Makes an empty log.

        Args:
            most: Runs that are over.
            most_bytes: Of the events of all runs; beyond that runs that are over are forgotten.
            most_running_bytes: Of the events of all runs, once none that is over is left to forget. Beyond that a run that
                goes on ends with an error.
        """
        self._most, self._most_bytes = most, most_bytes
        self._most_running_bytes = most_running_bytes
        self._bytes = 0
        self._over: dict[str, None] = {}
        """Runs that are over, in the order in which they ended."""
        self._ledger = Ledger()
        self._rows: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        """Of each run: the end of the log behind a row, and the row."""
        self._posted: defaultdict[str, list[ControlMessage]] = defaultdict(list)
        self._claims: dict[tuple[str, str], str] = {}

    async def append(
        self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease
    ) -> int:
        """As `RunLog.append`."""
        state, rows = state_after(run_id, events), batches(events)
        size = sum([len(data) for _, data in rows])
        self._make_room(size)
        if state == "running" and self._bytes + size > self._most_running_bytes:
            raise LogFullError(
                f"the log in memory holds {self._most_running_bytes} bytes at most, and the runs that go on are larger; "
                'keep runs in a database: open_log("sqlite:///runs.db")'
            )
        end = self._apply(Append(run_id, expected_offset, rows, state, lease))
        if state != "running":
            self._over[run_id] = None
            self._make_room(0)
        return end

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """As `RunLog.read`."""
        rows = self._rows.get(run_id, [])
        index = bisect_right(rows, from_offset, key=itemgetter(0))
        if index == len(rows):
            return []
        end, data = rows[index]
        events = events_of(data)
        return events[max(0, from_offset - (end - len(events))) :]

    async def lease(
        self,
        run_id: str,
        owner: str,
        seconds: float,
        *,
        token: int | None = None,
        thread_id: str | None = None,
    ) -> Lease:
        """As `RunLog.lease`."""
        if not token and run_id not in self._ledger.statuses:
            self._ledger.statuses[run_id] = new_run(run_id, thread_id, time())
            self._ledger.until[run_id] = 0.0
        return self._apply(Take(run_id, owner, seconds, token, thread_id))

    async def post(self, run_id: str, message: Any) -> int:
        """As `RunLog.post`."""
        return self._apply(Post(run_id, message))

    async def posted(self, run_id: str, after: int = 0) -> list[ControlMessage]:
        """As `RunLog.posted`."""
        return self._posted[run_id][after:] if run_id in self._posted else []

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """As `RunLog.claim`."""
        holder = self._claims.setdefault((thread_id, interrupt_id), run_id)
        if len(self._claims) > _MOST_CLAIMS:
            del self._claims[next(iter(self._claims))]
        return holder == run_id

    async def prune(self, before: datetime) -> int:
        """Forgets runs that were begun before a time and are over → how many. Claims stay."""
        old = [
            run_id
            for run_id in self._over
            if self._ledger.statuses[run_id].started_at < before.timestamp()
        ]
        for run_id in old:
            self._remove(run_id)
        return len(old)

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """As `RunLog.status`."""
        return {
            run_id: self._status(run_id) for run_id in run_ids if run_id in self._ledger.statuses
        }

    async def runs(
        self,
        *,
        thread_id: str | None = None,
        state: RunState | None = None,
        driven: bool | None = None,
        most: int = 100,
    ) -> list[RunStatus]:
        """As `RunLog.runs`."""
        latest = map(self._status, reversed(self._ledger.statuses))
        wanted = {"thread_id": thread_id, "state": state, "driven": driven}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        return [
            run
            for run in latest
            if all(getattr(run, name) == value for name, value in wanted.items())
        ][:most]

    async def close(self) -> None:
        """As `RunLog.close`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _apply(self, change: Change) -> Any:
        ledger = self._ledger
        result = ledger.apply(change, monotonic())
        for run_id, end, data in ledger.rows:
            self._rows[run_id].append((end, data))
            self._bytes += len(data)
        for posted in ledger.posted:
            self._posted[posted.run_id].append(posted)
        ledger.rows.clear()
        ledger.posted.clear()
        ledger.changed.clear()
        return result

    def _make_room(self, size: int) -> None:
        """Forgets runs that are over, until as many bytes more fit or none is left."""
        most_bytes = min(self._most_bytes, self._most_running_bytes)
        while self._over and (len(self._over) > self._most or self._bytes + size > most_bytes):
            self._remove(next(iter(self._over)))

    def _remove(self, run_id: str) -> None:
        del self._over[run_id], self._ledger.statuses[run_id], self._ledger.until[run_id]
        self._bytes -= sum(len(data) for _, data in self._rows.pop(run_id, []))
        self._posted.pop(run_id, None)

    def _status(self, run_id: str) -> RunStatus:
        return msgspec.structs.replace(
            self._ledger.statuses[run_id], driven=self._ledger.until[run_id] > monotonic()
        )
