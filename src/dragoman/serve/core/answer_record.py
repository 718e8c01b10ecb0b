"""What is kept of an answer: that it is being made, and what became of it.

A `Record` is begun where somebody may ask for the answer while it is made, and ended once it is
over. An answer to a model's API is collected from the events that its client gets; a run of an
agent says itself what it gave. Both are kept as an `Answered`, under the keys by which they are
found again. A store that fails takes no answer from anybody, unless `begin` is strict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, Protocol

import anyio
import msgspec

from dragoman.errors import ContentRefusedError, public
from dragoman.event import Event, RunError, RunFinished
from dragoman.fold import compact, fold
from dragoman.interrupt import Interrupt
from dragoman.message import Message, Role
from dragoman.request import ModelRequest, RunRequest, Settings
from dragoman.result import ChatResult
from dragoman.serve.core.call import Api, Call, Links
from dragoman.serve.core.model_api_turn import lasting_texts
from dragoman.serve.core.threads import resource_of, scope_of, user_of
from dragoman.serve.core.turn import Turn
from dragoman.serve.store.answer_store import NoAnswers
from dragoman.serve.store.keep_answer import begin_answer, find_conversation, keep_answer
from dragoman.serve.store.stored_answer import (
    Answered,
    AnsweredState,
    Ending,
    begin_ending,
    keys_of,
)

__all__ = ["RunFollower", "Record", "find_waiting_task", "latest_key", "list_keys", "state_of"]

_UNCOMPACTED = 1024
"""Events of an answer that are held as they came."""
_FORGET_SECONDS = 0.2
"""So long it is waited for that what could not begin is forgotten: the client has waited
already."""


def latest_key(thread_id: str | None) -> str:
    """Returns the key of the run of a conversation that was begun last, also while it goes on."""
    return f"latest:{thread_id}"


class RunFollower(Protocol):
    """Follows a run that is kept, for an API that keeps more of it than its messages."""

    def begin(self, run: Answered) -> Answered:
        """Returns the record of a run that begins, with what is to be kept of it."""
        ...

    def feed(self, events: Sequence[Event]) -> None:
        """Takes events of the run that were stored."""
        ...

    def end(self, run: Answered) -> Answered:
        """Returns the record of the run that is over, with what is to be kept of it."""
        ...


class Record:
    """Collects what an answer becomes, and keeps it."""

    def __init__(
        self, call: Call, turn: Turn, answered: Answered, progress: RunFollower | None = None
    ) -> None:
        """Creates the record of an answer. `answered`: what is known before the answer. `progress`:
        follows a run and keeps more of it."""
        self._call, self._turn, self._progress = call, turn, progress
        self._store, self._seconds = call.service.answers, call.service.limits.keep_seconds
        self._scope = scope_of(resource_of(call), turn.thread_id if turn.is_named else None)
        if progress is None:
            self._answered = answered
        else:
            self._answered = progress.begin(answered)
        self._keeps = turn.keeps and not isinstance(self._store, NoAnswers)
        self._is_needed: Callable[[Event], bool] | None = None
        self._events: list[Event] = []
        self._next_compaction = _UNCOMPACTED
        self._output: tuple[Message, ...] = ()
        self._pending: tuple[Interrupt, ...] = ()
        self.run_id = answered.run_id
        """Id of the run that makes the answer, if one goes on without its client."""
        self.task_id = answered.task_id
        """Id of the task that the answer is a part of, or that waited for what the client
        answers."""

    @classmethod
    def of_answer(cls, call: Call, turn: Turn, request: ModelRequest, links: Links) -> Record:
        """Returns the record of an answer to a model's API. `request`: as the client sent it."""
        answered = Answered(
            id=call.id,
            owner=call.caller.id,
            wire=call.wire.name,
            created_at=call.now,
            request=request,
            parent=turn.parent,
            state="in_progress",
            shared=links.stored,
            lasting=lasting_texts(call, request.messages),
        )
        return cls(call, turn, answered)

    @classmethod
    def of_run(
        cls,
        call: Call,
        turn: Turn,
        model: str,
        request: RunRequest,
        *,
        shown: Sequence[Message],
        progress: RunFollower | None,
    ) -> Record:
        """Returns the record of a run in an agent protocol. `request`: as the client sent it;
        `shown`: the client's messages, if an answer took the place of one."""
        if len(shown) > len(request.messages):
            answer = tuple(shown[-1:])
        else:
            answer = ()
        asked = RunRequest(
            answer, thread_id=request.thread_id, run_id=request.run_id, native=request.native
        )
        answered = Answered(
            id=call.id,
            owner=call.caller.id,
            wire=call.wire.name,
            created_at=call.now,
            request=ModelRequest(model, turn.added, settings=request.settings or Settings()),
            parent=turn.parent,
            thread_id=turn.thread_id,
            task_id=turn.task_id,
            run_id=call.id,
            asked=asked,
            state="in_progress",
        )
        return cls(call, turn, answered, progress)

    def follow(self, turn: Turn) -> None:
        """Takes the turn as the backend goes on with it."""
        self._turn, self.task_id = turn, turn.task_id

    def keep_only(self, is_needed: Callable[[Event], bool] | None) -> None:
        """Keeps the answer only if an event of it is needed (None: each is), a client may ask for
        it by an id, or an earlier answer of its conversation was kept, since the next is found by
        way of this one."""
        self._is_needed = is_needed

    def add(self, events: Sequence[Event]) -> None:
        """Adds to the record the events that the client gets."""
        self._call.observed.add(events)
        # Nothing is stored for this answer, so its events need not be collected.
        if not self._keeps:
            return
        self._events += events
        # The text of a long answer, not its deltas.
        if len(self._events) > self._next_compaction:
            # Joining deltas keeps the memory of a long answer near the size of its
            # text.
            self._events = compact(self._events)
            self._next_compaction = len(self._events) + _UNCOMPACTED

    def note(self, result: ChatResult[Any]) -> None:
        """Takes what a run of an agent has given: the answer as the server has it, and what
        waits."""
        turn = self._turn
        question_ids = {message.id for message in (*turn.before, *turn.new, *turn.added)}
        self._output = tuple(
            [
                message
                for message in result.messages
                if message.id not in question_ids and message.role is not Role.SYSTEM
            ]
        )
        self._pending = result.pending

    async def begin(self, *, strict: bool = False) -> None:
        """Keeps that the answer is being made. `strict`: it must be kept.

        Raises:
            StoreError: the store failed, and `strict` is set.
        """
        begun = self._with_ids()
        if strict:
            await begin_answer(self._store, begun, seconds=self._seconds)
        else:
            # A conversation goes on from an answer only at its end.
            if begun.asked is not None:
                thread = [latest_key(self._turn.thread_id)]
            else:
                thread = []
            keys = [*thread, *_run_keys(begun)]
            await keep_answer(self._store, begun, keys, seconds=self._seconds)
        self.wake_task()

    async def begin_durable(self, *, always: bool) -> None:
        """Keeps that a durable run makes the answer, with all that keeps its end in any process.
        `always`: see `Ending`.

        Raises:
            StoreError: it is not kept.
        """
        turn, begun = self._turn, self._with_ids()
        keys = _run_keys(begun)
        if begun.asked is None:
            ending = begin_ending(turn.shown, self._scope, turn.keys)
            begun = msgspec.structs.replace(begun, request=self._request_to_store())
        else:
            ending = Ending()
            # A conversation goes on from an answer only at its end.
            keys = [latest_key(turn.thread_id), *keys]
        ending = msgspec.structs.replace(
            ending,
            user=user_of(self._call),
            question_ids=tuple([message.id for message in turn.new if message.id]),
            always=always,
        )
        begun = msgspec.structs.replace(begun, run_id=begun.id, ending=ending)
        await begin_answer(self._store, begun, keys, seconds=self._seconds)
        self.wake_task()

    async def forget(self) -> None:
        """Removes the record of what could not begin. A store that is slow is not waited for."""
        with suppress(Exception), anyio.move_on_after(_FORGET_SECONDS):
            await self._store.delete(self._answered.owner, self._answered.id)

    async def end(self, state: AnsweredState | None = None) -> None:
        """Keeps an answer to a model's API as far as it came. `state`: how it ended, if no event
        says it."""
        if not (self._keeps and self._is_worth_keeping()):
            return
        failure = next(
            (event.error for event in reversed(self._events) if isinstance(event, RunError)), None
        )
        visible = tuple([message for message in fold(self._events) if message.role is Role.MODEL])
        output = self._output or visible
        if visible:
            keys = keys_of(self._turn.shown, visible, self._scope, self._turn.keys)
        else:
            keys = []
        if failure is None:
            error = None
        else:
            error = self._call.wire.dump_error(public(failure)).body
        answered = msgspec.structs.replace(
            self._with_ids(),
            request=self._request_to_store(),
            output=output,
            visible=() if output == visible else visible,
            state=state or ("completed" if failure is None else "failed"),
            error=error,
            usage=visible[-1].usage if visible else None,
            pending=self._pending,
            key=keys[0] if keys else "",
        )
        await self._keep_record(answered, keys)

    def _is_worth_keeping(self) -> bool:
        """Returns whether anything of the answer is needed later, see `keep_only`."""
        if self._is_needed is None or self._call.gives_answers or self._turn.parent is not None:
            return True
        return any(map(self._is_needed, self._events))

    async def end_run(self, result: ChatResult[str], last: RunFinished | RunError) -> None:
        """Keeps in the record what a run answered. `last`: the event that ended it."""
        self.note(result)
        answered = msgspec.structs.replace(
            self._with_ids(),
            output=self._output,
            state=state_of(result),
            refused=isinstance(last, RunError) and isinstance(last.error, ContentRefusedError),
            updated_at=self._call.service.clock(),
            usage=result.usage,
            pending=self._pending,
        )
        if self._progress is not None:
            answered = self._progress.end(answered)
        await self._keep_record(answered, [])

    def wake_task(self) -> None:
        """Wakes the calls that wait for the task."""
        if self.task_id:
            self._call.service.waiting.notify((self._call.caller.id, self.task_id))

    async def _keep_record(self, answered: Answered, keys: Sequence[str]) -> None:
        """Saves the answer's record under all of its keys: conversation, run and thread."""
        all_keys = [*keys, *list_keys(self._call.api, answered)]
        await keep_answer(self._store, answered, all_keys, seconds=self._seconds)
        self.wake_task()

    def _with_ids(self) -> Answered:
        """Returns the answer's record with the ids of its thread, task and run."""
        return msgspec.structs.replace(
            self._answered,
            thread_id=self._turn.thread_id,
            task_id=self.task_id,
            run_id=self.run_id,
        )

    def _request_to_store(self) -> ModelRequest:
        """Returns the request for the record: complete if the client can fetch it, else only what
        the conversation gains by it."""
        request = self._answered.request
        if not (self._answered.shared and self._call.gives_answers):
            return ModelRequest(request.model, self._turn.new, wire=request.wire)
        # Messages of earlier answers are already stored with them.
        system = takewhile(lambda message: message.role is Role.SYSTEM, request.messages)
        return request.replace(messages=(*system, *self._turn.new))


def list_keys(api: Api, answered: Answered) -> list[str]:
    """Returns the keys of an answer that is over, beside those of its conversation's words."""
    thread = [f"thread:{answered.thread_id}"] if answered.thread_id else []
    return [*thread, *_run_keys(answered), *api.answer_keys(answered)]


def _run_keys(answered: Answered) -> list[str]:
    """Returns the keys by the client's own names for the run and its task."""
    asked, keys = answered.asked, list[str]()
    if asked is not None and asked.run_id:
        keys.append(f"run:{asked.run_id}")
    if answered.task_id:
        keys.append(f"task:{answered.task_id}")
    return keys


async def find_waiting_task(call: Call, thread: str) -> str | None:
    """Returns from the answer records the id of the task that waits in a conversation; None if
    there is none, or if the store fails."""
    limits = call.service.limits
    chain = await find_conversation(
        call.service.answers, call.caller.id, [f"thread:{thread}"], limits
    )
    if chain and chain[-1].pending:
        return chain[-1].task_id
    return None


def state_of(result: ChatResult[str]) -> AnsweredState:
    """Returns the record's state for a result: completed, failed or cancelled."""
    reason = str(result.finish_reason or "")
    if reason == "cancelled":
        return "cancelled"
    return "failed" if reason == "error" else "completed"
