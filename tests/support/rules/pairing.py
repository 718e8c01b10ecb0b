"""Rules that all targets share: calls and results that belong together, ids and names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["Turn", "merged", "misnamed", "unpaired", "unread"]


class Turn(NamedTuple):
    """One message: who speaks, and the ids of its calls and results."""

    role: str
    calls: Sequence[str] = ()
    results: Sequence[str] = ()
    says: bool = True
    """It holds something else too."""


def unpaired(turns: Sequence[Turn]) -> Iterator[str]:
    """Each call is answered exactly once, right after it; no result stands elsewhere."""
    waiting: list[str] = []
    for place, turn in enumerate(turns):
        for id_ in turn.results:
            if id_ not in waiting:
                yield f"[{place}]: the result {id_!r} has no call right before it, or its call is answered"
            else:
                waiting.remove(id_)
        if waiting and (turn.says or turn.calls):
            yield f"[{place}]: {waiting} are not answered before it"
            waiting = []
        if len(set(turn.calls)) < len(turn.calls):
            yield f"[{place}]: an id stands twice among {turn.calls}"
        waiting += turn.calls
    if waiting:
        yield f"at the end: {waiting} are not answered"


def merged(turns: Sequence[Turn]) -> list[Turn]:
    """Turns of the same role joined, as an API does that takes them as one."""
    out: list[Turn] = []
    for turn in turns:
        if out and out[-1].role == turn.role:
            last = out.pop()
            turn = Turn(
                turn.role,
                [*last.calls, *turn.calls],
                [*last.results, *turn.results],
                last.says or turn.says,
            )
        out.append(turn)
    return out


def misnamed(what: str, values: Sequence[str], pattern: str) -> Iterator[str]:
    """Values that do not match all of a pattern."""
    for value in values:
        if re.fullmatch(pattern, value) is None:
            yield f"{what} {value!r} does not match {pattern}"


def unread(name: str, arguments: str) -> Iterator[str]:
    """Of a call's arguments as text: they must be a JSON object."""
    try:
        if isinstance(json.loads(arguments), dict):
            return
    except ValueError:
        pass
    yield f"the arguments of {name}, {arguments!r:.60}, are no JSON object"
