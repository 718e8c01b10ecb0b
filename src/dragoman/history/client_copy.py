"""A client's copy of a conversation, put back into it.

A client that shows a conversation holds a copy in its own format, without what that format or the client has no room for. It sends the
copy back, with a new message, an edit, a part of it cut off. `put` finds out what the client changed, and changes that alone: the body is
taken apart (`received`), the copy is held against what is stored (`matching`) and merged with it (`put_merge`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman import formats
from dragoman.codec.json_values import bounded, if_object, if_text
from dragoman.codec.turns import only_answers
from dragoman.errors import HistoryError
from dragoman.formats.detection import payload_of
from dragoman.formats.registry import layout
from dragoman.history.add import Branch
from dragoman.history.copy_merge import Allowed, merged, shares, with_stored_ids
from dragoman.history.foreign import foreign
from dragoman.history.format_fields import approval_of
from dragoman.history.matching import Match, matched
from dragoman.history.projection import key, merges_answers
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Mint, microseconds, stamped
from dragoman.history.systems import Systems
from dragoman.interrupt import Resume
from dragoman.message import Message, Role, ToolCallPart
from dragoman.repair import open_calls

__all__ = ["Changes", "Received", "approvals", "place_copy", "put", "received"]


class Changes(msgspec.Struct, frozen=True):
    """What became of a conversation when a client's copy of it was merged into it."""

    messages: tuple[Message, ...] = ()
    """The conversation, merged. What the client did not touch are the very same `Message` objects."""
    added: tuple[Message, ...] = ()
    """Those of them that are new."""
    edited: tuple[Message, ...] = ()
    """Those of them that stand in the place of a stored message, with its id, and hold something else."""
    removed: tuple[Message, ...] = ()
    """The stored messages that are not in it any more, not even changed."""
    branched: int | None = None
    """Position from which on the conversation is another one than that which was stored; `None`: it only goes on."""
    resumes: tuple[Resume, ...] = ()
    """The answers to what the last run waits for, where the copy holds some: approved, denied."""


_LISTS = ("messages", "contents", "input", "conversations")


class Received(NamedTuple):
    """What a client has sent."""

    messages: list[Message]
    """Its copy of the conversation, or the end of it."""
    after: str = ""
    """Id of the response that they follow; empty: it names none."""
    regenerates: bool = False
    """What stands behind them is to be made anew."""
    until: str = ""
    """Id of the answer that is to be made anew, or of its question, where the client named one."""


def received(payload: Any, format: str) -> Received:  # noqa: A002 what it is called everywhere
    """A conversation, the body of a request that holds one, one message, or a text of the user's.

    Raises:
        HistoryError: it is nothing of the format.
        SettingsError: no format has that name.
    """
    codec = formats.get(format)
    if payload is None or isinstance(payload, str):
        return Received([Message.user(payload)] if payload else [])
    body = if_object(bounded(payload))
    if (
        isinstance(body.get("message"), dict)
        and "role" not in body
        and not any(field in body for field in _LISTS)
    ):
        body = {**body, "messages": [body["message"]]}
    value = body or payload
    messages = codec.load_messages(payload_of(value, format)) if value else []
    fields = layout(format)
    follows = if_text(body.get(fields.follows)) if fields.follows else ""
    asked = fields.regeneration
    if asked is None or body.get(asked.field) != asked.value:
        return Received(messages, follows)
    message_id = if_text(body.get(asked.message_id))
    return Received(_until(messages, message_id), follows, regenerates=True, until=message_id)


def _until(messages: list[Message], message_id: str) -> list[Message]:
    """The messages up to that which is to be answered anew."""
    at = next(
        (
            at
            for at, message in enumerate(messages)
            if message_id and message_id in (message.id, message.turn)
        ),
        None,
    )
    if at is None:
        at = len(messages)
        while at and messages[at - 1].role is Role.MODEL:
            at -= 1
        return messages[:at]
    return messages[: at if messages[at].role is Role.MODEL else at + 1]


def approvals(
    copy: Iterable[Message], merged: Sequence[Message], stored: Iterable[Message]
) -> tuple[Resume, ...]:
    """The answers to calls that still wait in the merged conversation. Only to those that are stored: a call that the client alone knows is
    not allowed by the client."""
    answers = {
        call.id: answer
        for message in copy
        for call in message.tool_calls
        if (answer := _answer(call))
    }
    if not answers:
        return ()
    from dragoman.orchestration.interrupts import ids_of  # needed for answers only

    known = {call.id for message in stored for call in message.tool_calls}
    return tuple(
        [
            Resume(ids_of(merged, one)[0], payload=answers[one.call.id])
            for one in open_calls(merged)
            if one.call.id in answers and one.call.id in known
        ]
    )


def _answer(call: ToolCallPart) -> dict[str, Any]:
    """What somebody said of a call; empty: nothing."""
    approval = approval_of(call) or {}
    if not isinstance(approval.get("approved"), bool):
        return {}
    reason = if_text(approval.get("reason"))
    return {"approved": approval["approved"], **({"reason": reason} if reason else {})}


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


_INPUT = frozenset(["input"])


def place_copy(rows: Rows, changes: Changes, mint: Mint) -> tuple[Changes, Branch | None]:
    """Puts the merged conversation into the rows: what is new or edited is to be saved, and gets an id and a time; the rest stays as it is.
    Returns the changes with these, and what stood there, where that is another one now."""
    merged = [message for message in changes.messages if message.role is not Role.SYSTEM]
    start = _alike(rows, merged)
    old = rows.between(start, len(rows))
    known = {id(row.message): row for row in old}
    by_id = {row.message.id: row for row in old}
    made: list[Row] = []
    before = rows[start - 1] if start else None
    for message in merged[start:]:
        row = known.get(id(message))
        if row is None:
            edited = by_id.get(message.id)
            new = stamped(message, mint, None if before is None else before.message.created_at)
            order = 0 if new.created_at is None else microseconds(new.created_at)
            row = Row(
                new,
                order if edited is None else edited.order,
                _INPUT,
                _INPUT | (edited.origins if edited else _INPUT),
            )
        if before is not None and row.order <= before.order:
            row = row._replace(order=before.order + 1)
        made.append(row)
        before = row
    stamps = {id(message): row.message for message, row in zip(merged[start:], made, strict=True)}
    changes = Changes(
        tuple([stamps.get(id(message), message) for message in changes.messages]),
        tuple([stamps.get(id(message), message) for message in changes.added]),
        tuple([stamps.get(id(message), message) for message in changes.edited]),
        changes.removed,
        changes.branched,
        changes.resumes,
    )
    if not old:
        for row in made:
            rows.append(row)
        return changes, None
    behind = rows[start - 1].message.id if start else None
    rows.splice(start, len(rows), made)
    return changes, Branch(behind, tuple([row.message for row in old]))


def place_system(systems: Systems, changes: Changes) -> None:
    """Puts the system messages of the merged conversation in the place of those that are there."""
    there = {id(message) for message in changes.messages}
    systems.keep(lambda each: id(each.message) in there)
    for message in changes.messages:
        if message.role is Role.SYSTEM:
            systems.add(message, None, -1)


def _alike(rows: Rows, merged: Sequence[Message]) -> int:
    """How many rows, from the first on, stay."""
    start = 0
    for row, message in zip(rows, merged, strict=False):
        if row.message is not message:
            break
        start += 1
    return start
