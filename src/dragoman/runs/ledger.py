"""What may be done to runs, and what becomes of them by it: the same for every log. No input or
output, and no clock of its own."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import LeaseLostError, RunLogError
from dragoman.runs.log import ControlMessage, Lease, RunState, RunStatus

__all__ = ["Append", "Change", "Ledger", "Post", "Take", "new_run"]


class Append(msgspec.Struct, frozen=True):
    """Events are to be stored."""

    run_id: str
    """Of which run."""
    expected_offset: int
    """Where its log is taken to end."""
    rows: list[tuple[int, str]]
    """Of each: how many events, and their lines."""
    state: RunState
    """The run's, behind them."""
    lease: Lease
    """Of whoever writes."""


class Take(msgspec.Struct, frozen=True):
    """A lease is to be given, prolonged or given back."""

    run_id: str
    """On which run."""
    owner: str
    """To whom."""
    seconds: float
    """For how long; 0 gives it back."""
    token: int | None
    """As in `RunLog.lease`."""
    thread_id: str | None
    """Of a run that is new."""


class Post(msgspec.Struct, frozen=True):
    """A message is to be stored."""

    run_id: str
    """To which run."""
    message: Any
    """As the log stores it."""


Change = Append | Take | Post


class Ledger:
    """Some runs. `apply` changes them; what is to be stored by it gathers in `rows`, `posted` and
    `changed`."""

    def __init__(self) -> None:
        self.statuses: dict[str, RunStatus] = {}
        """`driven` of these counts for nothing: `until` says it."""
        self.until: dict[str, float] = {}
        """When the last lease of each is over, in seconds."""
        self.rows: list[tuple[str, int, str]] = []
        """Run, end of its log behind the row, lines."""
        self.posted: list[ControlMessage] = []
        self.changed: set[str] = set()

    def apply(self, change: Change, now: float) -> Any:
        """Makes the change wholly → the new end of the log, the lease, or the number of the
        message.

        Raises:
            RunLogError: it may not be made, and nothing was.
        """
        status = self.statuses.get(change.run_id)
        if status is None:
            raise RunLogError(
                f"the log has no run {change.run_id!r}: start it, or look in the log that it was started in"
            )
        if isinstance(change, Post):
            posted = ControlMessage(change.run_id, status.posts + 1, change.message)
            self._change(status, posts=posted.number)
            self.posted.append(posted)
            return posted.number
        if status.is_over:
            raise RunLogError(f"run {change.run_id} is over ({status.state}): go on with a new one")
        return (
            self._append(change, status, now)
            if isinstance(change, Append)
            else self._take(change, status, now)
        )

    def _append(self, change: Append, status: RunStatus, now: float) -> int:
        run_id, lease, end = change.run_id, change.lease, change.expected_offset
        # The token grows with each owner: what comes late from an earlier one is refused, whatever
        # the clocks say.
        if status.token != lease.token:
            raise LeaseLostError(
                f"run {run_id} was given to {status.owner}: {lease.owner} may not write to it any more"
            )
        self._check_held(status, lease.owner, now)
        if status.end != end:
            raise RunLogError(
                f"the log of run {run_id} ends at {status.end}, not at {end}: read on from {end} before you append"
            )
        for count, lines in change.rows:
            end += count
            self.rows.append((run_id, end, lines))
        self._change(status, end=end, state=change.state)
        if change.state != "running":
            self.until[run_id] = 0.0
        return end

    def _take(self, change: Take, status: RunStatus, now: float) -> Lease:
        run_id, owner, token = change.run_id, change.owner, change.token
        if token == 0 and status.token:
            raise LeaseLostError(
                f"there is a run {run_id} already: attach to it, or give the new one another id"
            )
        if token:
            if token != status.token:
                raise LeaseLostError(
                    f"run {run_id} was given to {status.owner}: {owner} does not have it any more"
                )
            self._check_held(status, owner, now)
        elif self.until[run_id] > now:
            raise LeaseLostError(
                f"run {run_id} is driven by {status.owner}: wait until its lease is over"
            )
        lease = Lease(run_id, owner, token or status.token + 1)
        self._change(status, owner=owner, token=lease.token)
        self.until[run_id] = now + change.seconds
        return lease

    def _check_held(self, status: RunStatus, owner: str, now: float) -> None:
        if self.until[status.run_id] <= now:
            raise LeaseLostError(
                f"the lease of {owner} on run {status.run_id} is over: it was not prolonged in time"
            )

    def _change(self, status: RunStatus, **changes: Any) -> None:
        self.statuses[status.run_id] = msgspec.structs.replace(status, **changes)
        self.changed.add(status.run_id)


def new_run(run_id: str, thread_id: str | None, started_at: float) -> RunStatus:
    """A run that nobody has had yet."""
    return RunStatus(
        run_id, thread_id, "running", 0, 0, None, 0, driven=False, started_at=started_at
    )
