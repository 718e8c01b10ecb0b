"""`dragoman worker`: durable runs of a log are driven until a signal comes."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.worker import _show_warnings, read_limits
from dragoman.logs import logger
from dragoman.runs import Limit, Runs, RunStatus, open_log
from support.cli import one_line
from support.runs import until

Cli = Callable[..., tuple[int, str, str]]
APP = "support.worker_app"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/runs.db"


@pytest.fixture
def bystander() -> Iterator[ThreadPoolExecutor]:
    """A thread beside that of the command."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


@pytest.mark.parametrize(
    ("arguments", "limits"),
    [
        ([], {"default": Limit(20)}),
        (["openai=6"], {"default": Limit(20), "openai": Limit(6)}),
        (["anthropic=4/s"], {"default": Limit(20), "anthropic": Limit(20, 4.0)}),
        (["a=0.5/s", "a=3"], {"default": Limit(20), "a": Limit(3, 0.5)}),
        (["a=3", "a=0.5/s", "default=2"], {"default": Limit(2), "a": Limit(3, 0.5)}),
        (["default=0", "a=b=1"], {"a=b": Limit(1)}),
    ],
)
def test_limits_are_read(arguments: list[str], limits: dict[str, Limit]) -> None:
    assert read_limits(arguments, 20) == limits


WRONG = [
    "x",
    "x=",
    "=3",
    "x=-1",
    "x=1.5",
    "x=3/",
    "x=3/m",
    "x=0/s",
    "x=nan/s",
    "x=1e400/s",
    "x=3/s/s",
]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        *[
            ((APP, "--log", "URL", "--limit", wrong), 2, ("--limit", "QUEUE=N/s"))
            for wrong in WRONG
        ],
        ((APP, "--log", "URL", "--limit", "default=0"), 2, ("no queue is left",)),
        ((APP, "--log", "URL", "--runs", "0"), 2, ("--runs",)),
        ((APP,), 2, ("--log", "DRAGOMAN_LOG")),
        ((APP, "--log", "memory:"), 2, ("--log", "belongs to one process")),
        ((f"{APP}:support", "--log", "mysql://u:secret@h/d"), 3, ("mysql",)),
        ((f"{APP}:support", "--log", "sqlite:////no/such/folder/x.db"), 3, ("unable to open",)),
        ((f"{APP}:support", "--log", "URL", "--engine", "cron"), 3, ('no engine "cron"', "log")),
        ((f"{APP}:number", "--log", "URL"), 2, ("number", "no agent")),
        ((f"{APP}:nothing", "--log", "URL"), 2, ("nothing", "support")),
        ((f"{APP}:support", f"{APP}:support", "--log", "URL"), 2, ("two targets", "support")),
        ((f"{APP}:support", "--log", "URL", "--deps", APP), 2, ("--deps", "MODULE:FUNCTION")),
        ((f"{APP}:support", "--log", "URL", "--deps", f"{APP}:number"), 2, ("--deps",)),
    ],
)
def test_wrong_input_is_one_line(
    cli: Cli, url: str, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    done, out, err = cli("worker", *[url if part == "URL" else part for part in arguments])
    assert (done, out) == (code, "")
    assert one_line(err, *words), err
    assert "secret" not in err


@pytest.mark.parametrize("command", [("worker", f"{APP}:support"), ("runs", "retry", "support")])
def test_an_engine_whose_extra_is_missing_is_named(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    asyncio.run(enqueue(url, "support"))
    assert cli("runs", "cancel", "support", "--log", url)[0] == 0
    monkeypatch.setattr("dragoman.runs.named_engines.find_spec", lambda _: None)
    code, out, err = cli(*command, "--log", url, "--engine", "restate")
    assert (code, out) == (3, "")
    assert one_line(err, 'the engine "restate" needs', "pip install", "[restate]"), err


def test_a_log_that_a_newer_release_wrote_is_left(cli: Cli, url: str) -> None:
    asyncio.run(enqueue(url, "support"))
    file = url.removeprefix("sqlite:///")
    with sqlite3.connect(file) as database:
        database.execute("UPDATE dragoman_runs_version SET version_num = '9001'")
    database.close()
    for arguments in (("worker", f"{APP}:support"), ("runs", "list"), ("runs", "cancel", "r")):
        code, _, err = cli(*arguments, "--log", url)
        assert code == 3
        assert one_line(err, "newer release", "9001", "upgrade dragoman")
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT state FROM dragoman_runs").fetchall() == [("queued",)]
    database.close()


async def enqueue(url: str, *agents: str, **how: Any) -> None:
    """Enqueues a run for each agent, with its name as id."""
    async with open_log(url) as log, Runs(log) as runs:
        for agent in agents:
            await runs.enqueue(agent, "Do it.", run_id=agent, **how)


def stop_when_over(url: str, *run_ids: str) -> dict[str, RunStatus]:
    """Sends this process a signal once the runs are over. Returns their status."""

    async def are_over() -> bool:
        return all(status.is_over for status in (await log.status(run_ids)).values())

    async def wait() -> dict[str, RunStatus]:
        async with log:
            await until(are_over)
            # The worker learns of it, too.
            await asyncio.sleep(0.2)
            return await log.status(run_ids)

    log = open_log(url)
    try:
        return asyncio.run(wait())
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def read_results(url: str, run_id: str) -> list[Any]:
    async def read() -> list[Any]:
        async with open_log(url) as log:
            messages = await Runs(log).messages(run_id)
            return [part.result for message in messages for part in message.tool_results]

    return asyncio.run(read())


def test_a_worker_drives_runs_of_its_agents_until_a_signal(
    cli: Cli, url: str, bystander: ThreadPoolExecutor
) -> None:
    asyncio.run(enqueue(url, "support", "nobody"))
    asyncio.run(enqueue(url, "sales", resource_id="anna", queue="shop"))
    statuses = bystander.submit(stop_when_over, url, "support", "sales")
    code, out, err = cli(
        "worker",
        f"{APP}:support",
        f"{APP}:sales",
        *("--log", url, "--limit", "shop=2", "--limit", "shop=50/s"),
        *("--deps", f"{APP}:make_deps"),
    )
    assert (code, out) == (0, "")
    assert {status.state for status in statuses.result().values()} == {"success"}
    assert read_results(url, "sales") == ["of anna"]
    # A run whose agent is not here is told once, and left.
    assert err.count("\n") == 1
    assert "its agent 'nobody' is not here; the agents are: support, sales" in err
    assert cli("runs", "list", "--log", url, "--state", "queued")[1].split()[-3] == "nobody"


class Terminal:
    """Standard error that is a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_a_terminal_shows_the_progress(
    cli: Cli, url: str, bystander: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(enqueue(url, "support", "careful", "nobody"))
    monkeypatch.setattr("dragoman.cli.worker._SHOW_SECONDS", 0.02)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    waiting = bystander.submit(stop_when_over, url, "support", "careful")
    # All agents of the module.
    assert cli("worker", APP, "--log", url)[0] == 0
    assert {status.state for status in waiting.result().values()} == {"success", "pending"}
    lines = terminal.text.split("\r\x1b[2K")
    assert "0 runs driven, 0 done, 0 failed" in lines
    assert any(line.endswith("2 done, 0 failed") for line in lines)
    assert sum("'nobody' is not here" in line for line in lines) == 1
    assert lines[-1] == ""


def test_a_warning_is_shown_once_a_minute(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAGOMAN_LOG_LEVEL", raising=False)
    with _show_warnings():
        for _ in range(3):
            logger("runs").warning("the database is away")
            logger("runs").warning("the queue is asked again")
        for number in range(200):
            logger("runs").warning("run %s failed", number)
        logger("runs").info("not this")
    logger("runs").warning("nor this")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 202
    assert lines[0] == "[dragoman.runs] WARNING: the database is away"
    # Who chose the level sees all of it.
    monkeypatch.setenv("DRAGOMAN_LOG_LEVEL", "OFF")
    with _show_warnings():
        logger("runs").warning("away")
    assert capsys.readouterr().err == ""


def test_an_agent_without_a_key_is_refused(
    cli: Cli, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (tmp_path / "keyless_app.py").write_text(
        "from dragoman import Agent\na = Agent('openai:gpt-4o')\nprint('hi')\n"
    )
    monkeypatch.chdir(tmp_path)
    code, out, err = cli("worker", "keyless_app:a", "--log", url)
    assert (code, out) == (4, "")
    assert "OPENAI_API_KEY" in err


def test_a_failed_run_counts_as_failed(
    cli: Cli, url: str, bystander: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(enqueue(url, "sales"))
    monkeypatch.setattr("dragoman.cli.worker._SHOW_SECONDS", 0.02)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    bystander.submit(stop_when_over, url, "sales")
    # The function of the deps fails.
    assert cli("worker", f"{APP}:sales", "--log", url, "--deps", "builtins:int")[0] == 0
    assert "0 runs driven, 0 done, 1 failed" in terminal.text
    code, _, err = cli("runs", "attach", "sales", "--log", url)
    assert code == 1
    assert "int() argument must be" in terminal.text + err
