"""What a server knows of the conversation that a request goes on with: the answers that it kept, put where the client has its copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import msgspec

from dragoman.codec.serving import Links
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.history.client_copy import put
from dragoman.interrupt import Interrupt, Resume
from dragoman.message import Message, Role, ToolResultPart
from dragoman.request import ModelRequest
from dragoman.serve.calls.call import Call
from dragoman.serve.conversations.threads import resource_of, scope_of, thread_id, thread_name
from dragoman.serve.store.keeping import find_conversation
from dragoman.serve.store.records import Answered, conversation_key, latest_keys
from dragoman.wires.serving import serving

__all__ = ["Recalled", "lasting", "links_of", "recalled", "renamed"]


class Recalled(msgspec.Struct, frozen=True):
    """A request with the conversation as the server has it."""

    request: ModelRequest
    """With all messages."""
    new: tuple[Message, ...]
    """Those of them that no kept answer holds, without system texts."""
    shown: tuple[Message, ...]
    """The whole conversation as the client has it."""
    parent: str | None = None
    """Id of the answer that it goes on from."""
    thread_id: str | None = None
    """Id of that one's conversation, or of the one that the client names."""
    named: bool = False
    """Whether the client names the conversation."""
    resumes: tuple[Resume, ...] = ()
    """Answers of the client's to what the conversation waits for."""
    pending: tuple[Interrupt, ...] = ()
    """What the answer that it goes on from waits for."""
    sent: ModelRequest | None = None
    """The request as the client sent it; `None`: its conversation is kept here alone."""
    stored: tuple[Message, ...] = ()
    """The messages that kept answers hold."""
    keeps: bool = True
    """Whether the answer is kept."""


def links_of(call: Call, request: ModelRequest) -> Links:
    """What a request says of answers that are kept; most wires' say nothing."""
    find = serving(call.wire).links
    return Links(request) if find is None else find(request)


async def recalled(call: Call, links: Links, *, edits: bool, remembers: bool = True) -> Recalled:
    """The request of these links, with what the server kept of its conversation. `edits`: the client may change what the model said,
    and what it leaves out at the beginning stays left out. `remembers`: what the client sends whole is looked up and kept; else that alone
    is which it may ask for by an id.

    Raises:
        InvalidRequestError: it goes on from an answer that is not there.
    """
    request, store, owner, limits = (
        links.request,
        call.service.answers,
        call.caller.id,
        call.service.limits,
    )
    system = [*takewhile(lambda message: message.role is Role.SYSTEM, request.messages)]
    sent = request.messages[len(system) :]
    resource, name = resource_of(call), thread_name(call, links.conversation)
    thread = None if name is None else thread_id(resource, name)
    if links.after is not None:
        chain = await store.chain(owner, links.after, most_bytes=limits.conversation_bytes)
        if not chain or not chain[-1].shared or chain[-1].state == "in_progress":
            raise InvalidRequestError(
                f"previous_response_id: Previous response with id {links.after!r:.80} not found; send the whole conversation instead"
            ).at(field="previous_response_id")
        if chain[0].parent is not None:
            raise InvalidRequestError(
                f"previous_response_id: the response {links.after!r:.80} goes on from one that is not kept any more; send the whole conversation instead"
            ).at(field="previous_response_id")
        heads = _heads(call, system, chain)
        return _onto(
            request, heads, chain, sent, thread or chain[-1].thread_id, named=thread is not None
        )
    if links.conversation is not None:
        last = await store.find(owner, [f"thread:{thread}"])
        chain = (
            []
            if last is None
            else await store.chain(owner, last.id, most_bytes=limits.conversation_bytes)
        )
        return _onto(request, _heads(call, system, chain), chain, sent, thread, named=True)
    if not (remembers or links.background or (links.stored and _gives_answers(call))):
        new = tuple(sent)
        return Recalled(
            request,
            new,
            request.messages,
            None,
            thread,
            thread is not None,
            sent=request,
            keeps=False,
        )
    scope = scope_of(resource, thread)
    keys = latest_keys(sent, scope)
    chain = await find_conversation(store, owner, keys, limits) if keys else []
    if not chain:
        return Recalled(
            request, tuple(sent), request.messages, None, thread, thread is not None, sent=request
        )
    head = _before(chain, sent, scope) if chain[-1].key == keys[0] else None
    if head is not None:  # word for word what the client was given
        known = _after(request, system, chain, sent, head)
    else:
        known = _merged(call, request, system, chain, edits=edits)
    stored = [message for answered in chain for message in answered.messages]
    known = msgspec.structs.replace(known, sent=request, stored=tuple(stored))
    return known if thread is None else msgspec.structs.replace(known, thread_id=thread, named=True)


def _gives_answers(call: Call) -> bool:
    """Whether clients of the call's wire may ask for answers by their ids."""
    return any(route.purpose == "response" for route in call.wire.routes)


def lasting(call: Call, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The system texts that belong to a conversation."""
    is_lasting = serving(call.wire).is_lasting
    return (
        ()
        if is_lasting is None
        else tuple([each for each in messages if each.role is Role.SYSTEM and is_lasting(each)])
    )


def _heads(call: Call, system: Sequence[Message], chain: Sequence[Answered]) -> list[Message]:
    """The system texts of a request that goes on by an id: its own, and between them those of its conversation, each once."""
    own = lasting(call, system)
    alone = [each for each in system if not any(each is one for one in own)]
    return [
        *alone,
        *{
            each.text: each for each in [*(each for one in chain for each in one.lasting), *own]
        }.values(),
    ]


def _before(
    chain: Sequence[Answered], sent: Sequence[Message], scope: str
) -> Sequence[Message] | None:
    """What the client has before the first answer that is kept yet, of a conversation that is kept under its words; `None`: that is not to be
    found out."""
    if chain[0].parent is None:
        return ()
    end = max(at for at, message in enumerate(sent) if message.role is Role.MODEL) + 1
    shown = [message for one in chain for message in one.shown if message.parts]
    spoken = [
        message for message in sent[:end] if message.parts and message.role is not Role.SYSTEM
    ]
    head = spoken[: -len(shown)] if shown else spoken
    return head if conversation_key([*head, *shown], scope) == chain[-1].key else None


def _after(
    request: ModelRequest,
    system: Sequence[Message],
    chain: Sequence[Answered],
    sent: Sequence[Message],
    head: Sequence[Message],
) -> Recalled:
    """What follows the client's copy behind what is kept. `head`: what is kept no more."""
    last = chain[-1]
    end = max(at for at, message in enumerate(sent) if message.role is Role.MODEL) + 1
    ids = dict(zip(_calls(sent), _calls(last.visible or last.output), strict=False))
    known = _onto(request, [*system, *head], chain, renamed(sent[end:], ids), last.thread_id)
    return msgspec.structs.replace(known, shown=request.messages)


def _merged(
    call: Call,
    request: ModelRequest,
    system: Sequence[Message],
    chain: Sequence[Answered],
    *,
    edits: bool,
) -> Recalled:
    """The client's copy put into what is kept."""
    last = chain[-1]
    stored = [message for one in chain for message in one.messages]
    sent = request.messages[len(system) :]
    try:
        changes = put(
            stored,
            call.wire.name,
            call.body,
            answers=edits,
            results=edits,
            signatures=edits,
            whole=edits,
        )
    except HistoryError:
        return Recalled(request, tuple(sent), request.messages)
    spoken = [message for message in changes.messages if message.role is not Role.SYSTEM]
    goes_on = spoken[: len(stored)] == stored
    new = spoken[len(stored) :] if goes_on else spoken
    if goes_on:
        new = renamed(new, dict(zip(_calls(sent), _calls(last.visible or stored), strict=False)))
        spoken = [*stored, *new]
    return Recalled(
        request.replace(messages=(*system, *spoken)),
        tuple(new),
        request.messages,
        last.id if goes_on else None,
        last.thread_id if goes_on else None,
        resumes=_signed(changes.resumes, chain),
        pending=last.pending if goes_on else (),
    )


def _calls(messages: Sequence[Message]) -> list[str]:
    """The ids of the last calls of a model, in order."""
    last = next((message for message in reversed(messages) if message.role is Role.MODEL), None)
    return [] if last is None else [call.id for call in last.tool_calls]


def renamed(messages: Sequence[Message], ids: Mapping[str, str]) -> list[Message]:
    """Messages whose results answer the calls by the ids that are kept; clients of some formats make ids of their own."""
    if all(ours == theirs for theirs, ours in ids.items()):
        return list(messages)
    return [
        message.replace(
            content=tuple(
                [
                    msgspec.structs.replace(piece, id=ids.get(piece.id, piece.id))
                    if isinstance(piece, ToolResultPart)
                    else piece
                    for piece in message.content
                ]
            )
        )
        for message in messages
    ]


def _onto(
    request: ModelRequest,
    system: Sequence[Message],
    chain: Sequence[Answered],
    sent: Sequence[Message],
    thread_id: str | None,
    *,
    named: bool = False,
) -> Recalled:
    stored = [message for one in chain for message in one.messages]
    shown = [message for one in chain for message in one.shown]
    return Recalled(
        request.replace(messages=(*system, *stored, *sent)),
        tuple(sent),
        (*shown, *sent),
        chain[-1].id if chain else None,
        thread_id,
        named,
        pending=chain[-1].pending if chain else (),
    )


def _signed(resumes: Sequence[Resume], chain: Sequence[Answered]) -> tuple[Resume, ...]:
    """The client's answers, with the signatures of what was asked, which its format has no room for."""
    pending = {one.id: one for answered in chain for one in answered.pending}
    return tuple(
        [
            msgspec.structs.replace(each, signature=one.signature, metadata=one.metadata)
            if each.signature is None and (one := pending.get(each.interrupt_id)) is not None
            else each
            for each in resumes
        ]
    )
