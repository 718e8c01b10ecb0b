"""Ids that are to be told apart, though who made them did not."""

from __future__ import annotations

__all__ = ["Ids"]


class Ids:
    """Ids that are taken. Linear in what comes, however often one id does."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._repeats: dict[str, int] = {}

    def __contains__(self, id_: str) -> bool:
        return id_ in self._taken

    def take(self, id_: str) -> str:
        """An id like this one that is not taken, nor empty; it is taken now."""
        free = id_
        while not free or free in self._taken:
            repeat = self._repeats[id_] = self._repeats.get(id_, 1) + 1
            free = f"{id_}~{repeat}"
        self._taken.add(free)
        return free
