"""A server with scripted agents, and a real Chromium that looks at its page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.browser import CHROMIUM, ROOT, SHOTS, free_port, served

AXE = ROOT / ".cache" / "page" / "node_modules" / "axe-core" / "axe.min.js"


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with served(free_port()) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of one module. Its driver keeps an event loop going in this thread, so
    no other test can have one of its own before it is closed."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian's package chromium)")
    SHOTS.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser: Any, url: str) -> Iterator[Callable[..., Any]]:
    """Opens the page of a server, as a person with a browser of their own would. At the end nothing
    was asked of another host, and the console has no error."""
    contexts: list[Any] = []
    faults: list[str] = []

    def open_one(path: str = "/", base: str = url, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))

        def look(request: Any) -> None:
            if not request.url.startswith((base, "data:", "blob:")):
                faults.append(f"asked of another host: {request.url}")

        page.on("request", look)
        page.set_default_timeout(30_000)
        page.goto(base + path)
        return page

    open_one.faults = faults  # type: ignore[attr-defined]
    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


@pytest.fixture
def shoot() -> Callable[[Any, str], None]:
    return lambda page, name: page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def axe() -> Callable[[Any], None]:
    """Holds a view against the rules of axe."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed (make service installs it)")

    def check(page: Any) -> None:
        found = page.evaluate(
            f"async () => {{ if (!window.axe) {{ const make = new Function({AXE.read_text()!r}); make(); }}"
            " return (await axe.run()).violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]) }"
        )
        assert found == []

    return check


@pytest.fixture
def look(axe: Any, shoot: Any) -> Callable[[Any, str, str], None]:
    """Holds a state of the page against the rules of axe, and keeps its pictures: light and dark, wide
    and as on a phone, each with what `css` finds in sight."""

    def look_at(page: Any, name: str, css: str) -> None:
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
                page.locator(css).last.scroll_into_view_if_needed()
                axe(page)
                shoot(page, f"{name}-{scheme}-{width}")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.set_viewport_size({"width": 1280, "height": 860})
        page.emulate_media(color_scheme="light")

    return look_at
