"""A client's copy of a conversation, put back into it.

A client that shows a conversation holds a copy in its own format, without what that format or the client has no room for. It sends the
copy back, with a new message, an edit, a part of it cut off. `put` finds out what the client changed, and changes that alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dragoman import formats
from dragoman.codec.turns import only_answers
from dragoman.errors import HistoryError
from dragoman.history.approvals import approvals
from dragoman.history.call_ids import with_stored_ids
from dragoman.history.changes import Changes
from dragoman.history.foreign import foreign
from dragoman.history.matching import Match, matched
from dragoman.history.merge import Allowed, merged, shares
from dragoman.history.projection import key, merges_answers
from dragoman.history.received import Received, received
from dragoman.interrupt import Resume
from dragoman.message import Message, Role

__all__ = ["put"]

_Placed = list[tuple[Message, int | None]]


def put(
    stored: Sequence[Message],
    format: str,  # noqa: A002 what it is called everywhere
    payload: Any,
    *,
    system: bool = False,
    results: bool = False,
    answers: bool = False,
    signatures: bool = False,
    whole: bool = False,
) -> Changes:
    """What a client's copy changes in a conversation. `payload`: the copy as that format has it, the body of a request that holds it, its
    end alone, one message, a text of the user's, or what was read of one of these.

    What the client cannot have (thinking, what providers signed, and what its format or the client shows nowhere) stays. What it may
    change, beside the user's messages and how far the conversation goes: `system`: system messages; `results`: results of tools that are
    stored; `answers`: what the model said. `signatures`: what new messages of the model's carry of a provider is believed.
    `whole`: the payload is no mere end of the conversation: what it lacks at its beginning is removed.

    Raises:
        HistoryError: the payload is nothing of the format.
        SettingsError: no format has that name.
    """
    given = payload if isinstance(payload, Received) else received(payload, format)
    allowed = Allowed(system, results, answers, signatures, whole, given.regenerates)
    stored = tuple(stored)
    placed = _put(stored, format, given, allowed)
    if (
        [message for message, _ in placed] != [*stored]
        and given is not payload
        and payload == formats.get(format).dump_messages(stored)
    ):
        placed = _unchanged(stored)  # equal messages stand beside each other in it
    return _changes(
        stored, placed, approvals(given.messages, [message for message, _ in placed], stored)
    )


def _put(stored: Sequence[Message], name: str, given: Received, allowed: Allowed) -> _Placed:
    copy = given.messages
    start = _start(stored, copy, given, whole=allowed.whole)
    spoken = [message for message in copy if message.role is not Role.SYSTEM or allowed.system]
    if not spoken and given.regenerates:
        return _unchanged(stored[: _question(stored, given.until) + 1])
    if not spoken:
        return _unchanged(stored)
    if start.new is not None:
        return _added(stored, start.new, allowed)
    match = matched(stored, copy, name, floor=start.floor)
    if not (match.whole or match.pieces or match.named) or not (
        start.is_sure or shares(stored, copy, match)
    ):
        return _added(stored[: start.floor] if start.follows else stored, spoken, allowed)
    copy = with_stored_ids(stored, copy, match.whole)
    if (new := _only_new(stored, copy, match, start.floor)) is not None and not allowed.system:
        return _added(stored, new, allowed)
    if start.follows:
        allowed = allowed._replace(whole=True)
    if any(message.role is Role.MODEL for message in copy):
        allowed = allowed._replace(merges=merges_answers(name))
    return merged(stored, copy, match, allowed, start.floor)


def _unchanged(stored: Sequence[Message]) -> _Placed:
    return [(message, at) for at, message in enumerate(stored)]


def _only_new(
    stored: Sequence[Message], copy: Sequence[Message], match: Match, floor: int
) -> Sequence[Message] | None:
    """The messages behind those that are stored, where the copy has all of these as they are."""
    if match.pieces:
        return None
    whole = iter(match.whole)  # in the order of what is stored
    end = -1
    for at in range(floor, len(stored)):
        if stored[at].role is Role.SYSTEM:
            continue
        k = next(whole, None)
        while k is not None and copy[k].role is Role.SYSTEM:
            k = next(whole, None)
        if k is None or match.whole[k] != at or k < end:
            return None
        end = k
    new = [
        message
        for k, message in enumerate(copy)
        if k not in match.whole and message.role is not Role.SYSTEM
    ]
    return (
        new
        if len(new) == sum(message.role is not Role.SYSTEM for message in copy[end + 1 :])
        else None
    )


def _question(stored: Sequence[Message], message_id: str) -> int:
    """The position of the question to which a message, or the last one, is the answer; -1: there is none."""
    known = [
        at
        for at, message in enumerate(stored)
        if not message_id or message_id in (message.id, message.turn)
    ]
    if message_id and not known:
        raise HistoryError(
            f"the message {message_id!r}, which is to be answered anew, is not there"
        )
    asks = [
        at
        for at, message in enumerate(stored[: known[0] + 1 if message_id else len(stored)])
        if message.role is Role.USER and not only_answers(message)
    ]
    return asks[-1] if asks else -1


class _Start(NamedTuple):
    """Where a copy begins."""

    floor: int = 0
    """The first stored message that it may have."""
    is_sure: bool = True
    """Whether it is sure that it belongs to what is stored."""
    follows: bool = False
    """It names the message behind which it stands, so that what is stored behind that and it has not is left."""
    new: Sequence[Message] | None = None
    """The messages that are new, where that is clear already."""


def _start(
    stored: Sequence[Message], copy: Sequence[Message], given: Received, *, whole: bool
) -> _Start:
    if given.after:
        ends = [
            at
            for at, one in enumerate(stored)
            if one.origin is not None and one.origin.response_id == given.after
        ]
        if ends:
            return _Start(ends[-1] + 1, follows=True)
    ids = {message.id for message in stored} - {None}
    asks = [message for message in copy if message.role is not Role.SYSTEM]
    if (
        given.regenerates
        or whole
        or any(one.role is not Role.USER or one.tool_results or one.id in ids for one in asks)
    ):
        return _Start(is_sure=given.regenerates or whole)
    answered = next((at + 1 for at in range(len(stored) - 1, -1, -1) if _speaks(stored[at])), 0)
    questions = [
        key(message)
        for message in stored
        if message.role is Role.USER and not only_answers(message)
    ]
    if (
        answered
        and 1 < len(asks) >= len(questions) > 0
        and [key(each) for each in asks[: len(questions)]] == questions
    ):
        return _Start(new=asks[len(questions) :])
    return _Start(answered)


def _speaks(message: Message) -> bool:
    return message.role is Role.MODEL and bool(message.parts)


def _added(stored: Sequence[Message], messages: Sequence[Message], allowed: Allowed) -> _Placed:
    """All that is stored, and these messages behind it."""
    taken: set[str | None] = {message.id for message in stored}
    placed: _Placed = [(message, at) for at, message in enumerate(stored)]
    for message in messages:
        if message.parts:
            new = foreign(message, taken, signatures=allowed.signatures)
            taken.add(new.id)
            placed.append((new, None))
    return placed


def _changes(stored: Sequence[Message], placed: _Placed, resumes: tuple[Resume, ...]) -> Changes:
    left = {at for _, at in placed}
    alike = 0
    while alike < min(len(stored), len(placed)) and placed[alike][0] is stored[alike]:
        alike += 1
    return Changes(
        tuple([message for message, _ in placed]),
        tuple([message for message, at in placed if at is None]),
        tuple([message for message, at in placed if at is not None and message is not stored[at]]),
        tuple([message for at, message in enumerate(stored) if at not in left]),
        alike if alike < len(stored) else None,
        resumes,
    )
