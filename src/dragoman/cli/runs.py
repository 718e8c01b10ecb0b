"""`dragoman runs`: the runs in a log. They are listed, shown, followed, cancelled and tried again."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from time import time
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import msgspec
import typer

from dragoman.cli.run_log import EngineOption, LogOption, open_shared_log
from dragoman.cli.terminal import HtmlOption, echo, echo_json, print_table, to_one_line

if TYPE_CHECKING:
    from dragoman.event import Event
    from dragoman.json_bytes import JsonMap
    from dragoman.orchestration.story import Story
    from dragoman.runs import RunLog, RunStatus

__all__ = ["attach", "cancel", "list_runs", "retry", "show"]

T = TypeVar("T")
_Id = Annotated[str, typer.Argument(metavar="ID", help="Id of the run.", show_default=False)]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_POLLS, _POLL_SECONDS = 10, 0.2
"""How often and how long a cancelled run is waited for."""


def list_runs(
    log: LogOption,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE",
            help="Only queued, running, success, pending, cancelled, error or interrupted ones.",
        ),
    ] = None,
    agent: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this agent.")] = None,
    thread: Annotated[
        str | None, typer.Option(metavar="ID", help="Only of this conversation.")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Most runs.")] = 20,
    json: _Json = False,
) -> int:
    """List the runs of a log, latest first: state, agent, age, cost, id, thread and owner.

    \b
    dragoman runs list --log sqlite:///runs.db
    dragoman runs list --log postgresql://…/app --state error --agent support

    \b
    The owner is the process that drives a run, or the last one that did. A * at the state says
    that no process drives the run now. The cost needs the extra cost.
    """
    from dragoman.runs.log import RunState

    if state is not None and state not in get_args(RunState):
        raise typer.BadParameter(
            f"{state!r} is no state; there are {', '.join(get_args(RunState))}",
            param_hint="--state",
        )
    # A durable server has two jobs of its own beside each run, which are listed by their names alone.
    most = limit if agent is not None else 3 * limit
    wanted: Any = {"state": state, "agent": agent, "thread_id": thread, "most": most}

    async def read_runs(log: RunLog) -> list[tuple[RunStatus, str | None]]:
        found = await log.runs(**wanted)
        statuses = [each for each in found if agent is not None or not _is_job(each)][:limit]
        return [(status, await _read_cost(log, status)) for status in statuses]

    runs = _run_with_log(log, read_runs)
    if json:
        echo_json([_dump_status(status, cost) for status, cost in runs])
    elif not runs:
        echo("note: the log has no such run", err=True)
    else:
        titles = ("STATE", "AGENT", "AGE", "COST", "ID", "THREAD", "OWNER")
        print_table([titles, *[_describe_status(status, cost) for status, cost in runs]])
    return 0


def _is_job(status: RunStatus) -> bool:
    """True if a server made the entry for itself."""
    return (status.agent or "").startswith("dragoman.")


def show(run_id: _Id, log: LogOption, json: _Json = False, html: HtmlOption = False) -> int:
    """Show the timeline of a run: model calls with tokens and cost, tools, losses and errors.

    \b
    dragoman runs show mail-4711 --log sqlite:///runs.db
    dragoman runs show mail-4711 --html > mail.html
    """
    from dragoman.orchestration.story_reader import read_story
    from dragoman.runs.closing import read_pages
    from dragoman.timeline import read_timeline
    from dragoman.timeline_drawing import draw_timeline, dump_row

    async def read_run(log: RunLog) -> tuple[RunStatus, list[Event]]:
        status = await _find_run(log, run_id)
        return status, [event async for page in read_pages(log, run_id) for event in page]

    status, events = _run_with_log(log, read_run)
    story = read_story(events, run_id)
    cost, rows = _find_cost(story), read_timeline(events)
    if json:
        echo_json({**_dump_status(status, cost), "timeline": [dump_row(row) for row in rows]})
        return 0
    if html:
        from dragoman.cli.transcript import write_run
        from dragoman.fold import fold

        messages = fold(events)
        sys.stdout.write(write_run(rows, messages, f"Run {run_id}: {status.state}"))
        return 0
    state, *facts = _describe_status(status, cost)
    counts = f"{story.model_calls} model calls, {story.tool_calls} tool calls"
    if status.lost:
        counts += f", {status.lost} processes lost"
    echo("  ".join([state, *[fact for fact in facts if fact != "-"], counts]))
    for line in draw_timeline(rows):
        echo(line)
    return 0


def attach(
    run_id: _Id,
    log: LogOption,
    start: Annotated[
        int, typer.Option("--from", min=0, metavar="OFFSET", help="Leave out so many events.")
    ] = 0,
    json: _Json = False,
) -> int:
    """Follow a run to its end, whichever processes drive it. Ctrl-C leaves it, and it goes on.

    \b
    dragoman runs attach mail-4711 --log sqlite:///runs.db
    dragoman runs attach mail-4711 --log sqlite:///runs.db --from 120 --json

    \b
    With --json every event is a line {"offset": …, "event": …}. The exit code is 0 if the run
    succeeds, 1 if it is cancelled or waits for somebody, and that of its error if it fails.
    """

    async def follow(log: RunLog) -> int:
        from contextlib import aclosing

        from dragoman.cli.follow import Follower, print_event
        from dragoman.event import RunError, RunFinished
        from dragoman.runs import Runs

        await _find_run(log, run_id)
        follower, last = Follower(), None
        async with Runs(log) as runs, aclosing(runs.attach(run_id, start)) as events:
            async for offset, event in events:
                if json:
                    print_event(offset, event)
                else:
                    follower.show(event)
                last = event
        if isinstance(last, RunError):
            raise last.error
        if isinstance(last, RunFinished):
            return 0 if last.outcome == "success" else 1
        return 0 if (await runs.status(run_id)).state == "success" else 1

    return _run_with_log(log, follow)


def cancel(run_id: _Id, log: LogOption) -> int:
    """Cancel a run, whichever process drives it. Exit code 1 if it is over already.

    \b
    dragoman runs cancel mail-4711 --log sqlite:///runs.db
    """

    async def cancel_run(log: RunLog) -> tuple[RunStatus, RunStatus]:
        import asyncio

        from dragoman.runs import Runs

        before = after = await _find_run(log, run_id)
        await Runs(log).cancel(run_id)
        for _ in range(_POLLS):
            after = await _find_run(log, run_id)
            if after.is_over:
                break
            await asyncio.sleep(_POLL_SECONDS)
        return before, after

    before, after = _run_with_log(log, cancel_run)
    name = to_one_line(run_id)
    if before.is_over:
        echo(f"note: run {name} is over: {before.state}", err=True)
        return 1
    if after.is_over:
        echo(f"run {name} is over: {after.state}")
    else:
        echo(f"run {name} is to be cancelled by the process that drives it, or by the next one")
    return 0


def retry(run_id: _Id, log: LogOption, engine: EngineOption = "log") -> int:
    """Enqueue a new run with the request of a durable run that is over. Prints its id.

    \b
    dragoman runs retry mail-4711 --log sqlite:///runs.db
    """

    async def enqueue_again(log: RunLog) -> str:
        from dragoman.errors import RunLogError
        from dragoman.runs import Runs
        from dragoman.runtime import new_id

        status = await _find_run(log, run_id)
        request = await log.request(run_id)
        if not status.is_over or status.agent is None or status.queue is None:
            raise RunLogError(
                f"run {run_id} is {status.state}: it goes on by itself; cancel it first to ask again"
            )
        async with Runs(log, engine=engine) as runs:
            return await runs.enqueue(
                status.agent,
                request,
                run_id=new_id(),
                thread_id=status.thread_id,
                queue=status.queue,
                priority=status.priority,
                owner=status.caller,
            )

    echo(_run_with_log(log, enqueue_again))
    return 0


def _run_with_log(url: str, work: Callable[[RunLog], Awaitable[T]]) -> T:
    """Runs work with a log, and closes it."""
    import asyncio

    async def run_work() -> T:
        async with open_shared_log(url) as log:
            return await work(log)

    return asyncio.run(run_work())


async def _find_run(log: RunLog, run_id: str) -> RunStatus:
    """Returns the status of a run.

    Raises:
        RunLogError: the log has no such run.
    """
    from dragoman.runs import Runs

    return await Runs(log).status(run_id)


async def _read_cost(log: RunLog, status: RunStatus) -> str | None:
    """Returns the cost of a run so far in US dollars; None if it is unknown."""
    from dragoman.orchestration.story_reader import StoryReader
    from dragoman.runs.closing import read_pages

    if status.calls is not None:
        return None if status.cost is None else f"{status.cost:f}"
    # An earlier release wrote the run and did not count.
    reader = StoryReader(status.run_id)
    async for page in read_pages(log, status.run_id):
        reader.feed(page)
    return _find_cost(reader.story())


def _find_cost(story: Story) -> str | None:
    """Returns the cost of a run so far in US dollars; `None`: it is unknown, or the extra `cost` is
    missing."""
    from dragoman.errors import SettingsError
    from dragoman.result import sum_cost

    try:
        cost = sum_cost(story.calls)
    except SettingsError:
        return None
    return None if cost is None else f"{cost:f}"


def _dump_status(status: RunStatus, cost: str | None) -> JsonMap:
    """Returns a status as JSON."""
    return {**msgspec.structs.asdict(status), "cost": cost}


def _describe_status(status: RunStatus, cost: str | None) -> tuple[str, ...]:
    """Returns the columns of a run in a list."""
    state = status.state
    if state == "running" and not status.driven:
        state = "running*"
    return (
        state,
        status.agent or "-",
        _format_age(time() - status.started_at),
        "-" if cost is None else f"${cost}",
        status.run_id,
        status.thread_id or "-",
        status.owner or "-",
    )


def _format_age(seconds: float) -> str:
    """Returns a duration in its largest unit."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(0, int(seconds))} s"
