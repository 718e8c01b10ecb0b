"""Callers with budgets at a server: what a call reserves and what it comes to, however it ends."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, serve, tool
from dragoman.errors import RateLimitError, SettingsError
from dragoman.message import Message, Origin, ToolCallPart
from dragoman.model.metering import PlannedCall, find_payer
from support.asgi import exchange
from support.budgets import (
    CI,
    OTHER,
    Clock,
    chat,
    counted_statements,
    metered_app,
    model,
    told,
    usage_of,
)
from support.page import Page

pytestmark = pytest.mark.anyio
SPENT = "0.0035"
"""What the model's answer costs."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/gateway.db"


def budget(usage: Any, unit: str = "dollars") -> Any:
    (found,) = [each for each in usage["budgets"] if each["unit"] == unit]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_call_is_reserved_before_and_settled_behind(url: str, stream: bool) -> None:
    seen: list[Any] = []

    async def look(_: Any) -> Message:
        seen.append(budget(await usage_of(app)))
        return told()

    app = metered_app(url, "5/day", reply=look)
    async with app.router.lifespan_context(app):
        assert (await chat(app, stream=stream)).status == 200
        (during,) = seen
        assert during["spent"] == "0"
        # A hundred tokens of answer, and the prompt's few.
        assert 0.001 < float(during["held"]) < 0.0012
        after = await usage_of(app)
        assert (budget(after)["spent"], budget(after)["held"]) == (SPENT, "0")
        assert budget(after)["left"] == "4.9965"
        assert after["total"] == {
            "requests": 1, "input_tokens": 1000, "cached_tokens": 0, "output_tokens": 100, "cost": SPENT, "unknown_cost": 0,
        }  # fmt: skip
        assert [row["model"] for row in after["rows"]] == ["small"]
        other = await usage_of(app, OTHER)
        assert (other["rows"], other["budgets"], other["key"]["name"]) == ([], [], "other")


async def test_a_spent_budget_refuses_until_midnight_and_the_month_until_its_end(url: str) -> None:
    clock = Clock("2026-12-30T23:59:00")
    app = metered_app(url, "0.005/day", "0.0085/month", clock=clock)
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 200
        assert (await chat(app)).status == 200  # more than was reserved: it counts in full
        refused = await chat(app)
        assert refused.status == 429
        assert (
            refused.json["error"]["message"]
            == "budget of key ci: $0.005 per day is spent; it resets at 2026-12-31T00:00:00Z"
        )
        assert refused.headers["retry-after"] == "60"
        assert (await chat(app, OTHER)).status == 200
        clock.move(minutes=1)
        assert (await chat(app)).status == 200
        refused = await chat(app)
        assert (
            "$0.0085 per month is spent; it resets at 2027-01-01T00:00:00Z" in refused.body.decode()
        )
        clock.move(days=1)
        assert (await chat(app)).status == 200
        days = [(row["day"], row["cost"]) for row in (await usage_of(app))["rows"]]
        assert days == [("2027-01-01", "0.0035"), ("2026-12-31", "0.0035"), ("2026-12-30", "0.007")]


async def test_a_call_that_may_cost_more_than_is_left_is_told_so(url: str) -> None:
    app = metered_app(url, "0.01/day")
    async with app.router.lifespan_context(app):
        refused = await chat(app, most=None)
        assert refused.status == 429
        message = refused.json["error"]["message"]
        assert "has $0.01 left, and this call may take $0.08" in message
        assert "ask for a shorter answer" in message
        assert (await chat(app, most=500)).status == 200


async def test_many_at_once_never_spend_the_last_cent_twice(url: str) -> None:
    """Two servers over one database."""

    async def answer(_: Any) -> Message:
        await asyncio.sleep(0.01)
        return told(output_tokens=90, input_tokens=10)

    apps = [metered_app(url, "0.01/day", reply=answer) for _ in range(2)]
    async with apps[0].router.lifespan_context(apps[0]), apps[1].router.lifespan_context(apps[1]):
        answers = await asyncio.gather(*[chat(apps[number % 2]) for number in range(24)])
        statuses = [answer.status for answer in answers]
        assert set(statuses) == {200, 429}
        assert "is held by calls that run" in next(each for each in answers if each.status == 429).body.decode()  # fmt: skip
        usage = await usage_of(apps[0])
        assert statuses.count(200) <= 10
        assert budget(usage)["held"] == "0"
        assert float(budget(usage)["spent"]) <= 0.01
        while (await chat(apps[0])).status == 200:
            pass
        assert 0.0085 < float(budget(await usage_of(apps[1]))["spent"]) <= 0.01


async def test_a_call_without_a_budget_takes_no_statement_and_one_with_it_two(url: str) -> None:
    app = metered_app(url, "5/day", "20/month", "1M-tokens/day", page=False)
    accounts = app.state.service.accounts
    async with app.router.lifespan_context(app):
        await chat(app)
        database = accounts.sql._database
        await asyncio.sleep(0.1)
        await accounts._flush()
        with (
            counted_statements(database._write_engine) as written,
            counted_statements(database._read_engine) as read,
        ):
            for _ in range(3):
                assert (await chat(app, OTHER)).status == 200
            await asyncio.sleep(0.05)
            assert (written, read) == ([], [])
            for _ in range(3):
                assert (await chat(app)).status == 200
            await asyncio.sleep(0.05)
            changed = [text.split()[:2] for text in written if not text.startswith("BEGIN")]
            assert changed == [["UPDATE", "dragoman_balances"]] * 6
            assert read == []


async def test_a_client_that_leaves_pays_for_what_was_made(url: str) -> None:
    app = metered_app(url, "100k-tokens/day", "5/day", reply=lambda _: told("word " * 3000))
    async with app.router.lifespan_context(app):
        left = await chat(app, stream=True, leaves_after=3)
        assert not left.is_complete
        usage = await usage_of(app)
        assert budget(usage)["held"] == budget(usage, "tokens")["held"] == "0"
        assert usage["total"]["requests"] == 1
        # The provider never told its tokens; they are estimated by what came.
        assert 0 < usage["total"]["output_tokens"] <= 5000
        assert budget(usage)["spent"] == usage["total"]["cost"] != SPENT


async def test_a_call_that_fails_holds_and_costs_nothing(url: str) -> None:
    app = metered_app(url, "5/day", reply=lambda _: RateLimitError("slower"))
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 429
        usage = await usage_of(app)
        assert (usage["rows"], budget(usage)["held"], budget(usage)["spent"]) == ([], "0", "0")


async def test_a_killed_process_holds_its_reservations_for_half_an_hour_at_most(url: str) -> None:
    clock = Clock()
    app = metered_app(url, "0.001/day", clock=clock)
    async with app.router.lifespan_context(app):
        payer = app.state.service.accounts.charge(serve.Key(CI, "ci", budgets=["0.001/day"]).caller)
        with payer:
            found = find_payer()
        assert found is not None
        origin = Origin("openai", "https://api.openai.com/v1", "gpt-4o")
        await found.reserve(PlannedCall(origin, lambda: 10, 90))  # and is never settled
        assert "is held by calls that run" in (await chat(app, most=90)).body.decode()
        clock.move(minutes=31)
        assert budget(await usage_of(app))["held"] == "0"
        assert (await chat(app, most=90)).status == 200


async def test_a_model_without_a_price_is_refused_to_a_budget_in_dollars_alone(url: str) -> None:
    gateway = serve.Gateway({"small": model(like="openrouter:my/own-model")})
    app = metered_app(url, "5/day", gateway=gateway)
    async with app.router.lifespan_context(app):
        refused = await chat(app)
        assert refused.status == 403
        assert refused.json["error"]["message"] == (
            "the price of small is not known, and this key has a budget in dollars; ask for another "
            "model, or for a key with a budget in tokens"
        )
        assert (await chat(app, OTHER)).status == 200
        total = (await usage_of(app, OTHER))["total"]
        assert (total["cost"], total["unknown_cost"]) == ("0", 1)
    app = metered_app(url, "1500-tokens/day", gateway=gateway)
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 200
        assert (await chat(app)).status == 200
        refused = await chat(app)
        assert "1,500 tokens per day is spent" in refused.json["error"]["message"]


async def test_a_fallback_does_not_go_round_a_spent_budget(url: str) -> None:
    asked: list[str] = []

    def reply(name: str) -> Any:
        def answer(_: Any) -> Message:
            asked.append(name)
            return told()

        return answer

    first, second = model(reply("first")), model(reply("second"), "anthropic:claude-sonnet-4-6")
    app = metered_app(url, "0.0035/day", gateway=serve.Gateway({"small": [first, second]}))
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 200
        refused = await chat(app)
        assert refused.status == 429
        assert refused.json["error"]["message"].startswith("budget of key ci: $0.0035 per day is spent")  # fmt: skip
        assert asked == ["first"]


async def test_each_call_of_a_run_counts_also_those_of_agents_that_its_tools_ask(url: str) -> None:
    inner = Agent(model(lambda _: told("inner", 10, 20), "anthropic:claude-sonnet-4-6"))

    @tool
    async def ask(text: str) -> str:
        """Asks another agent."""
        return (await inner.run(text).result()).output

    @tool
    def ask_plainly(text: str) -> str:
        """Asks another agent from a thread."""
        return asyncio.run(inner.send(text)).output

    def outer(request: Any) -> Message:
        rounds = sum(bool(message.tool_results) for message in request.messages)
        if rounds == 2:
            return told("done")
        name = ("ask", "ask_plainly")[rounds]
        return told().replace(content=(ToolCallPart(f"c{rounds}", name, {"text": "x"}),))

    agent = Agent(model(outer), tools=[ask, ask_plainly])
    app = metered_app(url, "5/day", gateway=None, agents={"small": agent})
    async with app.router.lifespan_context(app):
        got = await chat(app)
        assert got.status == 200, got.body
        usage = await usage_of(app)
        counts = {row["model"]: (row["requests"], row["input_tokens"]) for row in usage["rows"]}
        assert counts == {"openai:gpt-4o": (3, 3000), "anthropic:claude-sonnet-4-6": (2, 20)}
        assert budget(usage)["spent"] == usage["total"]["cost"]
        assert budget(usage)["held"] == "0"
        assert (await usage_of(app, OTHER))["rows"] == []


async def test_a_run_on_the_page_that_runs_out_of_budget_says_so(url: str) -> None:
    def outer(request: Any) -> Message:
        if request.messages[-1].tool_results:
            return told("done")
        return told().replace(content=(ToolCallPart("c", "look", {}),))

    @tool
    def look() -> str:
        """Looks."""
        return "seen"

    agent = Agent(model(outer), tools=[look])
    app = metered_app(url, "1000-tokens/day", gateway=None, agents={"small": agent})
    async with app.router.lifespan_context(app):
        page = Page(app, {"authorization": f"Bearer {CI}"})
        body = {"text": "hi"}
        got = await page("POST", "/page/threads/t/runs", body)
        assert got.status == 202
        events = await page.events(got.json["run_id"])
        error = events[-1][1].error  # type: ignore[union-attr]
        assert "1,000 tokens per day" in error.message


async def test_usage_of_nobody_in_particular_is_shown_without_a_database() -> None:
    app = serve.app(gateway=serve.Gateway({"small": model()}), page=True)
    async with app.router.lifespan_context(app):
        assert (await chat(app)).status == 200
        usage = await usage_of(app)
        assert (usage["stored"], usage["total"]["requests"], usage["key"]["name"]) == (False, 1, "")
        for days in ("0", "401", "x", "-1"):
            got = await exchange(app, "GET", f"/page/usage?days={days}")
            assert got.status == 400


@pytest.mark.parametrize("store", ["memory:", None])
def test_budgets_need_a_database(store: str | None) -> None:
    with pytest.raises(SettingsError, match="budgets need a database"):
        metered_app(store, "5/day")  # type: ignore[arg-type]


async def test_vectors_count_and_tokens_that_are_counted_do_not(url: str) -> None:
    app = metered_app(url, "500-tokens/day")
    headers = {"authorization": f"Bearer {CI}"}
    async with app.router.lifespan_context(app):
        body = {"model": "small", "messages": [{"role": "user", "content": "x"}], "max_tokens": 9}
        counted = await exchange(app, "POST", "/v1/messages/count_tokens", body, headers=headers)
        assert counted.status == 200
        assert (await usage_of(app))["rows"] == []
        body = {"model": "small", "input": ["some words", "more"]}
        got = await exchange(app, "POST", "/v1/embeddings", body, headers=headers)
        assert got.status == 200, got.body
        usage = await usage_of(app)
        assert usage["total"]["requests"] == 1
        assert usage["total"]["output_tokens"] == 0
        assert int(budget(usage, "tokens")["spent"]) == usage["total"]["input_tokens"] > 0
        assert (await chat(app)).status == 200
        refused = await exchange(app, "POST", "/v1/embeddings", body, headers=headers)
        assert refused.status == 429
