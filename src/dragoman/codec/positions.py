"""Where things stand in a conversation as it was given, of one that is written without what only waits, and repaired."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dragoman.codec.marks import only_waits, without_waits
from dragoman.loss import Loss
from dragoman.message import Message
from dragoman.repair import Source

__all__ = ["given_losses", "places_sent", "unrepaired_losses"]


def places_sent(given: Sequence[Message]) -> tuple[Sequence[Message], Sequence[int]]:
    """The messages that are a part of the conversation, and where each stands in what was given."""
    sent = without_waits(given)
    if len(sent) == len(given):
        return given, range(len(given))
    return sent, [place for place, message in enumerate(given) if not only_waits(message)]


def unrepaired_losses(losses: Iterable[Loss], sources: Sequence[Source] | None) -> list[Loss]:
    """Losses of a repaired conversation, where they stood before the repair; without those of what repair made up. `sources`: as
    `repair.traced` has them."""
    if sources is None:
        return list(losses)
    return [placed for loss in losses if (placed := _unrepaired(loss, sources)) is not None]


def given_losses(losses: Iterable[Loss], places: Sequence[int]) -> list[Loss]:
    """Losses of what is sent, where they stand in what was given."""
    return [
        loss
        if loss.message is None or places[loss.message] == loss.message
        else replace(loss, message=places[loss.message])
        for loss in losses
    ]


def _unrepaired(loss: Loss, sources: Sequence[Source]) -> Loss | None:
    if loss.message is None:
        return loss
    source = sources[loss.message]
    if loss.part is None:
        return None if source.message is None else replace(loss, message=source.message)
    stood = source.parts[loss.part]
    return None if stood is None else replace(loss, message=stood[0], part=stood[1])
