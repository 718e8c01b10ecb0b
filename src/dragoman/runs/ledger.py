"""The rules of a log of runs, which every kind of log shares: which changes are allowed, and what
they change.

A log turns each call into a `Change` and gives it to a `Ledger` that holds the status of the runs
concerned. The ledger checks the change and collects the rows that the log has to store. It does no
input or output, and gets the time as an argument.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.errors import LeaseLostError, RunLogError
from dragoman.runs.log import ControlMessage, Lease, RunState, RunStatus
from dragoman.runs.spending import CallTotals, add_costs

__all__ = ["Append", "Change", "Enqueue", "Ledger", "Post", "TakeLease", "new_run"]


class Append(msgspec.Struct, frozen=True):
    """The request to store events."""

    run_id: str
    """Id of the run."""
    expected_offset: int
    """Number of events that the caller believes are stored."""
    rows: list[tuple[int, str]]
    """The rows to store: number of events, and their lines."""
    state: RunState
    """State of the run after these events."""
    lease: Lease
    """Lease of the writer."""
    spent: CallTotals = CallTotals()
    """What the model calls took that end in these events."""


class TakeLease(msgspec.Struct, frozen=True):
    """The request to give, renew or return a lease."""

    run_id: str
    """Id of the run."""
    owner: str
    """The process that asks."""
    seconds: float
    """How long the lease holds; 0 returns it."""
    token: int | None
    """See `RunLog.lease`."""
    thread_id: str | None
    """Conversation of a new run."""
    caller: str | None = None
    """Whose a new run is."""


class Post(msgspec.Struct, frozen=True):
    """The request to store a control message."""

    run_id: str
    """Id of the run."""
    message: Any
    """The message in the form that the log stores."""


class Enqueue(msgspec.Struct, frozen=True):
    """The request to create a durable run."""

    run_id: str
    """Id of the run."""
    agent: str
    """Name of its agent."""
    request: str
    """What the agent is asked, as JSON."""
    thread_id: str | None
    """Conversation of the run."""
    queue: str
    """Name of its queue."""
    owner: str | None
    """Whose run it is."""
    priority: int
    """Priority in its queue."""

    def status(self, started_at: float) -> RunStatus:
        """Returns the status of the new run."""
        run = new_run(self.run_id, self.thread_id, started_at)
        return msgspec.structs.replace(
            run,
            state="queued",
            agent=self.agent,
            queue=self.queue,
            caller=self.owner,
            priority=self.priority,
        )


Change = Append | TakeLease | Post


class Ledger:
    """Applies changes to the status of some runs.

    What a log has to store afterwards is collected in `new_rows`, `new_messages` and
    `changed_runs`.
    """

    def __init__(self) -> None:
        """Creates a ledger without durable calls."""
        self.statuses: dict[str, RunStatus] = {}
        """Status of each run. Use `lease_ends` instead of their `driven`, which is not kept here."""
        self.lease_ends: dict[str, float] = {}
        """When the last lease of each run ends, in seconds of the log's clock."""
        self.new_rows: list[tuple[str, int, str]] = []
        """Rows to store: id of the run, its end after the row, and the lines."""
        self.new_messages: list[ControlMessage] = []
        self.changed_runs: set[str] = set()

    def apply(self, change: Change, now: float) -> Any:
        """Applies a change of a run to the ledger. Returns the new end of the run, the lease, or
        the number of the message.

        Raises:
            RunLogError: the change is not allowed. Nothing was changed.
        """
        status = self.statuses.get(change.run_id)
        if status is None:
            raise RunLogError(
                f"the log has no run {change.run_id!r}: start it, or open the log that it was started in"
            )
        if isinstance(change, Post):
            message = ControlMessage(change.run_id, status.posts + 1, change.message)
            self._change(status, posts=message.number)
            self.new_messages.append(message)
            return message.number
        if status.is_over:
            raise RunLogError(f"run {change.run_id} is over ({status.state}): start a new one")
        if isinstance(change, Append):
            return self._append(change, status, now)
        return self._take(change, status, now)

    def _append(self, change: Append, status: RunStatus, now: float) -> int:
        """Adds events to a run by the ledger's rules. Returns its new end."""
        run_id, lease, end = change.run_id, change.lease, change.expected_offset
        # The token grows with each owner, so a late write of an earlier owner is refused even if the
        # clocks of two machines differ.
        if status.token != lease.token:
            raise LeaseLostError(
                f"run {run_id} now belongs to {status.owner}: {lease.owner} can no longer write to it"
            )
        self._check_lease(status, lease.owner, now)
        if status.end != end:
            raise RunLogError(
                f"the log of run {run_id} ends at {status.end}, not at {end}: read the events from {end} on before you append"
            )
        for count, lines in change.rows:
            end += count
            self.new_rows.append((run_id, end, lines))
        self._change(status, end=end, state=change.state, **_add_spent(status, change.spent))
        if change.state != "running":
            self.lease_ends[run_id] = 0.0
        return end

    def _take(self, change: TakeLease, status: RunStatus, now: float) -> Lease:
        """Gives, renews or takes back the lease of a run."""
        run_id, owner, token = change.run_id, change.owner, change.token
        if token == 0 and (status.token or status.is_durable):
            raise LeaseLostError(
                f"there is a run {run_id} already: attach to it, or start the new run under another id"
            )
        if token:
            if token != status.token:
                raise LeaseLostError(
                    f"run {run_id} now belongs to {status.owner}: {owner} has lost it"
                )
            self._check_lease(status, owner, now)
        elif self.lease_ends[run_id] > now:
            raise LeaseLostError(
                f"run {run_id} is driven by {status.owner}: wait until that lease expires"
            )
        lease = Lease(run_id, owner, token or status.token + 1)
        # A lease that is given back ends at 0; any other end is that of an owner that is gone.
        is_lost = not token and status.token > 0 and self.lease_ends[run_id] > 0
        self._change(
            status,
            owner=owner,
            token=lease.token,
            state="running",
            lost=status.lost + is_lost,
        )
        self.lease_ends[run_id] = 0.0
        if change.seconds > 0:
            self.lease_ends[run_id] = now + change.seconds
        return lease

    def _check_lease(self, status: RunStatus, owner: str, now: float) -> None:
        """Raises `LeaseLostError` if the lease of a run has expired."""
        if self.lease_ends[status.run_id] <= now:
            raise LeaseLostError(
                f"the lease of {owner} on run {status.run_id} has expired: it was not renewed in time"
            )

    def _change(self, status: RunStatus, **changes: Any) -> None:
        """Replaces fields of a status, and marks the run as changed."""
        self.statuses[status.run_id] = msgspec.structs.replace(status, **changes)
        self.changed_runs.add(status.run_id)


def _add_spent(status: RunStatus, spent: CallTotals) -> dict[str, Any]:
    """Returns the fields of a ledger's status after its run has spent something."""
    # An earlier release began the run and did not count, or nothing was spent, as in nearly every
    # change.
    if status.calls is None or status.tokens is None or not spent.calls:
        return {}
    return {
        "calls": status.calls + spent.calls,
        "tokens": status.tokens + spent.tokens,
        "cost": add_costs(status.cost, spent.cost),
    }


def new_run(
    run_id: str, thread_id: str | None, started_at: float, caller: str | None = None
) -> RunStatus:
    """Returns the ledger's status of a run that no process has driven yet."""
    return RunStatus(
        run_id,
        thread_id,
        "running",
        0,
        0,
        None,
        0,
        driven=False,
        started_at=started_at,
        caller=caller,
    )
