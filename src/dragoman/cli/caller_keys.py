"""`dragoman keys create` and `revoke`: the keys of a server's callers, in the server's database."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from dragoman.cli.terminal import echo, print_table
from dragoman.errors import SettingsError, StoreError

if TYPE_CHECKING:
    from dragoman.serve.accounts.accounts import Accounts
    from dragoman.serve.accounts.caller_keys import CallerKey

__all__ = ["StoreOption", "create", "list_caller_keys", "revoke", "run_with_accounts"]

T = TypeVar("T")
_DAYS = re.compile(r"(\d{1,5})d", re.ASCII)
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        envvar="DRAGOMAN_SERVE_STORE",
        help="The server's database: sqlite:///FILE or postgresql://…",
        show_default=False,
    ),
]


def create(
    name: Annotated[
        str,
        typer.Option(metavar="NAME", help="For people, logs and usage.", show_default=False),
    ],
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--models",
            metavar="NAME,...",
            help="What may be asked for: models and agents of the server, * for any characters.  "
            "[default: all]",
            show_default=False,
        ),
    ] = None,
    budgets: Annotated[
        list[str] | None,
        typer.Option(
            "--budget",
            metavar="AMOUNT/day|month",
            help="Dollars, such as 5/day, or tokens, such as 200k-tokens/month. May be repeated.",
            show_default=False,
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(
            metavar="DATE|DAYS",
            help="When the key ends: 2027-01-31 (UTC), or 30d from now.  [default: never]",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Make a key for callers of dragoman serve --stored-keys. It is printed once, and not kept.

    A running server takes it at once. Days and months of budgets are those of UTC.

    \b
    dragoman keys create --name ci --store sqlite:///gateway.db
    dragoman keys create --name ci --models small --budget 5/day --budget '$50/month' --expires 90d
    """
    names = [model for option in models or () for model in option.split(",")] or None
    expires_at = _parse_expiry(expires)

    async def work(accounts: Accounts) -> str:
        return await accounts.create_key(
            name, models=names, budgets=budgets or (), expires_at=expires_at
        )

    echo(run_with_accounts(store, work, may_make=True))
    echo(f"note: this is the key {name}; it is not shown again", err=True)


def revoke(
    which: Annotated[
        str,
        typer.Argument(
            metavar="NAME|PREFIX",
            help="The key's name, or how it begins (dgm_…).",
            show_default=False,
        ),
    ],
    store: StoreOption = None,
) -> None:
    """Revoke a key of callers. Running servers refuse it within a second.

    Calls that run go on; their next call of a model is refused.

    \b
    dragoman keys revoke ci --store sqlite:///gateway.db
    dragoman keys revoke dgm_Xk29aB
    """
    key = run_with_accounts(store, lambda accounts: accounts.revoke_key(which))
    echo(f"revoked: {key.name} ({key.prefix}…)", err=True)


def list_caller_keys(store: str | None) -> None:
    """Prints the keys of callers as a table: what is known of them, and how each begins."""
    keys = run_with_accounts(store, lambda accounts: accounts.list_keys())
    if not keys:
        echo("note: the database has no key; dragoman keys create makes one", err=True)
        return
    rows = [("NAME", "KEY", "STATE", "MODELS", "BUDGETS", "EXPIRES")]
    for key in keys:
        expires = "never" if key.expires_at is None else f"{key.expires_at:%Y-%m-%d %H:%M}"
        models, budgets = ", ".join(key.models or ["all"]), ", ".join(key.budgets) or "none"
        rows.append((key.name, f"{key.prefix}…", _find_state(key), models, budgets, expires))
    print_table(rows)


def _find_state(key: CallerKey) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "valid" if key.is_valid(datetime.now(UTC)) else "expired"


def run_with_accounts(
    store: str | None, work: Callable[[Accounts], Awaitable[T]], *, may_make: bool = False
) -> T:
    """Runs work on the accounts in a server's database. `may_make`: the database need not be there.

    Raises:
        BadParameter: no database is given.
        SettingsError: there is none, or it cannot be used.
    """
    import asyncio

    from dragoman.serve.accounts.accounts import Accounts

    if store in (None, "", "memory:", "none"):
        raise typer.BadParameter(
            "give the server's database, sqlite:///FILE or postgresql://…, or set DRAGOMAN_SERVE_STORE",
            param_hint="--store",
        )
    accounts = Accounts(store)
    _, scheme, path = store.partition("sqlite:///")
    if scheme and not may_make and not Path(path).exists():
        raise SettingsError(
            f"there is no database {path}; dragoman keys create, or a server with it, makes it"
        )

    async def run() -> T:
        try:
            return await work(accounts)
        except StoreError as error:
            raise SettingsError(error.message) from error
        finally:
            await accounts.close()

    return asyncio.run(run())


def _parse_expiry(text: str | None) -> datetime | None:
    """Returns when a key ends.

    Raises:
        BadParameter: the text says no time.
    """
    if text is None:
        return None
    try:
        if (days := _DAYS.fullmatch(text)) is not None:
            return datetime.now(UTC) + timedelta(days=int(days[1]))
        time = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no time; write a date such as 2027-01-31, or days such as 30d",
            param_hint="--expires",
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)
