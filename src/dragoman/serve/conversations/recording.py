"""An answer that is given, kept as it comes to its end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import msgspec

from dragoman.codec.serving import Links
from dragoman.errors import DragomanError, public
from dragoman.event import Event, RunError
from dragoman.fold import compact, fold
from dragoman.interrupt import Interrupt
from dragoman.message import Message, Role
from dragoman.request import ModelRequest
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.recalling import Recalled, lasting
from dragoman.serve.conversations.references import item_keys
from dragoman.serve.conversations.threads import resource_of, scope_of
from dragoman.serve.store.answers import AnswerStore, NoAnswers
from dragoman.serve.store.keeping import begin_answer, find_conversation, keep_answer
from dragoman.serve.store.records import Answered, AnsweredState, keys_of

__all__ = ["Recording", "waiting_task"]

_UNCOMPACTED = 1024
"""Events of an answer that are held as they came."""


class Recording:
    """Collects what an answer becomes, and keeps it."""

    def __init__(self, call: Call, request: ModelRequest, links: Links, known: Recalled) -> None:
        """`request`: as the client sent it."""
        self._call = call
        self._known, self._scope = (
            known,
            scope_of(resource_of(call), known.thread_id if known.named else None),
        )
        self._store: AnswerStore = call.service.answers
        self._keeps = known.keeps and not isinstance(self._store, NoAnswers)
        self._events: list[Event] = []
        self._next_compaction = _UNCOMPACTED
        self._answered = Answered(
            id=call.id,
            owner=call.caller.id,
            wire=call.wire.name,
            created_at=call.now,
            request=request,
            parent=known.parent,
            state="in_progress",
            shared=links.stored,
            lasting=lasting(call, request.messages),
        )
        self.new: Sequence[Message] = known.new
        """What the conversation gains by the request."""
        self.output: Sequence[Message] = ()
        """The answer as the server has it, where the client gets another; the backend says it when it is over."""
        self.pending: tuple[Interrupt, ...] = ()
        """What the answer waits for."""
        self.run_id: str | None = None
        """Id of the run that makes the answer, where one goes on without its client."""
        self.task_id: str | None = None
        """Id of the task that waited for what the client answers."""
        self.thread_id = known.thread_id
        """Id of the conversation; the backend may give it another."""

    def add(self, events: Sequence[Event]) -> None:
        """What the client gets."""
        self._call.observed.add(events)
        if not self._keeps:
            return
        self._events += events
        if (
            len(self._events) > self._next_compaction
        ):  # of a long answer its text stays, not its deltas
            self._events = compact(self._events)
            self._next_compaction = len(self._events) + _UNCOMPACTED

    async def begin(self, *, strict: bool) -> None:
        """Keeps that the answer is being made. `strict`: it must be; else a store that fails takes it from nobody.

        Raises:
            StoreError: the store failed.
        """
        ids = {"thread_id": self.thread_id, "task_id": self.task_id, "run_id": self.run_id}
        begun = msgspec.structs.replace(self._answered, **ids)
        seconds = self._call.service.limits.keep_seconds
        if strict:
            await begin_answer(self._store, begun, seconds=seconds)
        else:
            await keep_answer(self._store, begun, [], seconds=seconds)
        self._tell_task()

    async def forget(self) -> None:
        """What was begun is not made.

        Raises:
            Exception: the store failed.
        """
        await self._store.delete(self._answered.owner, self._answered.id)

    async def keep(self, state: AnsweredState | None = None) -> None:
        """Keeps the answer as far as it came. A store that fails takes no answer from anybody. `state`: how it ended, where no event says it."""
        if not self._keeps:
            return
        error = next(
            (event.error for event in reversed(self._events) if isinstance(event, RunError)), None
        )
        visible = tuple([message for message in fold(self._events) if message.role is Role.MODEL])
        output = tuple(self.output) or visible
        answered = msgspec.structs.replace(
            self._answered,
            request=self._request(),
            output=output,
            visible=() if output == visible else visible,
            state=state or ("completed" if error is None else "failed"),
            error=None if error is None else _shown(self._call, error),
            usage=visible[-1].usage if visible else None,
            pending=self.pending,
            thread_id=self.thread_id,
            task_id=self.task_id,
            run_id=self.run_id,
            key=next(iter(keys := self._keys(visible)), ""),
        )
        keys += [f"thread:{self.thread_id}"] if self.thread_id else []
        keys += [f"task:{self.task_id}"] if self.task_id else []
        keys += item_keys(self._call.wire, answered)
        await keep_answer(
            self._store, answered, keys, seconds=self._call.service.limits.keep_seconds
        )
        self._tell_task()

    def _tell_task(self) -> None:
        """Wakes who waits for the task."""
        if self.task_id:
            self._call.service.waiting.changed((self._call.caller.id, self.task_id))

    def _request(self) -> ModelRequest:
        """Whole where the client may read it again; else what the conversation gains by it."""
        request = self._answered.request
        if not (
            self._answered.shared
            and any(route.purpose == "response" for route in self._call.wire.routes)
        ):
            return ModelRequest(request.model, tuple(self.new), wire=request.wire)
        return request.replace(messages=(*takewhile(_is_system, request.messages), *self.new))

    def _keys(self, visible: Sequence[Message]) -> list[str]:
        return keys_of(self._known.shown, visible, self._scope) if visible else []


async def waiting_task(call: Call, thread: str) -> str | None:
    """The id of the task that waits in a conversation; `None`: there is none, or the store fails."""
    limits = call.service.limits
    known = await find_conversation(
        call.service.answers, call.caller.id, [f"thread:{thread}"], limits
    )
    return known[-1].task_id if known and known[-1].pending else None


def _is_system(message: Message) -> bool:
    return message.role is Role.SYSTEM


def _shown(call: Call, error: DragomanError) -> dict[str, object]:
    return dict(call.wire.dump_error(public(error)).body)
