"""A client's copy of a conversation, put back into it.

A client that shows a conversation holds a copy in its own format, without what that format or the
client has no room for. It sends the copy back, with a new message, an edit, a part of it cut off.
`put` finds out what the client changed, and changes that alone: the body is taken apart
(`received`), the copy is held against what is stored (`matching`) and merged with it
(`copy_merge`). `place_copy` makes rows of a list of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from dragoman import formats
from dragoman.codec.json_values import check_depth, if_object, if_text
from dragoman.codec.turns import holds_only_answers
from dragoman.errors import HistoryError
from dragoman.formats.detection import payload_of
from dragoman.formats.registry import layout
from dragoman.history.add import ReplacedBranch
from dragoman.history.copy_merge import CopyMerge, CopyPolicy, MergedMessage, with_stored_ids
from dragoman.history.foreign import import_message
from dragoman.history.format_fields import approval_of
from dragoman.history.matching import Match, match_copy
from dragoman.history.pieces import shared_key
from dragoman.history.projection import merges_answers
from dragoman.history.rows import Row, Rows
from dragoman.history.sources import Mint, microseconds, stamp
from dragoman.history.systems import Systems
from dragoman.interrupt import Resume
from dragoman.json_bytes import Json
from dragoman.message import Message, Role, ToolCallPart
from dragoman.repair import find_open_calls

__all__ = ["Changes", "SentCopy", "place_copy", "place_system", "put", "read_copy"]

_INPUT = frozenset(["input"])
_LISTS = ("messages", "contents", "input", "conversations")


class Changes(msgspec.Struct, frozen=True):
    """What became of a conversation when a client's copy of it was merged into it."""

    messages: tuple[Message, ...] = ()
    """The conversation, merged. What the client did not touch are the very same `Message`
    objects."""
    added: tuple[Message, ...] = ()
    """Those of them that are new."""
    edited: tuple[Message, ...] = ()
    """Those of them that stand in the place of a stored message, with its id, and hold something
    else."""
    removed: tuple[Message, ...] = ()
    """The stored messages that are not in it any more, not even changed."""
    branched: int | None = None
    """Position from which on the conversation is another one than that which was stored; `None`: it
    only goes on."""
    resumes: tuple[Resume, ...] = ()
    """The answers to what the last run waits for, where the copy holds some: approved, denied."""


class SentCopy(NamedTuple):
    """What a client has sent."""

    messages: list[Message]
    """Its copy of the conversation, or the end of it."""
    after: str = ""
    """Id of the response that they follow; empty: it names none."""
    regenerates: bool = False
    """What stands behind them is to be made anew."""
    until: str = ""
    """Id of the answer that is to be made anew, or of its question, where the client named one."""


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
    """Returns what a client's copy changes in a conversation. `payload`: the copy as that format
    has it, the body of a request that holds it, its end alone, one message, a text of the user's,
    or what was read of one of these.

    What the client cannot have (thinking, what providers signed, and what its format or the client
    shows nowhere) stays. What it may change, beside the user's messages and how far the
    conversation goes: `system`: system messages; `results`: results of tools that are stored;
    `answers`: what the model said. `signatures`: what new messages of the model's carry of a
    provider is believed. `whole`: the payload is no mere end of the conversation: what it lacks at
    its beginning is removed.

    Raises:
        HistoryError: the payload is nothing of the format.
        SettingsError: no format has that name.
    """
    if isinstance(payload, SentCopy):
        request = payload
    else:
        request = read_copy(payload, format)
    allowed = CopyPolicy(system, results, answers, signatures, whole, request.regenerates)
    stored = tuple(stored)
    merged = _merge(stored, format, request, allowed)
    messages = [message for message, _ in merged]
    # Equal messages that stand beside each other may be taken for new ones; what is written of the
    # stored ones decides then.
    is_doubtful = request is not payload and _has_answer(request.messages) >= _has_answer(stored)
    if (
        is_doubtful
        and messages != [*stored]
        and payload == formats.get(format).dump_messages(stored)
    ):
        merged, messages = _keep_all(stored), [*stored]
    return _compare(stored, merged, _find_resumes(request.messages, messages, stored))


def _has_answer(messages: Iterable[Message]) -> bool:
    return any(_is_answer(message) for message in messages)


def _is_answer(message: Message) -> bool:
    return message.role is Role.MODEL and bool(message.parts)


# what was sent


def read_copy(payload: Any, format: str) -> SentCopy:  # noqa: A002 what it is called everywhere
    """Reads what a client sent: a conversation, the body of a request that holds one, one message,
    or a text of the user's.

    Raises:
        HistoryError: it is nothing of the format.
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
    if value:
        messages = codec.load_messages(payload_of(value, format))
    else:
        messages = []
    fields = layout(format)
    if fields.follows:
        follows = if_text(body.get(fields.follows))
    else:
        follows = ""
    regeneration = fields.regeneration
    if regeneration is None or body.get(regeneration.field) != regeneration.value:
        return SentCopy(messages, follows)
    message_id = if_text(body.get(regeneration.message_id))
    return SentCopy(
        _cut_at_question(messages, message_id), follows, regenerates=True, until=message_id
    )


def _cut_at_question(messages: list[Message], message_id: str) -> list[Message]:
    """Returns the messages up to the question that is to be answered anew."""
    if message_id:
        end = next(iter(_find_positions(messages, message_id)), None)
    else:
        end = None
    if end is not None:
        return messages[: end if messages[end].role is Role.MODEL else end + 1]
    end = len(messages)
    while end and messages[end - 1].role is Role.MODEL:
        end -= 1
    return messages[:end]


def _find_positions(messages: Sequence[Message], message_id: str) -> list[int]:
    """Returns the positions of the messages, and of those of the turn, of an id."""
    return [
        position
        for position, message in enumerate(messages)
        if message_id in (message.id, message.turn)
    ]


# merging


def _merge(
    stored: Sequence[Message], name: str, request: SentCopy, allowed: CopyPolicy
) -> list[MergedMessage]:
    copy = request.messages
    spoken = [message for message in copy if message.role is not Role.SYSTEM or allowed.system]
    if not spoken:
        if request.regenerates:
            end = _find_question(stored, request.until) + 1
        else:
            end = len(stored)
        return _keep_all(stored[:end])
    start = _find_start(stored, copy, request, whole=allowed.whole)
    if start.new is not None:
        return _with_new(stored, start.new, allowed)
    match = match_copy(stored, copy, name, floor=start.floor)
    copy = with_stored_ids(stored, copy, match.whole)
    if start.follows:
        allowed = allowed._replace(whole=True)
    merge = CopyMerge(stored, copy, match, allowed, start.floor)
    is_known = bool(match.whole or match.pieces or match.named)
    if not is_known or not (start.is_sure or merge.shares()):
        return _with_new(stored[: start.floor] if start.follows else stored, spoken, allowed)
    if allowed.system:
        new = None
    else:
        new = _find_only_new(stored, copy, match, start.floor)
    if new is not None:
        return _with_new(stored, new, allowed)
    has_answers = any(message.role is Role.MODEL for message in copy)
    return merge.messages(merges=has_answers and merges_answers(name))


def _keep_all(stored: Sequence[Message]) -> list[MergedMessage]:
    return [(message, position) for position, message in enumerate(stored)]


def _with_new(
    stored: Sequence[Message], messages: Sequence[Message], allowed: CopyPolicy
) -> list[MergedMessage]:
    """Returns all that is stored, and these messages behind it."""
    taken: set[str | None] = {message.id for message in stored}
    merged = _keep_all(stored)
    for message in messages:
        if message.parts:
            new = import_message(message, taken, signatures=allowed.signatures)
            taken.add(new.id)
            merged.append((new, None))
    return merged


def _find_only_new(
    stored: Sequence[Message], copy: Sequence[Message], match: Match, floor: int
) -> Sequence[Message] | None:
    """Returns the messages behind those that are stored; `None`: the copy does not have all of
    these as they are."""
    if match.pieces:
        return None
    spoken = [
        position
        for position in range(floor, len(stored))
        if stored[position].role is not Role.SYSTEM
    ]
    matches = [
        (index, position)
        for index, position in match.whole.items()
        if copy[index].role is not Role.SYSTEM
    ][: len(spoken)]
    indexes = [index for index, _ in matches]
    if [position for _, position in matches] != spoken or indexes != sorted(indexes):
        return None
    end = indexes[-1] if indexes else -1
    new = [
        index
        for index, message in enumerate(copy)
        if index not in match.whole and message.role is not Role.SYSTEM
    ]
    behind = [index for index in range(end + 1, len(copy)) if copy[index].role is not Role.SYSTEM]
    if len(new) == len(behind):
        return [copy[index] for index in new]
    return None


def _find_question(stored: Sequence[Message], message_id: str) -> int:
    """Returns the position of the question to which a message, or the last one, is the answer; -1:
    there is none."""
    end = len(stored)
    if message_id:
        positions = _find_positions(stored, message_id)
        if not positions:
            raise HistoryError(
                f"the message {message_id!r}, which is to be answered anew, is not there"
            )
        end = positions[0] + 1
    return max(
        [position for position, message in enumerate(stored[:end]) if _is_question(message)],
        default=-1,
    )


def _is_question(message: Message) -> bool:
    return message.role is Role.USER and not holds_only_answers(message)


class _Start(NamedTuple):
    """Where a copy begins."""

    floor: int = 0
    """The first stored message that it may have."""
    is_sure: bool = True
    """Whether it is sure that it belongs to what is stored."""
    follows: bool = False
    """The copy names its predecessor: stored messages after that are dropped unless the copy
    repeats them."""
    new: Sequence[Message] | None = None
    """The messages that are new, where that is clear already."""


def _find_start(
    stored: Sequence[Message], copy: Sequence[Message], request: SentCopy, *, whole: bool
) -> _Start:
    if request.after:
        ends = [
            position
            for position, message in enumerate(stored)
            if message.origin is not None and message.origin.response_id == request.after
        ]
        if ends:
            return _Start(ends[-1] + 1, follows=True)
    spoken = [message for message in copy if message.role is not Role.SYSTEM]
    is_sure = request.regenerates or whole
    if is_sure or not _only_asks(spoken, stored):
        return _Start(is_sure=is_sure)
    # Nothing but questions came. They are all of the conversation's, and more; or only those behind
    # its last answer.
    answers = [position for position, message in enumerate(stored) if _is_answer(message)]
    if not answers:
        return _Start()
    questions = [shared_key(message) for message in stored if _is_question(message)]
    count = len(questions)
    are_all = len(spoken) > 1 and 0 < count <= len(spoken)
    if are_all and [shared_key(message) for message in spoken[:count]] == questions:
        return _Start(new=spoken[count:])
    return _Start(answers[-1] + 1)


def _only_asks(messages: Sequence[Message], stored: Sequence[Message]) -> bool:
    """Returns whether messages are questions alone, none of them with the id of a stored
    message."""
    ids = {message.id for message in stored} - {None}
    return all(
        message.role is Role.USER and not message.tool_results and message.id not in ids
        for message in messages
    )


# what became of it


def _compare(
    stored: Sequence[Message], merged: Sequence[MergedMessage], resumes: tuple[Resume, ...]
) -> Changes:
    remaining = {position for _, position in merged}
    alike = _count_alike(stored, [message for message, _ in merged])
    return Changes(
        tuple([message for message, _ in merged]),
        tuple([message for message, position in merged if position is None]),
        tuple(
            [
                message
                for message, position in merged
                if position is not None and message is not stored[position]
            ]
        ),
        tuple([message for position, message in enumerate(stored) if position not in remaining]),
        alike if alike < len(stored) else None,
        resumes,
    )


def _count_alike(these: Iterable[Message], those: Iterable[Message]) -> int:
    """Returns how many messages, from the first on, are the very same."""
    count = 0
    for message, other_message in zip(these, those, strict=False):
        if message is not other_message:
            break
        count += 1
    return count


def _find_resumes(
    copy: Iterable[Message], merged: Sequence[Message], stored: Iterable[Message]
) -> tuple[Resume, ...]:
    """Returns the answers to calls that still wait in the merged conversation. Only to those that
    are stored: a call that the client alone knows is not allowed by the client."""
    answers = {
        call.id: answer
        for message in copy
        for call in message.tool_calls
        if (answer := _answer(call))
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


def _answer(call: ToolCallPart) -> Json:
    """Returns what somebody said of a call; empty: nothing."""
    approval = approval_of(call) or {}
    if not isinstance(approval.get("approved"), bool):
        return {}
    reason = if_text(approval.get("reason"))
    return {"approved": approval["approved"], **({"reason": reason} if reason else {})}


# in a list


def place_copy(rows: Rows, changes: Changes, mint: Mint) -> tuple[Changes, ReplacedBranch | None]:
    """Puts the merged conversation into the rows: what is new or edited is to be saved, and gets an
    id and a time; the rest stays as it is. Returns the changes with these, and what stood there,
    where that is another one now."""
    merged = [message for message in changes.messages if message.role is not Role.SYSTEM]
    start = _count_alike((row.message for row in rows), merged)
    old = rows.between(start, len(rows))
    old_rows = {id(row.message): row for row in old}
    by_id = {row.message.id: row for row in old}
    new_rows: list[Row] = []
    before = rows[start - 1] if start else None
    for message in merged[start:]:
        row = old_rows.get(id(message))
        if row is None:
            edited = by_id.get(message.id)
            new = stamp(message, mint, None if before is None else before.message.created_at)
            if new.created_at is None:
                order = 0
            else:
                order = microseconds(new.created_at)
            row = Row(
                new,
                order if edited is None else edited.order,
                _INPUT,
                _INPUT | (edited.origins if edited else _INPUT),
            )
        if before is not None and row.order <= before.order:
            row = row._replace(order=before.order + 1)
        new_rows.append(row)
        before = row
    stamps = {
        id(message): row.message for message, row in zip(merged[start:], new_rows, strict=True)
    }

    def with_stamps(messages: Iterable[Message]) -> tuple[Message, ...]:
        return tuple([stamps.get(id(message), message) for message in messages])

    changes = msgspec.structs.replace(
        changes,
        messages=with_stamps(changes.messages),
        added=with_stamps(changes.added),
        edited=with_stamps(changes.edited),
    )
    if not old:
        for row in new_rows:
            rows.append(row)
        return changes, None
    behind = rows[start - 1].message.id if start else None
    rows.splice(start, len(rows), new_rows)
    return changes, ReplacedBranch(behind, tuple([row.message for row in old]))


def place_system(systems: Systems, changes: Changes) -> None:
    """Puts the system messages of the merged conversation in the place of those that are there."""
    merged = {id(message) for message in changes.messages}
    systems.keep(lambda system: id(system.message) in merged)
    for message in changes.messages:
        if message.role is Role.SYSTEM:
            systems.add(message, None, -1)
