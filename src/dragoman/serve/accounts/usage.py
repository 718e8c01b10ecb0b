"""What callers took, by model and UTC day. It is collected in the process, and written to the database
every two seconds, so that a call waits for nothing."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

import msgspec

from dragoman.serve.http.budget import to_decimal

__all__ = ["COUNTS", "UsageBook", "UsageRow"]

COUNTS = ("requests", "input_tokens", "cached_tokens", "output_tokens", "cost", "unknown_cost")
"""Fields of a row that are counted."""
_MOST_MODELS = 200
"""Models of one caller and day that are told apart; the others are one."""
_MOST_PENDING = 50_000
"""Rows that wait to be written, or that are kept without a database."""
_OTHER = "other"


class UsageRow(msgspec.Struct, frozen=True):
    """What a caller took of a model on a UTC day."""

    owner: str = ""
    """Id of the caller."""
    day: str = ""
    """Such as `2026-11-26`."""
    model: str = ""
    """Name of the gateway's that the caller asked for, or the model string of an agent's model."""
    name: str = ""
    """Of the key."""
    requests: int = 0
    """Calls of models."""
    input_tokens: int = 0
    """All of the prompts, cached ones included."""
    cached_tokens: int = 0
    """Part of them: read from a provider's cache."""
    output_tokens: int = 0
    """All of the answers."""
    cost: int = 0
    """Billionths of a dollar, as far as prices are known."""
    unknown_cost: int = 0
    """Requests whose price is not known."""

    def __add__(self, other: UsageRow) -> UsageRow:
        """Returns the row with the counts of both."""
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return msgspec.structs.replace(self, **counts)

    @property
    def dollars(self) -> str:
        """Returns the cost as a decimal number."""
        return to_decimal(self.cost, "dollars")


class UsageBook:
    """Usage of this process that waits to be written. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[tuple[str, str, str], UsageRow] = {}
        self._models: dict[tuple[str, str], set[str]] = {}

    def record(self, row: UsageRow) -> None:
        """Adds what a call took."""
        with self._lock:
            models = self._models.setdefault((row.owner, row.day), set())
            # A pattern lets callers choose names.
            if row.model not in models and len(models) >= _MOST_MODELS:
                row = msgspec.structs.replace(row, model=_OTHER)
            models.add(row.model)
            self._add(row)

    def take(self) -> list[UsageRow]:
        """Removes all rows and returns them, in an order that is the same in all processes."""
        with self._lock:
            rows, self._rows = self._rows, {}
            days = {key[1] for key in rows}
            self._models = {key: names for key, names in self._models.items() if key[1] in days}
        return [rows[key] for key in sorted(rows)]

    def put_back(self, rows: Iterable[UsageRow]) -> None:
        """Adds rows again that could not be written."""
        with self._lock:
            for row in rows:
                self._add(row)

    def list_rows(self, since: str, owner: str | None) -> list[UsageRow]:
        """Returns the rows from a day on, the latest day first. `owner`: of this caller; `None`: of
        all."""
        with self._lock:
            rows = [row for row in self._rows.values() if row.day >= since]
        if owner is not None:
            rows = [row for row in rows if row.owner == owner]
        return sorted(
            sorted(rows, key=lambda row: row.model), key=lambda row: row.day, reverse=True
        )

    def _add(self, row: UsageRow) -> None:
        key = (row.owner, row.day, row.model)
        before = self._rows.get(key)
        self._rows[key] = row if before is None else before + row
        if len(self._rows) > _MOST_PENDING:
            del self._rows[next(iter(self._rows))]
