"""A log of runs in memory, for one process and one event loop. Use it for tests, and for runs that
need not outlive their process."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from itertools import islice
from operator import attrgetter, itemgetter
from time import monotonic, time
from typing import Any, Self

import msgspec

from dragoman.errors import LogFullError
from dragoman.event import Event
from dragoman.request import RunRequest
from dragoman.runs.batch import pack_events, unpack_events
from dragoman.runs.ledger import Append, Change, Enqueue, Ledger, Post, TakeLease, new_run
from dragoman.runs.log import ControlMessage, Lease, RunState, RunStatus, state_after
from dragoman.runs.requests import request_from_json, request_to_json
from dragoman.runs.spending import CallMeter

__all__ = ["MemoryLog"]


_MOST_RUNS = 10_000
_MOST_BYTES = 256 * 1024 * 1024
_MOST_CLAIMS = 100_000
"""Claims that are kept. The oldest are forgotten first."""


class MemoryLog:
    """A `RunLog` that is lost with its process.

    If there are too many finished runs, or too many bytes, it forgets the runs that ended first.
    If there is no room even then, appending to a running run raises `LogFullError`.
    """

    def __init__(
        self,
        *,
        most: int = _MOST_RUNS,
        most_bytes: int = _MOST_BYTES,
        most_running_bytes: int = _MOST_BYTES,
    ) -> None:
        """Makes an empty log.

        Args:
            most: finished runs to keep.
            most_bytes: bytes of all events. Beyond them finished runs are forgotten.
            most_running_bytes: bytes of all events once no finished run is left to forget. Beyond
                them a running run ends with an error.
        """
        self._most, self._most_bytes = most, most_bytes
        self._most_running_bytes = most_running_bytes
        self._bytes = 0
        self._over_runs: dict[str, None] = {}
        """Ids of finished runs, in the order in which they ended."""
        self._ledger, self._meter = Ledger(), CallMeter()
        self._rows: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        """Rows of each run: the run's end after the row, and the row."""
        self._messages: defaultdict[str, list[ControlMessage]] = defaultdict(list)
        self._requests: dict[str, str] = {}
        """Requests of the runs that were enqueued, as JSON."""
        self._claims: dict[tuple[str, str], str] = {}

    async def append(
        self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease
    ) -> int:
        """See `RunLog.append`."""
        state, rows = state_after(run_id, events), pack_events(events)
        size = sum([len(data) for _, data in rows])
        self._make_room(size)
        if state == "running" and self._bytes + size > self._most_running_bytes:
            raise LogFullError(
                f"the log in memory holds at most {self._most_running_bytes} bytes, and the running runs need more; "
                'keep runs in a database: open_log("sqlite:///runs.db")'
            )
        spent = self._meter.feed(events)
        end = self._apply(Append(run_id, expected_offset, rows, state, lease, spent))
        if state != "running":
            self._over_runs[run_id] = None
            self._make_room(0)
        return end

    def hurry(self) -> None:
        """See `RunLog.hurry`. Every change is stored at once."""

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """See `RunLog.read`."""
        rows = self._rows.get(run_id, [])
        index = bisect_right(rows, from_offset, key=itemgetter(0))
        if index == len(rows):
            return []
        end, data = rows[index]
        events = unpack_events(data)
        return events[max(0, from_offset - (end - len(events))) :]

    async def lease(
        self,
        run_id: str,
        owner: str,
        seconds: float,
        *,
        token: int | None = None,
        thread_id: str | None = None,
        caller: str | None = None,
    ) -> Lease:
        """See `RunLog.lease`."""
        if not token and run_id not in self._ledger.statuses:
            self._ledger.statuses[run_id] = new_run(run_id, thread_id, time(), caller)
            self._ledger.lease_ends[run_id] = 0.0
        return self._apply(TakeLease(run_id, owner, seconds, token, thread_id, caller))

    async def enqueue(
        self,
        run_id: str,
        agent: str,
        request: RunRequest,
        *,
        thread_id: str | None = None,
        queue: str = "default",
        owner: str | None = None,
        priority: int = 0,
    ) -> bool:
        """See `RunLog.enqueue`."""
        text = request_to_json(request)
        if run_id in self._ledger.statuses:
            return False
        change = Enqueue(run_id, agent, text, thread_id, queue, owner, priority)
        self._ledger.statuses[run_id] = change.status(time())
        self._ledger.lease_ends[run_id] = 0.0
        self._requests[run_id] = text
        return True

    async def request(self, run_id: str) -> RunRequest:
        """See `RunLog.request`."""
        return request_from_json(run_id, self._requests.get(run_id))

    async def post(self, run_id: str, message: Any) -> int:
        """See `RunLog.post`."""
        return self._apply(Post(run_id, message))

    async def read_posts(self, run_id: str, after: int = 0) -> list[ControlMessage]:
        """See `RunLog.read_posts`."""
        if run_id in self._messages:
            return self._messages[run_id][after:]
        return []

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """See `RunLog.claim`."""
        holder = self._claims.setdefault((thread_id, interrupt_id), run_id)
        if len(self._claims) > _MOST_CLAIMS:
            # Claims are bounded: the oldest one is forgotten.
            del self._claims[next(iter(self._claims))]
        return holder == run_id

    async def prune(self, before: datetime) -> int:
        """Forgets finished runs that began before a time. Returns how many. Claims are kept."""
        old = [
            run_id
            for run_id in self._over_runs
            if self._ledger.statuses[run_id].started_at < before.timestamp()
        ]
        for run_id in old:
            self._remove(run_id)
        return len(old)

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """See `RunLog.status`."""
        return {
            run_id: self._status(run_id) for run_id in run_ids if run_id in self._ledger.statuses
        }

    async def runs(
        self,
        *,
        thread_id: str | None = None,
        state: RunState | None = None,
        driven: bool | None = None,
        queue: str | None = None,
        agent: str | None = None,
        callers: Collection[str | None] | None = None,
        oldest_first: bool = False,
        most: int = 100,
        skip: int = 0,
    ) -> list[RunStatus]:
        """See `RunLog.runs`."""
        filters = {
            "thread_id": thread_id,
            "state": state,
            "driven": driven,
            "queue": queue,
            "agent": agent,
        }
        filters = {name: value for name, value in filters.items() if value is not None}

        def is_match(run: RunStatus) -> bool:
            is_of_caller = callers is None or run.caller in callers
            return is_of_caller and all(
                getattr(run, name) == value for name, value in filters.items()
            )

        if oldest_first:
            matches = filter(is_match, map(self._status, self._ledger.statuses))
            return sorted(matches, key=attrgetter("priority"))[skip : skip + most]
        matches = filter(is_match, map(self._status, reversed(self._ledger.statuses)))
        return list(islice(matches, skip, skip + most))

    async def close(self) -> None:
        """See `RunLog.close`."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    def _apply(self, change: Change) -> Any:
        """Applies a change and stores its rows and messages. Returns the result of the change."""
        ledger = self._ledger
        result = ledger.apply(change, monotonic())
        for run_id, end, data in ledger.new_rows:
            self._rows[run_id].append((end, data))
            self._bytes += len(data)
        for posted in ledger.new_messages:
            self._messages[posted.run_id].append(posted)
        ledger.new_rows.clear()
        ledger.new_messages.clear()
        ledger.changed_runs.clear()
        return result

    def _make_room(self, size: int) -> None:
        """Forgets finished runs until `size` more bytes fit, or no finished run is left."""
        most_bytes = min(self._most_bytes, self._most_running_bytes)
        while self._over_runs and (
            len(self._over_runs) > self._most or self._bytes + size > most_bytes
        ):
            self._remove(next(iter(self._over_runs)))

    def _remove(self, run_id: str) -> None:
        """Forgets a finished run of the log."""
        del self._over_runs[run_id], self._ledger.statuses[run_id], self._ledger.lease_ends[run_id]
        self._bytes -= sum(len(data) for _, data in self._rows.pop(run_id, []))
        self._messages.pop(run_id, None)
        self._requests.pop(run_id, None)

    def _status(self, run_id: str) -> RunStatus:
        """Returns the status of a run, with `driven` as of now."""
        return msgspec.structs.replace(
            self._ledger.statuses[run_id], driven=self._ledger.lease_ends[run_id] > monotonic()
        )
