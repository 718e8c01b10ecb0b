"""The turn of a request to a model's API: the answers that the server kept are put where the client
has its copy of them.

A client goes on from an answer in one of three ways: by its id, by a name of the conversation, or
by sending the whole conversation again, which is then known by its words. In the third way the copy
may differ from what was given: then it is merged into what is kept (`history.put`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import takewhile

from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.history.client_copy import put
from dragoman.interrupt import Resume
from dragoman.message import Message, Role
from dragoman.serve.core.call import Call, Links
from dragoman.serve.core.interrupts import answer_asked_calls, sign_resume
from dragoman.serve.core.threads import resource_of, scope_of, thread_id, thread_name
from dragoman.serve.core.turn import Turn, rename_results, without_system
from dragoman.serve.store.keep_answer import find_conversation
from dragoman.serve.store.stored_answer import Answered, conversation_key, latest_keys

__all__ = ["lasting_texts", "recall_turn"]


async def recall_turn(call: Call, links: Links, *, edits: bool, remembers: bool = True) -> Turn:
    """Returns the turn of a request with these links, with what the server kept of its
    conversation.

    Args:
        call: the call.
        links: what the request says of answers that are kept.
        edits: the client may change what the model said, and what it leaves out at the beginning
            stays left out.
        remembers: what the client sends whole is looked up and kept; else only what it may ask for
            by an id.

    Raises:
        InvalidRequestError: it goes on from an answer that is not there.
    """
    request = links.request
    system = [*takewhile(is_system, request.messages)]
    copy = request.messages[len(system) :]
    resource, name = resource_of(call), thread_name(call, links.conversation)
    if name is None:
        thread = None
    else:
        thread = thread_id(resource, name)
    whole = Turn(
        tuple(copy),
        thread_id=thread,
        is_named=thread is not None,
        request=request,
        shown=request.messages,
    )
    if links.after is not None:
        chain = await _load_chain(call, links.after)
        if edits:
            copy = answer_asked_calls(copy, _messages_of(chain), call.api)
        named = whole.replace(thread_id=thread or chain[-1].thread_id)
        return _append_to_chain(named, _lasting_system(call, system, chain), chain, copy)
    if links.conversation is not None:
        chain = await _latest_chain(call, f"thread:{thread}")
        if edits:
            copy = answer_asked_calls(copy, _messages_of(chain), call.api)
        return _append_to_chain(whole, _lasting_system(call, system, chain), chain, copy)
    whole = whole.replace(sent=request)
    # Nothing to look up: the client cannot ask for the answer, and its copy holds
    # everything.
    if not (remembers or links.background or (links.stored and call.gives_answers)):
        return whole.replace(keeps=False)
    scope = scope_of(resource, thread)
    keys = latest_keys(copy, scope, whole.keys)
    limits = call.service.limits
    if keys:
        chain = await find_conversation(call.service.answers, call.caller.id, keys, limits)
    else:
        chain = []
    if not chain:
        return whole
    if chain[-1].key == keys[0]:
        forgotten = _find_forgotten(chain, copy, scope)
    else:
        forgotten = None
    if forgotten is None:
        turn = _merge_copy(call, whole, system, chain, edits=edits)
    else:  # the copy is word for word what the client was given
        turn = _append_after(whole, [*system, *forgotten], chain, copy)
    if thread is not None:
        turn = turn.replace(thread_id=thread, is_named=True)
    if edits:
        messages = _put_system(turn.model_request.messages[len(system) :], copy)
        request = turn.model_request.replace(messages=(*system, *messages))
        turn = turn.replace(request=request)
    return turn.replace(stored=_messages_of(chain))


def lasting_texts(call: Call, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Returns the system texts that belong to a conversation."""
    is_lasting = call.api.is_lasting
    return tuple([message for message in messages if is_system(message) and is_lasting(message)])


async def _load_chain(call: Call, answer_id: str) -> list[Answered]:
    """Returns a kept answer that the client names, and those before it, oldest first.

    Raises:
        InvalidRequestError: it, or one that it goes on from, is not there.
    """
    chain = await _chain_of(call, answer_id)
    if chain and chain[-1].ending is not None:
        await call.service.settle(chain[-1])
        chain = await _chain_of(call, answer_id)
    if not chain or not chain[-1].shared or chain[-1].state == "in_progress":
        problem = f"Previous response with id {answer_id!r:.80} not found"
    elif chain[0].parent is not None:
        problem = f"the response {answer_id!r:.80} goes on from one that is not kept any more"
    else:
        return chain
    raise InvalidRequestError(
        f"previous_response_id: {problem}; send the whole conversation instead"
    ).at(field="previous_response_id")


async def _latest_chain(call: Call, key: str) -> list[Answered]:
    """Returns the latest stored answer with a key and those that it continues, or an empty list."""
    latest = await call.service.answers.find(call.caller.id, [key])
    if latest is None:
        return []
    return await _chain_of(call, latest.id)


async def _chain_of(call: Call, answer_id: str) -> list[Answered]:
    most = call.service.limits.conversation_bytes
    return await call.service.answers.chain(call.caller.id, answer_id, most_bytes=most)


def _lasting_system(
    call: Call, system: Sequence[Message], chain: Sequence[Answered]
) -> list[Message]:
    """Returns the system texts of a request that goes on by an id: its own, and those of its
    conversation, each once."""
    texts = lasting_texts(call, system)
    lasting_ids = set(map(id, texts))
    # System texts that do not last hold for this answer alone and go in front unchanged.
    once = [message for message in system if id(message) not in lasting_ids]
    lasting = [message for answered in chain for message in answered.lasting]
    return [*once, *{message.text: message for message in [*lasting, *texts]}.values()]


def _find_forgotten(
    chain: Sequence[Answered], copy: Sequence[Message], scope: str
) -> Sequence[Message] | None:
    """Returns what the client has before the first answer that is still kept; None if that cannot
    be found out."""
    if chain[0].parent is None:
        return ()
    shown = [message for answered in chain for message in answered.shown if message.parts]
    spoken = [message for message in without_system(copy[: _answered_end(copy)]) if message.parts]
    forgotten = spoken[: -len(shown)] if shown else spoken
    is_same = conversation_key([*forgotten, *shown], scope) == chain[-1].key
    return forgotten if is_same else None


def _append_after(
    turn: Turn, head: Sequence[Message], chain: Sequence[Answered], copy: Sequence[Message]
) -> Turn:
    """Returns the turn of what follows the client's copy. `head`: what is not kept of it."""
    last = chain[-1]
    ids = dict(zip(_call_ids(copy), _call_ids(last.visible or last.output), strict=False))
    new = rename_results(copy[_answered_end(copy) :], ids)
    continued = turn.replace(thread_id=last.thread_id, is_named=False)
    return _append_to_chain(continued, head, chain, new).replace(shown=turn.shown, sent=turn.sent)


def _merge_copy(
    call: Call, turn: Turn, system: Sequence[Message], chain: Sequence[Answered], *, edits: bool
) -> Turn:
    """Returns the turn of a client's copy that is merged into what is kept."""
    last = chain[-1]
    stored = list(_messages_of(chain))
    allowed = {"answers": edits, "results": edits, "signatures": edits, "whole": edits}
    try:
        changes = put(stored, call.wire.name, call.body, **allowed)
    # The copy cannot be matched with what is kept, so the client's copy alone counts.
    except HistoryError:
        return turn.replace(thread_id=None, is_named=False)
    spoken = without_system(changes.messages)
    goes_on = spoken[: len(stored)] == stored
    new = spoken[len(stored) :] if goes_on else spoken
    if goes_on:
        ids = zip(_call_ids(turn.new), _call_ids(last.visible or stored), strict=False)
        new = rename_results(new, dict(ids))
        spoken = [*stored, *new]
    assert turn.request is not None
    return turn.replace(
        request=turn.request.replace(messages=(*system, *spoken)),
        new=tuple(new),
        parent=last.id if goes_on else None,
        thread_id=last.thread_id if goes_on else None,
        is_named=False,
        resumes=_sign_resumes(changes.resumes, chain),
        pending=last.pending if goes_on else (),
    )


def _append_to_chain(
    turn: Turn, head: Sequence[Message], chain: Sequence[Answered], new: Sequence[Message]
) -> Turn:
    """Returns the turn of messages that follow what is kept."""
    assert turn.request is not None
    shown = [message for answered in chain for message in answered.shown]
    return turn.replace(
        request=turn.request.replace(messages=(*head, *_messages_of(chain), *new)),
        new=tuple(new),
        shown=(*shown, *new),
        parent=chain[-1].id if chain else None,
        pending=chain[-1].pending if chain else (),
    )


def _put_system(messages: Sequence[Message], copy: Sequence[Message]) -> list[Message]:
    """Returns the messages of a turn with the system texts that the client's copy has between them,
    each where it is in the copy: behind as many of the model's messages, and of others since."""
    later: deque[tuple[tuple[int, int], Message]] = deque()
    place = (0, 0)
    for message in copy:
        if is_system(message):
            later.append((place, message))
        place = _move_place(place, message)
    put: list[Message] = []
    place = (0, 0)
    for message in without_system(messages):
        answers = message.role is Role.MODEL
        while later and (later[0][0] <= place or (answers and later[0][0][0] == place[0])):
            put.append(later.popleft()[1])
        put.append(message)
        place = _move_place(place, message)
    return [*put, *(message for _, message in later)]


def _move_place(place: tuple[int, int], message: Message) -> tuple[int, int]:
    """Returns the place behind a message: how many of the model's there are, and others since."""
    if message.role is Role.MODEL:
        return place[0] + 1, 0
    return place[0], place[1] + (not is_system(message))


def _sign_resumes(resumes: Sequence[Resume], chain: Sequence[Answered]) -> tuple[Resume, ...]:
    """Returns the client's answers with the signatures of what was asked."""
    pending = {interrupt.id: interrupt for answered in chain for interrupt in answered.pending}
    return tuple(
        [
            sign_resume(resume, pending[resume.interrupt_id])
            if resume.interrupt_id in pending
            else resume
            for resume in resumes
        ]
    )


def _messages_of(chain: Sequence[Answered]) -> tuple[Message, ...]:
    return tuple([message for answered in chain for message in answered.messages])


def _answered_end(messages: Sequence[Message]) -> int:
    """Returns the position behind the model's last message."""
    return max(place for place, message in enumerate(messages) if message.role is Role.MODEL) + 1


def _call_ids(messages: Sequence[Message]) -> list[str]:
    """Returns the ids of the model's last calls, in order."""
    last = next((message for message in reversed(messages) if message.role is Role.MODEL), None)
    if last is None:
        return []
    return [call.id for call in last.tool_calls]


def is_system(message: Message) -> bool:
    return message.role is Role.SYSTEM
