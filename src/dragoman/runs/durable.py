"""Drives durable runs: takes a run over, closes what its last process left open, and goes on
(`DurableRuns`).

Only who holds the lease writes, and only what is stored is seen. So a run may be taken over at any
event of its log, by any process that has its agent. What the log tells of the run becomes a `Story`,
from which the run is built again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from inspect import isawaitable
from time import time
from typing import TYPE_CHECKING, Any, cast

import msgspec

from dragoman import json_bytes
from dragoman.errors import DragomanError, LeaseLostError, RunLogError, SettingsError
from dragoman.event import Event, RunError, RunFinished, set_time
from dragoman.json_bytes import JsonMap
from dragoman.logs import logger
from dragoman.message import FinishReason, Message, Role
from dragoman.orchestration.iteration import collect_metadata
from dragoman.orchestration.output_type import typed_output
from dragoman.orchestration.state import claim_within
from dragoman.orchestration.story import Story
from dragoman.orchestration.story_reader import StoryReader
from dragoman.prompt import open_prompt
from dragoman.request import RunRequest
from dragoman.result import ChatResult
from dragoman.runs.closing import Unfinished, end_run, read_pages
from dragoman.runs.driver import EventSource, FinalEvent, RunDriver, RunSource, as_dragoman_error
from dragoman.runs.keeper import CANCEL, DrivenRun, Keeper
from dragoman.runs.log import Lease, RunLog, RunStatus
from dragoman.runs.requests import read_terms
from dragoman.runs.tail import RunTail
from dragoman.runtime import new_id, now

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.prompt import Prompt

__all__ = [
    "MOST_LOST",
    "Charge",
    "DepsFactory",
    "DurableRuns",
    "Job",
    "make_request",
    "read_result",
]

_LOG = logger("runs")
MOST_LOST = 5
"""So many processes may end while they drive a run; then the run fails. One that kills its process
would otherwise go round for ever."""

_MOST_WARNED = 1000
"""Subjects of warnings that are remembered."""

DepsFactory = Callable[[RunRequest], Any]
"""Function, plain or async, of the request of a run. Returns the `deps` of its tools."""
Job = Callable[[RunRequest], EventSource]
"""Function of the request of an entry that is no run of an agent. Returns what is done for it. If it
was begun before, the log has the events that it gave."""

Charge = Callable[[JsonMap], AbstractContextManager[None]]
"""Function of `RunTerms.payer`: tasks that begin in its block make calls of models that this payer
pays for."""


class DurableRuns:
    """Drives durable runs in this process."""

    def __init__(
        self,
        log: RunLog,
        keeper: Keeper,
        owner: str,
        lease_seconds: float,
        agents: Mapping[str, Agent[Any]] | None,
        deps: DepsFactory | None,
        grace_seconds: float,
        charge: Charge | None,
    ) -> None:
        """See `Runs`. `owner`: the name of this process in the log."""
        self._log, self._keeper, self._owner = log, keeper, owner
        self._lease_seconds, self._grace_seconds = lease_seconds, grace_seconds
        self._agents, self._deps = agents or {}, deps
        self.jobs: dict[str, Job] = {}
        """What stands in the queue beside runs of agents, by the names that it has there."""
        self._charge = charge
        self._warned: dict[str, None] = {}
        """Subjects that were warned of, the latest last: a run is looked at again and again."""

    def check_agents(self) -> None:
        """Raises `SettingsError` if there is no agent for durable runs, and no job."""
        if not (self._agents or self.jobs):
            raise SettingsError(
                'a worker needs agents: Runs(log, agents={"support": agent}); runs are enqueued for an agent by its name'
            )

    async def drive(self, run_id: str) -> bool:
        """See `Runs.drive`."""
        try:
            driven = await self._take_over(run_id)
        except LeaseLostError:
            # Another process drives it.
            return True
        except DragomanError as error:
            warning = f"run {run_id} is tried again: {error.message}"
            self._warn_once(warning, warning)
            return True
        if isinstance(driven, bool):
            return driven
        try:
            await asyncio.wait([driven.task])
        except asyncio.CancelledError:
            # A second cancellation ends the grace.
            with suppress(asyncio.CancelledError):
                await driven.wait_for_tools(self._grace_seconds)
            driven.driver.hand_over()
            await asyncio.wait([driven.task])
            raise
        return not driven.tail.is_over

    async def end_cancelled(self, run_id: str) -> None:
        """Ends a durable run that was cancelled before any process has begun it."""
        try:
            lease = await self._log.lease(run_id, self._owner, self._lease_seconds)
            await end_run(self._log, lease, RunFinished(run_id, "cancelled"))
        except RunLogError:
            # A process has begun it, which reads the message that cancels it.
            return

    async def _take_over(self, run_id: str) -> DrivenRun | bool:
        """Begins to drive a durable run. Returns True if it is to be tried again later, False if it
        is over."""
        status = (await self._log.status([run_id])).get(run_id)
        if status is None or status.is_over:
            return False
        agent = self._find_agent(status)
        if agent is None or run_id in self._keeper.driven:
            return True
        request = await self._log.request(run_id)
        terms = read_terms(request)
        lease = await self._log.lease(run_id, self._owner, self._lease_seconds)
        status = (await self._log.status([run_id]))[run_id]
        if (last := await self._find_end(status, terms.deadline)) is not None:
            await end_run(self._log, lease, last)
            return False
        story, end = await self._read_story(lease)
        try:
            source = await self._build_source(lease, agent, request, story)
        except Exception as error:  # noqa: BLE001 - the request or code of the user's may be at fault: the run fails with it
            await end_run(self._log, lease, RunError(as_dragoman_error(error), run_id))
            return False
        with self._charge_payer(terms.payer):
            return self._begin(source, lease, end, terms.deadline)

    def _charge_payer(self, payer: JsonMap | None) -> AbstractContextManager[None]:
        """Has the payer of a run pay for what the block starts."""
        if payer is None:
            return nullcontext()
        if self._charge is None:
            self._warn_once("payers", "calls of models are counted for no caller in this process")
            return nullcontext()
        return self._charge(payer)

    async def _read_story(self, lease: Lease) -> tuple[Story, int]:
        """Closes what the last process of a run has left open. Returns what the log tells of the run,
        and the number of its events."""
        reader, unfinished, end = StoryReader(lease.run_id), Unfinished(), 0
        async for page in read_pages(self._log, lease.run_id):
            reader.feed(page)
            unfinished.feed(page)
            end += len(page)
        if cut := set_time(unfinished.cut(lease.run_id), now()):
            await self._log.append(lease.run_id, end, cut, lease=lease)
            reader.feed(cut)
        return reader.story(lease.token), end + len(cut)

    def _find_agent(self, status: RunStatus) -> Agent[Any] | Job | None:
        """Returns the agent of a durable run or the job, or `None` if this process does not have
        it."""
        name = status.agent or ""
        agent = self._agents.get(name) or self.jobs.get(name)
        if agent is None and status.agent is not None:
            names = ", ".join(self._agents) or "none"
            self._warn_once(
                f"agent {status.agent}",
                f"run {status.run_id} is left to others: its agent {status.agent!r} is not here; the agents are: {names}",
            )
        return agent

    def _warn_once(self, subject: str, warning: str) -> None:
        """Logs a warning, unless its subject was warned of before."""
        if subject not in self._warned:
            _LOG.warning("%s", warning)
        self._warned.pop(subject, None)
        self._warned[subject] = None
        if len(self._warned) > _MOST_WARNED:
            del self._warned[next(iter(self._warned))]

    async def _find_end(self, status: RunStatus, deadline: float | None) -> FinalEvent | None:
        """Returns the event that ends a durable run before it goes on, or `None` if it goes on."""
        run_id = status.run_id
        if deadline is not None and time() > deadline:
            return RunFinished(run_id, "cancelled")
        if any(post.message == CANCEL for post in await self._log.read_posts(run_id)):
            return RunFinished(run_id, "cancelled")
        if status.lost < MOST_LOST:
            return None
        error = RunLogError(
            f"run {run_id} is given up: {status.lost} processes ended while they drove it, so it may be what ends them"
        )
        return RunError(error, run_id)

    async def _build_source(
        self, lease: Lease, agent: Agent[Any] | Job, request: RunRequest, story: Story
    ) -> EventSource:
        """Returns the run, as it goes on from its story."""
        run_id, terms = lease.run_id, read_terms(request)
        if not hasattr(agent, "go_on"):
            return cast("Job", agent)(request)
        deps = None
        if self._deps is not None:
            deps = self._deps(request)
        if isawaitable(deps):
            deps = await deps
        claim = self._log.claim
        if terms.conversation is not None:
            claim = claim_within(claim, request.resource_id, terms.conversation)
        run = cast("Agent[Any]", agent).go_on(
            request,
            story,
            claim=claim,
            deps=deps,
            model=terms.model,
            trusted_history=terms.trusted,
            output_events=terms.output_events,
        )
        run.hold_calls(lambda: self._keeper.driven[run_id].driver.wait_until_stored())
        return RunSource(run, None)

    def _begin(
        self, source: EventSource, lease: Lease, end: int, deadline: float | None
    ) -> DrivenRun:
        """Starts a task that drives a run whose log has `end` events."""
        tail = RunTail(end)
        driver = RunDriver(self._log, source, lease, tail)
        task = asyncio.create_task(driver.run(), name=f"dragoman-drive-{lease.run_id}")
        driven = DrivenRun(driver, lease, tail, task, is_durable=True)
        self._keeper.add(driven)
        if deadline is not None:
            timer = asyncio.get_running_loop().call_later(deadline - time(), driver.cancel)
            task.add_done_callback(lambda _: timer.cancel())
        return driven


def make_request(
    prompt: Prompt, run_id: str | None, thread_id: str | None, resource_id: str | None
) -> RunRequest:
    """Returns the request of a durable run. Its new messages have ids and times, so that they are the
    same in every process."""
    new, options = open_prompt(prompt, {}, new_id=new_id, clock=now)
    if not isinstance(prompt, RunRequest):
        prompt = RunRequest()
    return prompt.replace(
        messages=(*options.get("history", ()), *new),
        run_id=run_id or prompt.run_id or new_id(),
        thread_id=thread_id or prompt.thread_id,
        resource_id=resource_id or prompt.resource_id,
    )


def read_result(story: Story, last: Event | None, output_type: Any) -> ChatResult[Any]:
    """Returns the result of a durable run that is over. `last`: its last event.

    Raises:
        DragomanError: with which the run ended.
        TypedOutputError: the output is not of the type.
    """
    spoken = [message for message in story.messages if message.role is Role.MODEL]
    answer = Message.model()
    if spoken:
        answer = spoken[-1]
    result = ChatResult(
        "",
        story.messages,
        answer.finish_reason or FinishReason.unspecified,
        metadata={**collect_metadata(spoken), **(story.set_aside or {})},
        id=answer.id or "",
        state=story.state,
        calls=story.calls,
    )
    if thinking := "".join([message.thinking or "" for message in spoken]):
        metadata = {**result.metadata, "thinking": thinking}
        result = msgspec.structs.replace(result, thinking=thinking, metadata=metadata)
    if isinstance(last, RunError):
        last.error.result = result
        raise last.error
    assert isinstance(last, RunFinished)
    if last.outcome == "cancelled":
        result = msgspec.structs.replace(result, finish_reason=FinishReason.cancelled)
    output: Any = last.result
    if output is not None and not isinstance(output, str):
        output = json_bytes.encode(output).decode()
    if output_type is not str and last.outcome == "success":
        output = typed_output(output_type).convert(output or "")
    return msgspec.structs.replace(
        result, output=output or "", usage=last.usage, pending=last.pending
    )
