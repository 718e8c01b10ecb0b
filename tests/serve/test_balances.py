"""What callers with budgets have spent, and what their calls hold: the law, at every time, in one
process and in several."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from sqlalchemy import create_engine

from dragoman.errors import BudgetError
from dragoman.serve.accounts.balances import (
    SLOT_SECONDS,
    Balance,
    explain_refusal,
    read_balance,
    reserve,
    settle,
)
from dragoman.serve.accounts.sql_accounts import SqlAccounts
from dragoman.serve.accounts.sql_usage import write_usage
from dragoman.serve.accounts.usage import UsageRow
from dragoman.serve.http.budget import parse_budgets
from dragoman.serve.http.callers import Caller
from dragoman.serve.store.sql_tables import metadata

START = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
"""The last evening of a month."""
BUDGETS = parse_budgets(["1000-tokens/day", "1500-tokens/month", "0.000001/day"])
"""1,000 tokens and 1,000 billionths of a dollar a day."""


class Reference:
    """The same, from all that ever happened."""

    def __init__(self) -> None:
        self.spent: list[tuple[datetime, dict[str, int]]] = []
        self.held: list[tuple[int, dict[str, int]]] = []

    def find_spent(self, unit: str, per: str, now: datetime) -> int:
        length = 10 if per == "day" else 7
        same = [each for at, each in self.spent if str(at)[:length] == str(now)[:length]]
        return sum(each[unit] for each in same)

    def find_held(self, unit: str, now: datetime) -> int:
        slot = int(now.timestamp()) // SLOT_SECONDS
        return sum(each[unit] for at, each in self.held if at >= slot - 1)

    def has_room(self, amounts: dict[str, int], now: datetime) -> bool:
        return all(
            self.find_spent(budget.unit, budget.per, now) + self.find_held(budget.unit, now) + amounts[budget.unit]
            <= budget.amount
            for budget in BUDGETS
        )  # fmt: skip


amounts = some.fixed_dictionaries(
    {"dollars": some.integers(0, 600), "tokens": some.integers(0, 600)}
)
steps = some.lists(
    some.one_of(
        some.tuples(some.just("reserve"), amounts),
        some.tuples(some.just("settle"), some.integers(0, 5), amounts),
        some.tuples(some.just("wait"), some.sampled_from([1, 60, 900, 1800, 4 * 3600, 30 * 86400])),
    ),
    max_size=25,
)


@given(steps)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_balance_is_what_all_calls_together_come_to(steps: Any) -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    now, law = START, Reference()
    running: list[tuple[int, dict[str, int]]] = []
    with engine.begin() as connection:
        for kind, *rest in steps:
            if kind == "wait":
                now += timedelta(seconds=rest[0])
            elif kind == "reserve":
                booked = reserve(connection, "me", BUDGETS, rest[0], now)
                assert isinstance(booked, int) is law.has_room(rest[0], now)
                if isinstance(booked, int):
                    running.append((booked, rest[0]))
                    law.held.append((booked, rest[0]))
            elif rest[0] < len(running):
                booked, held = running.pop(rest[0])
                settle(connection, "me", booked, held, rest[1], now)
                law.held.remove((booked, held))
                law.spent.append((now, rest[1]))
            balance = read_balance(connection, "me", now)
            for unit in ("dollars", "tokens"):
                assert getattr(balance, f"held_{unit}") == law.find_held(unit, now)
                for per in ("day", "month"):
                    assert getattr(balance, f"{per}_{unit}") == law.find_spent(unit, per, now)
    engine.dispose()


def test_a_process_whose_clock_is_late_counts_in_the_newer_day() -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    late = START.replace(hour=23, minute=59, second=59)
    early = late + timedelta(seconds=2)
    with engine.begin() as connection:
        slot = reserve(connection, "me", BUDGETS, {"dollars": 0, "tokens": 900}, early)
        assert isinstance(slot, int)
        settle(
            connection, "me", slot, {"dollars": 0, "tokens": 900}, {"dollars": 0, "tokens": 900}, early
        )  # fmt: skip
        assert isinstance(
            reserve(connection, "me", BUDGETS, {"dollars": 0, "tokens": 200}, late), Balance
        )
        assert read_balance(connection, "me", early).day_tokens == 900


def test_what_was_taken_before_there_was_a_budget_counts() -> None:
    engine = create_engine("sqlite://")
    metadata.create_all(engine)
    rows = [
        UsageRow(owner="me", day="2026-11-30", model="m", input_tokens=300, output_tokens=100),
        UsageRow(owner="me", day="2026-11-01", model="m", input_tokens=700, cost=5),
        UsageRow(owner="me", day="2026-10-31", model="m", input_tokens=10**6),
        UsageRow(owner="you", day="2026-11-30", model="m", input_tokens=10**6),
    ]
    with engine.begin() as connection:
        write_usage(connection, rows)
        assert isinstance(
            reserve(connection, "me", BUDGETS, {"dollars": 0, "tokens": 500}, START), Balance
        )
        balance = read_balance(connection, "me", START)
        assert (balance.day_tokens, balance.month_tokens, balance.month_dollars) == (400, 1100, 5)
        assert reserve(connection, "me", BUDGETS, {"dollars": 0, "tokens": 400}, START) == int(
            START.timestamp() // SLOT_SECONDS
        )


@pytest.mark.anyio
async def test_two_processes_never_give_away_the_last_cent_twice(database_url: str) -> None:
    """Two connections each, as two processes have them, and many calls at once."""
    caller = Caller("me", "ci", budgets=parse_budgets(["0.000001/day"]))
    first, second = SqlAccounts(database_url), SqlAccounts(database_url)

    async def call(number: int) -> int:
        accounts = (first, second)[number % 2]
        held = {"dollars": 100, "tokens": 1}
        try:
            slot = await accounts.reserve(caller, held, START)
        except BudgetError:
            return 0
        await asyncio.sleep(0)
        await accounts.settle("me", slot, held, {"dollars": 10 + number % 3, "tokens": 1}, START)
        return 10 + number % 3

    spent = sum(await asyncio.gather(*[call(number) for number in range(40)]))
    while (more := await call(1)) > 0:
        spent += more
    balance = await second.read_balance("me", START)
    assert balance == Balance(spent, balance.day_tokens, spent, balance.month_tokens, 0, 0)
    assert 900 < balance.day_dollars <= 1000
    await first.close()
    await second.close()


@pytest.mark.anyio
async def test_a_caller_that_leaves_while_it_is_booked_holds_nothing(database_url: str) -> None:
    caller = Caller("me", "ci", budgets=parse_budgets(["100-tokens/day"]))
    accounts = SqlAccounts(database_url)
    held = {"dollars": 0, "tokens": 100}
    assert (await accounts.read_balance("me", START)).held_tokens == 0
    booking = asyncio.create_task(accounts.reserve(caller, held, START))
    await asyncio.sleep(0)
    booking.cancel()
    await asyncio.wait([booking])
    # What is written now comes behind the booking, and what releases it soon after.
    slot = None
    while slot is None:
        with suppress(BudgetError):
            slot = await accounts.reserve(caller, held, START)
    with pytest.raises(BudgetError, match="is held by calls that run"):
        await accounts.reserve(caller, held, START)
    await accounts.settle("me", slot, held, held, START)
    with pytest.raises(BudgetError, match="is spent"):
        await accounts.reserve(caller, held, START)
    await accounts.close()


@pytest.mark.parametrize(
    ("budgets", "balance", "need", "words", "retry_after"),
    [
        (["5/day"], Balance(day_dollars=5 * 10**9), 1, "$5 per day is spent; it resets at 2026-12-01T00:00:00Z", 14400),
        (["5/day"], Balance(day_dollars=4 * 10**9), 2 * 10**9, "$5 per day has $1 left, and this call may take $2; ask for a shorter answer; it resets at 2026-12-01T00:00:00Z", 14400),
        (["5/day"], Balance(held_dollars=5 * 10**9), 1, "$5 per day is held by calls that run; try again when they end; it resets at 2026-12-01T00:00:00Z", 1),
        (["5/day", "7/month"], Balance(day_dollars=5 * 10**9, month_dollars=7 * 10**9), 1, "$7 per month is spent; it resets at 2026-12-01T00:00:00Z", 14400),
        (["20k-tokens/month"], Balance(month_tokens=20_000), 1, "20,000 tokens per month is spent; it resets at 2026-12-01T00:00:00Z", 14400),
    ],
)  # fmt: skip
def test_a_refusal_says_why_and_until_when(
    budgets: list[str], balance: Balance, need: int, words: str, retry_after: float
) -> None:
    amounts = {"dollars": need, "tokens": need}
    error = explain_refusal("ci", parse_budgets(budgets), balance, amounts, START)
    assert error.message == f"budget of key ci: {words}"
    assert (error.retry_after, error.resets_at) == (retry_after, "2026-12-01T00:00:00Z")
    assert (error.tokens is None) is ("tokens" not in words)


@pytest.mark.parametrize(
    ("at", "per", "reset"),
    [
        ("2026-11-26T23:59:59", "day", "2026-11-27T00:00:00"),
        ("2026-11-27T00:00:00", "day", "2026-11-28T00:00:00"),
        ("2026-12-31T23:59:59", "day", "2027-01-01T00:00:00"),
        ("2026-12-31T23:59:59", "month", "2027-01-01T00:00:00"),
        ("2028-02-29T12:00:00", "month", "2028-03-01T00:00:00"),
        ("2026-01-31T00:00:00", "month", "2026-02-01T00:00:00"),
    ],
)
def test_days_and_months_end_at_midnight_utc(at: str, per: str, reset: str) -> None:
    (budget,) = parse_budgets([f"1/{per}"])
    now = datetime.fromisoformat(at).replace(tzinfo=UTC)
    assert budget.find_reset(now).isoformat() == f"{reset}+00:00"
