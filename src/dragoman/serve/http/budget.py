"""Budgets of callers: so many dollars or tokens a UTC day or month."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Literal

import msgspec

from dragoman.errors import SettingsError

__all__ = [
    "NANO",
    "Budget",
    "format_amount",
    "name_day",
    "name_month",
    "parse_budgets",
    "to_decimal",
]

NANO = 10**9
"""Parts of a dollar in which costs are counted."""
_TEXT = re.compile(
    r"(?P<dollar>\$?)(?P<number>\d{1,9}(?:\.\d{1,9})?)"
    r"(?:(?P<factor>[kM]?)[- ]?(?P<tokens>tokens))?/(?P<per>day|month)",
    re.ASCII,
)
_FACTORS = {"": 1, "k": 1000, "M": 1_000_000}


class Budget(msgspec.Struct, frozen=True):
    """What a caller may spend in a UTC day or month."""

    amount: int
    """Tokens, or billionths of a dollar."""
    unit: Literal["dollars", "tokens"]
    """What is counted."""
    per: Literal["day", "month"]
    """How long it holds."""

    @property
    def words(self) -> str:
        """Returns the budget for people, such as `$5 per day`."""
        return f"{format_amount(self.amount, self.unit)} per {self.per}"

    @property
    def text(self) -> str:
        """Returns the budget as `parse_budgets` reads it."""
        if self.unit == "tokens":
            return f"{self.amount}-tokens/{self.per}"
        return f"${to_decimal(self.amount, self.unit)}/{self.per}"

    def find_reset(self, now: datetime) -> datetime:
        """Returns when the day or month ends in which `now` is."""
        today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self.per == "day":
            return today + timedelta(days=1)
        # 32 days from the first of a month lead into the next one.
        return (today.replace(day=1) + timedelta(days=32)).replace(day=1)


def parse_budgets(texts: Iterable[str]) -> tuple[Budget, ...]:
    """Returns the budgets that texts such as `5/day`, `$20.5/month` and `200k-tokens/day` name.

    Raises:
        SettingsError: one of them is no budget, or two are of one kind.
    """
    budgets = tuple([_parse_budget(text) for text in texts])
    kinds = [(budget.unit, budget.per) for budget in budgets]
    for unit, per in kinds:
        if kinds.count((unit, per)) > 1:
            raise SettingsError(f"there are two budgets in {unit} per {per}; give one")
    return budgets


def _parse_budget(text: str) -> Budget:
    match = _TEXT.fullmatch(text)
    if match is None or (match["tokens"] and match["dollar"]):
        raise SettingsError(
            f"{text!r:.60} is no budget; write dollars such as 5/day or 20.5/month, or tokens such as "
            "200k-tokens/day"
        )
    number, per = Decimal(match["number"]), match["per"]
    unit = "tokens" if match["tokens"] else "dollars"
    factor = _FACTORS[match["factor"]] if match["tokens"] else NANO
    amount = number * factor
    if amount <= 0 or amount != int(amount):
        raise SettingsError(f"{text!r:.60} is no budget; give more than 0, and whole tokens")
    return msgspec.convert({"amount": int(amount), "unit": unit, "per": per}, Budget)


def to_decimal(amount: int, unit: str) -> str:
    """Returns an amount as a decimal number: of dollars, or of tokens."""
    if unit == "tokens":
        return str(amount)
    return f"{Decimal(amount) / NANO:f}"


def format_amount(amount: int, unit: str) -> str:
    """Returns an amount for people, such as `$5` or `200,000 tokens`."""
    if unit == "tokens":
        return f"{amount:,} tokens"
    return f"${to_decimal(amount, unit)}"


def name_day(now: datetime) -> str:
    """Returns the UTC day of a time, such as `2026-11-26`."""
    return now.astimezone(UTC).date().isoformat()


def name_month(now: datetime) -> str:
    """Returns the UTC month of a time, such as `2026-11`."""
    return name_day(now)[:7]
