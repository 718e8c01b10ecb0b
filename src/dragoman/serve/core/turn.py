"""One turn of a conversation: what goes before a request, and what the request adds to it.

Whatever a client asks, the server first resolves it to a `Turn`: `model_api_turn.py` does for the requests
of models' APIs, of which the server keeps the answers; `agent_protocol_turn.py` for those of agent protocols,
which name a thread. If the agent has a memory, its thread goes before both: it is read here, once,
and the run is handed the reading.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.agent import Agent
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.history.client_copy import Changes
from dragoman.interrupt import Interrupt, Resume
from dragoman.memory.conversation import load_thread
from dragoman.memory.memory import Memory
from dragoman.memory.window import ThreadReading
from dragoman.message import Message, Role, ToolResultPart
from dragoman.orchestration.interrupts import count_seen_messages
from dragoman.orchestration.state import claim_within
from dragoman.request import ModelRequest
from dragoman.serve.core.call import Call
from dragoman.serve.core.interrupts import (
    remove_interrupts,
    restore_asked_calls,
    select_waiting,
    split_resumes,
)
from dragoman.serve.core.policy import check_results, client_tools
from dragoman.serve.core.threads import is_thread_of, resource_of, scope_of, thread_id
from dragoman.serve.store.stored_answer import MessageKeys, conversation_key

__all__ = [
    "Turn",
    "conversation_to_claim",
    "join_memory",
    "make_claim",
    "read_memory",
    "rename_results",
    "without_system",
]


class Turn(msgspec.Struct, frozen=True):
    """What a request goes on with, and what it adds."""

    new: tuple[Message, ...]
    """What the client adds, without system texts."""
    before: tuple[Message, ...] = ()
    """What goes before it, system texts among it; without what the agent's memory holds."""
    thread_id: str | None = None
    """Id of the conversation that it goes on with, or of the one that the client names."""
    is_named: bool = False
    """True if the client names the conversation."""
    parent: str | None = None
    """Id of the kept answer that it goes on from."""
    pending: tuple[Interrupt, ...] = ()
    """What that answer waits for."""
    resumes: tuple[Resume, ...] = ()
    """The client's answers to what the conversation waits for."""
    is_trusted: bool = False
    """True if only this server can have made up what the model said in it."""
    reading: ThreadReading | None = None
    """The thread of the agent's memory as it was read; None if it is read again."""
    request: ModelRequest | None = None
    """A request of a model's API with the whole conversation, as the server has it."""
    sent: ModelRequest | None = None
    """The same as the client sent it; None if its conversation is kept here alone."""
    shown: tuple[Message, ...] = ()
    """The whole conversation, as the client of a model's API has it."""
    stored: tuple[Message, ...] = ()
    """The messages of it that kept answers hold."""
    keeps: bool = True
    """True if the answer is kept."""
    added: tuple[Message, ...] = ()
    """What a thread gains by a run: `new`, or the whole of a conversation that is another one
    now."""
    changes: Changes | None = None
    """What the client of an agent protocol changed of what is kept."""
    task_id: str | None = None
    """Id of the task that waits for what is answered, if it was asked in one."""
    keys: MessageKeys = {}
    """Keys of messages in `shown` that are known already."""

    def replace(self, **changes: Any) -> Turn:
        """Returns a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    @property
    def model_request(self) -> ModelRequest:
        """Returns the turn's request to a model's API."""
        assert self.request is not None, "a turn of an agent protocol has no request of a model"
        return self.request


def without_system(messages: Sequence[Message]) -> list[Message]:
    """Returns the messages that are no system texts."""
    return [message for message in messages if message.role is not Role.SYSTEM]


def make_claim(call: Call, turn: Turn) -> Callable[[str, str, str], Awaitable[bool]]:
    """Returns the `claim` of a run: what a client allows is done once, however often its request
    comes in. It notes each answer in the log that all processes of the server share.

    A signed answer is claimed by the nonce of its token under its owner, whatever stands around it.
    One without a signature is claimed under its conversation: the thread that the client names or
    goes on with, the answer that it goes on from, or the words up to the model's message as the
    client sends them. So other words in front are another conversation; only `approval_key` rules
    that out. The thread that the run works in is not asked: a request that names none may get a new
    one each time that it is sent.
    """
    conversation = conversation_to_claim(call, turn)
    return claim_within(call.service.log.claim, resource_of(call), conversation)


def conversation_to_claim(call: Call, turn: Turn) -> str:
    """Returns the id of the conversation that a turn claims, so that no other turn runs in it
    meanwhile."""
    if turn.thread_id is not None:
        return turn.thread_id
    scope = scope_of(resource_of(call), None)
    if turn.parent is not None:
        return f"answer:{scope}{turn.parent}"
    return conversation_key(turn.shown[: count_seen_messages(turn.shown)], scope)


async def read_memory(
    memory: Memory, thread: str, resource: str
) -> tuple[list[Message], ThreadReading]:
    """Returns what an agent's memory holds of a thread, and the reading to hand to its run.

    Raises:
        InvalidRequestError: it is another's, which the client need not know.
        StoreError: it cannot be read.
    """
    try:
        reading = await memory.read_thread(thread)
        return await load_thread(memory, thread, resource, reading=reading), reading
    except HistoryError as error:
        raise InvalidRequestError("there is no such conversation here") from error


async def join_memory(agent: Agent[Any], call: Call, turn: Turn, request: ModelRequest) -> Turn:
    """Returns the turn of a request of a model's API as a run of this agent goes on with it: from
    the thread of its memory, from what the server kept, or from the client's copy. `request`: what
    the policy lets through of it.

    Raises:
        InvalidRequestError: the client answers what it was not asked.
        StoreError: the thread cannot be read.
    """
    if agent.memory is None:
        return _join_copy(call, turn, request, turn.thread_id)
    resource = resource_of(call)
    thread = await _choose_thread(call, turn, resource)
    stored, reading = await read_memory(agent.memory, thread, resource)
    if not stored:
        joined = _join_copy(call, turn, request, thread)
    else:
        tools = client_tools(request)
        pending = agent.pending(stored, thread_id=thread, resource_id=resource, tools=tools)
        joined = _join_thread(call, turn, request.messages, stored, pending)
    return joined.replace(thread_id=thread, reading=reading)


def _join_copy(call: Call, turn: Turn, request: ModelRequest, thread: str | None) -> Turn:
    """Returns the turn with the client's copy of the conversation joined to what the server
    kept."""
    messages = request.messages
    # All of it is the client's copy.
    if turn.parent is None:
        restored, resumes = restore_asked_calls(messages, call.api)
        end = count_seen_messages(restored)
        check_results(restored[:end], restored[end:], resumes, trusted=False)
        system = [message for message in restored if message.role is Role.SYSTEM]
        new = without_system(restored)
        return turn.replace(
            before=tuple(system), new=tuple(new), thread_id=thread, resumes=tuple(resumes)
        )
    # The policy may have removed messages; identity tells which are left, since ids may be
    # missing.
    admitted = set(map(id, messages))
    new = [message for message in without_system(turn.new) if id(message) in admitted]
    added = set(map(id, new))
    # System texts behind the question are among them.
    before = [message for message in messages if id(message) not in added]
    new, resumes = split_resumes(new, select_waiting(turn.pending), call.api)
    new = remove_interrupts(new, call.api)
    check_results(before, new, resumes, trusted=True)
    return turn.replace(
        before=tuple(before),
        new=tuple(new),
        thread_id=thread,
        resumes=(*turn.resumes, *resumes),
        is_trusted=all(message.role is not Role.MODEL for message in new),
    )


def _join_thread(
    call: Call,
    turn: Turn,
    copy: Sequence[Message],
    stored: Sequence[Message],
    pending: Sequence[Interrupt],
) -> Turn:
    """Returns the turn of a thread that the memory holds. It wins over the client's copy: only
    messages after the client's last model message are new."""
    end = count_seen_messages(copy)
    new = without_system(copy[end:])
    if turn.parent is None and end:
        new = rename_results(new, _match_call_ids(copy[end - 1], stored, pending))
    new, resumes = split_resumes(new, select_waiting(pending), call.api)
    check_results(stored, new, resumes, trusted=True)
    system = [message for message in copy if message.role is Role.SYSTEM]
    return turn.replace(
        before=tuple(system), new=tuple(new), resumes=tuple(resumes), is_trusted=False
    )


def _match_call_ids(
    answer: Message, stored: Sequence[Message], pending: Sequence[Interrupt]
) -> dict[str, str]:
    """Returns the ids by which the turn's thread has the client's last calls: clients of some
    formats make ids of their own."""
    end = count_seen_messages(stored)
    calls: list[str] = []
    if end:
        calls = [call.id for call in stored[end - 1].tool_calls if call.run_by == "client"]
    stored_ids = [*calls, *select_waiting(pending)]
    return dict(zip([call.id for call in answer.tool_calls], stored_ids, strict=False))


def rename_results(messages: Sequence[Message], ids: Mapping[str, str]) -> list[Message]:
    """Returns the turn's messages, whose results answer the calls by the ids that are kept."""
    if all(client_id == stored_id for client_id, stored_id in ids.items()):
        return list(messages)
    renamed: list[Message] = []
    for message in messages:
        content = [
            msgspec.structs.replace(piece, id=ids.get(piece.id, piece.id))
            if isinstance(piece, ToolResultPart)
            else piece
            for piece in message.content
        ]
        renamed.append(message.replace(content=tuple(content)))
    return renamed


async def _choose_thread(call: Call, turn: Turn, resource: str) -> str:
    """Returns the id of the thread that a request's turn goes on with; a new one if the client goes
    on from elsewhere than its end."""
    if turn.thread_id is not None and turn.is_named:
        return turn.thread_id
    goes_on = turn.parent is not None and turn.thread_id is not None
    # A thread goes on only at its end; from anywhere else the client starts a branch.
    if goes_on and is_thread_of(turn.thread_id or "", resource):
        latest = await call.service.answers.find(call.caller.id, [f"thread:{turn.thread_id}"])
        if latest is not None and latest.id == turn.parent:
            return turn.thread_id or ""
    return thread_id(resource, call.id)
