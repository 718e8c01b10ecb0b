"""Keys of callers that stand in the database: made, used, revoked and expired while servers run."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve, tool
from dragoman.errors import SettingsError
from dragoman.message import Message, ToolCallPart
from dragoman.serve.accounts import accounts as module
from dragoman.serve.http.budget import parse_budgets
from support.asgi import exchange
from support.budgets import CI, Clock, chat, counted_statements, metered_app, model, told, usage_of
from support.page import Page

pytestmark = pytest.mark.anyio


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keys are looked up anew each time."""
    monkeypatch.setattr(module, "_FRESH_SECONDS", 0.0)
    return


async def test_a_key_works_at_once_and_not_after_it_was_revoked(
    database_url: str, unhurried: None
) -> None:
    """Made by another process than the two that serve."""
    apps = [metered_app(database_url, stored_keys=True) for _ in range(2)]
    async with (
        apps[0].router.lifespan_context(apps[0]),
        apps[1].router.lifespan_context(apps[1]),
        serve.Accounts(database_url) as elsewhere,
    ):
        assert (await chat(apps[0], "dgm_" + "x" * 43)).status == 401
        secret = await elsewhere.create_key("bot", models=["sm*"], budgets=["5/day"])
        for app in apps:
            assert (await chat(app, secret)).status == 200
            assert (await chat(app, secret, model="large")).status == 404
            assert (await chat(app, CI)).status == 200
            assert (await chat(app, secret[:-1])).status == 401
        shown = (await usage_of(apps[1], secret))["key"]
        assert shown == {"name": "bot", "prefix": secret[:10], "expires_at": None}
        await elsewhere.revoke_key(secret[:8])
        for app in apps:
            assert (await chat(app, secret)).status == 401
            assert (await exchange(app, "GET", "/page/usage", headers={"authorization": f"Bearer {secret}"})).status == 401  # fmt: skip
        again = await elsewhere.create_key("bot")
        assert (await chat(apps[0], again)).status == 200
        states = [(key.name, key.revoked_at is None) for key in await elsewhere.list_keys()]
        assert states == [("bot", False), ("bot", True)]


async def test_a_key_that_was_found_is_not_looked_up_for_a_second(tmp_path: Path) -> None:
    app = metered_app(f"sqlite:///{tmp_path}/a.db", stored_keys=True, page=False)
    accounts = app.state.service.accounts
    async with app.router.lifespan_context(app):
        secret = await accounts.create_key("bot")
        assert (await chat(app, secret)).status == 200
        with counted_statements(accounts.sql._database._read_engine) as read:
            for _ in range(3):
                assert (await chat(app, secret)).status == 200
            assert read == []
            # Others are never in the database, and so are not looked for there.
            assert (await chat(app, "sk-whatever-it-is")).status == 401
            assert read == []
            assert (await chat(app, "dgm_whatever-it-is")).status == 401
            assert len(read) == 1
        # Here it is forgotten at once.
        await accounts.revoke_key("bot")
        assert (await chat(app, secret)).status == 401


async def test_the_database_holds_no_key(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    async with serve.Accounts(f"sqlite:///{path}") as accounts:
        secret = await accounts.create_key("bot", budgets=["5/day"])
        assert len(secret) == 47
        assert secret.startswith("dgm_")
    sqlite3.connect(path).execute("PRAGMA wal_checkpoint")
    data = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # noqa: ASYNC240
    assert secret[:10].encode() in data
    assert secret[:14].encode() not in data
    assert secret[10:].encode() not in data


async def test_an_expired_key_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    app = metered_app(f"sqlite:///{tmp_path}/a.db", stored_keys=True, clock=clock)
    accounts = app.state.service.accounts
    async with app.router.lifespan_context(app):
        secret = await accounts.create_key("bot", expires_at=clock() + timedelta(hours=1))
        assert (await chat(app, secret)).status == 200
        clock.move(hours=1)
        assert (await chat(app, secret)).status == 401
        with pytest.raises(SettingsError, match="expired"):
            await accounts.create_key("late", expires_at=clock())


async def test_a_key_that_is_revoked_in_a_run_ends_it_at_the_next_model_call(
    tmp_path: Path, unhurried: None
) -> None:
    app: Any = None
    calls: list[int] = []

    @tool
    async def revoke() -> str:
        """Revokes the key that asks."""
        await app.state.service.accounts.revoke_key("bot")
        return "revoked"

    def reply(request: Any) -> Message:
        calls.append(len(request.messages))
        if request.messages[-1].tool_results:
            return told("Never told.")
        return told().replace(content=(ToolCallPart("c", "revoke", {}),))

    agent = Agent(model(reply), tools=[revoke])
    url = f"sqlite:///{tmp_path}/a.db"
    app = metered_app(url, stored_keys=True, gateway=None, agents={"small": agent})
    async with app.router.lifespan_context(app):
        secret = await app.state.service.accounts.create_key("bot")
        got = await chat(app, secret)
        assert got.status == 401
        assert "the key was revoked" in got.json["error"]["message"]
        assert len(calls) == 1


async def test_a_stream_goes_on_when_its_key_is_revoked(tmp_path: Path, unhurried: None) -> None:
    app: Any = None

    async def reply(_: Any) -> Message:
        await app.state.service.accounts.revoke_key("bot")
        return told("whole to its end")

    app = metered_app(f"sqlite:///{tmp_path}/a.db", "5/day", stored_keys=True, reply=reply)
    async with app.router.lifespan_context(app):
        secret = await app.state.service.accounts.create_key("bot", budgets=["1/day"])
        got = await chat(app, secret, stream=True)
        assert got.status == 200
        assert b"data: [DONE]" in got.body
        (row,) = await app.state.service.accounts.sum_usage(1, "key")
        assert (row.name, row.requests, row.dollars) == ("bot", 1, "0.0035")
        assert (await chat(app, secret)).status == 401


async def test_people_sign_in_on_the_page_with_a_stored_key(
    tmp_path: Path, unhurried: None
) -> None:
    agent = Agent(model())
    url = f"sqlite:///{tmp_path}/a.db"
    app = metered_app(url, auth=None, stored_keys=True, gateway=None, agents={"small": agent})
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 401
        secret = await app.state.service.accounts.create_key("ann", budgets=["5/day"])
        assert (await Page(app).get("/page/session"))["needs_key"] is True
        got = await Page(app)("POST", "/page/session", {"key": secret})
        assert (got.status, got.json["name"]) == (200, "ann")
        signed = Page(app, {"cookie": got.headers["set-cookie"].partition(";")[0]})
        assert (await signed.get("/page/usage"))["key"]["name"] == "ann"
        await app.state.service.accounts.revoke_key("ann")
        assert (await signed("GET", "/page/usage")).status == 401


def test_stored_keys_need_a_database() -> None:
    for store in ("memory:", None):
        with pytest.raises(SettingsError, match="need a database"):
            serve.app(store=store, stored_keys=True)


async def test_keys_that_cannot_be_made_or_revoked(tmp_path: Path) -> None:
    async with serve.Accounts(f"sqlite:///{tmp_path}/a.db") as accounts:
        secrets = [await accounts.create_key(name) for name in ("one", "two")]
        refused: list[dict[str, Any]] = [
            {"name": "one"}, {"name": ""}, {"name": " x"}, {"name": "x\n"}, {"name": "x" * 65}, {"name": "dgm_x"},
            {"name": "x", "models": []}, {"name": "x", "models": ["", "b"]}, {"name": "x", "budgets": ["5/week"]}, {"name": "x", "budgets": ["5/day", "6/day"]},
        ]  # fmt: skip
        for fields in refused:
            with pytest.raises(SettingsError):
                await accounts.create_key(**fields)
        for which in ("", "three", "dgm_", "dgm_%", "dgm_zz", "%", secrets[0] + "x"):
            with pytest.raises(SettingsError, match="there is no key"):
                await accounts.revoke_key(which)
        assert (await accounts.revoke_key(secrets[0])).name == "one"
        with pytest.raises(SettingsError, match="there is no key"):
            await accounts.revoke_key("one")


async def test_two_processes_that_make_a_key_of_one_name_make_one(database_url: str) -> None:
    async def make(accounts: serve.Accounts) -> bool:
        try:
            await accounts.create_key("bot")
        except Exception:
            return False
        return True

    async with serve.Accounts(database_url) as one, serve.Accounts(database_url) as two:
        await one.list_keys()
        made = await asyncio.gather(*[make(each) for each in (one, two, one, two)])
        assert sum(made) == 1
        assert len(await one.list_keys()) == 1


@pytest.mark.parametrize(
    ("text", "words", "canonical"),
    [
        ("5/day", "$5 per day", "$5/day"), ("$20.50/month", "$20.5 per month", "$20.5/month"), ("0.000000001/day", "$0.000000001 per day", "$0.000000001/day"),
        ("200k-tokens/day", "200,000 tokens per day", "200000-tokens/day"), ("1.5M-tokens/month", "1,500,000 tokens per month", "1500000-tokens/month"),
        ("300 tokens/day", "300 tokens per day", "300-tokens/day"), ("7tokens/day", "7 tokens per day", "7-tokens/day"),
    ],
)  # fmt: skip
def test_budgets_are_read_as_people_write_them(text: str, words: str, canonical: str) -> None:
    (budget,) = parse_budgets([text])
    assert (budget.words, budget.text) == (words, canonical)
    assert parse_budgets([budget.text]) == (budget,)


@pytest.mark.parametrize(
    "text",
    ["", "5", "5/fortnight", "-5/day", "0/day", "0.0/month", "0-tokens/day", "1.5-tokens/day", "$5-tokens/day", "5k/day", "1e9/day", "5/Day", "5 / day", "9999999999/day", "0.0000000001/day", "٥/day", "5/day\n"],
)  # fmt: skip
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="no budget"):
        parse_budgets([text])
