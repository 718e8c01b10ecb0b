"""The interface of a log that stores the events of runs (`RunLog`), and the values that it returns.

The events of a run are numbered from 0 without a gap. An *offset* is the number of an event. The
*end* of a run is the number of events stored so far.

Only the process that holds a run's *lease* may append to the run. Any process may read it and may
post a control message to the process that drives it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal, Protocol, Self, runtime_checkable

import msgspec

from dragoman.errors import RunInterruptedError
from dragoman.event import Event, RunError, RunFinished
from dragoman.request import RunRequest

__all__ = ["Lease", "ControlMessage", "RunLog", "RunState", "RunStatus", "state_after"]

RunState = Literal["queued", "running", "success", "pending", "cancelled", "error", "interrupted"]
"""`queued`: enqueued, and no process has begun it. `running`, or how the run ended: the outcome of its
`RunFinished`, or `error`. A run whose process ended too early is `interrupted`, unless it is
durable."""


class Lease(msgspec.Struct, frozen=True):
    """The right of one process to write a run, for a number of seconds. Its owner renews it before
    they are over."""

    run_id: str
    """Id of the run."""
    owner: str
    """The process that holds it."""
    token: int
    """Number of the lease, from 1 on. It grows with each new owner, so that late writes of an
    earlier owner are refused."""


class RunStatus(msgspec.Struct, frozen=True):
    """The state of a stored run."""

    run_id: str
    """Id of the run."""
    thread_id: str | None
    """Id of the conversation that the run belongs to, if it has one."""
    state: RunState
    """`running`, or how the run ended."""
    end: int
    """Number of stored events."""
    posts: int
    """Number of control messages that were posted to the run."""
    owner: str | None
    """The process that drives the run, or the last one that did."""
    token: int
    """Token of the last lease; 0 if there was none."""
    driven: bool
    """True if a lease holds now."""
    started_at: float
    """When the run began or was enqueued, in seconds since 1970."""
    agent: str | None = None
    """Name of the agent of a run that was enqueued; `None`: the run is not durable."""
    queue: str | None = None
    """Name of the queue of a run that was enqueued."""
    lost: int = 0
    """Number of owners whose lease expired before they gave it back."""
    caller: str | None = None
    """Whose run it is, such as the caller of a server. It stays, whichever process drives the run.
    `None`: nobody said it."""
    priority: int = 0
    """Priority in its queue: lower numbers come first."""
    calls: int | None = 0
    """Number of model calls so far that told their tokens, also those of agents in tools. `None`: an
    earlier release wrote the run and did not count."""
    tokens: int | None = 0
    """Input and output tokens of these calls."""
    cost: Decimal | None = Decimal(0)
    """What they cost in US dollars; `None`: the price of one is unknown."""

    @property
    def is_over(self) -> bool:
        """True if no more events will come."""
        return self.state not in ("queued", "running")

    @property
    def is_durable(self) -> bool:
        """True if any process that has the agent may go on with the run once its owner is gone."""
        return self.agent is not None


class ControlMessage(msgspec.Struct, frozen=True):
    """A message to the process that drives a run."""

    run_id: str
    """Id of the run."""
    number: int
    """Number within the run, from 1 on."""
    message: Any
    """Any JSON value, such as `{"type": "cancel"}`."""


@runtime_checkable
class RunLog(Protocol):
    """Stores the events of runs. Use it in `async with`.

    When a method returns, its change is stored. Readers see only what is stored. Every method
    raises `RunLogError` if the store cannot be reached or answers with an error.
    """

    async def append(
        self, run_id: str, expected_offset: int, events: Sequence[Event], *, lease: Lease
    ) -> int:
        """Stores events in the log after the first `expected_offset` ones, all or none. Returns the
        new end. If the last event ends the run, its lease ends too.

        Raises:
            LeaseLostError: the lease has expired or belongs to another process.
            LogFullError: the log is full. The event that ends a run is stored all the same.
            RunLogError: the run's end is not `expected_offset`, the run is over, or is unknown.
            HistoryError: an event cannot be stored as JSON.
        """
        ...

    def hurry(self) -> None:
        """Stores the changes that wait, or the next one, at once. A log may otherwise collect
        changes for some milliseconds and store them together."""
        ...

    async def read(self, run_id: str, from_offset: int = 0) -> list[Event]:
        """Returns some of the events from that offset on, in order. Returns `[]` if there are none
        yet, or if the run is unknown."""
        ...

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
        """Gives `owner` the lease of a run of the log, unless another process holds it.

        Args:
            run_id: the run.
            owner: the process that is to drive it.
            seconds: how long the lease holds. 0 gives it back: another process may go on at once.
            token: token of the last lease as the caller knows it. 0 creates the run, the token of
                the caller's own lease renews that, and None takes over any lease that has expired.
            thread_id: conversation of a run that is created.
            caller: whose run it is that is created (`RunStatus.caller`).

        Raises:
            LeaseLostError: another process holds it, or `token` is not that of a lease that holds.
            RunLogError: the run is over.
        """
        ...

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
        """Creates in the log a durable run in state `queued`, with what a process needs to drive
        it. Returns False if there is a run with that id, which is left as it is.

        Args:
            run_id: the run.
            agent: name of the agent that is to answer.
            request: what it is asked.
            thread_id: conversation of the run.
            queue: the queue that the run waits in.
            owner: whose run it is, such as the caller of a server (`RunStatus.caller`). Compare it
                before you show the run to somebody.
            priority: lower numbers come first in the queue.

        Raises:
            HistoryError: the request cannot be stored as JSON.
        """
        ...

    async def request(self, run_id: str) -> RunRequest:
        """Returns the request with which a run of the log was enqueued.

        Raises:
            RunLogError: the run is unknown or was not enqueued, or a newer release wrote it.
        """
        ...

    async def post(self, run_id: str, message: Any) -> int:
        """Stores in the log a message (any JSON value) for the process that drives a run. Returns
        its number.

        Raises:
            RunLogError: the run is unknown.
        """
        ...

    async def read_posts(self, run_id: str, after: int = 0) -> list[ControlMessage]:
        """Returns the messages posted to a run after number `after`, in order."""
        ...

    async def claim(self, thread_id: str, interrupt_id: str, run_id: str) -> bool:
        """Claims in the log an interrupt for a run, for ever. Returns True if this run holds the
        claim. Only then may it do what the answer to the interrupt allows.

        Args:
            thread_id: the conversation, or the owner of a signed answer.
            interrupt_id: the interrupt's id, or the name of a signed answer.
            run_id: the run that claims it.
        """
        ...

    async def status(self, run_ids: Iterable[str]) -> dict[str, RunStatus]:
        """Returns the status of each of these runs that the log has, by its id."""
        ...

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
        """Returns at most `most` runs of the log after the first `skip` ones, the latest first.
        `oldest_first`: in the order of a queue, by priority and then the oldest first. The other
        arguments narrow the list to one conversation, to one state, to runs with (True) or without
        (False) a lease that holds, to one queue, to one agent, or to the runs of some callers, of
        which None stands for runs of nobody."""
        ...

    async def close(self) -> None:
        """Stores what is pending and closes the store."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *error: object) -> None: ...


def state_after(run_id: str, events: Sequence[Event]) -> RunState:
    """Returns the state for the log of a run whose latest events are these."""
    for event in reversed(events):
        if isinstance(event, RunFinished) and event.run_id == run_id:
            return event.outcome
        if isinstance(event, RunError) and event.run_id == run_id:
            if isinstance(event.error, RunInterruptedError):
                return "interrupted"
            return "error"
    return "running"
