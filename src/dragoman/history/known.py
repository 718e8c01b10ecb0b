"""A turn that is added and is there already: what becomes of the two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dragoman.codec.digest import neutral
from dragoman.codec.turns import only_answers
from dragoman.history.format_fields import is_done, is_sealed
from dragoman.history.layering import layered, layered_user
from dragoman.history.merging import merged, new_items, with_fields
from dragoman.history.rows import Row
from dragoman.history.sources import Source
from dragoman.message import Message, Role

__all__ = ["Outcome", "is_model", "outcome"]


class Outcome(NamedTuple):
    """What becomes of a turn that was there, and of its copy."""

    messages: Sequence[Message]
    """What stands in its place: itself, where nothing changes."""
    more: Sequence[Message] = ()
    """What becomes a turn of its own, with new ids."""
    replaced: bool = False
    """The turn that was there is kept as a branch."""
    stored_first: bool = False
    """It was stored, and the copy that was there is newer."""


def outcome(
    known: Sequence[Row], added: Sequence[Message], source: Source, *, sealed: bool, merge: bool
) -> Outcome:
    """`known`: the turn as it is there; `sealed`: it never changes, or one behind it does not; `merge`: whether copies are made one."""
    before = [row.message for row in known]
    if _same(before, added):
        return Outcome(before)
    is_live = any(row.live - {"memory"} for row in known)
    if source == "memory" and not sealed and any(map(is_sealed, added)):
        return Outcome(added, new_items(added, before) if is_live else ())
    if sealed:
        return Outcome(before, new_items(before, added))
    if _goes_on(before, added):
        return Outcome([*before, *added])
    if before[0].role is not added[0].role and not (is_model(before) and is_model(added)):
        return Outcome(before, [message.replace(id=None, turn=None) for message in added])
    if source == "memory":
        return _stored_after(known, added, is_live=is_live)
    if is_model(before):
        if merge and not is_done([*before, *added]):
            return Outcome(merged(before, added))
        return Outcome(added, replaced=True)
    if len(before) == len(added) == 1 and neutral(before[0]) == neutral(added[0]):
        return Outcome([with_fields(before[0], added[0])])
    return Outcome(added, replaced=True)


def _goes_on(known: Sequence[Message], added: Sequence[Message]) -> bool:
    """Whether what is added are results that name the turn of the model's that they are of, and are not there yet."""
    turns, ids = {message.turn for message in known}, {message.id for message in known}
    return is_model(known) and all(
        only_answers(message)
        and message.turn is not None
        and message.turn in turns
        and message.id not in ids
        for message in added
    )


def is_model(messages: Sequence[Message]) -> bool:
    """Whether a turn is the model's: its results are of it."""
    return any(message.role is Role.MODEL for message in messages)


def _stored_after(known: Sequence[Row], stored: Sequence[Message], *, is_live: bool) -> Outcome:
    """A stored turn that comes when there is one of its id: it is what counts, and what it has not becomes a branch."""
    before = [row.message for row in known]
    if is_model(before) and (
        any("response" in row.live for row in known) or (not is_live and _is_saved(known))
    ):
        return Outcome(merged(stored, before), stored_first=is_live)
    has_more = bool(new_items(stored, before))
    if not is_live:
        return Outcome(stored, replaced=has_more)
    if is_model(before):
        return Outcome(layered(stored, before), replaced=has_more, stored_first=True)
    return Outcome(
        [*map(layered_user, stored, before), *stored[len(before) :]],
        replaced=has_more,
        stored_first=True,
    )


def _is_saved(known: Sequence[Row]) -> bool:
    return any("memory" not in row.live for row in known)


def _same(known: Sequence[Message], added: Sequence[Message]) -> bool:
    """Whether a copy says nothing else than some of the messages that are there."""
    by_id = {message.id: message for message in known}
    return all(_says_no_more(by_id.get(message.id), message) for message in added)


def _says_no_more(known: Message | None, added: Message) -> bool:
    if known is added:
        return True
    if known is None or known.content != added.content or known.role is not added.role:
        return False
    fields = (
        (known.origin, added.origin),
        (known.usage, added.usage),
        (known.finish_reason, added.finish_reason),
    )
    if any(
        given is not None and given != there
        for there, given in (*fields, (known.native, added.native))
    ):
        return False
    return not added.metadata or added.metadata.items() <= known.metadata.items()
