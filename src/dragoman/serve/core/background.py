"""Answers that are made whether their client stays or leaves: their events stand in the server's
log of runs, from which they are streamed. Durable runs are read from there, too."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio
import msgspec

from dragoman.codec.response_state import drop_retracted
from dragoman.errors import DragomanError, OverloadedError, ProviderTimeoutError, public
from dragoman.event import Event, RunError, RunFinished
from dragoman.logs import logger
from dragoman.runs.driver import FinalEvent, PutEvents, RunDriver
from dragoman.serve.core.answer_record import Record
from dragoman.serve.core.call import Call
from dragoman.serve.core.enqueueing import KEEP, job_id
from dragoman.serve.core.service import Service

__all__ = [
    "begin_in_background",
    "check_room",
    "public_events",
    "read_answer",
    "read_run",
    "wait_for_job",
]

_LOG = logger("serve")
_AGAIN_SECONDS = 1.0


async def begin_in_background(
    call: Call,
    events: AsyncGenerator[list[Event], None],
    record: Record,
    thread_id: str | None,
    *,
    strict: bool,
) -> None:
    """Begins to make an answer: a run with the call's id, which goes on by itself. `strict`: only
    if the store keeps that there is one.

    Raises:
        OverloadedError: the server makes no such answers now, or as many as it may.
        StoreError: it cannot be kept.
        RunLogError: the log refuses it.
    """
    record.run_id = call.id
    try:
        check_room(call)
        await record.begin(strict=strict)
        try:
            source = _AnswerSource(call, events, record)
            await call.service.runs.record(source, thread_id, owner=call.caller.id)
        except DragomanError:
            # The client is answered that nothing was begun.
            await record.forget()
            raise
    except BaseException:
        await events.aclose()
        raise


def public_events(events: Sequence[Event]) -> Sequence[Event]:
    """Returns a background answer's events with their errors as a client may read them."""
    if not any(type(event) is RunError for event in events):
        return events
    return [
        msgspec.structs.replace(event, error=public(event.error))
        if type(event) is RunError
        else event
        for event in events
    ]


def check_room(call: Call) -> None:
    """Checks that one more answer may go on in the background.

    Raises:
        OverloadedError: the server makes no answers in the background now, or as many as it may.
    """
    runs, most = call.service.runs, call.service.limits.open_calls
    call.service.check_open()
    if most is not None and len(runs.driven) >= most:
        raise OverloadedError(
            "as many answers are made in the background as may be; try again",
            retry_after=_AGAIN_SECONDS,
        )


class _AnswerSource:
    """The events of an answer as the `Source` of a run."""

    def __init__(
        self, call: Call, events: AsyncGenerator[list[Event], None], record: Record
    ) -> None:
        """Creates the source of a background answer's events for the run log."""
        self._call, self._events, self._record = call, events, record
        self._has_error = False
        """True if the record has the error that ended it."""

    @property
    def id(self) -> str:
        """See `Source`."""
        return self._call.id

    def cancel(self, driver: RunDriver) -> None:
        """See `Source`."""
        driver.end_with(RunFinished(self.id, "cancelled"))

    async def read(self, put: PutEvents) -> None:
        """See `Source`."""
        try:
            with anyio.fail_after(self._call.service.limits.run_seconds):
                if await self._read_logged_events(put):
                    return
            last: FinalEvent = RunFinished(self.id)
        except TimeoutError:
            last = RunError(
                ProviderTimeoutError("the answer took longer than this server waits for one"),
                self.id,
            )
        except Exception as error:  # noqa: BLE001 - its readers get it
            if not isinstance(error, DragomanError):
                _LOG.exception("an answer in the background failed")
            last = RunError(error if isinstance(error, DragomanError) else public(error), self.id)
        await self._put([last], put)

    async def handle_end(self, last: FinalEvent) -> None:
        """See `Source`."""
        if isinstance(last, RunError):
            if not self._has_error:
                self._record.add([last])
            await self._record.end("failed")
        else:
            await self._record.end("cancelled" if last.outcome == "cancelled" else None)

    async def _read_logged_events(self, put: PutEvents) -> bool:
        """Puts the next logged events of a background answer. Returns True if the last one ended
        the run."""
        async with aclosing(self._events) as batches:
            async for events in batches:
                last = events[-1] if events else None
                if isinstance(last, RunError):
                    # The error must carry this run's id, or readers would
                    # not take it for the run's end.
                    events = [*events[:-1], RunError(last.error, self.id)]
                if events:
                    await self._put(events, put)
                if isinstance(last, RunError) or (
                    isinstance(last, RunFinished) and last.run_id == self.id
                ):
                    return True
        return False

    async def _put(self, events: Sequence[Event], put: PutEvents) -> None:
        self._has_error = isinstance(events[-1], RunError)
        self._record.add(events)
        await put(events)


async def read_answer(
    call: Call,
    feed: Callable[[Sequence[Event]], list[Event]],
    blame: Callable[[DragomanError], DragomanError],
    *,
    whole: bool,
    cancel_on_leave: bool,
) -> AsyncGenerator[list[Event], None]:
    """Yields a run that was enqueued, as the client of a model's API gets it.

    Args:
        call: the call that the run answers.
        feed: returns what the client gets of events.
        blame: returns the error that the client gets for that of the run.
        whole: the client gets all at once, so what was retracted is left out.
        cancel_on_leave: see `read_run`.
    """
    whole_run: list[Event] = []
    async with read_run(call, call.id, cancel_on_leave=cancel_on_leave) as pages:
        async for page in pages:
            last = page[-1]
            if isinstance(last, RunError) and (error := blame(last.error)) is not last.error:
                raise error
            if whole:
                whole_run += page
            elif events := feed(page):
                call.observed.add(events)
                yield events
    if whole:
        events = feed(drop_retracted(whole_run))
        call.observed.add(events)
        yield events


@asynccontextmanager
async def read_run(
    call: Call, run_id: str, *, cancel_on_leave: bool
) -> AsyncGenerator[AsyncIterator[Sequence[Event]]]:
    """Gives the events of a run from its first to its end, by the page, for as long as its client
    stays. A client that reads slowly holds the run back. `cancel_on_leave`: the run ends if the
    client leaves before it does; if the server ends, others go on with a durable run."""
    is_over = False
    try:
        async with aclosing(_read_pages(call, run_id)) as pages:
            yield pages
        is_over = True
    finally:
        is_left = cancel_on_leave and not is_over
        if is_left and not (call.service.durable and call.connection.is_interrupted):
            with anyio.CancelScope(shield=True):
                await call.service.runs.cancel(run_id)


async def _read_pages(call: Call, run_id: str) -> AsyncGenerator[list[Event], None]:
    """Yields the events of a run. Of a durable one the end comes once the answer is kept, so that the
    client can go on from it at once."""
    service = call.service
    async with aclosing(service.runs.pages(run_id, paces=True)) as pages:
        async for page in pages:
            last = page[-1]
            is_end = isinstance(last, RunFinished | RunError) and last.run_id == run_id
            if is_end and service.durable:
                await wait_for_job(service, KEEP, run_id, service.limits.keep_seconds)
            yield page


async def wait_for_job(service: Service, name: str, run_id: str, seconds: float | None) -> None:
    """Waits until a job of a run is done, at most so many seconds."""
    try:
        with anyio.move_on_after(seconds):
            await service.runs.wait(job_id(name, run_id))
    except DragomanError as error:
        _LOG.info("whether an answer is kept cannot be found out: %s", error.message)
