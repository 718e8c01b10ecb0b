"""Runs that go on without the client that asked for them (`Runs`).

A run is started in one process and can be read and stopped from any process that opens the same
log. A reader in the process that drives the run reads its tail (`tail.py`). Any other reader reads
the log, and waits for the background task (`keeper.py`) to see more there.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import aclosing
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Self, Unpack, overload
from uuid import uuid4

import anyio
from typing_extensions import TypeForm, TypeVar

from dragoman.errors import DragomanError, RunLogError
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.message import Message, Role
from dragoman.orchestration.output_type import typed_output
from dragoman.orchestration.story_reader import StoryReader
from dragoman.repair import repair
from dragoman.request import RunRequest
from dragoman.result import ChatResult
from dragoman.runs.driver import EndCallback, EventSource, RunDriver, RunSource, StoreCallback
from dragoman.runs.durable import Charge, DurableRuns, Job, make_request, read_result
from dragoman.runs.engines import DEFAULT_QUEUES, Engine, Limit
from dragoman.runs.keeper import CANCEL, DrivenRun, Keeper, not_entered_error
from dragoman.runs.log import RunLog, RunState, RunStatus
from dragoman.runs.named_engines import OpenEngine, open_engine
from dragoman.runs.tail import Cursor, RunTail

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.prompt import Prompt, RunOptions

__all__ = ["Runs"]

Deps = TypeVar("Deps", default=None)
T = TypeVar("T")


class Runs:
    """Starts runs, and attaches to runs of any process that has the same log.

    Use it in `async with`. Leaving the block cancels the runs that were started in it and waits
    until their ends are stored. While it is open it also ends runs whose process is gone, with a
    `RunInterruptedError`.
    """

    def __init__(
        self,
        log: RunLog,
        *,
        engine: str | Engine = "log",
        agents: Mapping[str, Agent[Any]] | None = None,
        deps: Callable[[RunRequest], Any] | None = None,
        lease_seconds: float = 30.0,
        poll_seconds: float = 0.2,
        grace_seconds: float = 10.0,
        charge: Charge | None = None,
    ) -> None:
        """Args:
        log: where events are stored. It stays open.
        engine: says which durable run is driven where and when, by its name in
            `named_engines.ENGINES`, or as an instance. `log` needs nothing but the log.
        agents: the agents of durable runs, by their names.
        deps: a function, plain or async, of the request of a durable run. Returns its `deps`, which
            are never stored.
        lease_seconds: a process that does nothing for so long loses its runs.
        poll_seconds: seconds from one look for the changes of other processes to the next.
        grace_seconds: seconds that tools at work have to end when `work` is cancelled.
        charge: has the payers of durable runs pay for their calls of models; for servers.

        Raises:
            SettingsError: no engine has that name, or it cannot work here, or with this log.
        """
        self._log = log
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
        self._lease_seconds = lease_seconds
        self._keeper = Keeper(
            log, self._owner, lease_seconds=lease_seconds, poll_seconds=poll_seconds
        )
        self._keeper_task: asyncio.Task[None] | None = None
        self._durable = DurableRuns(
            log, self._keeper, self._owner, lease_seconds, agents, deps, grace_seconds, charge
        )
        self._own_engine: OpenEngine | None = None
        """The engine, if it was opened here by its name."""
        if isinstance(engine, str):
            engine = self._own_engine = open_engine(engine, log, poll_seconds=poll_seconds)
        self._engine = engine

    async def __aenter__(self) -> Self:
        self._keeper_task = self._keeper.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        driven = list(self._keeper.driven.values())
        for run in driven:
            run.stop()
        try:
            if driven:
                await asyncio.wait([run.task for run in driven])
        finally:
            tasks = list(filter(None, [*[run.task for run in driven], self._keeper_task]))
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
            if self._own_engine is not None:
                await self._own_engine.close()

    async def start(
        self,
        agent: Agent[Deps],
        prompt: Prompt,
        *,
        on_end: EndCallback | None = None,
        on_stored: StoreCallback | None = None,
        owner: str | None = None,
        **run_options: Unpack[RunOptions[Deps]],
    ) -> str:
        """Starts a run, which goes on by itself. Returns its id.

        With a `thread_id`, each answer to an interrupt of its conversation is used only once
        (`RunLog.claim`).

        Args:
            agent: the agent.
            prompt: see `Agent.run`. It may be a `RunRequest`.
            on_end: awaited with the result once the end of the run is stored, and before readers in
                this process learn of it.
            on_stored: called with events of the run as they are stored, and before `on_end`.
            owner: whose run it is, such as the caller of a server; see `RunStatus.caller`.
            run_options: see `Agent.run`.

        Raises:
            LeaseLostError: there is a run with that id already.
            RunLogError: the log refuses it, or `Runs` is not open.
            DragomanError: see `Agent.run`.
        """
        if not self._keeper.is_open:
            raise not_entered_error()
        if run_options.get("thread_id") or (isinstance(prompt, RunRequest) and prompt.thread_id):
            run_options.setdefault("claim", self._log.claim)
        run = agent.run(prompt, **run_options)
        run.hold_calls(lambda: self._keeper.driven[run.id].driver.wait_until_stored())
        return await self._drive(RunSource(run, on_end), run.thread_id or None, owner, on_stored)

    async def enqueue(
        self,
        agent: str,
        prompt: Prompt,
        *,
        run_id: str | None = None,
        thread_id: str | None = None,
        resource_id: str | None = None,
        output_type: object = str,
        queue: str = "default",
        priority: int = 0,
        owner: str | None = None,
    ) -> str:
        """Stores a durable run, which any process that works on its queue drives to its end. Returns
        its id. If there is a run with that id already, nothing happens.

        Args:
            agent: name of the agent.
            prompt: what it is asked; a `RunRequest` says all of it.
            run_id: id of the run; `None`: a new one.
            thread_id: id of the conversation.
            resource_id: whose conversation it is.
            output_type: as with `Agent.run`. Its JSON Schema is stored; give the type to `result`, too.
            queue: the queue that it waits in.
            priority: lower numbers come first in the queue.
            owner: whose run it is, such as the caller of a server; see `RunStatus.caller`.

        Raises:
            InvalidRequestError: there is nothing to send.
            SettingsError: the output type cannot be described to a model.
            HistoryError: the request cannot be stored as JSON.
            RunLogError: the log cannot be reached.
        """
        request = make_request(prompt, run_id, thread_id, resource_id)
        if output_type is not str:
            request = request.replace(output_schema=typed_output(output_type).schema)
        assert request.run_id is not None
        await self._log.enqueue(
            request.run_id,
            agent,
            request,
            thread_id=request.thread_id,
            queue=queue,
            owner=owner,
            priority=priority,
        )
        await self._engine.enqueue(request.run_id, queue=queue, priority=priority)
        return request.run_id

    async def work(self, *, queues: Mapping[str, Limit] = DEFAULT_QUEUES) -> None:
        """Drives durable runs of these queues until it is cancelled. Then no other run is begun, tools
        at work have `grace_seconds` to end, and the runs are handed over to other processes.

        `queues`: how much of each queue this process works on at a time.

        Raises:
            SettingsError: `Runs` has no agents.
            RunLogError: `Runs` is not open.
        """
        if not self._keeper.is_open:
            raise not_entered_error()
        self._durable.check_agents()
        await self._engine.work(self.drive, queues=queues)

    async def drive(self, run_id: str) -> bool:
        """Drives a durable run to its end, from where the last process has left it. Returns True if it
        is to be tried again later, because another process drives it or has its agent. For engines;
        any number of processes may call it at any time.

        If the caller is cancelled, the run is handed over as with `work`."""
        return await self._durable.drive(run_id)

    def add_job(self, name: str, job: Job) -> None:
        """Drives entries of this name in the place of an agent's with a function, for servers."""
        self._durable.jobs[name] = job

    def hand_over(self) -> None:
        """Hands the durable runs that this process drives over to others at once. A tool that is at
        work is cancelled, and may have acted."""
        for driven in self._keeper.driven.values():
            if driven.is_durable:
                driven.driver.hand_over()

    @overload
    async def result(self, run_id: str, *, timeout: float | None = None) -> ChatResult[str]: ...  # noqa: ASYNC109 - of the contract
    @overload
    async def result(
        self,
        run_id: str,
        *,
        output_type: type[T],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ChatResult[T]: ...
    @overload
    async def result(
        self,
        run_id: str,
        *,
        output_type: TypeForm[T],
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> ChatResult[T]: ...
    async def result(
        self,
        run_id: str,
        *,
        output_type: Any = str,
        timeout: float | None = None,  # noqa: ASYNC109 - of the contract
    ) -> ChatResult[Any]:
        """Waits for the end of a run, whichever process drives it. Returns its result, with its output
        as a value of `output_type`.

        Raises:
            DragomanError: the run failed; `result` of the error is what there was until then.
            TypedOutputError: the output is not of the type.
            TimeoutError: it is not over after `timeout` seconds.
            RunLogError: the log has no such run.
        """
        reader, last = StoryReader(run_id), None
        async with asyncio.timeout(timeout), aclosing(self._pages(run_id, 0)) as pages:
            async for page in pages:
                reader.feed(page)
                last = page[-1]
        return read_result(reader.story(), last, output_type)

    async def record(
        self, source: EventSource, thread_id: str | None = None, *, owner: str | None = None
    ) -> str:
        """Starts a run without an agent, whose events come from a source. Returns its id.

        Raises:
            LeaseLostError: there is a run with that id already.
            RunLogError: the log refuses it, or `Runs` is not open.
        """
        if not self._keeper.is_open:
            raise not_entered_error()
        return await self._drive(source, thread_id, owner)

    async def _drive(
        self,
        source: EventSource,
        thread_id: str | None,
        caller: str | None,
        on_stored: StoreCallback | None = None,
    ) -> str:
        """Starts a task that drives the events of a source. Returns the id of the run."""
        lease = await self._log.lease(
            source.id, self._owner, self._lease_seconds, token=0, thread_id=thread_id, caller=caller
        )
        tail = RunTail()
        driver = RunDriver(self._log, source, lease, tail, on_stored)
        task = asyncio.create_task(driver.run(), name=f"dragoman-drive-{source.id}")
        self._keeper.add(DrivenRun(driver, lease, tail, task))
        return source.id

    @property
    def is_open(self) -> bool:
        """True if runs can be started."""
        return self._keeper.is_open

    @property
    def driven(self) -> Collection[str]:
        """Returns the ids of the runs that this process drives."""
        return self._keeper.driven.keys()

    async def idle(self) -> None:
        """Waits until this process drives no run."""
        await self._keeper.idle()

    def interrupt(self, error: DragomanError) -> None:
        """Ends the runs that this process drives with an error, which their readers receive. Durable
        runs are handed over."""
        self.hand_over()
        for run_id, driven in self._keeper.driven.items():
            if not driven.is_durable:
                driven.driver.end_with(RunError(error, run_id))

    async def attach(
        self, run_id: str, from_offset: int = 0, *, cancel_on_leave: bool = False
    ) -> AsyncGenerator[tuple[int, Event], None]:
        """Yields the events of a run with their offsets as they are stored, until the run ends.

        Args:
            run_id: the run.
            from_offset: offset of the first event. To continue after a lost connection, pass the
                offset of the last event that arrived, plus one.
            cancel_on_leave: closing this generator before the end cancels the run.

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
        """Yields the events of a run in lists, as many at a time as there are.

        Args:
            run_id: the run.
            from_offset: number of events to leave out; 0 if `paces`.
            paces: the run waits while it is far ahead of this reader, unless another such reader
                keeps up. Close the generator to let the run go on. It has an effect only on runs
                that this process drives.
        """
        cursor = Cursor() if paces else None
        return self._pages(run_id, from_offset, cursor)

    async def cancel(self, run_id: str) -> None:
        """Stops a run, whichever process drives it. Within a second it ends with outcome
        `cancelled`. A run that is over stays as it is.

        Raises:
            RunLogError: the log has no such run.
        """
        if (driven := self._keeper.driven.get(run_id)) is not None:
            driven.driver.cancel()
        elif not (status := await self.status(run_id)).is_over:
            await self._log.post(run_id, CANCEL)
            if status.state == "queued":
                await self._durable.end_cancelled(run_id)

    async def status(self, run_id: str) -> RunStatus:
        """Returns the status of a run: running, waiting, or how it ended.

        Raises:
            RunLogError: the log has no such run.
        """
        status = (await self._log.status([run_id])).get(run_id)
        if status is None:
            raise RunLogError(
                f"the log has no run {run_id!r}: start it, or open the log that it was started in"
            )
        return status

    async def wait(self, run_id: str) -> RunStatus:
        """Waits until a run is over, without reading its events. Returns its status. Raises
        `RunLogError` if the log has no such run."""
        while not (status := await self.status(run_id)).is_over:
            if (driven := self._keeper.driven.get(run_id)) is not None:
                await asyncio.wait([driven.task])
            else:
                await self._keeper.wait_for_change(status)
        return status

    async def list(
        self,
        *,
        thread_id: str | None = None,
        state: RunState | None = None,
        agent: str | None = None,
        most: int = 100,
    ) -> list[RunStatus]:
        """Returns at most `most` runs, the latest first: all, or those of one conversation, in one
        state, or of one agent."""
        return await self._log.runs(thread_id=thread_id, state=state, agent=agent, most=most)

    async def stored_events(self, status: RunStatus) -> AsyncGenerator[list[Event], None]:
        """Yields the events that a run had when `status` was read, in lists. It does not wait."""
        offset = 0
        while offset < status.end and (page := await self._log.read(status.run_id, offset)):
            yield page[: status.end - offset]
            offset += len(page)

    async def messages(self, run_id: str) -> tuple[Message, ...]:
        """Returns the messages of a run so far. Append them to the history before the run to
        continue the conversation.

        A message that is not finished is cut, and a call without a result gets an error as its
        result.

        Raises:
            RunLogError: the log has no such run.
        """
        status, events = await self.status(run_id), list[Event]()
        while len(events) < status.end:
            events += await self._log.read(run_id, len(events))
        messages = fold(events[: status.end])
        # Results at the beginning belong to calls of the history before the run, so `repair` must
        # not see them without these calls.
        answers = [*takewhile(lambda message: message.role is not Role.MODEL, messages)]
        return (*answers, *repair(messages[len(answers) :]))

    async def _pages(
        self, run_id: str, offset: int, cursor: Cursor | None = None
    ) -> AsyncGenerator[list[Event], None]:
        """Yields the events from an offset on in lists, until the run is over."""
        tail: RunTail | None = None
        try:
            while True:
                if tail is None and (driven := self._keeper.driven.get(run_id)) is not None:
                    tail = driven.tail
                    if cursor is not None:
                        cursor.follow(tail)
                if tail is not None:
                    page = tail.read_page(offset)
                else:
                    page = None
                if page is None:
                    page = await self._log.read(run_id, offset)
                if page:
                    yield page
                    offset += len(page)
                    if cursor is not None:
                        cursor.advance(page, offset)
                elif tail is not None and tail.is_over:
                    return
                elif tail is not None and not tail.is_closed:
                    await tail.wait_for_growth()
                else:
                    # Another process drives it, or this one no longer does.
                    tail = None
                    if not await self._wait_for_more(run_id, offset):
                        return
        finally:
            if cursor is not None:
                cursor.leave()

    async def _wait_for_more(self, run_id: str, offset: int) -> bool:
        """Waits until the log has changed, unless it has events after `offset` already. Returns
        False if no more will come."""
        status = await self.status(run_id)
        if status.end > offset:
            return True
        if status.is_over:
            return False
        await self._keeper.wait_for_change(status)
        return True
