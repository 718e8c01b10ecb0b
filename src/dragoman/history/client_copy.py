"""A client's copy of a conversation, put back into it.

A client that shows a conversation holds a copy in its own format, without what that format or the
client has no room for. It sends the copy back with a new message, an edit, or a part cut off.
`put` finds out what the client changed, and changes only that:

1. `read_copy` takes the request's body apart.
2. `_find_start` tells where the copy begins, and sees at once that only questions came.
3. `copy_match` finds the stored messages and pieces in the copy; `copy_links` and `copy_merge` merge.
4. `copy_rows` puts the merged conversation into the rows of a `MessageList`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from dragoman import formats
from dragoman.codec.json_values import check_depth, if_object, if_text
from dragoman.codec.turns import holds_only_answers
from dragoman.errors import HistoryError
from dragoman.formats.detection import payload_of
from dragoman.formats.registry import layout
from dragoman.history.copy_links import CopyLinks, CopyPolicy
from dragoman.history.copy_match import match_copy
from dragoman.history.copy_memos import hide_memos_from, restore_memos
from dragoman.history.copy_merge import CopyMerge, MergedMessage, with_stored_ids
from dragoman.history.format_fields import approval_of
from dragoman.history.import_message import import_message
from dragoman.history.pieces import shared_key
from dragoman.history.projection import merges_answers
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json
from dragoman.message import Message, Role, ToolCallPart
from dragoman.repair import find_open_calls

__all__ = ["Changes", "SentCopy", "put", "read_copy"]

_LISTS = ("messages", "contents", "input", "conversations")


class Changes(msgspec.Struct, frozen=True):
    """The result of merging a client's copy into a conversation."""

    messages: tuple[Message, ...] = ()
    """The merged conversation. Messages that the client did not touch are the very same objects."""
    added: tuple[Message, ...] = ()
    """The new messages among them."""
    edited: tuple[Message, ...] = ()
    """The messages among them that replace a stored message under its id."""
    removed: tuple[Message, ...] = ()
    """The stored messages that are gone, not even changed."""
    branched: int | None = None
    """Position of the first message that differs from the stored one; `None` if the conversation
    only got longer."""
    resumes: tuple[Resume, ...] = ()
    """Answers in the copy to what the last run waits for, such as approvals and denials."""


class SentCopy(NamedTuple):
    """A client's copy, as `read_copy` takes it from a request."""

    messages: list[Message]
    """The copy of the conversation, or of its end."""
    after: str = ""
    """Id of the response that the messages follow; empty if the client names none."""
    regenerates: bool = False
    """The client asks for a new answer behind the messages."""
    until: str = ""
    """Id of the answer to replace, or of its question; empty if the client names none."""


def put(
    stored: Sequence[Message],
    format: str,  # noqa: A002 - the name that users know
    payload: object,
    *,
    system: bool = False,
    results: bool = False,
    answers: bool = False,
    signatures: bool = False,
    whole: bool = False,
) -> Changes:
    """Returns what a client's copy changes in a conversation (`MessageList.put`).

    What the client cannot have stays: thinking, what providers signed, and what its format or the
    client shows nowhere. The client may change the user's messages, and cut the conversation off.

    Args:
        stored: the conversation, oldest message first.
        format: the format of the copy.
        payload: the copy, the body of a request that holds it, its end alone, one message, a text
            of the user, or what `read_copy` returned for one of these.
        system: the client may change system messages.
        results: the client may change stored results of tools.
        answers: the client may change what the model said.
        signatures: new model messages may carry what a provider signed.
        whole: the copy is complete, so what it lacks at its beginning is removed.

    Raises:
        HistoryError: the payload is not of the format.
        SettingsError: no format has that name.
    """
    if isinstance(payload, SentCopy):
        request = payload
    else:
        request = read_copy(payload, format)
    policy = CopyPolicy(system, results, answers, signatures, whole, request.regenerates)
    stored = tuple(stored)
    visible = hide_memos_from(format, stored)
    untouched, merged = _merge_copy(visible, format, request, policy)
    if len(visible) < len(stored):
        every = [(message, position) for position, message in enumerate(visible[:untouched])]
        untouched, merged = 0, restore_memos(stored, [*every, *merged])
    messages = (*stored[:untouched], *[message for message, _ in merged])
    is_untouched = messages == stored
    # Two equal messages beside each other may be taken for new ones. A copy that is exactly what
    # the stored messages are written as has changed nothing.
    is_doubtful = request is not payload and _has_answer(request.messages) >= _has_answer(stored)
    if is_doubtful and not is_untouched and payload == formats.get(format).dump_messages(stored):
        untouched, merged, messages = len(stored), [], stored
    resumes = _find_resumes(request.messages, messages, stored)
    return _compare_with_stored(stored, untouched, merged, resumes)


def _has_answer(messages: Iterable[Message]) -> bool:
    return any(_is_answer(message) for message in messages)


def _is_answer(message: Message) -> bool:
    return message.role is Role.MODEL and bool(message.parts)


# reading what was sent


def read_copy(payload: object, format: str) -> SentCopy:  # noqa: A002 - the name that users know
    """Reads what a client sent: a conversation, the body of a request that holds one, one message,
    or a text of the user.

    Raises:
        HistoryError: the payload is not of the format.
        SettingsError: no format has that name.
    """
    codec = formats.get(format)
    if payload is None or isinstance(payload, str):
        return SentCopy([Message.user(payload)] if payload else [])
    body = if_object(check_depth(payload))
    holds_list = "role" in body or any(field in body for field in _LISTS)
    if isinstance(body.get("message"), dict) and not holds_list:
        body = {**body, "messages": [body["message"]]}
    value = body or payload
    messages = codec.load_messages(payload_of(value, format)) if value else []
    fields = layout(format)
    follows = if_text(body.get(fields.follows)) if fields.follows else ""
    regeneration = fields.regeneration
    if regeneration is None or body.get(regeneration.field) != regeneration.value:
        return SentCopy(messages, follows)
    message_id = if_text(body.get(regeneration.message_id))
    return SentCopy(
        _cut_at_question(messages, message_id), follows, regenerates=True, until=message_id
    )


def _cut_at_question(messages: list[Message], message_id: str) -> list[Message]:
    """Returns the messages of the client's copy up to the question that is to be answered again.
    `message_id`: of the answer or of the question; empty for the last one."""
    positions = _find_positions(messages, message_id) if message_id else []
    if positions:
        first = positions[0]
        is_answer = messages[first].role is Role.MODEL
        return messages[: first if is_answer else first + 1]
    end = len(messages)
    while end and messages[end - 1].role is Role.MODEL:
        end -= 1
    return messages[:end]


def _find_positions(messages: Sequence[Message], message_id: str) -> list[int]:
    """Returns the positions of a stored message by its id, and of the messages of that turn."""
    return [
        position
        for position, message in enumerate(messages)
        if message_id in (message.id, message.turn)
    ]


# merging


_Merged = tuple[int, list[MergedMessage]]
"""How many stored messages stay as they are at the beginning, and what follows them: a new question
costs the same after any number of messages."""


def _merge_copy(
    stored: Sequence[Message], name: str, request: SentCopy, policy: CopyPolicy
) -> _Merged:
    """Returns the conversation merged with the client's copy, by the cheapest way that is sure.
    `name`: of the format."""
    copy = request.messages
    spoken = [message for message in copy if message.role is not Role.SYSTEM or policy.system]
    if not spoken:
        if not request.regenerates:
            return len(stored), []
        return _find_question(stored, request.until) + 1, []
    start = _find_start(stored, copy, request, whole=policy.whole)
    if start.new is not None:
        return _with_new(stored, start.new, policy)
    cut = 0
    if start.floor and not start.follows and not policy.system:
        # The copy holds nothing before its floor. A format may show what is behind the floor as one
        # message with the answer before it, so that answer and its question are looked at, too.
        cut = max(_find_question(stored[: start.floor]), 0)
    untouched, merged = _merge_from(
        stored[cut:], name, request, policy, start._replace(floor=start.floor - cut)
    )
    return cut + untouched, [
        (message, None if position is None else cut + position) for message, position in merged
    ]


def _merge_from(
    stored: Sequence[Message], name: str, request: SentCopy, policy: CopyPolicy, start: _Start
) -> _Merged:
    """Returns the conversation merged with the client's copy, which begins at `start`."""
    copy = request.messages
    match = match_copy(stored, copy, name, floor=start.floor)
    copy = with_stored_ids(stored, copy, match.whole)
    if start.follows:
        policy = policy._replace(whole=True)
    links = CopyLinks(stored, copy, match, policy, start.floor)
    is_known = bool(match.whole or match.pieces or match.named)
    if not is_known or not (start.is_sure or links.is_same_conversation()):
        spoken = [message for message in copy if message.role is not Role.SYSTEM or policy.system]
        before = stored[: start.floor] if start.follows else stored
        return _with_new(before, spoken, policy)
    if not policy.system:
        new = _find_only_new(links)
        if new is not None:
            return _with_new(stored, new, policy)
    has_answers = any(message.role is Role.MODEL for message in copy)
    return 0, CopyMerge(links).messages(joins_answers=has_answers and merges_answers(name))


def _with_new(
    stored: Sequence[Message], messages: Sequence[Message], policy: CopyPolicy
) -> _Merged:
    """Returns all stored messages, and these of the client's copy behind them."""
    taken: set[str | None] = {message.id for message in stored}
    merged: list[MergedMessage] = []
    for message in messages:
        if message.parts:
            new = import_message(message, taken, signatures=policy.signatures)
            taken.add(new.id)
            merged.append((new, None))
    return len(stored), merged


def _find_only_new(links: CopyLinks) -> Sequence[Message] | None:
    """Returns the copy's new messages if all of them follow the stored ones; `None` if the copy
    changed or left out a stored one."""
    match, stored = links.match, links.stored
    if match.pieces:
        return None
    stored_spoken = [
        position
        for position in range(links.floor, len(stored))
        if stored[position].role is not Role.SYSTEM
    ]
    spoken = set(links.spoken)
    matches = [pair for pair in match.whole.items() if pair[0] in spoken][: len(stored_spoken)]
    indexes = [index for index, _ in matches]
    if [position for _, position in matches] != stored_spoken or indexes != sorted(indexes):
        return None
    end = indexes[-1] if indexes else -1
    new = [index for index in links.spoken if index not in match.whole]
    behind = [index for index in links.spoken if index > end]
    if len(new) != len(behind):
        return None
    return [links.copy[index] for index in new]


def _find_question(stored: Sequence[Message], message_id: str = "") -> int:
    """Returns where the question is that a message of the client's copy answers, or -1.
    `message_id`: of the answer or of the question; empty for the last answer.

    Raises:
        HistoryError: no message has that id.
    """
    end = len(stored)
    if message_id:
        positions = _find_positions(stored, message_id)
        if not positions:
            raise HistoryError(
                f"no message or turn has the id {message_id!r}, so it cannot be answered again"
            )
        end = positions[0] + 1
    return _find_last(stored[:end], _is_question)


def _find_last(stored: Sequence[Message], is_wanted: Callable[[Message], bool]) -> int:
    """Returns the position of the last stored message of a kind, or -1."""
    positions = range(len(stored) - 1, -1, -1)
    return next((position for position in positions if is_wanted(stored[position])), -1)


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and not holds_only_answers(message)


class _Start(NamedTuple):
    """Where a copy begins."""

    floor: int = 0
    """Position of the first stored message that the copy may have."""
    is_sure: bool = True
    """The copy certainly belongs to the stored conversation."""
    follows: bool = False
    """The copy names its predecessor: stored messages after that are dropped unless the copy
    repeats them."""
    new: Sequence[Message] | None = None
    """The new messages, if they are clear without matching."""


def _find_start(
    stored: Sequence[Message], copy: Sequence[Message], request: SentCopy, *, whole: bool
) -> _Start:
    """Returns where a client's copy begins: behind the response that it names, at the start, or
    behind the last answer if it holds nothing but questions."""
    position = _find_response(stored, request.after)
    if position is not None:
        return _Start(position + 1, follows=True)
    spoken = [message for message in copy if message.role is not Role.SYSTEM]
    is_sure = request.regenerates or whole
    if is_sure or not _are_new_user_messages(spoken, stored):
        return _Start(is_sure=is_sure)
    last_answer = _find_last(stored, _is_answer)
    if last_answer < 0:
        return _Start()
    # Nothing but questions came: either all of the conversation and then new ones, or only those
    # behind its last answer.
    if len(spoken) > 1:
        questions = [shared_key(message) for message in stored if _is_question(message)]
        count = len(questions)
        are_all = 0 < count <= len(spoken)
        if are_all and [shared_key(message) for message in spoken[:count]] == questions:
            return _Start(new=spoken[count:])
    return _Start(last_answer + 1)


def _find_response(stored: Sequence[Message], response_id: str) -> int | None:
    """Returns the position of a response's last stored message, if the client's copy names one."""
    if not response_id:
        return None
    for position in range(len(stored) - 1, -1, -1):
        origin = stored[position].origin
        if origin is not None and origin.response_id == response_id:
            return position
    return None


def _are_new_user_messages(messages: Sequence[Message], stored: Sequence[Message]) -> bool:
    """True if all messages of the client's copy are user messages without tool results, and none of
    them has the id of a stored message."""
    ids = {message.id for message in stored} - {None}
    return all(
        message.role is Role.USER and not message.tool_results and message.id not in ids
        for message in messages
    )


# describing the changes


def _compare_with_stored(
    stored: Sequence[Message],
    untouched: int,
    merged: Sequence[MergedMessage],
    resumes: tuple[Resume, ...],
) -> Changes:
    """Returns the differences that the client's copy makes to the stored conversation. `untouched`:
    how many stored messages stay as they are, before those that are `merged`."""
    behind = stored[untouched:]
    messages = [message for message, _ in merged]
    remaining = {position for _, position in merged}
    edited = [
        message
        for message, position in merged
        if position is not None and message is not stored[position]
    ]
    alike = untouched + _count_alike(behind, messages)
    return Changes(
        messages=(*stored[:untouched], *messages),
        added=tuple([message for message, position in merged if position is None]),
        edited=tuple(edited),
        removed=tuple(
            [
                message
                for position, message in enumerate(behind, untouched)
                if position not in remaining
            ]
        ),
        branched=alike if alike < len(stored) else None,
        resumes=resumes,
    )


def _count_alike(these: Iterable[Message], those: Iterable[Message]) -> int:
    """Returns how many messages at the start of the client's copy are the very same objects."""
    count = 0
    for message, other_message in zip(these, those, strict=False):
        if message is not other_message:
            break
        count += 1
    return count


def _find_resumes(
    copy: Iterable[Message], merged: Sequence[Message], stored: Iterable[Message]
) -> tuple[Resume, ...]:
    """Returns the client's copy's answers to calls that still wait in the merged conversation.
    Those to calls that are not stored do not count: a client may not approve what it made up."""
    answers = {
        call.id: answer
        for message in copy
        for call in message.tool_calls
        if (answer := _decision_payload(call))
    }
    if not answers:
        return ()
    from dragoman.orchestration.interrupts import answer_ids  # needed for answers only

    stored_ids = {call.id for message in stored for call in message.tool_calls}
    return tuple(
        [
            Resume(answer_ids(merged, waiting)[0], payload=answers[waiting.call.id])
            for waiting in find_open_calls(merged)
            if waiting.call.id in answers and waiting.call.id in stored_ids
        ]
    )


def _decision_payload(call: ToolCallPart) -> Json:
    """Returns a person's decision in the client's copy about a call as the payload of a `Resume`;
    empty if there is none."""
    approval = approval_of(call) or {}
    if not isinstance(approval.get("approved"), bool):
        return {}
    reason = if_text(approval.get("reason"))
    return {"approved": approval["approved"], **({"reason": reason} if reason else {})}
