"""How far a kept answer is that is made without its client: as the log of runs says it, where the record does not know yet."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing

import anyio
import msgspec

from dragoman.errors import OverloadedError, RunLogError, public
from dragoman.event import Event, RunError
from dragoman.fold import fold
from dragoman.message import Role
from dragoman.repair import repair
from dragoman.runs.log import RunState, RunStatus
from dragoman.serve.calls.call import Call
from dragoman.serve.store.keeping import keep_answer
from dragoman.serve.store.records import Answered, AnsweredState

__all__ = ["end_answer", "settled", "status_of"]

_STATES: Mapping[RunState, AnsweredState] = {
    "running": "failed",
    "success": "completed",
    "pending": "completed",
    "cancelled": "cancelled",
    "error": "failed",
    "interrupted": "failed",
}
_GRACE_SECONDS = 60
_WAIT_SECONDS = 5.0
"""So long an answer that another process makes may take to end."""


async def settled(call: Call, answered: Answered) -> Answered:
    """An answer as far as it is by now. One whose process is gone has failed, with what there was of it."""
    if answered.state != "in_progress":
        return answered
    status = await status_of(call, answered)
    if status is None:
        return (
            msgspec.structs.replace(answered, state="failed")
            if _is_old(call, answered)
            else answered
        )
    if not status.is_over and status.driven:
        return answered
    kept = await call.service.answers.get(
        answered.owner, answered.id
    )  # who made it may have kept it just now
    if kept is not None and kept.state != "in_progress":
        return kept
    found = await _from_log(call, answered, status)
    if status.state in ("running", "interrupted"):  # nobody else will keep it
        await keep_answer(call.service.answers, found, [], seconds=call.service.limits.keep_seconds)
    return found


async def status_of(call: Call, answered: Answered) -> RunStatus | None:
    """How far the run is that makes an answer; `None`: no run does, or the log has it no more."""
    if answered.run_id is None:
        return None
    try:
        return await call.service.runs.status(answered.run_id)
    except RunLogError:
        return None


async def end_answer(call: Call, answered: Answered) -> None:
    """Ends an answer that is being made, wherever that is, and waits for its end."""
    status = await status_of(call, answered)
    if status is None or status.is_over:
        return
    runs = call.service.runs
    await runs.cancel(status.run_id)
    with anyio.move_on_after(_WAIT_SECONDS):
        async with aclosing(runs.pages(status.run_id, status.end)) as pages:
            async for _ in pages:
                pass


async def _from_log(call: Call, answered: Answered, status: RunStatus) -> Answered:
    events: list[Event] = []
    async with aclosing(call.service.runs.stored(status)) as pages:
        async for page in pages:
            events += page
    last = events[-1] if events else None
    error = last.error if isinstance(last, RunError) and status.state == "error" else None
    if error is None and status.state in ("running", "interrupted", "error"):
        error = OverloadedError(
            "the process that made this answer ended before it did; send the request again"
        )
    output = [message for message in repair(fold(events)) if message.role is Role.MODEL]
    return msgspec.structs.replace(
        answered,
        output=tuple(output),
        state=_STATES[status.state],
        error=None if error is None else dict(call.wire.dump_error(public(error)).body),
        usage=output[-1].usage if output else None,
    )


def _is_old(call: Call, answered: Answered) -> bool:
    """Whether no process can be making the answer any more."""
    most = call.service.limits.run_seconds
    return (
        most is not None
        and (call.now - answered.created_at).total_seconds() > most + _GRACE_SECONDS
    )
