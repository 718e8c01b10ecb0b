"""Shows the caller's own usage and budgets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import reduce
from operator import add

from dragoman.errors import InvalidRequestError
from dragoman.json_bytes import Json
from dragoman.serve.accounts.accounts import Accounts
from dragoman.serve.accounts.usage import COUNTS, UsageRow
from dragoman.serve.http.budget import name_day, to_decimal
from dragoman.serve.http.callers import Caller
from dragoman.serve.page.door import PageRequest, Reply

__all__ = ["dump_counts", "show_usage"]

_USUAL_DAYS, _MOST_DAYS = 30, 400


async def show_usage(request: PageRequest) -> Reply:
    """Answers with what the caller took in the last days, and with what is left of the budgets.

    Raises:
        InvalidRequestError: `days` is no number from 1 to 400.
        StoreError: the database failed.
    """
    caller, accounts = request.call.caller, request.call.service.accounts
    days = _USUAL_DAYS
    if "days" in request.call.query:
        days = request.read_number("days", _MOST_DAYS)
    if days < 1:
        raise InvalidRequestError(f"days={days} is no number from 1 to {_MOST_DAYS}").at(
            field="days"
        )
    rows = await accounts.read_usage(days, caller.id)
    now = accounts.clock()
    return Reply(
        {
            "key": {
                "name": caller.name,
                "prefix": caller.prefix,
                "expires_at": caller.expires_at,
            },
            "from": name_day(now - timedelta(days=days - 1)),
            "to": name_day(now),
            "budgets": await _dump_budgets(accounts, caller),
            "rows": [{"day": row.day, "model": row.model, **dump_counts(row)} for row in rows],
            "total": dump_counts(_sum_rows(rows)),
            "stored": accounts.has_database,
        }
    )


async def _dump_budgets(accounts: Accounts, caller: Caller) -> list[Json]:
    """Returns the caller's budgets with what is spent of them."""
    if not caller.budgets:
        return []
    now = accounts.clock()
    balance = await accounts.sql.read_balance(caller.id, now)
    dumped: list[Json] = []
    for budget in caller.budgets:
        spent, reserved = balance.find_spent(budget), balance.find_held(budget)
        amounts = {
            "limit": budget.amount,
            "spent": spent,
            "held": reserved,
            "left": max(0, budget.amount - spent - reserved),
        }
        dumped.append(
            {
                "per": budget.per,
                "unit": budget.unit,
                "words": budget.words,
                **{name: to_decimal(amount, budget.unit) for name, amount in amounts.items()},
                "resets_at": budget.find_reset(now),
            }
        )
    return dumped


def _sum_rows(rows: Sequence[UsageRow]) -> UsageRow:
    return reduce(add, rows, UsageRow())


def dump_counts(row: UsageRow) -> Json:
    """Returns the counts of a row in JSON; the cost as a decimal number in a text."""
    return {**{name: getattr(row, name) for name in COUNTS}, "cost": row.dollars}
