"""At which messages of the caller's the losses of a dump stand: repair, and messages that are not sent, move positions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dragoman.loss import Loss
from dragoman.repair import Source

__all__ = ["map_losses_before_repair", "map_losses_to_input"]


def map_losses_before_repair(
    losses: Iterable[Loss], sources: Sequence[Source] | None
) -> list[Loss]:
    """Returns the losses of a repaired conversation's dump, with the positions before the repair,
    without losses of what repair made up. `sources`: as `repair.traced` returns them."""
    if sources is None:
        return list(losses)
    return [
        placed for loss in losses if (placed := _place_before_repair(loss, sources)) is not None
    ]


def map_losses_to_input(losses: Iterable[Loss], positions: Sequence[int]) -> list[Loss]:
    """Returns the losses of a dump, with the positions of the messages that the caller passed."""
    moved: list[Loss] = []
    for loss in losses:
        if loss.message is not None and positions[loss.message] != loss.message:
            loss = replace(loss, message=positions[loss.message])
        moved.append(loss)
    return moved


def _place_before_repair(loss: Loss, sources: Sequence[Source]) -> Loss | None:
    """Returns a loss of a dump with its position before repair, or None if repair added what it
    names."""
    if loss.message is None:
        return loss
    source = sources[loss.message]
    if loss.part is None:
        if source.message is None:
            return None
        return replace(loss, message=source.message)
    stood = source.parts[loss.part]
    if stood is None:
        return None
    return replace(loss, message=stood[0], part=stood[1])
