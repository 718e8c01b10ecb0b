"""Where in a list a key stands: an index in layers, so that a fork shares what was known before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["Index"]


class _Layer(NamedTuple):
    """What several lists may know together."""

    places: dict[str, int]
    limit: int
    """Positions from here on are of another list's."""


class Index:
    """Key → position. What it says may be out of date where positions were moved: who asks holds it against the list."""

    __slots__ = ("_layers", "places", "upto")

    def __init__(self) -> None:
        self._layers: tuple[_Layer, ...] = ()
        self.places: dict[str, int] = {}
        """Of this list alone."""
        self.upto = 0
        """How many positions it has seen."""

    def find(self, key: str) -> int | None:
        """The position that was noted last for a key."""
        if (place := self.places.get(key)) is not None:
            return place
        for layer in reversed(self._layers):
            if (place := layer.places.get(key)) is not None and place < layer.limit:
                return place
        return None

    def has_any(self, keys: Iterable[str]) -> bool:
        """Whether one of these was ever noted."""
        known = [self.places, *(layer.places for layer in self._layers)]
        return not all(places.keys().isdisjoint(keys) for places in known)

    def forget(self) -> None:
        """Everything: it is to be built again."""
        self._layers, self.places, self.upto = (), {}, 0

    def fork(self, limit: int) -> Index:
        """An index of a list that begins as this one, up to a position. What was known is shared, and not copied."""
        if self.places:
            self._layers, self.places = _joined((*self._layers, _Layer(self.places, self.upto))), {}
        other = Index()
        other._layers = tuple(
            [_Layer(layer.places, min(layer.limit, limit)) for layer in self._layers]
        )
        other.upto = min(self.upto, limit)
        return other


def _joined(layers: tuple[_Layer, ...]) -> tuple[_Layer, ...]:
    """Layers that grow by halves at least, so that few are to be asked; the work of joining them is shared by what made them."""
    while len(layers) > 1 and 2 * len(layers[-1].places) >= len(layers[-2].places):
        below, above = layers[-2:]
        kept = {key: place for key, place in below.places.items() if place < below.limit}
        layers = (*layers[:-2], _Layer({**kept, **above.places}, above.limit))
    return layers
