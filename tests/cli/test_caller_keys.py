"""Keys of a server's callers and what they took: `dragoman keys create` and `revoke`, `dragoman usage`."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dragoman.serve import Accounts
from dragoman.serve.accounts.usage import UsageRow
from support.cli import one_line

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's database."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("DRAGOMAN_SERVE_STORE", f"sqlite:///{tmp_path}/gateway.db")
    return f"sqlite:///{tmp_path}/gateway.db"


def test_a_key_is_printed_once_listed_and_revoked(cli: Cli) -> None:
    code, key, note = cli(
        "keys", "create", "--name", "ci", "--models", "small,fast-*", "--budget", "5/day", "--budget", "200k-tokens/month"
    )  # fmt: skip
    assert code == 0
    assert re.fullmatch(r"dgm_[\w-]{43}\n", key)
    assert note == "note: this is the key ci; it is not shown again\n"
    assert cli("keys", "create", "--name", "never", "--expires", "2999-01-31")[0] == 0
    code, shown, _ = cli("keys", "list")
    assert code == 0
    assert shown.split("KEYS OF CALLERS\n")[1].splitlines() == [
        "NAME   KEY          STATE  MODELS         BUDGETS                      EXPIRES",
        f"ci     {key[:10]}…  valid  small, fast-*  $5/day, 200000-tokens/month  never",
        shown.splitlines()[-1],
    ]
    assert shown.rstrip().endswith("valid  all            none                         2999-01-31 00:00")  # fmt: skip
    assert key.strip() not in shown
    assert cli("keys", "revoke", key[:9])[2] == f"revoked: ci ({key[:10]}…)\n"
    assert "revoked" in cli("keys", "list")[1]
    assert cli("keys", "create", "--name", "ci")[0] == 0
    assert cli("keys", "revoke", "ci")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["create", "--name", "x", "--budget", "5/fortnight"], 3, ["'5/fortnight' is no budget", "200k-tokens/day"]),
        (["create", "--name", "x", "--budget", "-5/day"], 3, ["'-5/day' is no budget"]),
        (["create", "--name", "x", "--budget", "0/day"], 3, ["more than 0"]),
        (["create", "--name", "x", "--budget", "5/day", "--budget", "$6/day"], 3, ["two budgets in dollars per day"]),
        (["create", "--name", "taken"], 3, ["there is a key 'taken' already"]),
        (["create", "--name", ""], 3, ["1 to 64 characters"]),
        (["create", "--name", "x", "--models", "a,,b"], 3, ["names of models"]),
        (["create", "--name", "x", "--expires", "tomorrow"], 2, ["--expires", "'tomorrow' is no time"]),
        (["create", "--name", "x", "--expires", "99999d"], 0, []),
        (["create", "--name", "x", "--expires", "2001-01-01"], 3, ["expired"]),
        (["create"], 2, ["--name"]),
        (["create", "--name", "x", "--store", "memory:"], 2, ["--store", "DRAGOMAN_SERVE_STORE"]),
        (["create", "--name", "x", "--store", "mysql://a/b"], 3, ["mysql"]),
        (["create", "--name", "x", "--store", "sqlite:////nowhere/at/all.db"], 3, ["unable to open"]),
        (["revoke", "nobody"], 3, ["no key 'nobody'"]),
        (["revoke", "taken", "--store", "sqlite:///missing.db"], 3, ["no database missing.db"]),
        (["revoke"], 2, ["NAME|PREFIX"]),
        (["list", "--store", "sqlite:///missing.db"], 3, ["no database missing.db"]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_one_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: list[str]
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert cli("keys", "create", "--name", "taken")[0] == 0
    exit_code, _, err = cli("keys", *arguments)
    assert exit_code == code
    assert code == 0 or one_line(err.replace("note: no key is stored; dragoman keys set NAME stores one\n", ""), *words)  # fmt: skip
    assert not (tmp_path / "missing.db").exists()


def test_without_a_database_only_keys_of_providers_are_listed(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAGOMAN_SERVE_STORE")
    code, out, _ = cli("keys", "list")
    assert (code, out) == (0, "")
    for command in (["keys", "create", "--name", "x"], ["keys", "revoke", "x"], ["usage"]):
        code, _, err = cli(*command)
        assert code == 2
        assert one_line(err, "DRAGOMAN_SERVE_STORE")


def fill(url: str) -> None:
    async def work() -> None:
        today = datetime.now(UTC).date().isoformat()
        async with Accounts(url) as accounts:
            counted = {"requests": 2, "input_tokens": 1000, "output_tokens": 10, "cost": 3_500_000}
            for owner, name in (("a1", "ci"), ("b2", "")):
                row = UsageRow(owner=owner, name=name, day=today, model="small", **counted)
                accounts.book.record(row)
            accounts.book.record(
                UsageRow(owner="a1", name="ci", day="2020-01-01", model="old", requests=1)
            )
            accounts.book.record(
                UsageRow(owner="a1", name="ci", day=today, model="own", requests=1, unknown_cost=1)
            )

    asyncio.run(work())


def test_usage_is_a_table_with_totals(cli: Cli, url: str) -> None:
    fill(url)
    code, out, err = cli("usage")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "KEY    REQUESTS  INPUT  CACHED  OUTPUT    COST  UNKNOWN COST",
        "ci            3  1,000       0      10  $0.0035             1",
        "b2            2  1,000       0      10  $0.0035             0",
        "total         5  2,000       0      20   $0.007             1",
    ] or [line.split() for line in out.splitlines()] == [
        ["KEY", "REQUESTS", "INPUT", "CACHED", "OUTPUT", "COST", "UNKNOWN", "COST"],
        ["ci", "3", "1,000", "0", "10", "$0.0035", "1"],
        ["b2", "2", "1,000", "0", "10", "$0.0035", "0"],
        ["total", "5", "2,000", "0", "20", "$0.007", "1"],
    ]
    assert len({len(line) for line in out.splitlines()}) == 1
    code, out, _ = cli("usage", "--key", "ci", "--by", "model")
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["small", "2"], ["own", "1"], ["total", "3"]]  # fmt: skip
    got = json.loads(cli("usage", "--by", "day", "--json")[1])
    assert [row["day"] for row in got["rows"]] == [datetime.now(UTC).date().isoformat()]
    assert got["total"] == {"requests": 5, "input_tokens": 2000, "cached_tokens": 0, "output_tokens": 20, "cost": "0.007", "unknown_cost": 1}  # fmt: skip


def test_usage_that_there_is_none_of(cli: Cli, url: str) -> None:
    fill(url)
    assert cli("usage", "--key", "nobody") == (0, "", "note: there is no usage of a key nobody in the last 30 days\n")  # fmt: skip
    for arguments in (["--by", "week"], ["--days", "0"], ["--days", "401"], ["--days", "x"]):
        code, _, err = cli("usage", *arguments)
        assert code == 2
        assert one_line(err, arguments[0])
    code, _, err = cli("usage", "--store", "sqlite:///missing.db")
    assert code == 3
    assert one_line(err, "no database missing.db")
