"""A run draws itself in a notebook while it works: with IPython's own shell and publisher."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from dragoman import Agent, run_display, tool
from dragoman.errors import DragomanError
from dragoman.testing import ScriptedModel, call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Iterator[CapturingDisplayPublisher]:
    """What a notebook was sent."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.kernel = object()
    shell.display_pub = CapturingDisplayPublisher(parent=shell)
    shell.display_formatter.active_types = ["text/plain", "text/html"]
    monkeypatch.setattr(run_display, "_PAUSE_SECONDS", 0.0)
    yield shell.display_pub
    InteractiveShell.clear_instance()


@tool
async def look(city: str) -> str:
    """Looks."""
    return f"{city}: rain"


def agent() -> Agent[None]:
    return Agent(ScriptedModel([call("look", city="Oslo"), "It rains."]), tools=[look])


def pictures(notebook: CapturingDisplayPublisher) -> list[str]:
    return [output["data"]["text/html"] for output in notebook.outputs]


async def test_a_run_is_drawn_while_it_works(notebook: CapturingDisplayPublisher) -> None:
    async with agent().run("Weather?") as run:
        display(run)
        before = asyncio.all_tasks()
        result = await run.result()
    assert asyncio.all_tasks() == before
    first, *later = notebook.outputs
    assert first["transient"]["display_id"]
    assert all(output["transient"] == first["transient"] and output["update"] for output in later)
    html = pictures(notebook)
    assert "works …" in html[0] and "It rains." not in html[0]
    assert any("look" in page and "It rains." not in page for page in html)
    assert "It rains." in html[-1] and "works …" not in html[-1]
    assert f"{result.usage.total_tokens} tokens" in html[-1]
    # Nothing is drawn once it is over.
    count = len(html)
    await run.result()
    await run.close()
    assert len(notebook.outputs) == count


async def test_a_run_that_fails_or_is_left_is_drawn_last(
    notebook: CapturingDisplayPublisher,
) -> None:
    failing = Agent(ScriptedModel(["one"]), display_name="Failing <b>")
    await failing.send("x")
    async with failing.run("again") as run:
        display(run)
        with pytest.raises(DragomanError):
            await run.result()
    assert "Failing &lt;b&gt; failed" in pictures(notebook)[-1]
    async with agent().run("Weather?") as run:
        display(run)
        async for _ in run:
            break
    assert "was stopped" in pictures(notebook)[-1]
    assert "works …" not in pictures(notebook)[-1]


async def test_a_notebook_that_is_gone_does_not_fail_the_run(
    notebook: CapturingDisplayPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **options: Any) -> None:
        raise OSError("no kernel")

    async with agent().run("Weather?") as run:
        display(run)
        monkeypatch.setattr(notebook, "publish", fail)
        assert (await run.result()).output == "It rains."


async def test_a_terminal_prints_the_run_once(notebook: CapturingDisplayPublisher) -> None:
    del InteractiveShell.instance().kernel
    async with agent().run("Weather?") as run:
        display(run)
        await run.result()
    assert len(notebook.outputs) == 1
