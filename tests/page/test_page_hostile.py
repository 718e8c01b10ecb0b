"""The page with what nobody means well: huge answers, long conversations, odd names, a server that
refuses."""

from __future__ import annotations

import re
from typing import Any

import pytest

from support.browser import free_port, served
from support.page_steps import choose_agent, finished, new_thread, say

pytestmark = [pytest.mark.service, pytest.mark.timeout(180)]
WATCH = """() => {
  window.__touched = 0;
  window.__longest = 0;
  const past = [...document.querySelectorAll('[role=log] article')].slice(0, -1);
  const watcher = new MutationObserver((found) => { window.__touched += found.length; });
  const how = { subtree: true, childList: true, characterData: true, attributes: true };
  for (const turn of past) watcher.observe(turn, how);
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.__longest = Math.max(window.__longest, task.duration);
  }).observe({ type: 'longtask' });
}"""


def test_a_conversation_of_5_000_messages_stays_usable(open_page: Any) -> None:
    with served(free_port(), SEED="5000") as base:
        page = open_page(path="/#/chat/many", base=base)
        page.locator("article.answer").last.wait_for()
        assert page.locator("[role=log] article").count() == 100
        painted = page.evaluate("performance.getEntriesByType('paint').at(-1).startTime")
        assert painted < 5_000
        more = page.get_by_role("button", name="Show earlier messages")
        more.scroll_into_view_if_needed()
        above = page.locator("[role=log] article").first.bounding_box()["y"]
        more.click()
        page.locator("[role=log] article").nth(199).wait_for(state="attached")
        # What was read stays where it is.
        page.wait_for_function(
            "y => Math.abs(document.querySelectorAll('[role=log] article')[100]"
            ".getBoundingClientRect().y - y) < 60", arg=above
        )  # fmt: skip
        for number in range(3, 51):
            more.dispatch_event("click")
            page.locator("[role=log] article").nth(100 * number - 1).wait_for(state="attached")
        more.wait_for(state="detached")
        first = page.locator("[role=log] article").first.inner_text()
        assert first.strip() == "Message **0** of `many`."
        say(page, "Write something long")
        page.locator("article.answer").nth(2500).locator(".prose h2").nth(1).wait_for()
        page.evaluate(WATCH)
        page.locator("article.answer").nth(2500).locator(".prose h2").nth(6).wait_for()
        # Events of the last answer draw nothing of the others, and none stops the page for long.
        assert page.evaluate("window.__touched") == 0
        assert page.evaluate("window.__longest") < 500
        page.keyboard.press("Escape")
        page.locator(".stopped").wait_for()
        page.context.close()


@pytest.mark.parametrize(("words", "css"), [("code", ".code pre"), ("a table", ".prose table")])
def test_an_answer_of_many_lines_stays_usable(open_page: Any, words: str, css: str) -> None:
    page = open_page()
    new_thread(page)
    say(page, f"Give me {words}")
    finished(page)
    page.locator(css).wait_for()
    page.get_by_role("button", name=re.compile("Show all")).click() if words == "code" else None
    page.locator(css).wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.locator(".composer textarea").fill("Still here")
    assert page.locator(".composer textarea").input_value() == "Still here"


def test_odd_names_are_shown_as_they_are(open_page: Any, shoot: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Use a strange name \u202egnp.exe")
    ask = page.locator(".ask")
    ask.wait_for()
    words = ask.locator("dd").first.inner_text()
    for sign in ("U+202E", "U+2066", "U+E0041", "U+0007"):
        assert sign in words
    assert "مرحبا بالعالم" in words and "<b>bold</b>" in words
    assert "\u202e" not in page.content()
    assert "U+202E" in page.locator("aside nav li.current").inner_text()
    assert "\u202e" not in page.title()
    shoot(page, "17-odd-names")


def test_questions_of_one_step_are_answered_together(open_page: Any, shoot: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Please book both ways")
    page.locator(".ask").nth(1).wait_for()
    page.get_by_role("button", name="Approve").first.click()
    page.get_by_text("The run goes on once all questions are").wait_for()
    shoot(page, "18-two-questions")
    page.get_by_role("button", name="Deny").click()
    page.locator(".ask .bad").click()
    finished(page)
    states = page.locator(".tool .state").all_inner_texts()
    assert [state.split(" ")[0] for state in states] == ["done", "denied"]


def test_a_prompt_that_the_server_did_not_get_is_sent_again(open_page: Any) -> None:
    page = open_page()
    new_thread(page)
    choose_agent(page, "spare")
    page.route("**/page/threads/*/runs", lambda route: route.abort())
    say(page, "The first words")
    page.locator(".failed").wait_for()
    assert "cannot be reached" in page.locator(".failed").inner_text()
    page.unroute("**/page/threads/*/runs")
    page.get_by_role("button", name="Try again").click()
    answer = finished(page)
    assert "As you say" in answer.inner_text()
    assert page.locator("article.user").count() == 1
    open_page.faults[:] = [fault for fault in open_page.faults if "net::ERR_" not in fault]


def test_a_session_that_ends_asks_for_the_key(open_page: Any) -> None:
    with served(free_port(), "key-of-ann") as base:
        page = open_page(base=base)
        page.locator(".sign-in input").fill("key-of-ann")
        page.keyboard.press("Enter")
        page.locator(".composer textarea").wait_for()
        say(page, "Hello")
        finished(page)
        page.context.clear_cookies()
        say(page, "And now?")
        page.locator(".sign-in input").fill("key-of-ann")
        page.keyboard.press("Enter")
        finished(page)
        assert "Hello" in page.locator("[role=log]").inner_text()
        page.context.close()
    open_page.faults[:] = [fault for fault in open_page.faults if "401" not in fault]


def test_a_place_chosen_while_the_page_begins_is_kept(open_page: Any, url: str) -> None:
    page = open_page()
    page.add_init_script(
        "addEventListener('DOMContentLoaded', () => { location.hash = '#/calls/' }, { once: true })"
    )
    page.goto("about:blank")
    page.goto(url)
    page.locator("h1", has_text="Gateway").wait_for()


def test_a_page_without_a_secure_context(open_page: Any, url: str) -> None:
    page = open_page()
    page.add_init_script(
        "delete Crypto.prototype.randomUUID;"
        "Object.defineProperty(navigator, 'clipboard', { value: undefined })"
    )
    page.goto(url)
    page.locator(".composer textarea").wait_for()
    say(page, "Hello")
    finished(page)
    page.get_by_role("button", name="Copy the answer").click()
