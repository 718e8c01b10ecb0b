"""`dragoman usage`: what the callers of a server took."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dragoman.cli.caller_keys import StoreOption, run_with_accounts
from dragoman.cli.terminal import echo, echo_json, print_table

if TYPE_CHECKING:
    from dragoman.serve.accounts.usage import UsageRow

__all__ = ["usage"]

_TITLES = ("REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "UNKNOWN COST")


def usage(
    key: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only of the key of this name.", show_default=False),
    ] = None,
    days: Annotated[
        int, typer.Option(min=1, max=400, help="So many UTC days, today included.")
    ] = 30,
    by: Annotated[
        Literal["key", "model", "day"], typer.Option(help="What has a row of its own.")
    ] = "key",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    store: StoreOption = None,
) -> None:
    """Show what the callers of a server took: requests to models, tokens and dollars.

    \b
    dragoman usage --store sqlite:///gateway.db
    dragoman usage --key ci --by day --days 7

    \b
    CACHED tokens are part of INPUT. UNKNOWN COST are requests whose price is not known, which COST
    leaves out. A running server writes what was taken every two seconds.
    """
    from dragoman.serve.accounts.usage import COUNTS, UsageRow

    rows = run_with_accounts(store, lambda accounts: accounts.sum_usage(days, by, key))
    total = reduce(add, rows, UsageRow())
    if json:
        dumped = [{by: _name_row(row, by), **_dump_counts(row, COUNTS)} for row in rows]
        echo_json({"rows": dumped, "total": _dump_counts(total, COUNTS)})
        return
    if not rows:
        whose = "" if key is None else f" of a key {key}"
        echo(f"note: there is no usage{whose} in the last {days} days", err=True)
        return
    table = [(by.upper(), *_TITLES)]
    table += [(_name_row(row, by), *_show_counts(row)) for row in rows]
    print_table([*table, ("total", *_show_counts(total))], numbers=len(_TITLES))


def _name_row(row: UsageRow, by: Literal["key", "model", "day"]) -> str:
    """Returns what the row is of."""
    if by == "key":
        return row.name or row.owner
    return row.model if by == "model" else row.day


def _show_counts(row: UsageRow) -> tuple[str, ...]:
    counts = (row.requests, row.input_tokens, row.cached_tokens, row.output_tokens)
    return (*[f"{count:,}" for count in counts], f"${row.dollars}", f"{row.unknown_cost:,}")


def _dump_counts(row: UsageRow, names: tuple[str, ...]) -> dict[str, object]:
    return {**{name: getattr(row, name) for name in names}, "cost": row.dollars}
