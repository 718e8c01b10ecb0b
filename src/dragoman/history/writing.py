"""A conversation, written for a target: repaired where a model reads it, and what that costs where the user has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dragoman.codec.history_pieces import given_losses, places_sent, unrepaired_losses
from dragoman.history.fields import lost_fields
from dragoman.history.target import Target
from dragoman.history.unwritable import unwritable_named
from dragoman.loss import Loss, Lost
from dragoman.message import MarkPart, Message
from dragoman.repair import Source

__all__ = ["Written", "write"]


class Written(NamedTuple):
    """What was written of a conversation. Positions are those in the conversation as it was given."""

    payload: Any
    """As the target has it."""
    losses: tuple[Loss, ...]
    """What was left out or changed."""
    repairs: tuple[Loss, ...]
    """Results that were made up, dropped or moved to their call."""


def write(messages: Sequence[Message], target: Target, *, fields: bool = True) -> Written:
    """Writes a conversation as it would be for a target. `fields`: whether the fields that one format alone has are looked for, which takes
    a pass over the conversation.

    Raises:
        HistoryError: a message holds what JSON has not.
    """
    given = tuple(messages)
    sent, places = (given, range(len(given))) if target.waits else places_sent(given)
    mended, repairs, sources = target.mended(sent) if target.mended else (sent, [], None)
    losses: list[Loss] = []
    with unwritable_named(given):
        payload = target.dump(mended, losses)
        if fields:
            losses += lost_fields(
                mended, target, {(loss.message, loss.part, loss.what) for loss in losses}
            )
    return Written(
        payload,
        _in_order(given_losses(unrepaired_losses(losses, sources), places)),
        _in_order(given_losses((*repairs, *_moved(mended, sources)), places)),
    )


def _moved(mended: Sequence[Message], sources: Sequence[Source] | None) -> Iterator[Loss]:
    """The results that repair puts before something that they stood behind."""
    first: tuple[int, int] | None = None
    for message, source in zip(reversed(mended), reversed(sources or ()), strict=False):
        for piece, stood in zip(reversed(message.content), reversed(source.parts), strict=True):
            if stood is None or isinstance(piece, MarkPart):
                continue
            if first is not None and stood > first:
                yield Loss(
                    *stood,
                    Lost.order,
                    "results stand right behind their calls, in the order of these",
                )
            first = stood if first is None else min(first, stood)


def _in_order(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Each once, as they stand in the conversation; what concerns the whole comes first."""
    found = dict.fromkeys(losses)
    return tuple(sorted(found, key=lambda loss: (_place(loss.message), _place(loss.part))))


def _place(place: int | None) -> int:
    return -1 if place is None else place
