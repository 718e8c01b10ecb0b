"""What all calls of a server share.

`Service` holds the backends, the stores, the limits, the runs in the background and the metrics.
`running` is the lifespan of the server: it opens the log, prunes old answers now and then, and
at the end interrupts the runs and closes every store and backend, even if one of them fails.

`Waiters` wakes calls of this process that wait for a change. For a change that another process
makes, a call also looks again at `poll_intervals`.
"""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import partial
from time import monotonic
from typing import Any, Protocol

import anyio
import msgspec

from dragoman.agent import Agent
from dragoman.codec.agent_card import AgentCard
from dragoman.errors import AuthenticationError, ModelNotFoundError, OverloadedError
from dragoman.logs import logger
from dragoman.memory.working_memory import WorkingMemory
from dragoman.request import RunRequest
from dragoman.result import ModelInfo
from dragoman.runs import Limit, RunLog, Runs, open_log
from dragoman.runs.driver import EventSource
from dragoman.runs.log import RunState
from dragoman.runs.memory_log import MemoryLog
from dragoman.runtime import new_id, now
from dragoman.serve.accounts.accounts import Accounts
from dragoman.serve.core.webhooks import Webhooks
from dragoman.serve.http.call_metrics import Observed, ServerMetrics, log_call
from dragoman.serve.http.callers import Authenticate, Caller
from dragoman.serve.http.connection import ConcurrencyGate
from dragoman.serve.http.limits import ServerLimits
from dragoman.serve.http.processes import check_processes, count_processes
from dragoman.serve.store.answer_store import AnswerStore, NoAnswers
from dragoman.serve.store.memory_answers import MemoryAnswers
from dragoman.serve.store.stored_answer import Answered
from dragoman.transport.address_policy import AddressPolicy

__all__ = ["JOBS", "QUEUE", "Durability", "Offer", "Service", "Waiters", "poll_intervals"]

_LOG = logger("serve")
_RETRY_SECONDS = 1.0
_PRUNE_SECONDS = 3600.0
"""How often old answers are looked for."""
_COUNT_SECONDS = 1.0
"""How often the runs in the queue are counted."""
QUEUE, JOBS = "default", "dragoman.server"
"""The queues of runs, and of what servers do beside them."""
_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 15.0
_GROWTH = 1.5


class Waiters:
    """The calls that wait for a change, by the key of what may change."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, ...], set[anyio.Event]] = {}

    def __len__(self) -> int:
        """Returns how many keys are waited for."""
        return len(self._events)

    @contextmanager
    def subscribe(self, key: tuple[str, ...]) -> Generator[anyio.Event]:
        """Gives to a waiter of the service an event that is set by the next change from now on."""
        event = anyio.Event()
        self._events.setdefault(key, set()).add(event)
        try:
            yield event
        finally:
            events = self._events[key]
            events.discard(event)
            if not events:
                del self._events[key]

    def notify(self, key: tuple[str, ...]) -> None:
        """Wakes the calls that wait for a change of this key."""
        for event in self._events.get(key, ()):
            event.set()


def poll_intervals() -> Iterator[float]:
    """Yields the seconds that the service waits before looking whether another process made the
    change: ever longer, up to a quarter of a minute."""
    seconds = _FIRST_SECONDS
    while True:
        yield seconds
        seconds = min(seconds * _GROWTH, _LONGEST_SECONDS)


class Offer(Protocol):
    """Models that clients may ask for; what answers for them is a `Backend`."""

    async def models(self) -> Sequence[ModelInfo]:
        """Returns what a client may name, for lists."""
        ...

    def serves(self, model: str) -> bool:
        """True if a client may name that model."""
        ...

    def check_keys(self) -> Mapping[str, AuthenticationError | None]:
        """Returns the error for a missing key, or None, for each model."""
        ...

    async def close(self) -> None:
        """Gives back what it holds."""
        ...

    @property
    def working_memories(self) -> Sequence[WorkingMemory]:
        """The working memories of its agents, which clients do not see."""
        ...

    @property
    def has_threads_in_memory(self) -> bool:
        """True if an agent keeps its threads in the memory of this process."""
        ...


class Durability(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """How a server enqueues the runs of its agents."""

    agents: Mapping[str, Agent[Any]]
    """Its agents by the names under which runs are enqueued; those of others are left to them."""
    drives: bool
    """True if this process drives runs itself."""
    jobs: Mapping[str, Callable[[Service, RunRequest], EventSource]]
    """What it does beside runs, by the names in the queue: see `Runs.add_job`."""
    settle: Callable[[Service, Answered], Awaitable[Answered]]
    """Returns an answer as far as it is by now; see `Service.settle`."""


class QueueRoom:
    """Bounds how many runs wait and go on in all processes over one log."""

    def __init__(self, most: int | None) -> None:
        """`most`: None for any number."""
        self._most = most
        self._count, self._counted_at = 0, -_COUNT_SECONDS

    async def check(self, log: RunLog) -> None:
        """Counts one more run. The log is asked at most once a second, so several servers together may
        go some runs beyond the limit.

        Raises:
            OverloadedError: as many wait and go on as may.
            RunLogError: the log cannot be read.
        """
        if self._most is None:
            return
        if monotonic() - self._counted_at >= _COUNT_SECONDS or self._count >= self._most:
            states: tuple[RunState, ...] = ("queued", "running")
            lists = [await log.runs(state=state, queue=QUEUE, most=self._most) for state in states]
            self._count, self._counted_at = sum(map(len, lists)), monotonic()
        if self._count >= self._most:
            raise OverloadedError(
                "as many runs wait and go on as may; try again", retry_after=_RETRY_SECONDS
            )
        self._count += 1


class Service:
    """What all calls of a server share: the backends, and what they are kept in."""

    def __init__(
        self,
        backends: Sequence[Offer],
        *,
        authenticate: Authenticate,
        has_keys: bool,
        limits: ServerLimits,
        answers: AnswerStore,
        log: RunLog | None = None,
        accounts: Accounts | None = None,
        reopen_stores: Callable[[], tuple[AnswerStore, RunLog]] | None = None,
        durability: Durability | None = None,
        webhooks: AddressPolicy | None = None,
        cards: Mapping[str, AgentCard] = {},
        new_id: Callable[[], str] = new_id,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """Creates the service. `reopen_stores`: opens the answer store and the log again, for a
        server that restarts after it closed both."""
        self._reopen_stores, self._was_closed = reopen_stores, False
        self.backends = tuple(backends)
        self.authenticate = authenticate
        self.has_keys = has_keys
        self.limits = limits
        self.answers = answers
        self.log = log or open_log("memory:")
        self.accounts = accounts or Accounts()
        """Keys, budgets and usage of callers."""
        self._durability = durability
        self._working: asyncio.Task[None] | None = None
        self.lease_seconds = 30.0
        """Seconds after which a process that is gone has lost its runs; `open_runs` reads it."""
        self.runs = self.open_runs()
        self.room = QueueRoom(limits.open_calls)
        self.metrics = ServerMetrics()
        self.gate = ConcurrencyGate(limits, self.metrics.set_open_calls)
        self.new_id = new_id
        self.clock = clock
        self.webhooks = Webhooks(webhooks, answers)
        self.waiting = Waiters()
        self.watchers: list[Callable[[Observed], None]] = []
        """Called with each call that is over."""
        self.cards = cards
        """What is said of agents, by their names."""
        self.grpc_address = ""
        """Where agents are served over gRPC too; empty: nowhere."""
        self.has_page = False
        """True if browsers get a page."""
        self.started_at = clock()
        """When it was made."""

    @property
    def durable(self) -> bool:
        """True if runs of agents are enqueued, and any process may drive them."""
        return self._durability is not None

    def check_open(self) -> None:
        """Raises `OverloadedError` if no answers are made beside the service's calls now."""
        if not self.runs.is_open:
            raise OverloadedError(
                "this server makes no answers in the background now: its application was not started, or ends"
            )

    async def settle(self, answered: Answered) -> Answered:
        """Returns an answer as far as it is by now: that of a durable run which is over is kept."""
        if self._durability is None or answered.ending is None:
            return answered
        return await self._durability.settle(self, answered)

    def find_name(self, agent: Agent[Any]) -> str:
        """Returns the name under which runs of an agent are enqueued."""
        assert self._durability is not None
        agents = self._durability.agents.items()
        return next(name for name, served_agent in agents if served_agent is agent)

    def open_runs(self) -> Runs:
        """Returns the runs over the log, before they are opened."""
        durability = self._durability
        if durability is None:
            return Runs(self.log)
        runs = Runs(
            self.log,
            agents=durability.agents,
            lease_seconds=self.lease_seconds,
            charge=self.accounts.charge_stored,
        )
        for name, make in durability.jobs.items():
            runs.add_job(name, partial(make, self))
        return runs

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serves until the block is left, which ends what goes on in the background and gives back
        what stores and backends hold. It may be entered again if the store is a URL.

        Raises:
            SettingsError: several processes keep answers or threads in memory.
        """
        self.check_processes(count_processes())
        if self._was_closed and self._reopen_stores is not None:
            # Both were closed when the application ended; a second start needs open
            # ones.
            self.answers, self.log = self._reopen_stores()
            self.runs = self.open_runs()
            self.webhooks = Webhooks(self.webhooks.policy, self.answers)
        try:
            self._warn_of_missing_keys()
            async with self.accounts, self.log, self.runs:
                pruning = asyncio.create_task(self._prune_stores(), name="dragoman-prune")
                if self._durability is not None:
                    self._working = asyncio.create_task(
                        self._work(self._durability), name="dragoman-work"
                    )
                try:
                    yield
                finally:
                    await self.hand_over()
                    self.runs.interrupt(_ending_error())
                    pruning.cancel()
                    await asyncio.wait([pruning])
                    await self.webhooks.close()
        finally:
            self._was_closed = True
            # Stores and backends are closed even if the server itself is being
            # cancelled.
            with anyio.CancelScope(shield=True):
                for holder in (*self.backends, self.answers):
                    try:
                        await holder.close()
                    except Exception:  # noqa: BLE001 - the others are to be closed too
                        _LOG.exception("what a server held could not be closed")

    def check_processes(self, count: int) -> None:
        """Checks that so many processes can serve together.

        Raises:
            SettingsError: each would keep answers or threads in its own memory.
        """
        in_memory: list[str] = []
        if isinstance(self.answers, MemoryAnswers):
            in_memory.append("answers (store=)")
        elif isinstance(self.log, MemoryLog) and not isinstance(self.answers, NoAnswers):
            in_memory.append("answers in the background (log=)")
        if any(backend.has_threads_in_memory for backend in self.backends):
            in_memory.append("threads of agents (memory=)")
        check_processes(in_memory, count)

    async def drain(self) -> None:
        """Refuses new calls, and waits until none runs, nor an answer in the background."""
        await self.gate.drain()
        await self.hand_over()
        await self.runs.idle()

    def interrupt(self) -> None:
        """Ends all of the service's calls and runs that go on: their clients read why."""
        self.gate.closed = True
        if self._working is not None:
            self._working.cancel()
        self.runs.interrupt(_ending_error())
        self.gate.interrupt(_ending_error())

    async def hand_over(self) -> None:
        """Leaves the durable runs that go on here to other processes."""
        if self._working is not None:
            self._working.cancel()
            await asyncio.wait([self._working])

    async def _work(self, durability: Durability) -> None:
        """Drives durable runs and does the jobs beside them until it is cancelled."""
        queues = {JOBS: Limit()}
        if durability.drives:
            queues[QUEUE] = Limit(runs=self.limits.open_calls)
        while True:
            try:
                await self.runs.work(queues=queues)
            except Exception:  # noqa: BLE001 - it is begun again
                _LOG.exception("the queue of runs is worked on again")
            await asyncio.sleep(_RETRY_SECONDS)

    def _warn_of_missing_keys(self) -> None:
        """Warns of each of the service's models that has no key: its clients could not be
        answered."""
        for backend in self.backends:
            for model, error in backend.check_keys().items():
                if error is not None:
                    _LOG.warning("%s cannot be asked: %s", model, error.message)

    async def _prune_stores(self) -> None:
        """Forgets old answers and runs in the service's stores now and then. A user's own store
        that cannot be pruned looks after itself."""
        stores: tuple[Any, ...] = (self.answers, self.log)
        prunes = [store.prune for store in stores if hasattr(store, "prune")]
        seconds = self.limits.kept_seconds
        if not prunes or seconds is None:
            return
        while True:
            for prune in prunes:
                try:
                    await prune(self.clock() - timedelta(seconds=seconds))
                except Exception:  # noqa: BLE001 - it is tried again
                    _LOG.exception("old answers could not be forgotten")
            await anyio.sleep(min(_PRUNE_SECONDS, seconds))

    def observe(self, call: Observed) -> None:
        """Counts and logs a call that is over."""
        self.metrics.observe(call)
        log_call(call)
        for watch in self.watchers:
            watch(call)

    async def models(self, caller: Caller) -> list[ModelInfo]:
        """Returns what a client of the service may name, each name once."""
        models: dict[str, ModelInfo] = {}
        for backend in self.backends:
            for model in await backend.models():
                if caller.may_use(model.name):
                    # The first backend that has a name answers to it, so its
                    # record is listed.
                    models.setdefault(model.name, model)
        return list(models.values())

    def backend(self, model: str, caller: Caller) -> Offer:
        """Returns the service's backend that answers to a name. A name that the caller may not use
        is as if it were not there.

        Raises:
            ModelNotFoundError: there is none.
        """
        for backend in self.backends:
            if caller.may_use(model) and backend.serves(model):
                return backend
        raise ModelNotFoundError(
            f"there is no model {model!r:.200} here; the list of models names those that there are"
        ).at(field="model")


def _ending_error() -> OverloadedError:
    return OverloadedError(
        "the server ends before the answer did; send the request again", retry_after=_RETRY_SECONDS
    )
