"""Which conversation a run of an agent goes on with: what the server kept of it, a thread of the agent's memory, or the client's copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.agent import Agent
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.interrupt import Interrupt, Resume
from dragoman.memory.conversation import load_thread
from dragoman.memory.memory import Memory
from dragoman.memory.window import ThreadReading
from dragoman.message import Message, Role
from dragoman.orchestration.interrupts import since_model
from dragoman.serve.agents.interrupts import resumes_in, waiting_in, without_interrupts
from dragoman.serve.agents.interrupts_restored import restored
from dragoman.serve.agents.requests import Allowed, check_results
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.recalling import Recalled, renamed
from dragoman.serve.conversations.threads import belongs, resource_of, thread_id

__all__ = ["Conversed", "conversed"]


class Conversed(msgspec.Struct, frozen=True):
    """A conversation as a run is asked to go on with it."""

    before: Sequence[Message]
    """What is kept of it, and system texts; without what the thread holds."""
    new: Sequence[Message]
    """What the client adds."""
    thread_id: str | None
    """Id of the thread."""
    resumes: Sequence[Resume] = ()
    """The client's answers to what it waits for."""
    trusted: bool = False
    """Whether nobody but this server can have made up what the model said in it."""
    reading: ThreadReading | None = None
    """The thread of the agent's memory, as it was read."""


async def conversed(agent: Agent[Any], call: Call, known: Recalled, allowed: Allowed) -> Conversed:
    """The conversation that a request goes on with.

    Raises:
        InvalidRequestError: the client answers what it was not asked.
        StoreError: the thread cannot be read.
    """
    if agent.memory is None:
        return _without_memory(call, known, allowed, known.thread_id)
    resource = resource_of(call)
    thread = await _thread(call, known, resource)
    reading = await agent.memory.reading(thread)
    stored = await _stored(agent.memory, thread, resource, reading)
    if not stored:
        talk = _without_memory(call, known, allowed, thread)
    else:
        talk = _in_thread(agent, call, known, allowed, thread, stored)
    return msgspec.structs.replace(talk, reading=reading)


def _without_memory(call: Call, known: Recalled, allowed: Allowed, thread: str | None) -> Conversed:
    messages = allowed.messages
    if known.parent is None:
        messages, resumes = restored(messages, call.wire)
        end = since_model(messages)
        check_results(messages[:end], messages[end:], resumes, trusted=False)
        system = [message for message in messages if message.role is Role.SYSTEM]
        return Conversed(
            system,
            [message for message in messages if message.role is not Role.SYSTEM],
            thread,
            resumes,
        )
    kept = set(map(id, messages))
    new = [
        message for message in known.new if id(message) in kept and message.role is not Role.SYSTEM
    ]
    added = set(map(id, new))
    before = [
        message for message in messages if id(message) not in added
    ]  # system texts behind the question among them
    new, resumes = resumes_in(new, waiting_in(known.pending), call.wire)
    new = without_interrupts(new, call.wire)
    check_results(before, new, resumes, trusted=True)
    made_up = any(message.role is Role.MODEL for message in new)
    return Conversed(before, new, thread, [*known.resumes, *resumes], not made_up)


def _in_thread(
    agent: Agent[Any],
    call: Call,
    known: Recalled,
    allowed: Allowed,
    thread: str,
    stored: Sequence[Message],
) -> Conversed:
    """What a thread holds goes before what the client says of it: only what follows the client's last answer is new."""
    pending = agent.pending(
        stored, thread_id=thread, resource_id=resource_of(call), tools=allowed.tools
    )
    sent = allowed.messages
    end = since_model(sent)
    new = [message for message in sent[end:] if message.role is not Role.SYSTEM]
    if known.parent is None and end:
        new = renamed(new, _ids(sent[end - 1], stored, pending))
    new, resumes = resumes_in(new, waiting_in(pending), call.wire)
    check_results(stored, new, resumes, trusted=True)
    system = [message for message in sent if message.role is Role.SYSTEM]
    return Conversed(system, new, thread, resumes)


def _ids(sent: Message, stored: Sequence[Message], pending: Sequence[Interrupt]) -> dict[str, str]:
    """The ids of the client's last calls → those by which the thread has them; clients of some formats make ids of their own."""
    end = since_model(stored)
    calls = (
        [call.id for call in stored[end - 1].tool_calls if call.run_by == "client"] if end else []
    )
    reserved = list(waiting_in(pending))
    return dict(zip([call.id for call in sent.tool_calls], [*calls, *reserved], strict=False))


async def _thread(call: Call, known: Recalled, resource: str) -> str:
    """The id of the thread that a request goes on with; a new one where the client goes on from elsewhere than its end."""
    if known.named and known.thread_id is not None:
        return known.thread_id
    if (
        known.parent is not None
        and known.thread_id is not None
        and belongs(known.thread_id, resource)
    ):
        latest = await call.service.answers.find(call.caller.id, [f"thread:{known.thread_id}"])
        if latest is not None and latest.id == known.parent:
            return known.thread_id
    return thread_id(resource, call.id)


async def _stored(
    memory: Memory, thread: str, resource: str, reading: ThreadReading
) -> list[Message]:
    try:
        return await load_thread(memory, thread, resource, reading=reading)
    except HistoryError as error:  # it is another's; who asks need not know
        raise InvalidRequestError("there is no such conversation here") from error
