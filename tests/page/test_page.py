"""The page in a real Chromium: what a person does there, and what they see."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from support.browser import Relay, free_port, served
from support.page_steps import finished, new_thread, say, shown

pytestmark = [pytest.mark.service, pytest.mark.timeout(180)]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154"
    "789c63f8cfc000000301010018dd8db00000000049454e44ae426082"
)


def test_a_trip_with_tools_an_approval_and_another_model(open_page: Any, shoot: Any) -> None:
    page = open_page()
    page.locator(".composer textarea").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    shoot(page, "01-empty")
    say(page, "Plan my trip to the mountains")
    page.locator(".tool.running progress").first.wait_for()
    shoot(page, "02-tools")
    ask = page.locator(".ask")
    ask.wait_for()
    shoot(page, "03-approval")
    assert ask.get_by_role("button").all_inner_texts() == ["Approve", "Edit", "Deny"]
    page.get_by_text("The agent needs your answer.").wait_for(state="attached")
    ask.get_by_role("button", name="Edit").click()
    area = page.locator(".editor textarea")
    given = area.input_value()
    for wrong, words in (("{ no json", "no JSON"), (given.replace("1", '"two"'), "integer")):
        area.fill(wrong)
        assert words in page.locator(".editor .wrong").inner_text()
        assert page.get_by_role("button", name="Approve with these").is_disabled()
    area.fill(given.replace("1", "2"))
    shoot(page, "04-edit")
    page.get_by_role("button", name="Approve with these").click()
    answer = finished(page)
    assert answer.locator("table td").first.inner_text() == "Oslo"
    assert answer.locator(".code-keyword").count() > 1
    booked = answer.locator(".tool").last
    booked.locator("summary").click()
    assert "778" in booked.inner_text() and "Changed by a person" in booked.inner_text()
    assert re.search(r"tokens", answer.locator("footer").inner_text())
    shoot(page, "05-answer")

    page.locator(".composer .picker select").select_option("openai-responses:gpt-5.2")
    plan = page.locator(".plan")
    plan.get_by_text("Not all of this conversation").wait_for()
    assert "thinking" in plan.inner_text()
    shoot(page, "06-plan")
    say(page, "And what did we settle on?")
    page.locator(".switched").wait_for()
    answer = finished(page)
    assert "left out" in answer.inner_text()
    shoot(page, "07-switched")
    for opened in page.locator(".tool details[open] > summary").all():
        opened.click()
    before = shown(page)
    page.reload()
    finished(page).get_by_text("left out").wait_for()
    assert shown(page) == before


def test_a_reload_while_the_model_writes_goes_on(open_page: Any, shoot: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Write something long")
    page.locator(".prose h2").nth(3).wait_for()
    before = len(page.locator("article.answer").inner_text())
    page.reload()
    page.locator(".prose h2").nth(3).wait_for()
    page.locator("[aria-label=Stop]").wait_for()
    assert page.locator("article.user").count() == 1
    page.wait_for_function(
        "least => document.querySelector('article.answer').innerText.length > least", arg=before
    )
    shoot(page, "08-reloaded")
    page.keyboard.press("Escape")
    page.locator(".stopped").wait_for()
    stopped = page.locator(".prose").all_inner_texts()
    page.reload()
    page.locator(".stopped").wait_for()
    assert page.locator(".prose").all_inner_texts() == stopped


def test_a_lost_connection_comes_back_by_itself(open_page: Any, url: str) -> None:
    relay = Relay(int(url.rpartition(":")[2]))
    page = open_page(base=relay.url)
    new_thread(page)
    say(page, "Write something long")
    page.locator(".prose h2").nth(1).wait_for()
    relay.cut()
    page.locator(".lost").wait_for()
    relay.mend()
    page.locator(".lost").wait_for(state="detached")
    many = page.locator(".prose h2").count()
    page.locator(".prose h2").nth(many + 2).wait_for()
    headings = page.locator(".prose h2").all_inner_texts()
    assert headings == [f"Part {number}" for number in range(len(headings))]
    page.keyboard.press("Escape")
    page.locator(".stopped").wait_for()
    relay.close()
    open_page.faults[:] = [fault for fault in open_page.faults if "net::ERR_" not in fault]


def test_denied_failed_and_made_again(open_page: Any, shoot: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Plan my trip")
    page.get_by_role("button", name="Deny").click()
    page.locator(".editor input").fill("too dear")
    page.locator(".ask .bad").click()
    answer = finished(page)
    assert "Nothing was booked" in answer.inner_text()
    assert page.locator(".tool.denied").count() == 1
    shoot(page, "09-denied")
    new_thread(page)
    say(page, "The weather in Atlantis")
    finished(page)
    assert "no station in Atlantis" in page.locator(".tool.failed").inner_text()
    say(page, "And now?")
    finished(page)
    page.get_by_role("button", name="Make this answer anew").click()
    finished(page)
    page.reload()
    finished(page)
    assert page.locator("article.answer").count() == 2
    assert page.locator("article.user").count() == 2
    new_thread(page)
    say(page, "Run into a limit")
    failed = page.locator(".failed")
    failed.wait_for()
    assert "too many requests" in failed.inner_text() and "12 s" in failed.inner_text()
    shoot(page, "10-failed")


def test_hostile_output_does_nothing(open_page: Any, shoot: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Show me hostile output")
    answer = finished(page)
    shoot(page, "11-hostile")
    assert page.evaluate("window.__harm") is None
    links = page.evaluate("[...document.querySelectorAll('.text a[href]')].map(a => a.href)")
    assert links == ["https://example.com/", "https://evil.example/p.png?secret"]
    bad = ".text :is(img,script,svg,iframe,form,style,input,[id],[style],[onerror],[onload])"
    assert page.locator(f"{bad}:not(.code svg)").count() == 0
    assert "U+001B" in answer.inner_text() and "U+202E" in answer.inner_text()


def test_a_megabyte_is_cut(open_page: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "huge")
    finished(page)
    page.get_by_role("button", name=re.compile("Show all 1,1")).wait_for()


def test_files_are_sent_if_the_model_takes_them(open_page: Any, tmp_path: Path) -> None:
    page = open_page()
    new_thread(page)
    (tmp_path / "dot.png").write_bytes(PIXEL)
    (tmp_path / "tool.exe").write_bytes(b"MZ")
    chooser = page.locator("input[type=file]")
    chooser.set_input_files([tmp_path / "tool.exe"])
    assert "tool.exe" in page.locator(".composer .wrong").inner_text()
    chooser.set_input_files([tmp_path / "dot.png"])
    page.locator(".composer .files").wait_for()
    say(page, "What is this?")
    finished(page)
    assert page.locator("article.user img").evaluate("image => image.naturalWidth") == 1
    page.reload()
    finished(page)
    assert page.locator("article.user img").evaluate("image => image.naturalWidth") == 1


def test_threads_are_found_renamed_and_deleted(open_page: Any, shoot: Any) -> None:
    page = open_page()
    new_thread(page)
    say(page, "Zebras of the north")
    finished(page)
    page.locator("aside nav li.current").wait_for()
    page.locator("[aria-label='Rename the conversation']").wait_for(state="attached")
    page.reload()
    page.get_by_role("button", name="Rename the conversation").click()
    page.locator(".rename input").fill("Striped horses")
    # What is typed stays while something else is drawn.
    page.evaluate("dispatchEvent(new Event('hashchange'))")
    page.wait_for_timeout(100)
    page.keyboard.press("Enter")
    page.locator("aside").get_by_text("Striped horses").wait_for()
    page.locator("aside input").fill("striped")
    page.locator("aside nav li").get_by_text("Striped horses").wait_for()
    shoot(page, "12-search")
    page.locator("aside input").fill("giraffe")
    page.get_by_text("Nothing is found.").wait_for()
    page.locator("aside input").fill("")
    row = page.locator("aside nav li", has_text="Striped horses")
    row.hover()
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button").click()
    row.wait_for(state="detached")
    page.locator(".empty h2").wait_for()


def test_runs_have_a_waterfall_and_events_also_from_a_past_process(
    open_page: Any, shoot: Any, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'page.db'}"
    port = free_port()
    with served(port, STORE=store) as base:
        page = open_page(base=base)
        new_thread(page)
        say(page, "Plan my trip")
        page.get_by_role("button", name="Approve").click()
        finished(page)
        page.get_by_role("link", name="Runs of this conversation").click()
        page.locator("table.list a").last.click()
        page.locator(".span.tool").first.click()
        page.locator(".detail").wait_for()
        assert "Arguments" in page.locator(".detail").inner_text()
        shoot(page, "13-run")
        address = page.url
        rows = page.locator(".fall").inner_text()
        page.get_by_role("tab", name="Events").click()
        page.locator(".events tbody tr").nth(30).wait_for()
        shoot(page, "14-events")
        page.locator(".events input").fill("tool_started")
        assert set(page.locator(".events .type").all_inner_texts()) == {"tool_started"}
        page.context.close()
    with served(port, STORE=store) as base:
        page = open_page(path="/" + address.partition("/#")[2].join(["#", ""]), base=base)
        page.locator(".span.tool").first.wait_for()
        assert page.locator(".fall").inner_text() == rows


def test_two_keys_see_nothing_of_each_other(open_page: Any, look: Any) -> None:
    with served(free_port(), "key-of-ann", "key-of-bob") as base:
        pages = {}
        for name in ("ann", "bob"):
            page = pages[name] = open_page(base=base)
            page.locator(".sign-in input").fill("a wrong key")
            page.keyboard.press("Enter")
            page.locator(".sign-in .wrong").wait_for()
            page.locator(".sign-in input").fill(f"key-of-{name}")
            page.keyboard.press("Enter")
            page.locator(".composer textarea").wait_for()
        stranger = open_page(base=base, bypass_csp=True)
        stranger.locator(".sign-in input").fill("a wrong key")
        stranger.keyboard.press("Enter")
        stranger.locator(".sign-in .wrong").wait_for()
        look(stranger, "15-sign-in", ".sign-in button")
        new_thread(pages["ann"])
        say(pages["ann"], "A secret of Ann")
        finished(pages["ann"])
        address = pages["ann"].url
        pages["bob"].goto(address)
        pages["bob"].locator(".empty h2").wait_for()
        assert "secret" not in pages["bob"].content()
        pages["bob"].goto(f"{base}/#/runs/")
        pages["bob"].get_by_text("No runs yet").wait_for()
        pages["ann"].reload()
        finished(pages["ann"])
        pages["ann"].get_by_role("button", name=re.compile("Sign out")).click()
        pages["ann"].locator(".sign-in input").wait_for()
        assert "key-of-ann" not in str(pages["ann"].context.cookies())
        for page in (*pages.values(), stranger):
            page.context.close()
    open_page.faults[:] = [
        fault for fault in open_page.faults if not re.search(r"status of (401|404)", fault)
    ]


def test_all_of_it_by_keyboard(open_page: Any) -> None:
    page = open_page()
    new_thread(page)
    page.keyboard.press("Control+Shift+O")
    page.locator(".empty h2").wait_for()
    page.keyboard.type("Plan my trip")
    page.keyboard.press("Enter")
    page.locator(".ask").wait_for()
    for _ in range(60):
        if page.evaluate("document.activeElement.textContent.trim()") == "Approve":
            break
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    finished(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_view_keeps_axes_rules(
    open_page: Any, shoot: Any, axe: Any, scheme: str, width: int
) -> None:
    phone = {"has_touch": True, "is_mobile": True} if width < 500 else {}
    page = open_page(
        viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True, **phone
    )
    new_thread(page)
    name = f"{scheme}-{width}"
    axe(page)
    shoot(page, f"20-empty-{name}")
    say(page, "Plan my trip")
    page.locator(".ask").wait_for()
    axe(page)
    shoot(page, f"21-approval-{name}")
    page.get_by_role("button", name="Approve").click()
    finished(page)
    axe(page)
    shoot(page, f"22-answer-{name}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width < 500:
        page.get_by_role("button", name="Conversations").click()
        page.locator("aside.open").wait_for()
        time.sleep(0.4)
        axe(page)
        shoot(page, f"23-menu-{name}")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Close").click() if page.locator(
            "aside.open"
        ).count() else None
    page.locator("a[title='What happened']").last.click()
    page.locator(".span").first.click()
    page.locator(".detail").wait_for()
    axe(page)
    shoot(page, f"24-run-{name}")
    page.get_by_role("tab", name="Events").click()
    page.locator(".events tbody tr").first.wait_for()
    axe(page)
    page.goto(page.url.partition("#")[0] + "#/runs/")
    page.locator("table.list").wait_for()
    axe(page)
    shoot(page, f"25-runs-{name}")
