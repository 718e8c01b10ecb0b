"""What a server knows of the conversation that a request goes on with: the answers that it kept, put where the client has its copy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec

from dragoman.codec.serving import Links
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.history.lens import put
from dragoman.interrupt import Resume
from dragoman.message import Message, Role
from dragoman.request import ModelRequest
from dragoman.serve.call import Call
from dragoman.serve.records import Answered, latest_keys

__all__ = ["THREAD", "Recalled", "links_of", "recalled"]


THREAD = "dragoman-thread"
"""Header in which a client of any wire names its conversation."""


class Recalled(msgspec.Struct, frozen=True):
    """A request with the conversation as the server has it."""

    request: ModelRequest
    """With all messages."""
    new: tuple[Message, ...]
    """Those of them that no kept answer holds, without system texts."""
    parent: str | None = None
    """Id of the answer that it goes on from."""
    thread_id: str | None = None
    """Id of that one's conversation."""
    resumes: tuple[Resume, ...] = ()
    """Answers of the client's to what the conversation waits for."""


def links_of(call: Call, request: ModelRequest) -> Links:
    """What a request says of answers that are kept; most wires' say nothing."""
    find: Any = getattr(call.wire, "links", None)
    return Links(request) if find is None else find(request)


async def recalled(call: Call, links: Links, *, edits: bool) -> Recalled:
    """The request of these links, with what the server kept of its conversation. `edits`: the client may change what the model said.

    Raises:
        InvalidRequestError: it goes on from an answer that is not there.
    """
    request, store, owner = links.request, call.service.answers, call.caller.id
    system = [*takewhile(lambda message: message.role is Role.SYSTEM, request.messages)]
    sent = request.messages[len(system) :]
    thread = links.conversation or call.headers.get(THREAD)
    if links.after is not None:
        chain = await store.chain(owner, links.after)
        if not chain or not chain[-1].shared or chain[-1].state == "in_progress":
            raise InvalidRequestError(
                f"previous_response_id: Previous response with id {links.after!r:.80} not found; send the whole conversation instead"
            )
        return _onto(request, system, chain, sent, chain[-1].thread_id)
    if links.conversation is not None:
        last = await store.find(owner, [f"thread:{thread}"])
        return _onto(request, system, [] if last is None else await store.chain(owner, last.id), sent, thread)
    keys = latest_keys(sent)
    last = await store.find(owner, keys) if keys else None
    chain = [] if last is None else await store.chain(owner, last.id)
    if not chain:
        return Recalled(request, tuple(sent), thread_id=thread)
    return _merged(call, request, system, chain, edits=edits)


def _merged(
    call: Call, request: ModelRequest, system: Sequence[Message], chain: Sequence[Answered], *, edits: bool
) -> Recalled:
    """The client's copy put into what is kept."""
    stored = [message for one in chain for message in one.messages]
    sent = request.messages[len(system) :]
    try:
        changes = put(stored, call.wire.name, call.body, answers=edits, results=edits, signatures=edits)
    except HistoryError:
        return Recalled(request, tuple(sent))
    spoken = [message for message in changes.messages if message.role is not Role.SYSTEM]
    goes_on = spoken[: len(stored)] == stored
    new = spoken[len(stored) :] if goes_on else spoken
    return Recalled(
        request.replace(messages=(*system, *spoken)),
        tuple(new),
        chain[-1].id if goes_on else None,
        chain[-1].thread_id,
        _signed(changes.resumes, chain),
    )


def _onto(
    request: ModelRequest,
    system: Sequence[Message],
    chain: Sequence[Answered],
    sent: Sequence[Message],
    thread_id: str | None,
) -> Recalled:
    stored = [message for one in chain for message in one.messages]
    whole = request.replace(messages=(*system, *stored, *sent))
    return Recalled(whole, tuple(sent), chain[-1].id if chain else None, thread_id)


def _signed(resumes: Sequence[Resume], chain: Sequence[Answered]) -> tuple[Resume, ...]:
    """The client's answers, with the signatures of what was asked, which its format has no room for."""
    asked = {one.id: one for answered in chain for one in answered.pending}
    return tuple(
        [
            msgspec.structs.replace(each, signature=one.signature, metadata=one.metadata)
            if each.signature is None and (one := asked.get(each.interrupt_id)) is not None
            else each
            for each in resumes
        ]
    )
