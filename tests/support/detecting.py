"""Conversations of all formats with a little of them wrong, and whether detection reads them
otherwise than their own format does."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, NamedTuple

import msgspec

from dragoman import formats
from dragoman.codec.digest import chain_neutral_digests
from dragoman.codec.json_values import if_list
from dragoman.errors import HistoryError
from dragoman.formats import registry
from dragoman.formats.detection import Detected, detect_list, payload_of
from dragoman.testing.mutation import Sample, mutate
from support.histories import NATIVE, NEUTRAL
from support.switching import FOLDERS
from support.traffic import FOLDER, Exchange

__all__ = ["Case", "Verdict", "case_of", "judged", "seeds"]

MOST = 20_000
"""Bytes of a recorded body; a larger one holds nothing but more of the same."""


class Case(NamedTuple):
    """A conversation that was changed."""

    format: str
    """Of which it was."""
    value: Any
    """What it is now."""


class Verdict(NamedTuple):
    """What detection made of it."""

    kind: str
    """`right`; `alike`: another format that reads it to the same messages; `refused`: no format, or
    ambiguous; `left`: its own format could have it at most, and the one that was found likely has,
    or cannot, and all that can read it alike; `wrong`."""
    found: tuple[str, ...] = ()
    """The formats."""


@cache
def seeds(name: str, recordings: int) -> tuple[Sample, ...]:
    """What a format writes of conversations of every kind, in a list, a body, and alone; and bodies
    that were recorded of it."""
    return tuple(
        Sample.from_value(value) for value in (*_written(name), *_recorded(name, recordings))
    )


def _written(name: str) -> Iterator[Any]:
    format_ = formats.get(name)
    own = list(NATIVE.get(name, ()))
    for messages in NEUTRAL.values():
        own.append(json.loads(msgspec.json.encode(format_.dump_messages(messages))))
    for payload in own:
        yield payload
        layout = registry.layout(name)
        field = (layout.fields or ("messages",))[0]
        elements = payload if isinstance(payload, list) else payload.get(field)
        if isinstance(elements, list) and elements:
            yield elements[len(elements) // 2]
            yield list(elements)
            if layout.fields == ():
                continue
            yield {"model": "m", **({field: payload} if isinstance(payload, list) else payload)}


def _recorded(name: str, count: int) -> Iterator[Any]:
    if name not in FOLDERS or not FOLDER.is_dir():
        return
    paths = [path for folder in FOLDERS[name] for path in sorted((FOLDER / folder).glob("*.json"))]
    for path in Random(name).sample(paths, min(count, len(paths))):
        body = Exchange(path).request
        if body and len(json.dumps(body)) < MOST:
            yield body


def case_of(index: int, names: Sequence[str], recordings: int = 40) -> Case:
    """The case of a number; the same at any time."""
    chance = Random(index)
    name = names[index % len(names)]
    own = seeds(name, recordings)
    others = [
        chance.choice(seeds(other, recordings)) for other in (name, name, chance.choice(names))
    ]
    return Case(name, mutate(chance, chance.choice(own), others))


def judged(case: Case) -> Verdict:
    """What detection makes of a case."""
    try:
        found = detect_list(case.value)
    except HistoryError:
        return Verdict("refused")
    names = tuple(each.format for each in found)
    if set(names) == {case.format}:
        return Verdict("right", names)
    try:
        own = chain_neutral_digests(
            formats.get(case.format).load_messages(payload_of(case.value, case.format))
        )
    except HistoryError:
        return Verdict("left", names)
    try:
        read = [
            message
            for each in found
            for message in formats.get(each.format).load_messages(each.payload)
        ]
    except HistoryError:
        return Verdict("refused", names)
    if chain_neutral_digests(read) == own:
        return Verdict("alike", names)
    return Verdict("left" if _is_anothers(case, found) else "wrong", names)


def _listed(found: Detected) -> list[Any]:
    field = (registry.layout(found.format).fields or ("",))[0]
    return if_list(found.payload.get(field))


def _is_anothers(case: Case, found: Sequence[Detected]) -> bool:
    """Whether there is a message that its own format could have at most, and the one that was found
    likely has, or that its own cannot have, and all that can read alike."""
    voters = {name: formats.get(name).votes for name in formats.names()}
    for each in found:
        if not (isinstance(each.payload, list) or _listed(each)):
            return True  # a text in place of messages, as no other format has it
        for one in each.payload if isinstance(each.payload, list) else _listed(each):
            votes = {
                name: vote
                for name, voter in voters.items()
                if not isinstance(one, str) and (vote := voter(one))
            }
            own, other = votes.get(case.format, 0), votes.get(each.format, 0)
            if other - own > 1 or (
                other and not own and len({_read(one, name) for name in votes}) == 1
            ):
                return True
    return False


def _read(element: Any, name: str) -> tuple[str, ...]:
    """What a format makes of a message by itself."""
    try:
        return tuple(
            chain_neutral_digests(formats.get(name).load_messages(payload_of(element, name)))
        )
    except HistoryError:
        return ()
