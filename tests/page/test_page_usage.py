"""The view of usage: today, this month, by model and day, and what budgets leave."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.page_steps import finished, new_thread, say

pytestmark = [pytest.mark.service, pytest.mark.timeout(120)]
BUDGET = {"per": "day", "unit": "dollars", "words": "$5 per day", "limit": "5", "spent": "1.25",
          "held": "0.25", "left": "3.5", "resets_at": "2026-11-27T00:00:00Z"}  # fmt: skip
SPENT = {**BUDGET, "per": "month", "unit": "tokens", "words": "10,000 tokens per month",
         "limit": "10000", "spent": "10000", "held": "0", "left": "0"}  # fmt: skip


def row(day: str, model: str, calls: int, cost: str, unknown: int = 0) -> dict[str, object]:
    return {"day": day, "model": model, "requests": calls, "input_tokens": calls * 100,
            "cached_tokens": 0, "output_tokens": calls * 20, "cost": cost,
            "unknown_cost": unknown}  # fmt: skip


ROWS = [
    row("2026-11-26", "openai:gpt-5.2", 3, "0.5"),
    row("2026-11-26", "local", 2, "0", 2),
    row("2026-11-20", "openai:gpt-5.2", 9, "1.5"),
    row("2026-10-30", "openai:gpt-5.2", 4, "9"),
]
USAGE = {
    "key": {"name": "ci", "prefix": "dgm_Ab12Cd", "expires_at": "2027-01-01T00:00:00Z"},
    "from": "2026-10-27", "to": "2026-11-26", "budgets": [BUDGET, SPENT], "rows": ROWS,
    "total": {}, "stored": False,
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_usage_is_drawn(open_page: Any, shoot: Any, axe: Any, scheme: str, width: int) -> None:
    how = {"color_scheme": scheme, "timezone_id": "Asia/Kolkata", "bypass_csp": True}
    page = open_page(viewport={"width": width, "height": 844}, **how)
    page.route("**/page/usage?*", lambda route: route.fulfill(json=json.loads(json.dumps(USAGE))))
    page.goto(page.url.partition("#")[0] + "#/usage/")
    page.locator(".chart svg").wait_for()
    facts = page.locator(".facts").inner_text()
    assert "$0.500" in facts and "$2.000" in facts and "2 without a price" in facts
    assert "$3.5 left" in page.locator(".budget").first.inner_text()
    assert "resets 27 Nov, 05:30:00 GMT+5:30" in page.locator(".budget").first.inner_text()
    assert page.locator(".budget.spent").inner_text().count("spent") == 1
    assert (
        "ci dgm_Ab12Cd… holds until 1 Jan, 05:30:00 GMT+5:30" in page.locator(".whose").inner_text()
    )
    assert "free" not in page.locator(".usage").inner_text()
    assert page.locator(".chart g").count() == 31
    assert page.locator(".chart title").last.text_content() == "2026-11-26: 600 tokens"
    page.get_by_role("button", name="Cost").click()
    assert page.locator(".chart title").last.text_content() == "2026-11-26: $0.500"
    rows = page.locator(".usage > .list tbody tr")
    assert [text.split()[0] for text in rows.all_inner_texts()] == ["openai:gpt-5.2", "local"]
    shoot(page, f"26-usage-{scheme}-{width}")
    page.get_by_text("By day and model").click()
    assert page.locator(".days tbody tr").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    axe(page)


def test_without_calls_it_says_so(open_page: Any) -> None:
    page = open_page()
    empty = {**USAGE, "rows": [], "budgets": [], "key": {"name": "", "prefix": "", "expires_at": None}}  # fmt: skip
    page.route("**/page/usage?*", lambda route: route.fulfill(json=empty))
    page.goto(page.url.partition("#")[0] + "#/usage/")
    page.get_by_text("No calls yet").wait_for()
    assert page.locator(".budgets").count() == 0


def test_what_a_run_took_is_there(open_page: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Hello")
    finished(page)
    page.get_by_role("link", name="Usage").click()
    page.locator(".chart svg").wait_for()
    assert "anthropic:claude-sonnet-4-6" in page.locator(".usage > .list").inner_text()
    assert "This server keeps nothing" in page.locator(".usage").inner_text()
