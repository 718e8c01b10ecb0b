"""How answers of durable runs are kept: from the log, by a job of the server, or by whoever asks for
one of which the job is late (`EndKeeper.settle`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

import msgspec

from dragoman.codec.response_state import drop_retracted
from dragoman.errors import ContentRefusedError, DragomanError, RunLogError, public
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.logs import logger
from dragoman.message import Message, Role
from dragoman.orchestration.story_reader import StoryReader
from dragoman.result import ChatResult
from dragoman.runs.closing import read_pages
from dragoman.runs.durable import read_result
from dragoman.serve.core.answer_record import list_keys, state_of
from dragoman.serve.core.background import wait_for_job
from dragoman.serve.core.call import Call
from dragoman.serve.core.client_events import ClientAnswer
from dragoman.serve.core.enqueueing import KEEP
from dragoman.serve.core.service import Service
from dragoman.serve.store.keep_answer import keep_answer
from dragoman.serve.store.stored_answer import Answered, Ending, keys_after

__all__ = ["EndKeeper", "is_open"]

_LOG = logger("serve")
_LATE_SECONDS = 1.0
"""So long a job may take to keep an answer before it is kept for it."""
_BEGIN_SECONDS = 60.0
"""So long after its answer a run may come into the log."""
_AGAIN_SECONDS = 1.0


def is_open(answered: Answered) -> bool:
    """True if a durable run makes an answer of which the end is not kept."""
    return answered.state == "in_progress" and answered.ending is not None


class EndKeeper:
    """Keeps the ends of the answers of a server."""

    def __init__(self, service: Service, call_for: Callable[[Answered], Call]) -> None:
        """`call_for`: makes a call like that which began an answer."""
        self._service, self._call_for = service, call_for

    async def settle(self, answered: Answered) -> Answered:
        """Returns an answer as far as it is by now. If its durable run is over, it is kept."""
        if not is_open(answered):
            return answered
        status = (await self._service.log.status([answered.id])).get(answered.id)
        if status is None or not status.is_over:
            return answered
        await wait_for_job(self._service, KEEP, answered.id, _LATE_SECONDS)
        latest = await self._service.answers.get(answered.owner, answered.id)
        if latest is None or not is_open(latest):
            return latest or answered
        ended = await self._read_end(latest)
        await self._keep(latest, ended)
        return ended

    async def keep_end(self, owner: str, answer_id: str) -> None:
        """Waits for the end of a durable run, and keeps its answer. A run that takes too long is
        cancelled."""
        answered = await self._service.answers.get(owner, answer_id)
        if answered is None or not is_open(answered):
            return
        seconds = self._service.limits.run_seconds
        if seconds is not None:
            seconds -= (self._service.clock() - answered.created_at).total_seconds()
        try:
            async with asyncio.timeout(seconds):
                has_begun = await self._wait_for_end(answered)
        except TimeoutError:
            # One that is driven ends by itself at this time. This one may still wait to be driven.
            await self._service.runs.cancel(answer_id)
            has_begun = await self._wait_for_end(answered)
        while True:
            # Meanwhile its client may have deleted it, or somebody else has kept it.
            latest = await self._service.answers.get(owner, answer_id)
            if latest is None or not is_open(latest):
                break
            if has_begun:
                ended = await self._read_end(latest)
            else:
                ended = msgspec.structs.replace(latest, state="failed", ending=None)
            if await self._keep(latest, ended):
                break
            await asyncio.sleep(_AGAIN_SECONDS)
        if answered.task_id:
            self._service.waiting.notify((owner, answered.task_id))

    async def _wait_for_end(self, answered: Answered) -> bool:
        """Waits until a run is over. Returns False if it never began, since its server died first."""
        begins_until = answered.created_at + timedelta(seconds=_BEGIN_SECONDS)
        while True:
            try:
                await self._service.runs.wait(answered.id)
            except RunLogError:
                if self._service.clock() > begins_until:
                    return False
                await asyncio.sleep(_AGAIN_SECONDS)
            else:
                return True

    async def _keep(self, begun: Answered, ended: Answered) -> bool:
        """Keeps the end of an answer, or forgets the answer. Returns False if the store fails."""
        assert begun.ending is not None
        answer = ended.visible or ended.output
        is_void = ended.state == "cancelled" or (ended.state == "failed" and not answer)
        if is_void and not begun.ending.always:
            try:
                await self._service.answers.delete(begun.owner, begun.id)
            except Exception as error:  # noqa: BLE001 - a store of the user's raises what it likes
                _LOG.warning("an answer could not be forgotten: %s", error)
                return False
            return True
        keys = list_keys(self._call_for(ended).api, ended)
        if ended.key:
            keys += keys_after(begun.ending, answer)
        return await keep_answer(
            self._service.answers, ended, keys, seconds=self._service.limits.keep_seconds
        )

    async def _read_end(self, begun: Answered) -> Answered:
        """Returns the answer of a run that is over, as the log has it."""
        call, reader, events = self._call_for(begun), StoryReader(begun.id), list[Event]()
        assert begun.ending is not None
        async for page in read_pages(self._service.log, begun.id):
            reader.feed(page)
            events += page
        last = events[-1]
        try:
            result = read_result(reader.story(), last, str)
        except DragomanError as error:
            result = error.result
        failure = last.error if isinstance(last, RunError) else None
        ended = msgspec.structs.replace(
            begun,
            ending=None,
            output=_list_output(result, begun.ending),
            state="failed" if failure is not None else state_of(result),
            refused=isinstance(failure, ContentRefusedError),
            pending=result.pending,
            usage=result.usage,
        )
        if begun.asked is None:
            return _add_visible(call, ended, begun.ending, events, failure)
        ended = msgspec.structs.replace(ended, updated_at=self._service.clock())
        return await call.api.end(call, ended)


def _list_output(result: ChatResult[str], ending: Ending) -> tuple[Message, ...]:
    """Returns what the run has said, without the client's own messages."""
    return tuple(
        [
            message
            for message in result.messages
            if message.id not in ending.question_ids and message.role is not Role.SYSTEM
        ]
    )


def _add_visible(
    call: Call,
    ended: Answered,
    ending: Ending,
    events: Sequence[Event],
    failure: DragomanError | None,
) -> Answered:
    """Returns an answer to a model's API with what its client sees of it."""
    seen = ClientAnswer(call, (), ended.request.messages).feed(drop_retracted(events))
    visible = tuple([message for message in fold(seen) if message.role is Role.MODEL])
    output = ended.output or visible
    error = None
    if failure is not None:
        error = call.wire.dump_error(public(failure)).body
    return msgspec.structs.replace(
        ended,
        output=output,
        visible=() if output == visible else visible,
        refused=False,
        error=error,
        usage=visible[-1].usage if visible else None,
        key=keys_after(ending, visible)[0] if visible else "",
    )
