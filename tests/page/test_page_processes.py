"""The page before several processes: durable runs whose process is killed, one session in all of
them, and the same waterfall everywhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.browser import ROOT, Relay, free_port, served, wait_until_served
from support.page_steps import finished, new_thread, say, wait_until_same

pytestmark = [pytest.mark.service, pytest.mark.timeout(180)]
KEYS = ("key-of-ann", "key-of-bob")


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'page.db'}"


def forget(faults: list[str]) -> None:
    """Forgets what a browser says of a server that was killed."""
    faults[:] = [fault for fault in faults if "net::ERR_" not in fault]


def sign_in(page: Any, key: str) -> None:
    page.locator(".sign-in input").fill(key)
    page.keyboard.press("Enter")
    page.locator(".composer textarea").wait_for()


def test_a_durable_run_goes_on_when_its_process_is_killed(
    open_page: Any, shoot: Any, store: str
) -> None:
    how = {"STORE": store, "DURABLE": "1", "LEASE": "2"}
    with ExitStack() as others:
        ports = [free_port() for _ in range(3)]
        relay = Relay(ports[0], ports[1])
        with served(ports[0], **how):
            page = open_page(base=relay.url)
            new_thread(page)
            say(page, "Write something long")
            page.locator(".prose h2").nth(1).wait_for()
        # It is killed. Nobody answers, until another process of the same store is there.
        page.locator(".lost").wait_for()
        others.enter_context(served(ports[1], **how))
        page.locator(".lost").wait_for(state="detached")
        page.locator(".prose h2").nth(3).wait_for()
        headings = page.locator(".prose h2").all_inner_texts()
        assert headings == [f"Part {number}" for number in range(len(headings))]
        page.keyboard.press("Escape")
        page.locator(".stopped").wait_for()
        # An approval that waits is answered in another process.
        say(page, "Plan my trip")
        page.locator(".ask").wait_for()
        others.enter_context(served(ports[2], **how))
        second = open_page(path=page.url[len(relay.url) :], base=f"http://127.0.0.1:{ports[2]}")
        second.locator(".ask").wait_for()
        wait_until_same(page, second)
        second.get_by_role("button", name="Approve").click()
        finished(second)
        # Both have the same waterfall of the run that was killed.
        second.get_by_role("link", name="Runs of this conversation").click()
        second.locator("table.list a").last.click()
        second.locator(".span.model").nth(1).wait_for()
        rows = second.locator(".fall").inner_text()
        shoot(second, "16-killed-run")
        page.goto(relay.url + "/" + second.url.partition("/#")[2].join(["#", ""]))
        page.locator(".span.model").nth(1).wait_for()
        assert page.locator(".fall").inner_text() == rows
        relay.close()
    forget(open_page.faults)


def test_two_processes_with_a_connection_for_each_request(open_page: Any, store: str) -> None:
    with ExitStack() as servers:
        ports = [free_port(), free_port()]
        for port in ports:
            servers.enter_context(served(port, *KEYS, STORE=store))
        relay = Relay(*ports)
        page = open_page(base=relay.url)
        sign_in(page, KEYS[0])
        for number in range(3):
            new_thread(page)
            say(page, f"Plan my trip, number {number}")
            page.get_by_role("button", name="Approve").click()
            finished(page)
            other = open_page(path=page.url[len(relay.url) :], base=relay.url)
            sign_in(other, KEYS[0])
            wait_until_same(page, other)
            other.context.close()
        # A run of one process is stopped by way of the other.
        new_thread(page)
        say(page, "Write something long")
        page.locator(".prose h2").nth(1).wait_for()
        page.reload()
        page.locator(".prose h2").nth(1).wait_for()
        page.locator("[aria-label=Stop]").click()
        page.locator(".stopped").wait_for()
        page.goto(f"{relay.url}/#/runs/")
        page.locator("table.list tbody tr").nth(6).wait_for()
        other = open_page(base=relay.url)
        sign_in(other, KEYS[1])
        other.goto(f"{relay.url}/#/runs/")
        other.get_by_text("No runs yet").wait_for()
        relay.close()
    open_page.faults[:] = [fault for fault in open_page.faults if "status of 40" not in fault]


@pytest.fixture
def processes_url(store: str) -> Iterator[str]:
    """A server of two processes behind one port."""
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests' / 'page'}",
        "STORE": store,
        "KEYS": " ".join(KEYS),
    }
    command = [sys.executable, "-m", "dragoman", "serve", "page_agents:app", "--processes", "2"]
    server = subprocess.Popen([*command, "--port", str(port)], env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until_served(url, server)
        yield url
    finally:
        server.terminate()
        server.wait(20)


def test_a_server_of_two_processes(open_page: Any, processes_url: str) -> None:
    pages = [open_page(base=processes_url) for _ in range(3)]
    for page in pages:
        sign_in(page, KEYS[0])
    for number, page in enumerate(pages):
        new_thread(page)
        say(page, f"Plan my trip, number {number}")
        page.get_by_role("button", name="Approve").click()
        finished(page)
    for page in pages:
        for other in pages:
            page.goto(other.url)
            page.reload()
            wait_until_same(page, other)
    runs = open_page(base=processes_url)
    sign_in(runs, KEYS[0])
    runs.goto(f"{processes_url}/#/runs/")
    runs.locator("table.list tbody tr").nth(5).wait_for()
    assert len(re.findall("done", runs.locator("table.list").inner_text())) == 3
    open_page.faults[:] = [fault for fault in open_page.faults if "status of 40" not in fault]
