"""`Accounts`: the keys that callers get at run time, their budgets, and what callers take.

The server has one, and so have `dragoman keys`, `dragoman usage` and `dragoman worker`; they meet in
the database. `charge` is the one place where what a caller's request asks of models is paid for: its
`CallerPayer` reserves each call before it is made, and settles it afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from dragoman.cost import need_prices
from dragoman.errors import DragomanError, SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.logs import logger
from dragoman.model.metering import charge
from dragoman.runtime import now
from dragoman.serve.accounts.payer import CallerPayer
from dragoman.serve.accounts.usage import UsageBook, UsageRow
from dragoman.serve.http.budget import name_day
from dragoman.serve.http.callers import Authenticate, Caller
from dragoman.sql.address import check_address

if TYPE_CHECKING:
    # SQLAlchemy, which servers without a database need not have
    from dragoman.serve.accounts.caller_keys import CallerKey
    from dragoman.serve.accounts.sql_accounts import SqlAccounts

__all__ = ["Accounts"]

_LOG = logger("serve.accounts")
_FRESH_SECONDS = 1.0
"""So long a key that was found is not looked up again, and so long it may still be used in another
process after it was revoked."""
_MOST_FRESH = 10_000
_FLUSH_SECONDS = 2.0
"""How often usage is written."""


class Accounts:
    """Keys, budgets and usage of callers in a database. Without one there is usage alone, of this
    process. In `async with` it writes usage now and then.

    ```python
    async with Accounts("sqlite:///gateway.db") as accounts:
        secret = await accounts.create_key("ci", models=["small"], budgets=["5/day"])
    ```
    """

    def __init__(self, url: str | None = None, *, clock: Callable[[], datetime] = now) -> None:
        """Creates the accounts, and opens nothing yet. `url`: `sqlite:///path`, `postgresql://…` or
        None.

        Raises:
            SettingsError: it is no URL of a database, or a package is missing.
        """
        if url is not None:
            check_address(url, "store of accounts", "store of accounts")
        self._url, self.clock = url, clock
        self._opened: SqlAccounts | None = None
        self._fresh: dict[str, tuple[float, CallerKey | None]] = {}
        self._flushing: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._has_written = False
        self.book = UsageBook()
        """Usage that waits to be written; all of it without a database."""

    @property
    def has_database(self) -> bool:
        """True if keys and budgets can be kept."""
        return self._url is not None

    @property
    def sql(self) -> SqlAccounts:
        """The database.

        Raises:
            SettingsError: there is none.
        """
        if self._opened is None:
            if self._url is None:
                raise SettingsError(
                    "keys and budgets need a database: give store=, such as sqlite:///gateway.db"
                )
            from dragoman.serve.accounts.sql_accounts import SqlAccounts

            self._opened = SqlAccounts(self._url)
        return self._opened

    async def __aenter__(self) -> Self:
        if self.has_database:
            # Imports SQLAlchemy now, and not during a call.
            assert self.sql
            self._stopping = asyncio.Event()
            self._flushing = asyncio.create_task(self._keep_flushing(), name="dragoman-usage")
        return self

    async def __aexit__(self, *error: object) -> None:
        if self._flushing is not None:
            self._stopping.set()
            await asyncio.wait([self._flushing])
            self._flushing = None
        await self.close()

    async def close(self) -> None:
        """Writes what waits, and closes the database. It is opened again if it is used again."""
        if self._url is None:
            return
        await self._flush()
        if self._opened is not None:
            opened, self._opened = self._opened, None
            await opened.close()

    # keys

    async def create_key(
        self,
        name: str,
        *,
        models: Sequence[str] | None = None,
        budgets: Sequence[str] = (),
        expires_at: datetime | None = None,
    ) -> str:
        """Makes a key for callers. Returns it; only a digest of it is kept.

        Args:
            name: for people, logs and metrics; no other key has it.
            models: what its callers may name; `*` stands for any characters. `None`: all.
            budgets: such as `5/day`, `$20/month` and `200k-tokens/day`.
            expires_at: when it ends; `None`: never.

        Raises:
            SettingsError: the name is taken, or an argument cannot be used.
            StoreError: the database failed.
        """
        from dragoman.serve.accounts.caller_keys import make_key

        names = None if models is None else list(models)
        secret, key = make_key(name, names, list(budgets), self.clock(), expires_at)
        self.check_budgets([key.caller])
        await self.sql.add_key(key)
        return secret

    async def revoke_key(self, which: str) -> CallerKey:
        """Revokes the key of a name, or that begins with these characters. Returns what is stored of
        it. Calls that run go on; their next call of a model is refused.

        Raises:
            SettingsError: there is none, or several begin so.
            StoreError: the database failed.
        """
        key = await self.sql.revoke_key(which, self.clock())
        self._fresh.pop(key.owner, None)
        return key

    async def list_keys(self) -> list[CallerKey]:
        """Returns all keys, also those that are revoked."""
        return await self.sql.list_keys()

    def add_stored_keys(self, authenticate: Authenticate | None) -> Authenticate:
        """Returns the function that finds the caller of a request, also by the keys in the database.
        `authenticate`: finds those of other keys; `None`: there are none."""

        async def find_caller(presented: Sequence[str]) -> Caller | None:
            caller = None if authenticate is None else await authenticate(presented)
            if caller is not None:
                return caller
            return await self._find_stored(presented)

        return find_caller

    async def _find_stored(self, presented: Sequence[str]) -> Caller | None:
        from dragoman.serve.accounts.caller_keys import find_owner, is_key_form

        for secret in presented:
            if is_key_form(secret) and (key := await self.find_valid_key(find_owner(secret))):
                return key.caller
        return None

    async def find_valid_key(self, owner: str) -> CallerKey | None:
        """Returns the key of a caller if it may be used, as it was a second ago at most."""
        time = monotonic()
        # Most callers come again within the second: then their request reads nothing.
        until, key = self._fresh.get(owner, (0.0, None))
        if time >= until:
            key = await self.sql.find_key(owner)
            if len(self._fresh) >= _MOST_FRESH:
                self._fresh.clear()
            # A key that is not there may be made at any moment.
            if key is not None:
                self._fresh[owner] = (time + _FRESH_SECONDS, key)
        return key if key is not None and key.is_valid(self.clock()) else None

    # budgets

    def check_budgets(self, callers: Sequence[Caller]) -> None:
        """Checks that the budgets of callers can be kept.

        Raises:
            SettingsError: there is no database, or prices are not known here.
        """
        budgets = [budget for caller in callers for budget in caller.budgets]
        if budgets:
            assert self.sql
        if any(budget.unit == "dollars" for budget in budgets):
            need_prices()

    def charge(self, caller: Caller) -> AbstractContextManager[None]:
        """Has a caller pay for the calls of models that are made in the block, and by what it
        starts."""
        return charge(CallerPayer(self, caller))

    def charge_stored(self, payer: JsonMap) -> AbstractContextManager[None]:
        """Does as `charge`, for a caller that was stored with a run, see `RunTerms.payer`."""
        return self.charge(msgspec.convert(payer, Caller))

    # usage

    async def read_usage(self, days: int = 30, owner: str | None = None) -> list[UsageRow]:
        """Returns usage of the last UTC days, today included, the latest first; 5,000 rows at most.
        `owner`: of this caller; `None`: of all that are in the database."""
        since = self._find_start(days)
        if not self.has_database:
            return self.book.list_rows(since, owner)
        await self._flush()
        return await self.sql.read_usage(since, owner)

    async def sum_usage(
        self, days: int, by: Literal["key", "model", "day"], name: str | None = None
    ) -> list[UsageRow]:
        """Returns what was taken in the last UTC days, today included, for each key, model or day.
        `name`: of the key; `None`: of all."""
        await self._flush()
        return await self.sql.sum_usage(self._find_start(days), by, name)

    def _find_start(self, days: int) -> str:
        """Returns the first of the last UTC days."""
        return name_day(self.clock() - timedelta(days=days - 1))

    async def _keep_flushing(self) -> None:
        """Writes usage until it is to stop, and deletes the oldest once a day."""
        pruned = ""
        while not self._stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _FLUSH_SECONDS)
            await self._flush()
            if (today := name_day(self.clock())) != pruned and self._has_written:
                with suppress(DragomanError):
                    await self.sql.prune(self.clock())
                    pruned = today

    async def _flush(self) -> None:
        """Writes the usage that waits. If the database fails, it waits further."""
        rows = self.book.take()
        if not rows:
            return

        def finish(writing: asyncio.Future[None]) -> None:
            if (error := writing.exception()) is not None:
                _LOG.warning("usage could not be written: %s", error)
                self.book.put_back(rows)

        self._has_written = True
        writing = self.sql.write_usage(rows)
        writing.add_done_callback(finish)
        with suppress(DragomanError):
            # Who stops waiting does not stop the writing.
            await asyncio.shield(writing)
