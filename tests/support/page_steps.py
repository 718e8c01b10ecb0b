"""What a person does on the page in a browser, and what they see."""

from __future__ import annotations

import re
import time
from typing import Any
from uuid import uuid4

__all__ = ["choose_agent", "finished", "new_thread", "say", "seen", "shown", "wait_until_same"]

_TIMES = re.compile(r"( · )?\b\d+(\.\d+)? m?s\b|(?<=Thought) for")

_READ_TURNS = """[...document.querySelectorAll('[role=log] article')].map(turn => {
  const words = [];
  const nodes = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
  while (nodes.nextNode()) {
    const text = nodes.currentNode.data.replace(/^( · |Thought for )?[0-9.]+ m?s$/, '$1').trim();
    words.push(text.replace(/^Thought for$/, 'Thought').replace(/^·$/, ''));
  }
  return words.filter(Boolean).join(' ');
})"""


def new_thread(page: Any) -> str:
    thread = str(uuid4())
    page.evaluate("hash => { location.hash = hash }", f"#/chat/{thread}/new")
    page.locator(".empty h2").wait_for()
    return thread


def choose_agent(page: Any, name: str) -> None:
    page.locator("header .picker select").select_option(name)


def say(page: Any, words: str) -> None:
    page.locator(".composer textarea").fill(words)
    page.keyboard.press("Enter")


def finished(page: Any) -> Any:
    """Waits for the end of the last answer, and returns it."""
    page.locator("[aria-label=Send]").wait_for()
    answer = page.locator("article.answer").last
    answer.locator("footer.meta").wait_for()
    return answer


def shown(page: Any) -> list[str]:
    """The words of a conversation, without how long each thing took."""
    text = _TIMES.sub("", page.locator("[role=log]").inner_text())
    return [line.strip() for line in text.split("\n") if line.strip()]


def seen(page: Any) -> list[str]:
    """All words of each turn, also folded ones, without how long each thing took."""
    return page.evaluate(_READ_TURNS)


def wait_until_same(page: Any, other: Any) -> None:
    """Waits until two pages show the same turns: each may still get an event."""
    until = time.monotonic() + 10
    while True:
        one, two = seen(page), seen(other)
        if one and one == two:
            return
        assert time.monotonic() < until, f"{one}\n{two}"
        time.sleep(0.02)
