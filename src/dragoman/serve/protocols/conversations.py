"""Which conversation a request in an agent protocol goes on with: what the server kept of the thread, with what its client changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.agent import Agent
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.history.client_copy import Changes, Received, put
from dragoman.interrupt import Interrupt, Resume
from dragoman.memory.conversation import load_thread
from dragoman.memory.memory import Memory
from dragoman.memory.window import ThreadReading
from dragoman.message import Message, Role
from dragoman.orchestration.interrupts import since_model
from dragoman.repair import open_calls
from dragoman.request import RunRequest
from dragoman.serve.agents.requests import check_results
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.threads import resource_of, thread_id, thread_name
from dragoman.wires.serving import serving

__all__ = ["Joined", "change_memory", "joined"]


class Joined(msgspec.Struct, frozen=True):
    """A conversation as a run is asked to go on with it."""

    before: tuple[Message, ...]
    """What is kept of it, but not what the agent's memory holds."""
    new: tuple[Message, ...]
    """What the client adds."""
    thread_id: str
    """Id of the thread, as the server has it."""
    resumes: tuple[Resume, ...] = ()
    """The client's answers to what it waits for."""
    trusted: bool = False
    """Whether nobody but this server can have made up what the model said in it."""
    parent: str | None = None
    """Id of the answer that it goes on from."""
    added: tuple[Message, ...] = ()
    """What the thread gains by the request: `new`, or the whole of a conversation that is another one now."""
    changes: Changes | None = None
    """What the client changed of what is kept."""
    reading: ThreadReading | None = None
    """The thread of the agent's memory as it was read, where the client changed nothing of it."""
    task_id: str | None = None
    """Id of the task that waits for what is answered, where it was asked over a protocol that has tasks."""


async def joined(
    agent: Agent[Any], call: Call, request: RunRequest, messages: Sequence[Message]
) -> Joined:
    """The conversation that a request goes on with. `messages`: those of the request that count.

    Raises:
        InvalidRequestError: the thread's name is no name, or the client answers what does not wait.
        StoreError: the thread cannot be read.
    """
    resource = resource_of(call)
    name = thread_name(call, request.thread_id)
    thread = thread_id(resource, name or call.id)
    last = await call.service.answers.find(call.caller.id, [f"thread:{thread}"])
    reading: ThreadReading | None = None
    if agent.memory is not None:
        reading = await agent.memory.reading(thread)
        stored = await _remembered(agent.memory, thread, resource, reading)
        pending: Sequence[Interrupt] = agent.pending(
            stored, thread_id=thread, resource_id=resource, tools=request.tools
        )
    else:
        most = call.service.limits.conversation_bytes
        chain = (
            []
            if last is None
            else await call.service.answers.chain(call.caller.id, last.id, most_bytes=most)
        )
        stored = [message for one in chain for message in one.messages]
        pending = chain[-1].pending if chain else ()
    if not stored:
        return msgspec.structs.replace(_unknown(request, messages, thread), reading=reading)
    goes_on = await _goes_on(
        agent, call, request, messages, stored, pending, thread, last and last.id
    )
    task_id = last.task_id if last is not None and goes_on.resumes else None
    if goes_on.changes is not None and goes_on.changes.branched is not None:
        reading = None  # the thread is about to be changed
    return msgspec.structs.replace(goes_on, task_id=task_id, reading=reading)


def _unknown(request: RunRequest, messages: Sequence[Message], thread: str) -> Joined:
    """A thread of which nothing is kept: all of it is what its client says."""
    end = since_model(messages)
    check_results(messages[:end], messages[end:], request.resume, trusted=False)
    before, new = tuple(messages[:end]), tuple(messages[end:])
    return Joined(before, new, thread, request.resume, added=(*before, *new))


async def _goes_on(
    agent: Agent[Any],
    call: Call,
    request: RunRequest,
    messages: Sequence[Message],
    stored: Sequence[Message],
    pending: Sequence[Interrupt],
    thread: str,
    parent: str | None,
) -> Joined:
    system = [message for message in messages if message.role is Role.SYSTEM]
    copy = _from_first_known(messages, stored) if agent.memory is not None else list(messages)
    copy = system if _only_answers(request, copy, stored, pending) else copy
    changes = put(stored, call.wire.name, _received(call, request, copy))
    spoken = changes.messages
    _check_open(stored, changes.added)
    resumes = _resumes((*request.resume, *changes.resumes), pending)
    kept = [message for message in spoken if message not in changes.added]
    end = since_model(spoken)
    new = [message for message in spoken[end:] if message.role is not Role.SYSTEM]
    said = [message for message in new if message in changes.added]
    check_results(
        [*spoken[:end], *[each for each in new if each not in said]], said, resumes, trusted=True
    )
    goes_on = changes.branched is None
    made_up = any(message.role is Role.MODEL for message in changes.added)
    before = () if agent.memory is not None else tuple(spoken[: len(spoken) - len(new)])
    if agent.memory is not None:  # what the thread holds it reads itself
        held = set(map(id, kept))
        new = [message for message in new if id(message) not in held]
    return Joined(
        (*system, *[message for message in before if message.role is not Role.SYSTEM]),
        tuple(new),
        thread,
        resumes,
        not made_up,
        parent if goes_on else None,
        tuple(changes.added) if goes_on else tuple(spoken),
        changes,
    )


def _only_answers(
    request: RunRequest,
    copy: Sequence[Message],
    stored: Sequence[Message],
    pending: Sequence[Interrupt],
) -> bool:
    """Whether a client answers what waits and says nothing else, but repeats questions of its own. Then it cuts nothing off: it keeps no
    copy of what the agent said."""
    if not {resume.interrupt_id for resume in request.resume} & {
        interrupt.id for interrupt in pending
    }:
        return False
    asked = {
        message.id: message.text for message in stored if message.role is Role.USER and message.id
    }
    spoken = [message for message in copy if message.role is not Role.SYSTEM]
    return all(
        message.role is Role.USER and asked.get(message.id or "") == message.text
        for message in spoken
    )


def _check_open(stored: Sequence[Message], added: Sequence[Message]) -> None:
    """Refuses results for the agent's own calls that have none, wherever they stand: what it did not do nobody did.

    Raises:
        InvalidRequestError: there is one.
    """
    given = {result.id for message in added for result in message.tool_results}
    made_up = {call.id for message in added for call in message.tool_calls}
    for one in open_calls(stored) if given else ():
        if one.call.run_by == "agent" and one.call.id in given - made_up:
            raise InvalidRequestError(
                f"the result for {one.call.id!r:.100} answers no call that waits for the client; send results of its own calls alone"
            )


async def change_memory(agent: Agent[Any], conversation: Joined, resource: str) -> None:
    """Makes the agent's memory forget what is another conversation now. Only where the request is found to be right."""
    changes, thread = conversation.changes, conversation.thread_id
    if agent.memory is None or changes is None or changes.branched is None:
        return
    removed = [message.id for message in changes.removed if message.id]
    await agent.memory.delete_messages(removed, thread, resource_id=resource)
    if changes.edited:
        await agent.memory.update_messages(changes.edited, thread, resource_id=resource)


def _received(call: Call, request: RunRequest, messages: list[Message]) -> Received:
    """What the client sent, and whether an answer is to be made anew, which only some wires can say."""
    find = serving(call.wire).regenerated
    until = None if find is None else find(request)
    return Received(messages, regenerates=until is not None, until=until or "")


def _resumes(given: Sequence[Resume], pending: Sequence[Interrupt]) -> tuple[Resume, ...]:
    """Answers with what was asked, which the client's format may have no room for. Of two answers to one question the first counts.

    Raises:
        InvalidRequestError: one answers what does not wait.
    """
    waiting = {interrupt.id: interrupt for interrupt in pending}
    found: dict[str, Resume] = {}
    for resume in given:
        interrupt = waiting.get(resume.interrupt_id)
        if interrupt is None:
            raise InvalidRequestError(
                f"nothing waits under the id {resume.interrupt_id!r:.100}, or it is answered already"
            )
        signed = msgspec.structs.replace(
            resume,
            signature=resume.signature or interrupt.signature,
            metadata=resume.metadata or interrupt.metadata,
        )
        found.setdefault(resume.interrupt_id, signed)
    return tuple(found.values())


def _from_first_known(messages: Sequence[Message], stored: Sequence[Message]) -> list[Message]:
    """The client's copy from where the newest messages of a long thread begin."""
    known = {message.id for message in stored} - {None} | {message.turn for message in stored} - {
        None
    }
    first = next(
        (at for at, message in enumerate(messages) if message.id in known or message.turn in known),
        0,
    )
    return list(messages[first:])


async def _remembered(
    memory: Memory, thread: str, resource: str, reading: ThreadReading
) -> list[Message]:
    try:
        return await load_thread(memory, thread, resource, reading=reading)
    except HistoryError as error:  # it is another's; who asks need not know
        raise InvalidRequestError("there is no such conversation here") from error
