"""The embedded model itself: started on first use, once in a process, and the demo on top of it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman import Agent, Settings, tool
from dragoman.errors import SettingsError
from dragoman.providers.embedded import SERVERS
from dragoman.providers.local import base_url, preload_model
from dragoman.providers.local_models import DEFAULT, find_model
from dragoman.request import HttpRequest
from dragoman.transport import AiohttpTransport

pytestmark = [pytest.mark.anyio, pytest.mark.service, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def model() -> Path:
    pytest.importorskip("xllamacpp")
    try:
        return find_model(DEFAULT)
    except SettingsError as missing:
        pytest.skip(f"no embedded model here: {missing}")


async def test_it_is_started_once_however_many_ask(model: Path) -> None:
    first, *others = await asyncio.gather(*[base_url(DEFAULT) for _ in range(5)])
    assert set(others) == {first}
    assert first.startswith("http://127.0.0.1:")
    assert SERVERS.find_url(model) == first.removesuffix("/v1")


def test_it_may_be_loaded_by_a_thread_while_the_program_does_other_things(model: Path) -> None:
    SERVERS.close()
    preload_model(None)
    preload_model("nobody")  # what fails is told when the model is used
    for thread in threading.enumerate():
        if thread.name == "dragoman-load":
            thread.join(60)
    assert SERVERS.find_url(model)


@pytest.mark.parametrize(
    "headers", [{}, {"Host": "evil.test"}, {"Authorization": "Bearer guessed"}]
)
async def test_nobody_uses_it_who_has_not_its_key(model: Path, headers: dict[str, str]) -> None:
    """No other user of this machine, and no page that has its own name lead here."""
    url = await base_url(DEFAULT)
    transport = AiohttpTransport()
    for path in (
        "/chat/completions",
        "/completions",
        "/embeddings",
        "/models",
        "/../props",
        "/../slots",
        "/../tokenize",
    ):
        for method in ("GET", "POST"):
            response = await transport.send(
                HttpRequest(url + path, headers, {"messages": []}, method)
            )
            assert response.status == 401, (path, method)
            await response.close()
    await transport.close()


async def test_it_answers_and_streams_and_gives_a_typed_value(model: Path) -> None:
    async with Agent("local", settings=Settings(temperature=0, max_tokens=40)) as a:
        outputs = [chunk.output async for chunk in a.send_stream("Count to five.") if chunk.output]
        assert len(outputs) > 3
        value = (
            await a.send_for("Name a city and how many people live there.", dict[str, str | int])
        ).output
        assert isinstance(value, dict)


async def test_it_calls_the_right_tool_with_the_right_arguments(model: Path) -> None:
    places: list[str] = []

    @tool
    async def get_temperature(city: str) -> str:
        """The temperature in a city right now."""
        places.append(city)
        return "23 degrees"

    async with Agent("local", tools=[get_temperature]) as a:
        result = await a.send("What is the temperature in Oslo and in Rome?")
    assert places == ["Oslo", "Rome"]
    assert "23" in result.output


async def test_a_model_that_is_missing_names_the_command_that_mends_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="gguf"):
        await base_url(str(tmp_path / "no.gguf"))


def test_the_demo_is_true(model: Path) -> None:
    done = subprocess.run(
        [sys.executable, "examples/demo.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "DRAGOMAN_MODEL": "local"},
        capture_output=True,
        text=True,
        timeout=240,
        check=True,
    )
    returned = re.findall(r"returned: \[([\d, ]+)\]", done.stdout)
    assert len(returned) == 2
    numbers = {int(number) for line in returned for number in line.split(",")}
    assert numbers
    assert all(f"returned '{number} " in done.stdout for number in numbers)
    assert "City(name=" in done.stdout
    assert len((ROOT / "examples" / "demo.py").read_text().splitlines()) <= 60
