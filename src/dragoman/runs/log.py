"""The log of runs: what it can do (`RunLog`), and the values that it gives.

The events of a run are numbered from 0 without a gap; an *offset* is such a number, the *end* the
number of events that are stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol, Self, runtime_checkable

import msgspec

from dragoman.errors import RunInterruptedError
from dragoman.event import Event, RunError, RunFinished

__all__ = ["Lease", "ControlMessage", "RunLog", "RunState", "RunStatus", "state_after"]

RunState = Literal["running", "success", "pending", "cancelled", "error", "interrupted"]
"""`running`, or how it ended: the outcome of `RunFinished`, or an error. `interrupted`: its process
ended before it did."""


class Lease(msgspec.Struct, frozen=True):
    """The right to drive a run. It holds until its seconds are over, and is prolonged before that
    by who has it."""

    run_id: str
    """Id of the run."""
    owner: str
    """Who has it."""
    token: int
    """Grows with each change of hands, from 1 on: what comes later from an earlier owner is
    refused."""


class RunStatus(msgspec.Struct, frozen=True):
    """How far a run is."""

    run_id: str
    """Id of the run."""
    thread_id: str | None
    """Id of the conversation that it belongs to, where one was given."""
    state: RunState
    """`running`, or how it ended."""
    end: int
    """How many events are stored."""
    posts: int
    """How many messages were posted to it."""
    owner: str | None
    """Who drives it, or was the last to do so."""
    token: int
    """Token of the last lease; 0: there was none."""
    driven: bool
    """Whether a lease holds now."""
    started_at: float
    """When it was begun, in seconds since 1970."""

    @property
    def is_over(self) -> bool:
        """Whether no event will come any more."""
        return self.state != "running"


class ControlMessage(msgspec.Struct, frozen=True):
    """A message to whoever drives a run."""

    run_id: str
    """Id of the run."""
    number: int
    """1 for the first of that run, and so on."""
    message: Any
    """Any JSON value, such as `{"type": "cancel"}`."""


@runtime_checkable
class RunLog(Protocol):
    """Where the events of runs are stored. Use it in `async with`. What a method has returned from
    is stored; readers see nothing else.

    Every method raises `RunLogError` where the store cannot be reached or answers with an error.
    """

    async def append(
        self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease
    ) -> int:
        """Stores events behind the first `expected_offset` ones, all or none → the new end. A last
        event that ends the run ends its lease.

        Raises:
            LeaseLostError: the lease is over or another's.
            LogFullError: the log holds as much as it may; the end of a run is stored all the same.
            RunLogError: the log's end is elsewhere, the run is over, or there is no such run.
            HistoryError: an event cannot be stored as JSON.
        """
        ...

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """Some of the events from that offset on, the first of them first; `[]`: there is none yet,
        or no such run."""
        ...

    async def lease(
        self,
        run_id: str,
        owner: str,
        seconds: float,
        *,
        token: int | None = None,
        thread_id: str | None = None,
    ) -> Lease:
        """Gives the run to `owner` for so long, unless somebody has it. `token` says what the
        caller takes for the last lease: 0 for a run that is new and begins with this, that of its
        own lease to prolong it; `None`: any that is over. 0 seconds give it back.

        Raises:
            LeaseLostError: another has it, or `token` is not that of the last lease, or that one is over.
            RunLogError: the run is over.
        """
        ...

    async def post(self, run_id: str, message: Any) -> int:
        """Stores a message (any JSON value) for whoever drives the run → its number.

        Raises:
            RunLogError: there is no such run.
        """
        ...

    async def posted(self, run_id: str, after: int = 0) -> list[ControlMessage]:
        """The messages behind number `after`, in order."""
        ...

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """Claims an interrupt for a run, for ever. Returns True if the run holds the claim: it is
        the first, or claimed it before. What an answer allows is done only then.

        Args:
            thread_id: the conversation, or the owner of a signed answer.
            interrupt_id: the interrupt's id, or the name of a signed answer.
            run_id: the run that claims.
        """
        ...

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """Of each of those runs, as far as the log has them."""
        ...

    async def runs(
        self,
        *,
        thread_id: str | None = None,
        state: RunState | None = None,
        driven: bool | None = None,
        most: int = 100,
    ) -> list[RunStatus]:
        """Runs, the latest first; of one conversation, in one state, with or without a lease that
        holds."""
        ...

    async def close(self) -> None:
        """Stores what was given, and lets go of the store."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...


def state_after(run_id: str, events: Sequence[Event]) -> RunState:
    """The state of a run whose latest events are these."""
    for event in reversed(events):
        if isinstance(event, RunFinished) and event.run_id == run_id:
            return event.outcome
        if isinstance(event, RunError) and event.run_id == run_id:
            return "interrupted" if isinstance(event.error, RunInterruptedError) else "error"
    return "running"
