"""What callers with budgets have spent, and what their calls hold: `reserve` before a call, `settle`
after it, each one UPDATE of the caller's one row.

Because the row holds both what is spent and what is held, and the UPDATE has the limits as its
condition, two processes never give away the same cent: the second one waits for the row, and looks
again. What a call holds is booked in a slot of time, as long as `SLOT_SECONDS`. The row knows two
slots, the present one and the one before; what a killed process held is forgotten with its slot.

Days, months and slots only go forward. A process whose clock is late counts in the newer ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from sqlalchemy import BigInteger, Connection, String, bindparam, case, func, select, update
from sqlalchemy.sql.elements import ColumnElement

from dragoman.errors import BudgetError
from dragoman.json_bytes import Json
from dragoman.serve.http.budget import Budget, format_amount, name_day, name_month
from dragoman.serve.store.sql_tables import balances, usage
from dragoman.sql.engine import DIALECTS
from dragoman.sql.prepared import PreparedStatement

__all__ = ["Balance", "SLOT_SECONDS", "explain_refusal", "read_balance", "reserve", "settle"]

SLOT_SECONDS = 900
"""A reservation is forgotten after one to two times as long."""
_UNITS, _WINDOWS = ("dollars", "tokens"), ("day", "month")
_UNLIMITED = 9 * 10**18
"""Above every budget, and still a number that the databases hold."""
_HELD_SECONDS = 1.0
"""Seconds after which a call may find room that others held."""


def _now(name: str) -> ColumnElement[Any]:
    return bindparam(f"now_{name}", type_=BigInteger() if name == "slot" else String())


def _amount(name: str) -> ColumnElement[int]:
    return bindparam(name, type_=BigInteger())


_C = balances.c
_LATEST: Mapping[str, ColumnElement[Any]] = {
    name: case((_C[name] < _now(name), _now(name)), else_=_C[name]) for name in (*_WINDOWS, "slot")
}
"""Day, month and slot as they are now."""
_SPENT = {
    f"{window}_{unit}": case((_C[window] < _now(window), 0), else_=_C[f"{window}_{unit}"])
    for window in _WINDOWS
    for unit in _UNITS
}
_HELD = {unit: case((_C.slot < _now("slot"), 0), else_=_C[f"held_{unit}"]) for unit in _UNITS}
_HELD_BEFORE = {
    unit: case(
        (_C.slot == _now("slot") - 1, _C[f"held_{unit}"]),
        (_C.slot < _now("slot"), 0),
        else_=_C[f"held_before_{unit}"],
    )
    for unit in _UNITS
}
"""What the columns come to now, when old windows and slots are over."""
_OWNED = _C.owner == bindparam("of_owner", type_=String())
_READ = select(
    *[amount.label(name) for name, amount in _SPENT.items()],
    *[(_HELD[unit] + _HELD_BEFORE[unit]).label(f"held_{unit}") for unit in _UNITS],
).where(_OWNED)


def _make_update(changes: Mapping[str, ColumnElement[Any]]) -> Any:
    current = {f"held_before_{unit}": amount for unit, amount in _HELD_BEFORE.items()}
    return (
        update(balances)
        .where(_OWNED)
        .values({**_LATEST, **_SPENT, **current, **changes})
        .returning(_C.slot)
    )


_RESERVE = _make_update(
    {f"held_{unit}": _HELD[unit] + _amount(f"hold_{unit}") for unit in _UNITS}
).where(
    *[
        _SPENT[f"{window}_{unit}"] + _HELD[unit] + _HELD_BEFORE[unit] + _amount(f"hold_{unit}")
        <= _amount(f"limit_{window}_{unit}")
        for window in _WINDOWS
        for unit in _UNITS
    ]
)


def _release(amount: ColumnElement[int], unit: str, slots_ago: int) -> ColumnElement[int]:
    """Returns what a slot holds without the call, if it was booked there."""
    is_there = _amount("of_slot") == _LATEST["slot"] - slots_ago
    return amount - case((is_there, _amount(f"hold_{unit}")), else_=0)


_SETTLE = _make_update(
    {
        **{
            name: spent + _amount(f"used_{name.rpartition('_')[2]}")
            for name, spent in _SPENT.items()
        },
        **{f"held_{unit}": _release(_HELD[unit], unit, 0) for unit in _UNITS},
        **{f"held_before_{unit}": _release(_HELD_BEFORE[unit], unit, 1) for unit in _UNITS},
    }
)

# Each call with a budget runs both, so they are compiled once.
_PREPARED_RESERVE, _PREPARED_SETTLE = PreparedStatement(_RESERVE), PreparedStatement(_SETTLE)


class Balance(msgspec.Struct, frozen=True):
    """What a caller has spent in the present day and month, and what its calls hold. Dollars in
    billionths."""

    day_dollars: int = 0
    """Spent in the day."""
    day_tokens: int = 0
    """Spent in the day."""
    month_dollars: int = 0
    """Spent in the month."""
    month_tokens: int = 0
    """Spent in the month."""
    held_dollars: int = 0
    """Held by calls that run."""
    held_tokens: int = 0
    """Held by calls that run."""

    def find_spent(self, budget: Budget) -> int:
        """Returns what is spent of a budget."""
        return getattr(self, f"{budget.per}_{budget.unit}")

    def find_held(self, budget: Budget) -> int:
        """Returns what calls hold of a budget."""
        return getattr(self, f"held_{budget.unit}")


def _times(now: datetime) -> Json:
    # Counted from 1970, so that all processes have the same slots.
    slot = int(now.timestamp()) // SLOT_SECONDS
    return {"now_day": name_day(now), "now_month": name_month(now), "now_slot": slot}


def read_balance(connection: Connection, owner: str, now: datetime) -> Balance:
    """Returns a caller's balance."""
    row = connection.execute(_READ, {"of_owner": owner, **_times(now)}).mappings().first()
    if row is None:
        return _sum_usage(connection, owner, now)
    return Balance(**row)


def reserve(
    connection: Connection,
    owner: str,
    budgets: Sequence[Budget],
    amounts: Mapping[str, int],
    now: datetime,
) -> int | Balance:
    """Holds what a call may take, by unit. Returns the slot in which it is booked; or the balance, if
    a budget has not so much left."""
    limits = {f"limit_{window}_{unit}": _UNLIMITED for window in _WINDOWS for unit in _UNITS} | {
        f"limit_{budget.per}_{budget.unit}": budget.amount for budget in budgets
    }
    holds = {f"hold_{unit}": amount for unit, amount in amounts.items()}
    values: Json = {"of_owner": owner, **_times(now), **limits, **holds}
    booked = _PREPARED_RESERVE.rows(connection, values)
    if not booked and _add_row(connection, owner, now):
        booked = _PREPARED_RESERVE.rows(connection, values)
    return booked[0].slot if booked else read_balance(connection, owner, now)


def settle(
    connection: Connection,
    owner: str,
    slot: int,
    holds: Mapping[str, int],
    used: Mapping[str, int],
    now: datetime,
) -> None:
    """Counts what a call took, and releases what it held since `slot`."""
    values: Json = {"of_owner": owner, "of_slot": slot, **_times(now)}
    values |= {f"hold_{unit}": amount for unit, amount in holds.items()}
    values |= {f"used_{unit}": amount for unit, amount in used.items()}
    _PREPARED_SETTLE.rows(connection, values)


def _add_row(connection: Connection, owner: str, now: datetime) -> bool:
    """Adds the row of a caller that has none. Returns True if it had none."""
    if connection.execute(select(_C.owner).where(_OWNED), {"of_owner": owner}).first() is not None:
        return False
    # What it took before it had a budget counts, too.
    balance = msgspec.structs.asdict(_sum_usage(connection, owner, now))
    times = {name: _times(now)[f"now_{name}"] for name in _LATEST}
    before = {f"held_before_{unit}": 0 for unit in _UNITS}
    row = DIALECTS[connection.dialect.name].insert(balances).on_conflict_do_nothing()
    connection.execute(row, {"owner": owner, **times, **balance, **before})
    return True


def _sum_usage(connection: Connection, owner: str, now: datetime) -> Balance:
    """Returns the balance that a caller's usage comes to."""
    today, amounts = name_day(now), {"dollars": usage.c.cost}
    amounts["tokens"] = usage.c.input_tokens + usage.c.output_tokens  # type: ignore[assignment]
    columns = [
        func.coalesce(func.sum(case((usage.c.day >= start, amount), else_=0)), 0).label(
            f"{window}_{unit}"
        )
        for window, start in (("day", today), ("month", f"{today[:7]}-01"))
        for unit, amount in amounts.items()
    ]
    wanted = select(*columns).where(usage.c.owner == owner, usage.c.day >= f"{today[:7]}-01")
    row = connection.execute(wanted).mappings().one()
    return Balance(**{name: int(amount) for name, amount in row.items()})


def explain_refusal(
    name: str,
    budgets: Sequence[Budget],
    balance: Balance,
    amounts: Mapping[str, int],
    now: datetime,
) -> BudgetError:
    """Returns the error for a call that a budget has no room for: the one that resets last."""
    short = [
        budget
        for budget in budgets
        if balance.find_spent(budget) + balance.find_held(budget) + amounts[budget.unit]
        > budget.amount
    ]
    # Another process may have changed the balance meanwhile.
    budget = max(short or budgets, key=lambda budget: (budget.find_reset(now), budget.per))
    need, remaining = amounts[budget.unit], max(0, budget.amount - balance.find_spent(budget))
    reset = budget.find_reset(now)
    seconds = (reset - now).total_seconds()
    text = "is spent"
    if need <= remaining:
        text, seconds = "is held by calls that run; try again when they end", _HELD_SECONDS
    elif remaining:
        text = (
            f"has {format_amount(remaining, budget.unit)} left, and this call may take "
            f"{format_amount(need, budget.unit)}; ask for a shorter answer"
        )
    resets_at = f"{reset:%Y-%m-%dT%H:%M:%SZ}"
    whose = f"key {name}" if name else "this key"
    error = BudgetError(
        f"budget of {whose}: {budget.words} {text}; it resets at {resets_at}",
        retry_after=seconds,
        resets_at=resets_at,
    )
    if budget.unit == "tokens":
        error.tokens = (budget.amount, remaining)
    return error
