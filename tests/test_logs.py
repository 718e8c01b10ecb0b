"""Logging: rules D-170…D-172."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import tool, unfold
from dragoman.errors import ProviderError
from dragoman.logs import LoggingOptions, log_from_environment, log_to
from dragoman.loss import Loss
from support.model import agent, call, says

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def nobody_listens() -> Iterator[None]:
    yield
    log_to(None)


@tool
def boom() -> None:
    raise ValueError("no luck")


async def run() -> None:
    a, _ = agent(says(call("boom")), says("done"), tools=[boom])
    await a.send("hi")


async def test_d170_nothing_is_written_until_somebody_listens(
    capfd: pytest.CaptureFixture[str],
) -> None:
    await run()
    assert capfd.readouterr() == ("", "")
    log_to(LoggingOptions("fine"))
    await run()
    assert "[dragoman." in capfd.readouterr().out


@pytest.mark.parametrize(
    ("level", "written"),
    [("INFO", True), ("fine", True), ("off", False), ("loud", False), ("", False)],
)
@pytest.mark.mend("2.9")
@pytest.mark.slow
def test_d170_the_environment_is_read_at_the_first_agent(level: str, written: bool) -> None:
    code = "import asyncio; from test_logs import run; asyncio.run(run())"
    tests = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "PYTHONPATH": f"{tests}:{tests.parent / 'src'}",
            "DRAGOMAN_LOG_LEVEL": level,
            "PATH": "",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("[dragoman." in done.stderr) is written
    assert "[dragoman." not in done.stdout  # that is the program's, such as JSON


async def test_d170_the_first_agent_alone_reads_the_environment(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log_from_environment.cache_clear()
    monkeypatch.setenv("DRAGOMAN_LOG_LEVEL", "FINE")
    await run()
    assert "[dragoman." in capfd.readouterr().err
    log_to(None)
    await run()
    assert capfd.readouterr() == ("", "")


async def test_d171_new_options_replace_the_earlier_ones_at_once() -> None:
    first, second = list[str](), list[str]()
    log_to(LoggingOptions("FINE", write=first.append))
    log_to(LoggingOptions("FINE", write=second.append))
    await run()
    assert first == []
    assert second


async def test_d172_level_and_filter_both_apply_and_a_line_says_who_and_how_grave() -> None:
    lines = list[str]()
    log_to(LoggingOptions("WARNING", only="tools", write=lines.append))
    await run()
    assert lines == ["[dragoman.tools] WARNING: boom failed: no luck"]
    log_to(LoggingOptions("SEVERE", write=lines.append))
    await run()
    assert len(lines) == 1


async def test_loggers_are_the_standard_librarys(caplog: Any) -> None:
    with caplog.at_level(logging.DEBUG, logger="dragoman"):
        await run()
    assert {record.name for record in caplog.records} >= {"dragoman.run", "dragoman.tools"}


async def test_what_a_run_writes_line_by_line(caplog: Any) -> None:
    loss = Loss(None, None, "seed", "it takes none")
    first = unfold([says(call("boom"), usage=2).replace(id="a")])
    first[0] = msgspec.structs.replace(first[0], losses=(loss,))
    a, _ = agent(first, says("done"), ProviderError("gone"), tools=[boom])
    with caplog.at_level(logging.DEBUG, logger="dragoman.run"):
        async with a.run("hi") as run:
            result = await run.result()
        async with a.run("hi") as failing:
            with pytest.raises(ProviderError):
                await failing.result()
    written = [(r.levelname, r.getMessage()) for r in caplog.records if r.name == "dragoman.run"]
    assert written == [
        ("DEBUG", f"run {run.id}: model call 1 to m"),
        ("WARNING", f"run {run.id}: left out {loss}"),
        ("DEBUG", f"run {run.id}: model call 2 to m"),
        ("INFO", f"run {run.id} ended: {result.finish_reason}, {result.usage}"),
        ("DEBUG", f"run {failing.id}: model call 1 to m"),
        ("WARNING", f"run {failing.id} failed: gone"),
    ]
