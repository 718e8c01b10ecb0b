"""A page that is loaded at any event of a run shows the same as one that saw all of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.browser import free_port, served
from support.page_steps import choose_agent, new_thread, say, seen, wait_until_same

pytestmark = [pytest.mark.service, pytest.mark.timeout(240)]
MOST_STEPS = 200


class Gate:
    """Lets a server take one step after the other."""

    def __init__(self, path: Path) -> None:
        self._path, self.steps = path, 0
        path.write_text("0")

    def open(self) -> None:
        self.steps += 1
        part = self._path.with_suffix(".part")
        part.write_text(str(self.steps))
        part.replace(self._path)


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    return Gate(tmp_path_factory.mktemp("gate") / "steps")


@pytest.fixture(scope="module")
def gated_url(gate: Gate) -> Iterator[str]:
    with served(free_port(), GATE=str(gate._path)) as address:
        yield address


@pytest.fixture
def pair(open_page: Any, gated_url: str) -> Any:
    """A page that is never loaded again, and one that is at each step."""
    page = open_page(base=gated_url)
    page.locator(".composer textarea").wait_for()
    return page, open_page(base=gated_url)


def check_same(page: Any, other: Any) -> None:
    """Loads the other page anew and holds it against the first."""
    other.goto(page.url.replace("/new", ""))
    other.reload()
    wait_until_same(page, other)


def walk(pair: Any, gate: Gate, is_over: Callable[[Any], bool], every: int = 1) -> int:
    """Takes step by step, and loads the other page after each. Returns how many."""
    page, other = pair
    for number in range(MOST_STEPS):
        if is_over(page):
            check_same(page, other)
            return number
        if number % every == 0:
            check_same(page, other)
        before = seen(page)
        gate.open()
        until = time.monotonic() + 0.15
        while seen(page) == before and time.monotonic() < until and not is_over(page):
            time.sleep(0.01)
    raise AssertionError("the run does not end")


def has(css: str) -> Callable[[Any], bool]:
    return lambda page: page.locator(css).count() > 0


def has_ended(page: Any) -> bool:
    return page.locator("article.answer").last.locator("footer.meta").count() > 0


def test_through_thinking_tools_and_an_approval(pair: Any, gate: Gate) -> None:
    page, other = pair
    new_thread(page)
    say(page, "Plan my trip to the mountains")
    page.locator("article.answer").wait_for()
    assert walk(pair, gate, has(".ask")) >= 8
    # Edited arguments, and all that follows.
    page.get_by_role("button", name="Edit").click()
    area = page.locator(".editor textarea")
    area.fill(area.input_value().replace("1", "2"))
    page.get_by_role("button", name="Approve with these").click()
    page.locator(".ask").wait_for(state="detached")
    assert walk(pair, gate, has_ended, every=8) >= 20
    assert "Changed by a person to" in seen(other)[-1]
    assert "778" in seen(other)[-1]
    # What the earlier answer tells stays when the next one follows.
    say(page, "And now?")
    page.locator("article.answer").nth(1).wait_for()
    walk(pair, gate, lambda page: page.locator("footer.meta").count() == 2, every=2)
    assert "Changed by a person to" in seen(other)[1]


def test_through_a_stop(pair: Any, gate: Gate) -> None:
    page, other = pair
    new_thread(page)
    say(page, "Write something long")
    page.locator("article.answer").wait_for()
    for _ in range(8):
        gate.open()
    page.locator(".prose").first.wait_for()
    check_same(page, other)
    page.keyboard.press("Escape")
    page.locator(".stopped").wait_for()
    check_same(page, other)


def test_through_a_denial_and_an_answer_made_anew(pair: Any, gate: Gate) -> None:
    page, other = pair
    new_thread(page)
    say(page, "Please book both ways")
    page.locator(".ask").nth(1).wait_for()
    check_same(page, other)
    for _ in range(2):
        page.get_by_role("button", name="Deny").first.click()
        page.locator(".editor input").fill("too dear")
        page.locator(".ask .bad").first.click()
    page.locator(".tool.denied").nth(1).wait_for()
    walk(pair, gate, has_ended)
    page.get_by_role("button", name="Make this answer anew").click()
    page.locator(".ask").nth(1).wait_for()
    check_same(page, other)


def test_through_an_error(pair: Any) -> None:
    page, other = pair
    new_thread(page)
    say(page, "Run into a limit")
    page.locator(".failed").wait_for()
    check_same(page, other)
    assert "12 s" in seen(other)[-1]


def test_through_a_text_that_is_taken_back(pair: Any, gate: Gate) -> None:
    page, _ = pair
    new_thread(page)
    choose_agent(page, "spare")
    say(page, "This one breaks")
    page.locator("article.answer").wait_for()
    assert walk(pair, gate, has_ended) >= 5
    assert "taken back" not in " ".join(seen(page))
    assert "gpt-4o" in seen(page)[-1]


def test_through_the_approval_of_an_agent_in_a_tool(pair: Any, gate: Gate) -> None:
    page, _ = pair
    new_thread(page)
    choose_agent(page, "boss")
    say(page, "Ask the boss")
    page.locator("article.answer").wait_for()
    walk(pair, gate, has(".ask"), every=4)
    page.get_by_role("button", name="Approve").click()
    page.locator(".ask").wait_for(state="detached")
    walk(pair, gate, has_ended, every=8)
