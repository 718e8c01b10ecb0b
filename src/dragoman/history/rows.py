"""Rows of a list: its messages in order, each with where it came from, and indexes of their ids,
turns and calls.

Rows are in chunks that never change, and an index is in layers, so that forks share what they have
in common: a fork copies no row and no key. What an index says may be out of date where rows were
moved; whoever asks holds it against the row. Rows that are added before others wait, and are put in
their place when something is read (`settle`), so that a conversation that comes from its end on is
put in order once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from dragoman.codec.turns import continues_turn
from dragoman.history.format_fields import is_sealed
from dragoman.message import Message, ToolCallPart

__all__ = ["NOWHERE", "Index", "Row", "Rows", "order_rows"]


class _Layer(NamedTuple):
    """What several lists may know together."""

    places: dict[str, int]
    limit: int
    """Positions from here on are of another list's."""


class Index:
    """Key → position. What it says may be out of date where positions were moved: who asks holds it
    against the list."""

    __slots__ = ("_layers", "places", "upto")

    def __init__(self) -> None:
        """Creates an index of the history's rows that covers none yet."""
        self._layers: tuple[_Layer, ...] = ()
        self.places: dict[str, int] = {}
        """Of this list alone."""
        self.upto = 0
        """How many positions it has seen."""

    def find(self, key: str) -> int | None:
        """Returns the position of the history's last row with a key."""
        if (position := self.places.get(key)) is not None:
            return position
        for layer in reversed(self._layers):
            if (position := layer.places.get(key)) is not None and position < layer.limit:
                return position
        return None

    def has_any(self, keys: Iterable[str]) -> bool:
        """True if one of these was ever noted."""
        maps = [self.places, *(layer.places for layer in self._layers)]
        return not all(positions.keys().isdisjoint(keys) for positions in maps)

    def forget(self) -> None:
        """Clears the index, so that it is built again."""
        self._layers, self.places, self.upto = (), {}, 0

    def fork(self, limit: int) -> Index:
        """Returns an index of the history's rows up to a position. Both share what is known;
        nothing is copied."""
        if self.places:
            self._layers, self.places = (
                _join_layers((*self._layers, _Layer(self.places, self.upto))),
                {},
            )
        other = Index()
        other._layers = tuple(
            [_Layer(layer.places, min(layer.limit, limit)) for layer in self._layers]
        )
        other.upto = min(self.upto, limit)
        return other


def _join_layers(layers: tuple[_Layer, ...]) -> tuple[_Layer, ...]:
    """Returns layers of a row index that grow by halves at least, so that few are to be asked; the
    work of joining them is shared by what made them."""
    while len(layers) > 1 and 2 * len(layers[-1].places) >= len(layers[-2].places):
        below, above = layers[-2:]
        reachable = {
            key: position for key, position in below.places.items() if position < below.limit
        }
        layers = (*layers[:-2], _Layer({**reachable, **above.places}, above.limit))
    return layers


NOWHERE: frozenset[str] = frozenset()
"""The sources of a message that was saved."""
_SIZE = 256
"""Rows that forks share, or copy, at once."""
_BEHIND_ALL = 1 << 80
_ORDER = attrgetter("order")


class Row(NamedTuple):
    """A message in a list."""

    message: Message
    """Itself."""
    order: int
    """What rows are sorted by, in microseconds: never the same for two that were added one after
    the other."""
    live: frozenset[str]
    """The sources among whose messages it is counted now; none: it was saved."""
    origins: frozenset[str]
    """The sources that it ever had."""
    starts: bool = True
    """Whether a turn begins with it."""


class Rows:
    """Rows in order. Chunks of them are never changed, so that forks hold the same."""

    __slots__ = (
        "_calls",
        "_chunks",
        "_ids",
        "_tail",
        "_turns",
        "_waiting",
        "_waiting_keys",
        "changes",
        "last_start",
        "least_waiting",
        "sealed",
    )

    def __init__(self) -> None:
        """Creates a history's rows without messages."""
        self._chunks: list[tuple[Row, ...]] = []
        self._tail: list[Row] = []
        self._ids, self._turns, self._calls = Index(), Index(), Index()
        self._waiting: list[list[Row]] = []
        self._waiting_keys: set[str] = set()
        self.changes = 0
        """How often rows that had been there were changed: what was derived of them before that
        does not hold."""
        self.last_start = 0
        """Where the last turn begins."""
        self.sealed = -1
        """The order of the last row that is sealed: it never changes, and none before it."""
        self.least_waiting = _BEHIND_ALL
        """What waits to be put in its place is not before this."""

    def __len__(self) -> int:
        return len(self._chunks) * _SIZE + len(self._tail)

    def __iter__(self) -> Iterator[Row]:
        return chain(chain.from_iterable(self._chunks), self._tail)

    def __getitem__(self, position: int) -> Row:
        chunk, index = divmod(position, _SIZE)
        if chunk < len(self._chunks):
            return self._chunks[chunk][index]
        return self._tail[index]

    def between(self, start: int, stop: int) -> list[Row]:
        """Returns the history's rows from `start` on, up to `stop`."""
        whole = len(self._chunks) * _SIZE
        base = min(start // _SIZE * _SIZE, whole)
        rows = [
            *chain.from_iterable(self._chunks[base // _SIZE : stop // _SIZE + 1]),
            *(self._tail if stop > whole else ()),
        ]
        return rows[start - base : stop - base]

    @property
    def last(self) -> Row | None:
        """Returns the history's last row, or None."""
        if self._tail:
            return self._tail[-1]
        if self._chunks:
            return self._chunks[-1][-1]
        return None

    def unit(self, position: int) -> tuple[int, int]:
        """Returns the positions of the first row of a message's turn and of the row behind it."""
        start, stop = position, position + 1
        while not self[start].starts:
            start -= 1
        while stop < len(self) and not self[stop].starts:
            stop += 1
        return start, stop

    # finding

    def position(self, message_id: str) -> int | None:
        """Returns the position of the row with this message id."""
        if self._ids.upto < len(self):
            self._extend_index(self._ids, _message_id)
        position = self._ids.find(message_id)
        if (
            position is not None
            and position < len(self)
            and self[position].message.id == message_id
        ):
            return position
        return None

    def turn(self, turn_id: str) -> int | None:
        """Returns the position of a row of the turn with this id."""
        self._extend_index(self._turns, _turn_id)
        position = self._turns.find(turn_id)
        if position is not None and position < len(self) and self[position].message.turn == turn_id:
            return position
        return None

    def call(self, call_id: str) -> int | None:
        """Returns the position of the row with the newest call of this id."""
        self._extend_index(self._calls, _call_ids)
        position = self._calls.find(call_id)
        if position is None or (
            position < len(self) and call_id in _call_ids(self[position].message)
        ):
            return position
        return next(
            (
                earlier
                for earlier in range(len(self) - 1, -1, -1)
                if call_id in _call_ids(self[earlier].message)
            ),
            None,
        )

    def knows(self, ids: AbstractSet[str], turns: Sequence[str]) -> bool:
        """True if a message of the rows may have one of these ids, or a turn one of these names or
        the id of a message."""
        if not len(self) and not self._waiting:
            return False
        keys = {*ids, *turns} if turns else ids
        if not self._waiting_keys.isdisjoint(keys):
            return True
        self._extend_index(self._ids, _message_id)
        if turns:
            self._extend_index(self._turns, _turn_id)
        return self._ids.has_any(keys) or (bool(turns) and self._turns.has_any(turns))

    def _extend_index(self, index: Index, keys: Callable[[Message], Iterable[str]]) -> None:
        """Adds the rows that an index does not cover yet, by their keys."""
        if index.upto < len(self):
            for position, row in enumerate(self.between(index.upto, len(self)), index.upto):
                for key in keys(row.message):
                    index.places[key] = position
            index.upto = len(self)

    # changing

    def append(self, row: Row, starts: bool | None = None) -> None:
        """Puts a row behind the history's others. `starts`: whether a turn begins with it, where
        that is known."""
        message, last = row.message, self.last
        if (message.native or message.metadata) and is_sealed(message):
            self.sealed = max(self.sealed, row.order)
        if starts is None:
            starts = last is None or not continues_turn(
                self[self.last_start].message, last.message, message
            )
        position = len(self)
        if starts:
            self.last_start = position
        if (
            self._ids.upto == position
        ):  # as it is while messages with ids are added, one by one or all at once
            self._ids.upto = position + 1
            if message.id is not None:
                self._ids.places[message.id] = position
        self._tail.append(row if row.starts is starts else row._replace(starts=starts))
        if len(self._tail) == _SIZE:
            self._chunks.append(tuple(self._tail))
            self._tail = []

    def extend(self, new_rows: Sequence[Row]) -> None:
        """Puts rows behind the others, which say already whether a turn begins with them."""
        start = len(self)
        if self._ids.upto == start:
            self._ids.upto = start + len(new_rows)
            self._ids.places.update(
                [
                    (row.message.id, position)
                    for position, row in enumerate(new_rows, start)
                    if row.message.id is not None
                ]
            )
        self.last_start = next(
            (
                position
                for position in range(start + len(new_rows) - 1, start - 1, -1)
                if new_rows[position - start].starts
            ),
            self.last_start,
        )
        self.sealed = max(self.sealed, _last_sealed(new_rows))
        rows = [*self._tail, *new_rows]
        whole = len(rows) - len(rows) % _SIZE
        self._chunks += [
            tuple(rows[position : position + _SIZE]) for position in range(0, whole, _SIZE)
        ]
        self._tail = rows[whole:]

    def wait(self, early_rows: Sequence[Row]) -> None:
        """Takes rows that belong before what is there. They are put in their place when it is
        looked at, so that a conversation which comes from its end on is put in order once."""
        for row in early_rows:
            if row.starts:
                self._waiting.append([])
            self._waiting[-1].append(row)
            self._waiting_keys.update(
                [key for key in (row.message.id, row.message.turn) if key is not None]
            )
        self.least_waiting = early_rows[0].order

    def settle(self) -> None:
        """Sorts the rows that wait for their place into the history."""
        if self._waiting:
            units, self._waiting = self._waiting, []
            self._waiting_keys, self.least_waiting = set(), _BEHIND_ALL
            self.insert(units)

    def insert(self, early: Sequence[list[Row]]) -> None:
        """Puts the rows of turns where their times belong, and cuts none."""
        start = bisect_right(self, min(unit[0].order for unit in early), key=_ORDER)
        if start < len(self):
            start = self.unit(start)[0]
        units: list[list[Row]] = []
        for row in self.between(start, len(self)):
            if row.starts or not units:
                units.append([])
            units[-1].append(row)
        units = sorted([*units, *early], key=lambda unit: unit[0].order)
        self.splice(start, len(self), order_rows(chain.from_iterable(units)))

    def put(self, position: int, row: Row) -> None:
        """Puts a row with the same message in the place of another."""
        chunk, index = divmod(position, _SIZE)
        if chunk == len(self._chunks):
            self._tail[index] = row
        else:
            old = self._chunks[chunk]
            self._chunks[chunk] = (*old[:index], row, *old[index + 1 :])

    def splice(self, start: int, stop: int, new_rows: Sequence[Row]) -> None:
        """Puts rows in the place of those from `start` on, up to `stop`."""
        self.changes += 1
        self.sealed = max(self.sealed, _last_sealed(new_rows))
        rows, stop = self._mark_starts(start, stop, new_rows)
        # Within one chunk only that is made anew; else all behind `start` is, since every place
        # behind it moves.
        chunk, base = start // _SIZE, min(start // _SIZE, len(self._chunks)) * _SIZE
        if len(rows) == stop - start and stop <= base + _SIZE and chunk < len(self._chunks):
            self._chunks[chunk] = (
                *self.between(base, start),
                *rows,
                *self.between(stop, base + _SIZE),
            )
        else:
            remaining = [*self.between(base, start), *rows, *self.between(stop, len(self))]
            whole = len(remaining) - len(remaining) % _SIZE
            self._chunks[base // _SIZE :] = [
                tuple(remaining[offset : offset + _SIZE]) for offset in range(0, whole, _SIZE)
            ]
            self._tail = remaining[whole:]
        for index, keys in (
            (self._ids, _message_id),
            (self._turns, _turn_id),
            (self._calls, _call_ids),
        ):
            if len(rows) != stop - start or stop > index.upto:
                index.upto = min(index.upto, start)
                continue
            for position, row in enumerate(rows, start):
                for key in keys(row.message):
                    index.places[key] = position
        self._find_last_start()

    def fork(self, stop: int) -> Rows:
        """Returns the rows up to `stop`, which both share."""
        other = Rows()
        other._chunks = self._chunks[: stop // _SIZE]
        other._tail = self.between(len(other._chunks) * _SIZE, stop)
        for index, keys in (
            (self._ids, _message_id),
            (self._turns, _turn_id),
            (self._calls, _call_ids),
        ):
            self._extend_index(index, keys)  # once, for all forks
        other._ids, other._turns = self._ids.fork(stop), self._turns.fork(stop)
        other._calls = self._calls.fork(stop)
        other._find_last_start()
        if self.sealed >= 0:
            other.sealed = _last_sealed(other)
        return other

    def _mark_starts(self, start: int, stop: int, new_rows: Sequence[Row]) -> tuple[list[Row], int]:
        """Returns the rows that are to stand there, with those behind them for which a turn begins
        elsewhere now, and where these stop."""
        first = before = None
        if start:
            before = self[start - 1].message
            first = self[self.unit(start - 1)[0]].message
        rows: list[Row] = []
        changed = 0
        for number, row in enumerate(
            chain(new_rows, map(self.__getitem__, range(stop, len(self))))
        ):
            starts = _begins_turn(first, before, row.message)
            # Behind the new rows the first turn that begins where it did before ends the walk:
            # nothing later changes.
            if number >= len(new_rows) and starts and row.starts:
                break
            first, before = row.message if starts else first, row.message
            rows.append(row if row.starts is starts else row._replace(starts=starts))
            if number < len(new_rows) or row.starts is not starts:
                changed = len(rows)
        return rows[:changed], stop + changed - len(new_rows)

    def _find_last_start(self) -> None:
        """Finds the row at which the last turn begins."""
        start = len(self)
        while start and not self[start - 1].starts:
            start -= 1
        self.last_start = max(start - 1, 0)


def _begins_turn(first: Message | None, before: Message | None, message: Message) -> bool:
    """True if a turn begins with a message. `first`, `before`: the first and the last message of
    the turn that stands before it; `None`: nothing does."""
    return first is None or before is None or not continues_turn(first, before, message)


def order_rows(rows: Iterable[Row]) -> list[Row]:
    """Returns rows as they come, of which none has a lower order than one before it."""
    ordered: list[Row] = []
    for row in rows:
        is_late = bool(ordered) and row.order < ordered[-1].order
        ordered.append(row._replace(order=ordered[-1].order) if is_late else row)
    return ordered


def _last_sealed(rows: Iterable[Row]) -> int:
    """Returns the order of the last that is sealed; -1: none is."""
    candidates = [row for row in rows if row.message.native or row.message.metadata]
    return max([row.order for row in candidates if is_sealed(row.message)], default=-1)


def _message_id(message: Message) -> Iterable[str]:
    if message.id is not None:
        return (message.id,)
    return ()


def _turn_id(message: Message) -> Iterable[str]:
    if message.turn is not None:
        return (message.turn,)
    return ()


def _call_ids(message: Message) -> Iterable[str]:
    return [piece.id for piece in message.content if isinstance(piece, ToolCallPart)]
