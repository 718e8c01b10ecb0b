"""Keys, balances and usage in SQLite or Postgres: passes the functions of this package to a
`Database`."""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from dragoman.errors import StoreError
from dragoman.serve.accounts.balances import Balance, explain_refusal, read_balance, reserve, settle
from dragoman.serve.accounts.caller_keys import (
    CallerKey,
    find_key,
    insert_key,
    list_keys,
    revoke_key,
)
from dragoman.serve.accounts.sql_usage import prune_usage, read_usage, sum_usage, write_usage
from dragoman.serve.accounts.usage import UsageRow
from dragoman.serve.http.callers import Caller
from dragoman.serve.store.sql_tables import MIGRATIONS
from dragoman.sql.database import Database

__all__ = ["SqlAccounts"]


class SqlAccounts:
    """The database of accounts. Nothing is opened before the first use."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, MIGRATIONS, name="accounts of callers", failure=StoreError)

    async def close(self) -> None:
        """Finishes what was posted, and closes the connections."""
        await self._database.close()

    async def find_key(self, owner: str) -> CallerKey | None:
        """See `caller_keys.find_key`."""
        return await self._database.read(lambda connection: find_key(connection, owner))

    async def list_keys(self) -> list[CallerKey]:
        """See `caller_keys.list_keys`."""
        return await self._database.read(list_keys)

    async def add_key(self, key: CallerKey) -> None:
        """See `caller_keys.insert_key`."""
        await self._database.write(lambda connection: insert_key(connection, key))

    async def revoke_key(self, which: str, now: datetime) -> CallerKey:
        """See `caller_keys.revoke_key`."""
        return await self._database.write(lambda connection: revoke_key(connection, which, now))

    async def read_balance(self, owner: str, now: datetime) -> Balance:
        """See `balances.read_balance`. Calls that this process has settled until now count."""
        return await self._database.write(lambda connection: read_balance(connection, owner, now))

    async def reserve(self, caller: Caller, amounts: Mapping[str, int], now: datetime) -> int:
        """Holds what a call may take. Returns the slot in which it is booked.

        Raises:
            BudgetError: a budget of the caller has not so much left.
        """
        owner, budgets = caller.id, caller.budgets
        booking: Future[int | Balance] = self._database.post(
            lambda connection: reserve(connection, owner, budgets, amounts, now)
        )
        try:
            booked = await asyncio.shield(booking)
        except asyncio.CancelledError:
            # It is booked all the same, and nobody would settle it.
            booking.add_done_callback(lambda booking: self._release(owner, booking, amounts, now))
            raise
        if isinstance(booked, int):
            return booked
        raise explain_refusal(caller.name, budgets, booked, amounts, now)

    def _release(
        self,
        owner: str,
        booking: Future[int | Balance],
        holds: Mapping[str, int],
        now: datetime,
    ) -> None:
        """Releases what was booked for a call that was not made."""
        booked = None if booking.cancelled() or booking.exception() else booking.result()
        if isinstance(booked, int):
            with suppress(StoreError):
                self.settle(owner, booked, holds, dict.fromkeys(holds, 0), now)

    def settle(
        self,
        owner: str,
        slot: int,
        holds: Mapping[str, int],
        used: Mapping[str, int],
        now: datetime,
    ) -> Future[Any]:
        """See `balances.settle`. It is done later, and before what is reserved afterwards."""
        return self._database.post(
            lambda connection: settle(connection, owner, slot, holds, used, now)
        )

    def write_usage(self, rows: Sequence[UsageRow]) -> Future[None]:
        """See `sql_usage.write_usage`. It is done later."""
        return self._database.post(lambda connection: write_usage(connection, rows))

    async def read_usage(self, since: str, owner: str | None) -> list[UsageRow]:
        """See `sql_usage.read_usage`."""
        return await self._database.read(lambda connection: read_usage(connection, since, owner))

    async def sum_usage(self, since: str, by: str, name: str | None) -> list[UsageRow]:
        """See `sql_usage.sum_usage`."""
        return await self._database.read(lambda connection: sum_usage(connection, since, by, name))

    async def prune(self, now: datetime) -> None:
        """See `sql_usage.prune_usage`."""
        await self._database.write(lambda connection: prune_usage(connection, now))
