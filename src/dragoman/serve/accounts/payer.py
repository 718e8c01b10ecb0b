"""Pays for one caller: reserves what a call of a model may take of the caller's budgets, and settles
it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Protocol

from dragoman.cost import find_call_cost
from dragoman.errors import AuthenticationError, DragomanError, PermissionDeniedError
from dragoman.logs import logger
from dragoman.message import Origin, Usage
from dragoman.model.metering import PlannedCall, SpentCall, find_payer
from dragoman.serve.accounts.usage import UsageBook, UsageRow
from dragoman.serve.http.budget import NANO, name_day
from dragoman.serve.http.callers import Caller

if TYPE_CHECKING:
    # SQLAlchemy, which servers without a database need not have
    from dragoman.serve.accounts.caller_keys import CallerKey
    from dragoman.serve.accounts.sql_accounts import SqlAccounts

__all__ = ["CallerPayer", "note_asked"]

_LOG = logger("serve.accounts")
_OUTPUT_TOKENS = 8192
"""Tokens of an answer that are reserved where the request sets no limit."""
_MARGIN = 1.2
"""By which the estimate of a prompt's tokens is raised."""


class _Accounts(Protocol):
    """What a payer needs of `Accounts`."""

    clock: Callable[[], datetime]
    book: UsageBook

    @property
    def sql(self) -> SqlAccounts: ...

    async def find_valid_key(self, owner: str) -> CallerKey | None: ...


class CallerPayer:
    """Pays for the calls of models that one request makes. See `Payer`."""

    def __init__(self, accounts: _Accounts, caller: Caller) -> None:
        self._accounts = accounts
        self.caller = caller
        """Who pays."""
        self.asked = ""
        """Name of the gateway's model that the caller asks for; empty: agents ask models."""

    async def reserve(self, planned: PlannedCall) -> _Booking:
        """See `Payer`.

        Raises:
            AuthenticationError: the key was revoked meanwhile, or has expired.
            BudgetError: a budget has not so much left.
            PermissionDeniedError: there is a budget in dollars, and the price is not known.
            SettingsError: there is no database for budgets.
            StoreError: the database failed.
        """
        accounts, caller = self._accounts, self.caller
        if caller.is_stored and await accounts.find_valid_key(caller.id) is None:
            raise AuthenticationError("the key was revoked, or has expired")
        amounts, slot = dict[str, int](), 0
        if caller.budgets:
            amounts = self._find_most(planned)
            slot = await accounts.sql.reserve(caller, amounts, accounts.clock())
        return _Booking(self, planned.origin, slot, amounts)

    def _find_most(self, planned: PlannedCall) -> dict[str, int]:
        """Returns what a call takes at most, by unit."""
        output_tokens = planned.output_tokens
        if output_tokens is None:
            output_tokens = _OUTPUT_TOKENS
        # The estimate may be too low.
        input_tokens = round(_MARGIN * planned.count_input())
        amounts = {"dollars": 0, "tokens": input_tokens + output_tokens}
        if any(budget.unit == "dollars" for budget in self.caller.budgets):
            usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
            cost = find_call_cost(planned.origin, usage)
            if cost is None:
                model = self.name_model(planned.origin)
                raise PermissionDeniedError(
                    f"the price of {model} is not known, and this key has a budget in dollars; "
                    "ask for another model, or for a key with a budget in tokens"
                )
            amounts["dollars"] = count_nano(cost)
        return amounts

    def name_model(self, origin: Origin) -> str:
        """Returns the name under which a call is counted."""
        return self.asked or f"{origin.provider}:{origin.model}"

    def record(self, origin: Origin, spent: SpentCall, now: datetime) -> None:
        """Counts a call as usage."""
        usage, cost = spent
        self._accounts.book.record(
            UsageRow(
                owner=self.caller.id,
                day=name_day(now),
                model=self.name_model(origin),
                name=self.caller.name,
                requests=1,
                input_tokens=usage.input_tokens or 0,
                cached_tokens=usage.cache_read_tokens or 0,
                output_tokens=usage.output_tokens or 0,
                cost=0 if cost is None else count_nano(cost),
                unknown_cost=1 if cost is None else 0,
            )
        )

    def settle(
        self, origin: Origin, slot: int, holds: Mapping[str, int], spent: SpentCall | None
    ) -> None:
        """Counts what a call took, and releases what it held."""
        now = self._accounts.clock()
        # Usage is for people and may be late; the balance decides about the next call.
        if spent is not None:
            self.record(origin, spent, now)
        if holds:
            used = _find_used(holds, spent)
            try:
                settling = self._accounts.sql.settle(self.caller.id, slot, holds, used, now)
            except (DragomanError, RuntimeError) as error:
                _LOG.warning("a call of %s could not be settled: %s", self.caller.name, error)
            else:
                settling.add_done_callback(_log_failure)


def note_asked(name: str) -> None:
    """Notes the name of the gateway's model that the caller asks for."""
    payer = find_payer()
    if isinstance(payer, CallerPayer):
        payer.asked = name


class _Booking:
    """What one call holds. See `Hold`."""

    def __init__(
        self, payer: CallerPayer, origin: Origin, slot: int, holds: Mapping[str, int]
    ) -> None:
        self._payer, self._origin, self._slot, self._holds = payer, origin, slot, holds

    def settle(self, spent: SpentCall | None) -> None:
        """See `Hold`."""
        self._payer.settle(self._origin, self._slot, self._holds, spent)


def _find_used(holds: Mapping[str, int], spent: SpentCall | None) -> dict[str, int]:
    """Returns what a call took, by unit. A cost that is not known after all is what was reserved."""
    if spent is None:
        return {"dollars": 0, "tokens": 0}
    usage, cost = spent
    return {
        "dollars": holds["dollars"] if cost is None else count_nano(cost),
        "tokens": (usage.input_tokens or 0) + (usage.output_tokens or 0),
    }


def count_nano(cost: Decimal) -> int:
    """Returns a cost in billionths of a dollar, rounded up."""
    return int((cost * NANO).to_integral_value(ROUND_CEILING))


def _log_failure(settling: asyncio.Future[Any]) -> None:
    """Reports a settlement that failed, which nobody waits for."""
    if not settling.cancelled() and (error := settling.exception()) is not None:
        _LOG.warning("a call could not be settled: %s", error)
