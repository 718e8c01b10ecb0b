"""States of the page that come and go, light and dark, wide and as on a phone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.browser import Relay
from support.page_steps import finished, new_thread, say

pytestmark = [pytest.mark.service, pytest.mark.timeout(180)]


def test_a_run_that_loses_its_connection_stops_or_fails(
    open_page: Any, look: Any, url: str
) -> None:
    relay = Relay(int(url.rpartition(":")[2]))
    page = open_page(base=relay.url, bypass_csp=True)
    new_thread(page)
    say(page, "Write something long")
    page.locator(".prose h2").first.wait_for()
    relay.cut()
    page.locator(".lost").wait_for()
    look(page, "30-lost", ".lost")
    relay.mend()
    page.locator(".lost").wait_for(state="detached")
    page.keyboard.press("Escape")
    page.locator(".stopped").wait_for()
    look(page, "31-stopped", ".stopped")
    new_thread(page)
    say(page, "Run into a limit")
    page.locator(".failed").wait_for()
    look(page, "32-failed", ".failed")
    relay.close()
    open_page.faults[:] = [fault for fault in open_page.faults if "net::ERR_" not in fault]


def test_the_forms_of_an_approval_and_a_plan(open_page: Any, look: Any) -> None:
    page = open_page(bypass_csp=True)
    new_thread(page)
    say(page, "Plan my trip")
    page.get_by_role("button", name="Edit").click()
    area = page.locator(".editor textarea")
    area.fill(area.input_value().replace("1", '"two"'))
    page.locator(".editor .wrong").wait_for()
    look(page, "33-edit", ".ask .buttons")
    page.get_by_role("button", name="Back").click()
    page.get_by_role("button", name="Deny").click()
    page.locator(".editor input").fill("too dear")
    look(page, "34-deny", ".ask .buttons")
    page.get_by_role("button", name="Back").click()
    page.get_by_role("button", name="Approve").click()
    finished(page)
    page.locator(".composer .picker select").select_option("openai-responses:gpt-5.2")
    page.locator(".plan").get_by_text("Not all of this conversation").wait_for()
    look(page, "35-plan", ".plan")


def test_calls_of_the_gateway(open_page: Any, look: Any, url: str) -> None:
    def ask(path: str, words: str, **more: object) -> int:
        messages = [{"role": "user", "content": words}]
        body = {"model": "small", "max_tokens": 99, "messages": messages, **more}
        return httpx.post(f"{url}/v1/{path}", json=body, timeout=30).status_code

    assert ask("chat/completions", "Hello", stream=True) == 200
    assert ask("messages", "Hello", top_k=5) == 200
    assert ask("chat/completions", "Run into a limit") == 429
    page = open_page(bypass_csp=True)
    page.goto(f"{url}/#/calls/")
    page.locator("h1", has_text="Gateway").wait_for()
    rows = page.locator("table.list tbody tr")
    rows.nth(2).wait_for()
    failed, lossy, streamed = rows.all_inner_texts()[:3]
    assert "429" in failed and "too many requests" in failed
    assert "anthropic" in lossy and "17" in lossy
    assert "openai chat" in streamed and "first" in streamed and "¢" in streamed
    rows.nth(1).locator("summary").click()
    assert "top_k: the model does not take it" in rows.nth(1).inner_text()
    look(page, "36-calls", "h1")
