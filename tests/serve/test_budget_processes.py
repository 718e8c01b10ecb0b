"""Budgets over several processes: durable runs that others drive, races for the last cent, and a process
that is killed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, Settings, serve
from dragoman.runs import Runs, open_log
from dragoman.serve.accounts.sql_accounts import SqlAccounts
from support.budgets import OTHER, chat, metered_app, model, usage_of
from support.cli import SRC

pytestmark = pytest.mark.anyio
SPENDER = """
import asyncio, sys
from datetime import UTC, datetime
from dragoman.errors import BudgetError
from dragoman.serve.accounts.sql_accounts import SqlAccounts
from dragoman.serve.http.budget import parse_budgets
from dragoman.serve.http.callers import Caller

async def main(url, ends):
    accounts, spent = SqlAccounts(url), 0
    caller = Caller("me", "ci", budgets=parse_budgets(["0.00001/day"]))
    hold = {"dollars": 100, "tokens": 1}
    try:
        while True:
            slot = await accounts.reserve(caller, hold, datetime.now(UTC))
            if not ends:
                print("reserved", flush=True)
                await asyncio.sleep(60)
            accounts.settle("me", slot, hold, {"dollars": 99, "tokens": 1}, datetime.now(UTC))
            spent += 99
    except BudgetError:
        print(spent)
    await accounts.close()

asyncio.run(main(sys.argv[1], sys.argv[2] == "ends"))
"""
"""Spends a budget of 10,000 billionths of a dollar, in calls that hold 100 and cost 99; or reserves one
call and stays."""


def spend(url: str, how: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SPENDER, url, how],
        stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": SRC},
    )  # fmt: skip


@pytest.mark.slow
async def test_processes_never_spend_the_last_cent_twice(database_url: str) -> None:
    accounts = SqlAccounts(database_url)
    processes = [spend(database_url, "ends") for _ in range(3)]
    spent = [int(process.communicate(timeout=50)[0]) for process in processes]
    balance = await accounts.read_balance("me", datetime.now(UTC))
    assert sum(spent) == balance.day_dollars == balance.month_dollars
    assert balance.held_dollars == 0
    # A process may be refused for what another holds; no room is lost for good.
    assert 9800 < balance.day_dollars <= 10_000
    await accounts.close()


@pytest.mark.slow
async def test_what_a_killed_process_held_is_free_again(database_url: str) -> None:
    accounts = SqlAccounts(database_url)
    process = spend(database_url, "stays")
    assert process.stdout is not None
    assert process.stdout.readline() == "reserved\n"
    process.kill()
    process.communicate()
    now = datetime.now(UTC)
    assert (await accounts.read_balance("me", now)).held_dollars == 100
    later = await accounts.read_balance("me", now + timedelta(minutes=31))
    assert (later.held_dollars, later.day_dollars) == (0, 0)
    await accounts.close()


async def test_a_durable_run_counts_for_its_caller_whoever_drives_it(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/server.db"
    agents: dict[str, Agent[Any]] = {"small": Agent(model(), settings=Settings(max_tokens=100))}
    server = metered_app(url, "5/day", gateway=None, agents=agents, durable=True)
    async with server.router.lifespan_context(server):
        assert (await chat(server)).status == 200
        usage = await usage_of(server)
        assert (usage["total"]["requests"], usage["budgets"][0]["spent"]) == (1, "0.0035")
    leaving = metered_app(
        url, "0.0035/day", gateway=None, agents=agents, durable=True, drives=False
    )
    async with (
        leaving.router.lifespan_context(leaving),
        open_log(url) as log,
        serve.Accounts(url) as accounts,
        Runs(log, agents=agents, charge=accounts.charge_stored) as worker,
    ):
        working = asyncio.create_task(worker.work())
        # The other caller's run is paid for by the other caller, in the same process.
        assert (await chat(leaving, OTHER)).status == 200
        refused = await chat(leaving)
        assert refused.status == 429
        assert "$0.0035 per day is spent" in refused.json["error"]["message"]
        working.cancel()
        await asyncio.wait([working])
        names = {row.name: row.requests for row in await accounts.sum_usage(1, "key")}
        assert names == {"ci": 1, "other": 1}
