"""The turn of a request in an agent protocol: what the server kept of the thread, with what its
client changed.

The client names its thread and sends the copy that it has. The stored thread is what counts: the
copy is put into it (`history.put`), which finds what is new, edited or cut off. If that makes it
another conversation, the agent's memory is changed before the run (`change_memory`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.agent import Agent
from dragoman.history.client_copy import Changes, SentCopy, put
from dragoman.interrupt import Interrupt, Resume
from dragoman.memory.window import ThreadReading
from dragoman.message import Message, Role
from dragoman.orchestration.interrupts import count_seen_messages
from dragoman.repair import find_open_calls
from dragoman.request import RunRequest
from dragoman.serve.core.call import Call
from dragoman.serve.core.interrupts import sign_resume, unknown_interrupt_error
from dragoman.serve.core.policy import check_results, foreign_result_error
from dragoman.serve.core.threads import resource_of, thread_id, thread_name
from dragoman.serve.core.turn import Turn, read_memory, without_system
from dragoman.serve.store.stored_answer import Answered

__all__ = ["change_memory", "join_turn"]


async def join_turn(
    agent: Agent[Any],
    call: Call,
    request: RunRequest,
    *,
    regenerates: str | None = None,
) -> Turn:
    """Returns the turn of a request in an agent protocol. `request`: as far as the policy lets it
    through; `regenerates`: id of the message that is to be made anew, empty for the last answer.

    Raises:
        InvalidRequestError: the thread's name is no name, or the client answers what does not wait.
        StoreError: the thread cannot be read.
    """
    resource = resource_of(call)
    name = thread_name(call, request.thread_id)
    # Without a name the thread gets the id of the call.
    thread = thread_id(resource, name or call.id)
    latest = await call.service.answers.find(call.caller.id, [f"thread:{thread}"])
    reading: ThreadReading | None = None
    pending: Sequence[Interrupt]
    if agent.memory is not None:
        stored, reading = await read_memory(agent.memory, thread, resource)
        pending = agent.pending(stored, thread_id=thread, resource_id=resource, tools=request.tools)
    else:
        stored, pending = await _load_kept(call, latest)
    if not stored:
        return _begin_thread(request, thread).replace(reading=reading)
    received = SentCopy(
        _copy_to_put(request, stored, pending, has_memory=agent.memory is not None),
        regenerates=regenerates is not None,
        until=regenerates or "",
    )
    # The stored thread wins; `put` only finds what the client added, edited or cut off.
    changes = put(stored, call.wire.name, received)
    _check_open(stored, changes.added)
    resumes = _match_resumes((*request.resume, *changes.resumes), pending)
    turn = _continue_thread(request, changes, resumes, thread, has_memory=agent.memory is not None)
    goes_on = changes.branched is None
    return turn.replace(
        parent=latest.id if latest is not None and goes_on else None,
        # A run must read a thread again that is changed before it.
        reading=reading if goes_on else None,
        task_id=latest.task_id if latest is not None and resumes else None,
    )


async def _load_kept(
    call: Call, latest: Answered | None
) -> tuple[list[Message], Sequence[Interrupt]]:
    """Returns the messages of a thread that answers were kept of, and what waits in it."""
    if latest is None:
        return [], ()
    most = call.service.limits.conversation_bytes
    chain = await call.service.answers.chain(call.caller.id, latest.id, most_bytes=most)
    messages = [message for answered in chain for message in answered.messages]
    return messages, chain[-1].pending if chain else ()


def _begin_thread(request: RunRequest, thread: str) -> Turn:
    """Returns the turn of a thread of which nothing is kept: all of it is what its client says."""
    end = count_seen_messages(request.messages)
    before, new = request.messages[:end], request.messages[end:]
    check_results(before, new, request.resume, trusted=False)
    return Turn(new, before=before, thread_id=thread, resumes=request.resume, added=(*before, *new))


def _copy_to_put(
    request: RunRequest,
    stored: Sequence[Message],
    pending: Sequence[Interrupt],
    *,
    has_memory: bool,
) -> list[Message]:
    """Returns the client's copy, as far as it may change what is kept."""
    copy = list(request.messages)
    # Which gives only the newest messages of a long thread.
    if has_memory:
        copy = _from_first_known(copy, stored)
    if _is_only_answers(request, copy, stored, pending):
        return [message for message in request.messages if message.role is Role.SYSTEM]
    return copy


def _continue_thread(
    request: RunRequest,
    changes: Changes,
    resumes: tuple[Resume, ...],
    thread: str,
    *,
    has_memory: bool,
) -> Turn:
    """Returns the turn of a thread with what its client changed in it."""
    spoken = changes.messages
    added = set(map(id, changes.added))
    end = count_seen_messages(spoken)
    new = without_system(spoken[end:])
    by_client = [message for message in new if id(message) in added]
    stored = [message for message in new if id(message) not in added]
    check_results([*spoken[:end], *stored], by_client, resumes, trusted=True)
    if has_memory:
        before: Sequence[Message] = ()
    else:
        before = spoken[: len(spoken) - len(new)]
    system = [message for message in request.messages if message.role is Role.SYSTEM]
    return Turn(
        # What the memory holds the run gets from there.
        tuple(by_client if has_memory else new),
        before=(*system, *without_system(before)),
        thread_id=thread,
        resumes=resumes,
        is_trusted=all(message.role is not Role.MODEL for message in changes.added),
        added=changes.added if changes.branched is None else spoken,
        changes=changes,
    )


def _is_only_answers(
    request: RunRequest,
    copy: Sequence[Message],
    stored: Sequence[Message],
    pending: Sequence[Interrupt],
) -> bool:
    """True if a client answers what waits and says nothing else, but may repeat its own questions.
    Then it cuts nothing off: it keeps no copy of what the agent said."""
    waiting = {interrupt.id for interrupt in pending}
    if not any(resume.interrupt_id in waiting for resume in request.resume):
        return False
    questions = {message.id: message.text for message in stored if message.role is Role.USER}
    return all(
        message.role is Role.USER and message.id and questions.get(message.id) == message.text
        for message in without_system(copy)
    )


def _check_open(stored: Sequence[Message], added: Sequence[Message]) -> None:
    """Refuses results of the agent's own calls that have none, wherever they are: only the agent
    knows what it did.

    Raises:
        InvalidRequestError: there is one.
    """
    results = {result.id for message in added for result in message.tool_results}
    if not results:
        return
    made_up = {call.id for message in added for call in message.tool_calls}
    for open_call in find_open_calls(stored):
        call = open_call.call
        if call.run_by == "agent" and call.id in results - made_up:
            raise foreign_result_error(call.id)


async def change_memory(agent: Agent[Any], turn: Turn, resource: str) -> None:
    """Makes the agent's memory forget what is another conversation now. Call it only once the
    request is known to be right."""
    changes, thread = turn.changes, turn.thread_id
    if agent.memory is None or changes is None or changes.branched is None or thread is None:
        return
    removed = [message.id for message in changes.removed if message.id]
    await agent.memory.delete_messages(removed, thread, resource_id=resource)
    if changes.edited:
        await agent.memory.update_messages(changes.edited, thread, resource_id=resource)


def _match_resumes(resumes: Sequence[Resume], pending: Sequence[Interrupt]) -> tuple[Resume, ...]:
    """Returns answers with the signatures of what was asked. Of two answers to one question the
    first counts.

    Raises:
        InvalidRequestError: one answers what does not wait.
    """
    waiting = {interrupt.id: interrupt for interrupt in pending}
    matched: dict[str, Resume] = {}
    for resume in resumes:
        interrupt = waiting.get(resume.interrupt_id)
        if interrupt is None:
            raise unknown_interrupt_error(resume.interrupt_id)
        matched.setdefault(resume.interrupt_id, sign_resume(resume, interrupt))
    return tuple(matched.values())


def _from_first_known(messages: Sequence[Message], stored: Sequence[Message]) -> list[Message]:
    """Returns the client's copy from where the newest messages of a long thread begin."""
    ids = {name for message in stored for name in (message.id, message.turn) if name is not None}
    for index, message in enumerate(messages):
        if message.id in ids or message.turn in ids:
            return list(messages[index:])
    return list(messages)
