"""`dragoman runs`: the runs of a log, seen and steered from a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.follow import Follower
from dragoman.cli.runs import _format_age
from dragoman.errors import RateLimitError
from dragoman.event import (
    Event,
    MessageDropped,
    MessageFinished,
    MessageStarted,
    OpenText,
    PartDelta,
    PartFinished,
    PartStarted,
    RunError,
    RunFinished,
    RunStarted,
    StepFinished,
    StepStarted,
    ToolStarted,
    event_from_json,
    set_time,
)
from dragoman.interrupt import Interrupt
from dragoman.loss import Loss
from dragoman.message import (
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from dragoman.orchestration.story import MODEL_STEP
from dragoman.runs import Runs, RunStatus, open_log
from dragoman.timeline import name_model, read_timeline
from dragoman.timeline_drawing import draw_timeline
from support.cli import one_line
from support.durable import Acts, durable_agent

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A log with a run that is over and one that is queued."""
    url = f"sqlite:///{tmp_path}/runs.db"
    monkeypatch.setenv("DRAGOMAN_LOG", url)
    asyncio.run(fill(url))
    return url


async def fill(url: str) -> None:
    a = durable_agent(Acts())[0]
    async with open_log(url) as log, Runs(log, agents={"support": a}, poll_seconds=0.01) as runs:
        how: dict[str, Any] = {"thread_id": "c1", "queue": "q", "priority": 2, "owner": "anna"}
        await runs.enqueue("support", "Do it.", run_id="over", **how)
        assert await runs.drive("over") is False
        await asyncio.sleep(0.002)
        await runs.enqueue("sales", "Sell.", run_id="waits")


def statuses(url: str, *run_ids: str) -> dict[str, RunStatus]:
    async def read() -> dict[str, RunStatus]:
        async with open_log(url) as log:
            return await log.status(run_ids)

    return asyncio.run(read())


def test_runs_are_listed_latest_first(cli: Cli, url: str) -> None:
    code, out, err = cli("runs", "list")
    assert (code, err) == (0, "")
    titles, *rows = [line.split() for line in out.splitlines()]
    assert titles == ["STATE", "AGENT", "AGE", "COST", "ID", "THREAD", "OWNER"]
    assert [row[0] for row in rows] == ["queued", "success"]
    assert rows[0][-3:] == ["waits", "-", "-"]
    assert rows[1][-3:-1] == ["over", "c1"]
    assert rows[1][-1] == statuses(url, "over")["over"].owner


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (("--state", "queued"), ["waits"]),
        (("--agent", "support"), ["over"]),
        (("--thread", "c1"), ["over"]),
        (("-n", "1"), ["waits"]),
        (("--state", "error"), []),
    ],
)
def test_a_list_is_narrowed(cli: Cli, url: str, arguments: tuple[str, ...], ids: list[str]) -> None:
    code, out, _ = cli("runs", "list", *arguments, "--json")
    assert (code, [run["run_id"] for run in json.loads(out)]) == (0, ids)
    code, out, err = cli("runs", "list", *arguments)
    assert (code, len(out.splitlines())) == (0, 2 if ids else 0)
    assert ("no such run" in err) is not bool(ids)


def test_a_run_that_no_process_drives_has_a_mark(cli: Cli, url: str) -> None:
    async def lose() -> None:
        async with open_log(url) as log:
            await log.lease("waits", "dead", 0.001)
            await asyncio.sleep(0.01)

    asyncio.run(lose())
    assert cli("runs", "list", "--agent", "sales")[1].splitlines()[1].startswith("running*  sales")
    assert cli("runs", "show", "waits")[1].startswith("running*  sales")


def test_a_list_reads_no_events_of_runs(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = json.loads(cli("runs", "list", "--json")[1])
    over = next(run for run in listed if run["run_id"] == "over")
    shown = json.loads(cli("runs", "show", "over", "--json")[1])
    assert (over["cost"], over["calls"] > 0) == (shown["cost"], True)
    monkeypatch.setattr("dragoman.runs.closing.read_pages", None)
    assert json.loads(cli("runs", "list", "--json")[1]) == listed


def test_the_cost_of_an_old_run_is_read_from_its_events(cli: Cli, url: str) -> None:
    usage, origin = (
        Usage(input_tokens=9, output_tokens=1),
        Origin("anthropic", model="claude-sonnet-4-6"),
    )

    async def fill() -> None:
        async with open_log(url) as log:
            lease = await log.lease("old", "me", 60, token=0)
            start = MessageStarted("m", Role.MODEL, origin=origin)
            steps = [RunStarted("old"), StepStarted(f"{MODEL_STEP}0", run_id="old"), start]
            end = MessageFinished("m", usage=usage, origin=origin)
            await log.append("old", 0, [*steps, end, RunFinished("old")], lease=lease)

    asyncio.run(fill())
    before = json.loads(cli("runs", "list", "--json")[1])[0]
    assert (before["calls"], before["tokens"], before["cost"]) == (1, 10, "0.000042")
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database, database:
        database.execute("UPDATE dragoman_runs SET calls = NULL, tokens = NULL, cost = NULL")
    code, out, err = cli("runs", "list", "--json")
    assert code == 0, err
    after = json.loads(out)[0]
    assert (after["calls"], after["cost"]) == (None, "0.000042")


def test_ages_have_one_unit() -> None:
    ages = [_format_age(seconds) for seconds in (-3, 59.9, 60, 7199, 86400 * 2.5)]
    assert ages == ["0 s", "59 s", "1 min", "1 h", "2 d"]


@pytest.mark.parametrize("command", ["show", "attach", "cancel", "retry"])
def test_an_unknown_run_is_one_line(cli: Cli, url: str, command: str) -> None:
    code, out, err = cli("runs", command, "nothing")
    assert (code, out) == (3, "")
    assert one_line(err, "has no run", "nothing"), err


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("list", "--state", "lost"), 2, ("no state", "queued")),
        (("list", "--log", "memory:"), 2, ("belongs to one process",)),
        (("list", "-n", "0"), 2, ("--limit",)),
        (("attach", "over", "--from", "-1"), 2, ("--from",)),
        (("retry", "over", "--engine", "cron"), 3, ("no engine",)),
        (("retry", "waits"), 3, ("waits is queued", "cancel it first")),
    ],
)
def test_wrong_input_is_one_line(
    cli: Cli, url: str, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    done, out, err = cli("runs", *arguments)
    assert (done, out) == (code, "")
    assert one_line(err, *words), err


def test_a_run_is_cancelled_unless_it_is_over(cli: Cli, url: str) -> None:
    assert cli("runs", "cancel", "waits") == (0, "run waits is over: cancelled\n", "")
    assert statuses(url, "waits")["waits"].state == "cancelled"
    assert cli("runs", "cancel", "waits") == (1, "", "note: run waits is over: cancelled\n")
    assert cli("runs", "cancel", "over") == (1, "", "note: run over is over: success\n")


def test_a_run_that_another_process_has_is_told_to_end(
    cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take() -> None:
        async with open_log(url) as log:
            await log.lease("waits", "other", 600)

    asyncio.run(take())
    monkeypatch.setattr("dragoman.cli.runs._POLL_SECONDS", 0.001)
    code, out, _ = cli("runs", "cancel", "waits")
    assert (code, "is to be cancelled by the process" in out) == (0, True)
    assert statuses(url, "waits")["waits"].posts == 1


def test_a_run_is_tried_again_with_the_same_request(cli: Cli, url: str) -> None:
    code, out, err = cli("runs", "retry", "over")
    assert (code, err) == (0, "")
    new = out.strip()

    async def read() -> list[Any]:
        async with open_log(url) as log:
            return [await log.request("over"), await log.request(new)]

    before, after = asyncio.run(read())
    assert after == before.replace(run_id=new)
    status = statuses(url, new)[new]
    assert (status.state, status.agent, status.queue) == ("queued", "support", "q")
    assert (status.thread_id, status.priority, status.caller) == ("c1", 2, "anna")


def test_a_run_that_is_not_durable_is_not_tried_again(cli: Cli, url: str) -> None:
    async def start() -> None:
        async with open_log(url) as log, Runs(log) as runs:
            await runs.start(durable_agent(Acts())[0], "hi", run_id="plain")
            await runs.result("plain")

    asyncio.run(start())
    code, _, err = cli("runs", "retry", "plain")
    assert code == 3
    assert one_line(err, "only runs that were enqueued"), err


def test_a_run_is_followed_as_text(cli: Cli, url: str) -> None:
    code, out, err = cli("runs", "attach", "over")
    assert (code, err) == (0, "")
    assert out.splitlines()[:4] == [
        "> Do it.",
        "I look and write.",
        "[calls look {}]",
        "[calls write {}]",
    ]
    assert '[write: "did w1"]' in out
    assert out.endswith("\nNow all of it is done.\n")


def test_a_run_is_followed_as_json_from_an_offset(cli: Cli, url: str) -> None:
    async def read() -> list[Event]:
        async with open_log(url) as log, Runs(log) as runs:
            return [event async for _, event in runs.attach("over")]

    events = asyncio.run(read())
    code, out, _ = cli("runs", "attach", "over", "--from", "5", "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [line["offset"] for line in lines] == [*range(5, len(events))]
    assert [event_from_json(json.dumps(line["event"])) for line in lines] == events[5:]
    # Behind its end there is nothing, and the exit code is that of the run.
    assert cli("runs", "attach", "over", "--from", "9999") == (0, "", "")
    assert cli("runs", "cancel", "waits")[0] == 0
    assert cli("runs", "attach", "waits", "--from", "9999")[0] == 1


def test_the_exit_code_tells_how_a_run_ended(cli: Cli, url: str) -> None:
    interrupt = Interrupt("i", "approval", ToolCallPart("i", "transfer", {"to": "x"}))
    endings: list[tuple[Event, int, str]] = [
        (RunFinished("r", "cancelled"), 1, ""),
        (RunFinished("r", "pending", pending=(interrupt,)), 1, "transfer"),
        (RunError(RateLimitError("too fast"), "r"), 4, "too fast"),
    ]

    async def write(run_id: str, last: Any) -> None:
        async with open_log(url) as log:
            lease = await log.lease(run_id, "me", 60, token=0)
            event = last.__class__(
                **{**{f: getattr(last, f) for f in last.__struct_fields__}, "run_id": run_id}
            )
            await log.append(run_id, 0, [RunStarted(run_id), event], lease=lease)

    for number, (last, wanted, words) in enumerate(endings):
        asyncio.run(write(f"r{number}", last))
        code, out, err = cli("runs", "attach", f"r{number}")
        assert (code, out) == (wanted, "")
        assert words in err


def said(message_id: str, *parts: Any, role: Role = Role.MODEL, **end: Any) -> list[Event]:
    """A message in pieces."""
    run_id = end.pop("run_id", None)
    created = datetime(2025, 1, 1, tzinfo=UTC)
    events: list[Event] = [MessageStarted(message_id, role, run_id=run_id, created_at=created)]
    for index, part in enumerate(parts):
        if isinstance(part, TextPart):
            events.append(PartStarted(message_id, index, OpenText()))
            events.append(PartDelta(message_id, index, part.text))
        elif isinstance(part, ThinkingPart):
            events.append(PartStarted(message_id, index, ThinkingPart("")))
            events.append(PartDelta(message_id, index, part.text))
        events.append(PartFinished(message_id, index, part))
    return [*events, MessageFinished(message_id, **end)]


LONG = "x" * 300
STORY: Sequence[Event] = [
    RunStarted("r"),
    *said("u", TextPart("Refund\norder 7."), role=Role.USER),
    StepStarted("model call 1"),
    MessageStarted("cut", Role.MODEL),
    PartStarted("cut", 0, OpenText()),
    PartDelta("cut", 0, "I lo"),
    MessageDropped("cut", "the process that drove the run ended"),
    StepFinished("model call 1"),
    StepStarted("model call 2"),
    *said(
        "m",
        ThinkingPart("Hm."),
        TextPart("I look."),
        ToolCallPart("c1", "look", {"order": LONG}),
        ToolCallPart("c2", "ask", {}),
        origin=Origin("openai", None, "gpt-4o", "gpt-4o-2024-08-06"),
        usage=Usage(input_tokens=1000, output_tokens=100),
    ),
    RunStarted("inner", parent_run_id="r"),
    StepStarted("model call 1", run_id="inner"),
    *said("i", TextPart("Inside."), run_id="inner", origin=Origin("local")),
    StepFinished("model call 1", run_id="inner"),
    RunFinished("inner"),
    MessageStarted("results", Role.USER),
    PartFinished("results", 1, ToolResultPart("c2", "ask", "no \x1b[31m", is_error=True)),
    PartFinished("results", 0, ToolResultPart("c1", "look", {"price": 30})),
    MessageFinished("results"),
    StepFinished(
        "model call 2",
        losses=(
            Loss(0, None, "setting", "the model has no temperature", "temperature"),
            Loss(0, 1, "name", "it has no names"),
        ),
    ),
    RunError(RateLimitError("too fast\u202e"), "r"),
]


def test_a_timeline_has_calls_tools_losses_and_errors() -> None:
    rows = read_timeline(STORY)
    assert [(row.category, row.label, row.depth) for row in rows if row.category != "loss"] == [
        ("user", "user", 0),
        ("model", "model call 1", 0),
        ("model", "model call 2", 0),
        ("tool", "look", 0),
        ("tool", "ask", 0),
        ("run", "run inner", 1),
        ("model", "model call 1", 1),
        ("error", rows[-1].label, 0),
    ]
    cut, asked = rows[1], rows[2]
    assert cut.retracted == "the process that drove the run ended"
    assert name_model(asked.origin) == "openai:gpt-4o-2024-08-06"
    assert asked.usage == Usage(input_tokens=1000, output_tokens=100)
    lines = draw_timeline(rows)
    assert lines[:6] == [
        "> Refund order 7.",
        "model call 1",
        "  retracted: the process that drove the run ended",
        lines[3],
        "  I look.",
        f'  look {{"order":"{LONG[:89]}…',
    ]
    assert lines[3].startswith("model call 2  openai:gpt-4o-2024-08-06  1000 → 100 tokens")
    assert '    → {"price":30}' in lines
    assert '    error "no \\u001b[31m"' in lines
    assert "    Inside." in lines
    assert any(line.startswith("loss: temperature") for line in lines)
    assert not any("no names" in line for line in lines)
    assert lines[-1].startswith("error: ")
    assert "too fast\\u202e" in lines[-1]
    assert max(map(len, lines)) < 140


def timed(*moments: tuple[float, Event]) -> list[Event]:
    """Events with the seconds after a start at which the log stored them."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    return [
        each
        for seconds, event in moments
        for each in set_time([event], start + timedelta(0, seconds))
    ]


def test_a_timeline_shows_when_things_happened() -> None:
    call = ToolCallPart("c", "look", {"a": 1})
    events = timed(
        (0.0, RunStarted("r")),
        (0.0, StepStarted("model call 1")),
        (2.0, MessageStarted("m", Role.MODEL)),
        (4.0, PartFinished("m", 0, call)),
        (4.0, MessageFinished("m")),
        (5.0, ToolStarted("c", "look", {"a": 2})),
        (8.0, PartFinished("results", 0, ToolResultPart("c", "look", "ok"))),
        (10.0, StepStarted("model call 2")),
        (10.0, MessageStarted("n", Role.MODEL)),
    )
    # The model is asked when its step begins, and the last call goes on.
    assert draw_timeline(read_timeline(events)) == [
        "    0.0s   4.0s |========            | model call 1",
        '    5.0s   3.0s |          ======    |   look {"a":2}',
        '                                           → "ok"',
        "   10.0s   0.0s |                   =| model call 2",
    ]
    # A call that has not begun has no time, and neither has a log of an earlier release.
    lines = draw_timeline(read_timeline(events[:5]))
    assert lines[1] == " " * 39 + '  look {"a":1}'
    assert draw_timeline(read_timeline(set_time(events, None)))[0] == "model call 1"


def test_a_timeline_can_be_drawn_at_every_moment() -> None:
    for end in range(len(STORY)):
        draw_timeline(read_timeline(STORY[:end]))
        # Whoever comes late sees what it can.
        draw_timeline(read_timeline(STORY[end:]))


def test_followers_see_the_run_itself(capsys: pytest.CaptureFixture[str]) -> None:
    follower = Follower()
    for event in STORY:
        follower.show(event)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "> Refund",
        "order 7.",
        "I lo",
        "[retracted: the process that drove the run ended]",
        "I look.",
    ]
    assert lines[5].startswith('[calls look {"order":"xxx')
    assert lines[6:] == [
        "[calls ask {}]",
        '[ask: "no \\u001b[31m"]',
        '[look: {"price":30}]',
    ]


def test_a_run_is_shown(cli: Cli, url: str) -> None:
    code, out, err = cli("runs", "show", "over")
    assert (code, err) == (0, "")
    head, *lines = out.splitlines()
    assert head.startswith("success  support  ")
    assert head.endswith("  3 model calls, 5 tool calls")
    assert [line.rpartition("| ")[2].lstrip() for line in lines[:4]] == [
        "> Do it.",
        "model call 1  10 → 1 tokens",
        "I look and write.",
        "look {}",
    ]
    code, out, _ = cli("runs", "show", "over", "--json")
    shown = json.loads(out)
    assert (shown["state"], shown["agent"], shown["caller"]) == ("success", "support", "anna")
    assert [row["category"] for row in shown["timeline"]] == [
        *("user", "model", "tool", "tool", "tool", "model", "tool", "tool", "model")
    ]
    assert shown["timeline"][2]["result"] == '"did l1"'
