"""Runs that go on without whoever asked for them (`Runs`), and their log by its URL (`open_log`):
started here, read and stopped from any process that has the log."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from itertools import takewhile
from typing import TYPE_CHECKING, Self, Unpack
from uuid import uuid4

import anyio
from typing_extensions import TypeVar

from dragoman.errors import DragomanError, RunLogError
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.message import Message, Role
from dragoman.repair import repair
from dragoman.request import RunRequest
from dragoman.runs.driving import Driving, Ended, EventSource, RunSource, Stored
from dragoman.runs.keeper import CANCEL, Driven, Keeper, not_entered
from dragoman.runs.log import RunLog, RunState, RunStatus
from dragoman.runs.tail import Cursor, RunTail
from dragoman.sql.address import check_address

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.prompt import Prompt, RunOptions

__all__ = [
    "Runs",
    "open_log",
]

Deps = TypeVar("Deps", default=None)


class Runs:
    """Starts runs, and attaches to those of any process that has the same log. Use it in `async
    with`: leaving the block cancels the runs that were started here and waits until that is stored.

    One that drives runs looks after the log too: a run whose process is gone is ended with a
    `RunInterruptedError`.
    """

    def __init__(
        self, log: RunLog, *, lease_seconds: float = 30.0, poll_seconds: float = 0.2
    ) -> None:
        """`lease_seconds`: a process that stands still for so long loses its runs. `poll_seconds`:
        how often the log is asked what other processes did. The log stays open."""
        self._log = log
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._lease_seconds = lease_seconds
        self._keeper = Keeper(
            log, self._owner, lease_seconds=lease_seconds, poll_seconds=poll_seconds
        )
        self._keeping: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._keeping = self._keeper.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        driven = list(self._keeper.driven.values())
        for run in driven:
            run.driving.cancel()
        try:
            if driven:
                await asyncio.wait([run.task for run in driven])
        finally:
            await self._stop(
                [*[run.task for run in driven], *([self._keeping] if self._keeping else [])]
            )

    async def start(
        self,
        agent: Agent[Deps],
        prompt: Prompt,
        *,
        ended: Ended | None = None,
        stored: Stored | None = None,
        **run_options: Unpack[RunOptions[Deps]],
    ) -> str:
        """Starts a run, which goes on by itself → its id. `prompt` and `run_options`: as in
        `Agent.run`; the prompt may be a `RunRequest`. Where a `thread_id` is given, an answer to
        what its conversation waits for counts once (`RunLog.claim`). `ended`: awaited with what the
        run gave, once its end is stored and before anybody reads of it here. `stored`: called with
        the run's events as they are stored, before that.

        Raises:
            LeaseLostError: there is a run with that id already.
            RunLogError: the log refuses it, or `Runs` is not entered.
            DragomanError: as `Agent.run`.
        """
        if not self._keeper.is_open:
            raise not_entered()
        if run_options.get("thread_id") or (isinstance(prompt, RunRequest) and prompt.thread_id):
            run_options.setdefault("claim", self._log.claim)
        run = agent.run(prompt, **run_options)
        return await self._driven(RunSource(run, ended), run.thread_id or None, stored)

    async def record(self, source: EventSource, thread_id: str | None = None) -> str:
        """Starts what no agent does as a run: its events are those of a source. → its id

        Raises:
            LeaseLostError: there is a run with that id already.
            RunLogError: the log refuses it, or `Runs` is not entered.
        """
        if not self._keeper.is_open:
            raise not_entered()
        return await self._driven(source, thread_id)

    async def _driven(
        self, source: EventSource, thread_id: str | None, stored: Stored | None = None
    ) -> str:
        lease = await self._log.lease(
            source.id, self._owner, self._lease_seconds, token=0, thread_id=thread_id
        )
        tail = RunTail()
        driving = Driving(self._log, source, lease, tail, stored)
        task = asyncio.create_task(driving.run(), name=f"dragoman-drive-{source.id}")
        self._keeper.add(Driven(driving, lease, tail, task))
        return source.id

    @property
    def is_open(self) -> bool:
        """Whether runs can be started."""
        return self._keeper.is_open

    @property
    def driven(self) -> Collection[str]:
        """Ids of the runs that this process drives."""
        return self._keeper.driven.keys()

    async def idle(self) -> None:
        """Waits until this process drives no run."""
        await self._keeper.idle()

    def interrupt(self, error: DragomanError) -> None:
        """Ends the runs that this process drives with an error, which their readers get."""
        for run_id, driven in self._keeper.driven.items():
            driven.driving.end_with(RunError(error, run_id))

    async def attach(
        self, run_id: str, from_offset: int = 0, *, cancel_on_leave: bool = False
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """The events of a run with their offsets, from one on, as they are stored; ends with the
        run. To go on reading where a reader was cut off give the offset behind the last that it
        had. `cancel_on_leave`: leaving before the end cancels the run.

        Raises:
            RunLogError: the log has no such run.
            ValueError: the offset is negative.
        """
        if from_offset < 0:
            raise ValueError(f"from_offset must be 0 or more, not {from_offset}")
        offset, is_over = from_offset, False
        try:
            async with aclosing(self._pages(run_id, from_offset)) as pages:
                async for page in pages:
                    for event in page:
                        yield offset, event
                        offset += 1
            is_over = True
        except RunLogError:
            is_over = True
            raise
        finally:
            if cancel_on_leave and not is_over:
                with anyio.CancelScope(shield=True):
                    await self.cancel(run_id)

    def pages(
        self, run_id: str, from_offset: int = 0, *, paces: bool = False
    ) -> AsyncGenerator[list[Event], None]:
        """As `attach`, as many events at a time as there are, without their offsets.

        Args:
            run_id: Id of the run.
            from_offset: Number of events to leave out; 0 if `paces`.
            paces: The run waits while it is far ahead of this reader, unless another such reader keeps up. Close the
                generator to let the run go on. Only for runs that this process drives.
        """
        return self._pages(run_id, from_offset, Cursor() if paces else None)

    async def cancel(self, run_id: str) -> None:
        """Stops a run, wherever it is driven: within a second it ends with outcome `cancelled`. One
        that is over stays as it is.

        Raises:
            RunLogError: the log has no such run.
        """
        if (driven := self._keeper.driven.get(run_id)) is not None:
            driven.driving.cancel()
        elif not (await self.status(run_id)).is_over:
            await self._log.post(run_id, CANCEL)

    async def status(self, run_id: str) -> RunStatus:
        """How far a run is.

        Raises:
            RunLogError: the log has no such run.
        """
        status = (await self._log.status([run_id])).get(run_id)
        if status is None:
            raise RunLogError(
                f"the log has no run {run_id!r}: start it, or look in the log that it was started in"
            )
        return status

    async def list(
        self, *, thread_id: str | None = None, state: RunState | None = None, most: int = 100
    ) -> list[RunStatus]:
        """Runs, the latest first; of one conversation, in one state."""
        return await self._log.runs(thread_id=thread_id, state=state, most=most)

    async def stored(self, status: RunStatus) -> AsyncGenerator[list[Event], None]:
        """The events that a run had, in pieces, without waiting for more."""
        offset = 0
        while offset < status.end and (page := await self._log.read(status.run_id, offset)):
            yield page[: status.end - offset]
            offset += len(page)

    async def messages(self, run_id: str) -> tuple[Message, ...]:
        """The messages that a run has made by now, complete: a message in whose middle it stands is
        cut, a call without a result has an error for one. With the history before the run, they are
        what a new send goes on from.

        Raises:
            RunLogError: the log has no such run.
        """
        status, events = await self.status(run_id), list[Event]()
        while len(events) < status.end:
            events += await self._log.read(run_id, len(events))
        messages = fold(events[: status.end])
        # To calls of the history before the run.
        answers = [*takewhile(lambda message: message.role is not Role.MODEL, messages)]
        return (*answers, *repair(messages[len(answers) :]))

    async def _pages(
        self, run_id: str, offset: int, cursor: Cursor | None = None
    ) -> AsyncGenerator[list[Event], None]:
        """What is stored behind an offset, in pieces, until the run is over."""
        tail: RunTail | None = None
        paced: RunTail | None = None
        try:
            while True:
                if tail is None and (driven := self._keeper.driven.get(run_id)) is not None:
                    tail = driven.tail
                    if cursor is not None and paced is None:
                        paced = tail
                        paced.follow(cursor)
                page = tail.page(offset) if tail is not None else None
                if page is None:
                    page = await self._log.read(run_id, offset)
                if page:
                    yield page
                    offset += len(page)
                    if cursor is not None and paced is not None:
                        paced.move(cursor, page, offset)
                elif tail is not None and tail.is_over:
                    return
                elif tail is not None and not tail.is_closed:
                    await tail.grown()
                else:
                    # Not driven here, or not any more: the log says whether there is more, or waits
                    # until there is.
                    tail = None
                    status = await self.status(run_id)
                    if status.end > offset:
                        continue
                    if status.is_over:
                        return
                    await self._keeper.changed(status)
        finally:
            if cursor is not None and paced is not None:
                paced.leave(cursor)

    @staticmethod
    async def _stop(tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def open_log(url: str) -> RunLog:
    """A log of runs: `memory:` (gone with the process), `sqlite:///path`, or
    `postgresql://user:password@host/database`. Its tables are made or brought up to date with the
    first use.

    Raises:
        SettingsError: the URL is of another kind, or a package is missing.
    """
    if url == "memory:":
        from dragoman.runs.memory_log import MemoryLog

        return MemoryLog()
    check_address(url, "log of runs", "log")
    from dragoman.runs.sql_log import SqlLog

    return SqlLog(url)
