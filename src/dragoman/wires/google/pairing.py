"""Ids of calls and results. Gemini often gives none: they are minted by position, and results matched by order and name."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from dragoman.message import Native
from dragoman.wires.google.quirks import OWN

__all__ = ["Pairing", "given_id", "is_unnamed"]


class _Call:
    """A call of this round."""

    __slots__ = ("answered", "id")

    def __init__(self, id_: str) -> None:
        self.id = id_
        self.answered = False


class Pairing:
    """The calls of a conversation, or of one answer, as they are read."""

    def __init__(self, new_id: Callable[[], str] | None = None) -> None:
        self._new_id = new_id
        self._taken: set[str] = set()
        self._count = 0
        self._by_id: dict[str, deque[_Call]] = {}  # calls of this round, in order
        self._by_name: dict[str, deque[_Call]] = {}
        self._ran = ""

    def round(self) -> None:
        """A new round of calls begins: results no longer answer the calls before it."""
        self._by_id.clear()
        self._by_name.clear()

    def call(self, given: str | None, name: str) -> str:
        """A call of a function → its id."""
        id_ = given or self._mint()
        self._taken.add(id_)
        self._count += 1
        call = _Call(id_)
        self._by_id.setdefault(id_, deque()).append(call)
        self._by_name.setdefault(name, deque()).append(call)
        return id_

    def result(self, given: str | None, name: str) -> str:
        """A function's response → the id of its call: the first one of that name that has none."""
        calls = (self._by_id.get(given) if given else self._by_name.get(name)) or deque[_Call]()
        while calls:
            call = calls.popleft()
            if not call.answered:
                call.answered = True
                return call.id
        return given or self.call(None, "")

    def run(self, given: str | None) -> str:
        """A call that the provider ran → its id."""
        self._ran = given or self._mint()
        self._taken.add(self._ran)
        self._count += 1
        return self._ran

    def ran(self, given: str | None) -> str:
        """What the provider's call gave → the id of that call."""
        return given or self._ran or self.run(None)

    def _mint(self) -> str:
        if self._new_id is not None:
            return self._new_id()
        while (id_ := f"call-{self._count}") in self._taken:
            self._count += 1
        return id_


def is_unnamed(native: Native) -> bool:
    """Whether a call or a result came without an id: it is marked so among its fields, where the API has no null."""
    return OWN.fields(native).get("id", "") is None


def given_id(native: Native, id_: str) -> dict[str, str]:
    """The field `id` of a call or result as it is sent: an id that was not given is not sent back."""
    if is_unnamed(native):
        spelled = OWN.form(native)
        return {"id": spelled["id"]} if "id" in spelled else {}
    return {"id": id_}
