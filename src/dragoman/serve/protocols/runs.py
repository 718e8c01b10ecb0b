"""Runs that clients of agent protocols ask for: begun in the server's log of runs, read from there, kept as answers of their thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Protocol

import anyio
import msgspec

from dragoman.agent import Agent
from dragoman.errors import ContentRefusedError, DragomanError, ModelNotFoundError
from dragoman.event import Event, RunError, RunFinished
from dragoman.message import Message, Role
from dragoman.request import ModelRequest, Settings
from dragoman.result import ChatResult
from dragoman.run_request import RunRequest
from dragoman.serve.agents.agents import AgentBackend
from dragoman.serve.agents.policy import AgentPolicy
from dragoman.serve.agents.requests import allowed
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.logged import check_room
from dragoman.serve.conversations.threads import resource_of
from dragoman.serve.http.limits import check_request
from dragoman.serve.http.observed import offered_name
from dragoman.serve.protocols.conversations import Joined, change_memory, joined
from dragoman.serve.store.keeping import keep_answer, store_deadline
from dragoman.serve.store.records import Answered, AnsweredState
from dragoman.tools import Tool

__all__ = ["Progress", "Served", "begun", "latest_key", "read_run", "served_agent"]

_FORGET_SECONDS = 0.2


def latest_key(thread_id: str | None) -> str:
    """The key under which the run of a conversation is kept that was begun last, also while it goes on."""
    return f"latest:{thread_id}"


class Progress(Protocol):
    """Follows a run that is kept, for who keeps more of it than its messages."""

    def begin(self, run: Answered) -> Answered:
        """Returns the record of a run that begins, with what is to be kept of it."""
        ...

    def feed(self, events: Sequence[Event]) -> None:
        """Takes events of the run that were stored."""
        ...

    def end(self, run: Answered) -> Answered:
        """Returns the record of the run that is over, with what is to be kept of it."""
        ...


class Served(msgspec.Struct, frozen=True):
    """An agent that a client may ask."""

    name: str
    """By which."""
    agent: Agent[Any]
    """Itself."""
    policy: AgentPolicy
    """What clients may change of its runs."""


def served_agent(call: Call, name: str = "") -> Served:
    """The agent of that name, perhaps with a slash behind it; empty: the first that the caller may use.

    Raises:
        ModelNotFoundError: there is none.
    """
    name = name.removesuffix("/")
    for backend in call.service.backends:
        if not isinstance(backend, AgentBackend):
            continue
        for known in [name] if name else backend.names:
            if call.caller.may_use(known) and backend.serves(known):
                call.observed.model = offered_name(known, backend.names)
                return Served(known, *backend.served(known))
    raise ModelNotFoundError(
        f"there is no agent {name!r:.200} here" if name else "there is no agent here"
    )


async def begun(
    call: Call,
    request: RunRequest,
    served: Served,
    *,
    task_id: str | None = None,
    shown: Sequence[Message] = (),
    progress: Progress | None = None,
) -> str:
    """Begins the run that answers a request → its id in the server's log. What becomes of it is kept whether its client stays or leaves.
    `task_id`: of the task that it is a part of. `shown`: the client's messages, where an answer took the place of one.
    `progress`: follows the run.

    Raises:
        OverloadedError: the server makes no runs now, or as many as it may.
        InvalidRequestError: the request holds what the policy refuses, or answers what does not wait.
        ContextLengthError: the conversation is too long.
        DragomanError: the run cannot begin.
    """
    check_room(call)
    agent = served.agent
    model_request = ModelRequest(
        served.name,
        request.messages,
        request.tools,
        request.settings or Settings(),
        options=request.options or {},
    )
    check_request(model_request, call.service.limits)
    own = [tool.name for tool in agent.tools if isinstance(tool, Tool)]
    what = allowed(model_request, call.wire.name, served.policy, own)
    call.observed.losses = [*call.observed.losses, *what.losses]
    with store_deadline(call.service.limits):
        conversation = await joined(agent, call, request, what.messages)
    conversation = _with_ids(call, conversation)
    check_request(
        model_request.replace(messages=(*conversation.before, *conversation.new)),
        call.service.limits,
    )
    task_id = task_id or conversation.task_id
    record = _Record(call, request, conversation, model_request, task_id, shown, progress)
    run = request.replace(
        messages=(*conversation.before, *conversation.new),
        run_id=call.id,
        thread_id=conversation.thread_id,
        resource_id=resource_of(call),
        tools=what.tools,
        resume=conversation.resumes,
        settings=what.settings,
        native=None,
    )
    try:
        with store_deadline(call.service.limits):
            await record.begin()
            await change_memory(agent, conversation, resource_of(call))
            run_id = await call.service.runs.start(
                agent,
                run,
                ended=record.end,
                stored=None if progress is None else progress.feed,
                trusted_history=conversation.trusted,
                reading=conversation.reading,
            )
    except DragomanError:
        await record.forget()  # the client is answered that nothing was begun
        raise
    record.bound(run_id)
    if task_id:
        call.service.waiting.changed((call.caller.id, task_id))
    return run_id


@asynccontextmanager
async def read_run(
    call: Call, run_id: str, *, cancel_on_leave: bool
) -> AsyncGenerator[AsyncIterator[Sequence[Event]]]:
    """The events of a run from its first to its end, by the page, for as long as its client stays. A client that reads slowly
    holds the run back. `cancel_on_leave`: the run ends if the client leaves before it does."""
    is_over = False
    try:
        async with aclosing(call.service.runs.pages(run_id, paces=True)) as pages:
            yield pages
        is_over = True
    finally:
        if cancel_on_leave and not is_over:
            with anyio.CancelScope(shield=True):
                await call.service.runs.cancel(run_id)


def _with_ids(call: Call, conversation: Joined) -> Joined:
    """Every message that is kept has an id, the same in each protocol."""
    named: dict[int, Message] = {
        id(message): message if message.id else message.replace(id=call.service.new_id())
        for message in (*conversation.before, *conversation.new, *conversation.added)
    }

    def of(messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple([named[id(message)] for message in messages])

    return msgspec.structs.replace(
        conversation,
        before=of(conversation.before),
        new=of(conversation.new),
        added=of(conversation.added),
    )


class _Record:
    """What is kept of a run."""

    def __init__(
        self,
        call: Call,
        request: RunRequest,
        conversation: Joined,
        model_request: ModelRequest,
        task_id: str | None,
        shown: Sequence[Message],
        progress: Progress | None,
    ) -> None:
        answer = tuple(shown[-1:]) if len(shown) > len(request.messages) else ()
        self._call = call
        self._timer: asyncio.TimerHandle | None = None
        self._expiring: asyncio.Task[None] | None = None
        self._store, self._seconds = call.service.answers, call.service.limits.keep_seconds
        self._keys = [f"thread:{conversation.thread_id}"]
        if request.run_id:
            self._keys.append(f"run:{request.run_id}")
        if task_id:
            self._keys.append(f"task:{task_id}")
        self._given = {
            message.id for message in (*conversation.before, *conversation.new, *conversation.added)
        }
        self._progress = progress
        answered = Answered(
            id=call.id,
            owner=call.caller.id,
            wire=call.wire.name,
            created_at=call.now,
            request=model_request.replace(messages=conversation.added, tools=(), options={}),
            parent=conversation.parent,
            thread_id=conversation.thread_id,
            task_id=task_id,
            run_id=call.id,
            asked=RunRequest(
                answer, thread_id=request.thread_id, run_id=request.run_id, native=request.native
            ),
            state="in_progress",
        )
        self._answered = answered if progress is None else progress.begin(answered)

    async def begin(self) -> None:
        """Keeps that there is a run."""
        keys = [
            latest_key(self._answered.thread_id),
            *self._keys[1:],
        ]  # its conversation goes on from it at its end
        await keep_answer(self._store, self._answered, keys, seconds=self._seconds)

    async def forget(self) -> None:
        """Removes the record of a run that could not begin. A store that is slow gets the request and is not waited
        for: the client has waited long enough."""
        with (
            suppress(Exception),
            anyio.move_on_after(_FORGET_SECONDS),
        ):  # a store of the user's raises what it likes
            await self._store.delete(self._answered.owner, self._answered.id)

    def bound(self, run_id: str) -> None:
        """Ends the run once it has taken as long as a call may."""
        seconds = self._call.service.limits.run_seconds
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._expire, run_id)

    def _expire(self, run_id: str) -> None:
        self._expiring = asyncio.create_task(
            self._call.service.runs.cancel(run_id), name=f"dragoman-expire-{run_id}"
        )

    async def end(self, result: ChatResult[str], last: RunFinished | RunError) -> None:
        """Keeps what it gave. `last`: the event that ended it."""
        if self._timer is not None:
            self._timer.cancel()
        output = [
            each
            for each in result.messages
            if each.id not in self._given and each.role is not Role.SYSTEM
        ]
        answered = msgspec.structs.replace(
            self._answered,
            output=tuple(output),
            state=_state(result),
            refused=isinstance(last, RunError) and isinstance(last.error, ContentRefusedError),
            updated_at=self._call.service.clock(),
            usage=result.usage,
            pending=result.pending,
        )
        if self._progress is not None:
            answered = self._progress.end(answered)
        await keep_answer(self._store, answered, self._keys, seconds=self._seconds)


def _state(result: ChatResult[str]) -> AnsweredState:
    reason = str(result.finish_reason or "")
    return "cancelled" if reason == "cancelled" else "failed" if reason == "error" else "completed"
