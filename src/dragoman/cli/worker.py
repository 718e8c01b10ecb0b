"""`dragoman worker`: drives durable runs until the process is asked to end, then hands them over.

The first signal stops new runs and gives tools at work the grace; then the runs are handed over. A
second signal hands them over at once. Standard error has a line of progress on a terminal, and the
warnings of the runs.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.agents import check_agents, check_names, load_targets, prepare_agent
from dragoman.cli.run_log import EngineOption, LogOption, open_shared_log
from dragoman.cli.terminal import DirectoryOption, echo, show_status
from dragoman.errors import DragomanError
from dragoman.json_bytes import JsonMap

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.runs import Limit, Runs

__all__ = ["read_limits", "worker"]

_TARGET = "MODULE:AGENT"
_LIMIT = re.compile(r"(?P<queue>.+)=(?:(?P<runs>\d{1,9})|(?P<rate>\d{1,9}(?:\.\d{1,9})?)/s)")
"""`QUEUE=N` or `QUEUE=N/s`."""
_POLL_SECONDS = 0.2
"""Seconds from one look for the changes of other processes to the next."""
_REPEAT_SECONDS = 60.0
"""Seconds after which a warning is shown again."""
_MOST_LINES = 100
"""Warnings that are remembered."""
_SHOW_SECONDS = 0.5
"""Seconds between two lines of progress."""


def worker(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar=f"{_TARGET}...",
            help="The agents: a Python module and the agent in it, or a module alone for all of its "
            "agents. Runs find an agent by its name in the module.",
            show_default=False,
        ),
    ],
    log: LogOption,
    engine: EngineOption = "log",
    runs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Most runs of a queue at the same time.")
    ] = 20,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="QUEUE=N[/s]",
            help="Work on this queue, too: at most N of its runs at the same time, or N begun in a "
            "second. May be repeated; default=0 leaves the queue default to others.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="How long tools at work have after a stop signal."
        ),
    ] = 10.0,
    lease: Annotated[
        float,
        typer.Option(
            min=1,
            metavar="SECONDS",
            help="After so long other workers take the runs of a process over that died.",
        ),
    ] = 30.0,
    deps: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:FUNCTION",
            help="A function of the RunRequest, plain or async, that makes the deps of a run's tools.",
            show_default=False,
        ),
    ] = None,
    directory: DirectoryOption = None,
) -> int:
    """Drive durable runs: those that Runs.enqueue or dragoman serve --durable put into a log.

    \b
    dragoman worker app:support --log sqlite:///runs.db
    dragoman worker app:support app:sales --log postgresql://…/app --runs 20
    dragoman worker app:support --log postgresql://…/app --limit openai=6 --limit anthropic=4/s

    \b
    Start as many as you like, on any machine that reaches the log. If one dies, another goes
    on with its runs. Ctrl-C and SIGTERM hand them over: no other run is begun, tools at work
    have --grace seconds, and the exit code is 0. A second signal hands over at once.
    dragoman runs list shows the runs of a log.
    """
    import asyncio

    if directory is not None:
        os.chdir(directory)
    queues = read_limits(limits or [], runs)
    # Modules may print while they are imported.
    with redirect_stdout(sys.stderr):
        loaded = load_targets(targets, _TARGET)
        check_names(loaded, _TARGET)
        agents = check_agents(loaded, _TARGET)
        make_deps = _load_deps(deps)
        for agent in agents.values():
            prepare_agent(agent)
    options = {"deps": make_deps, "lease_seconds": lease, "grace_seconds": grace}
    with _show_warnings():
        asyncio.run(_work(log, engine, queues, agents, options))
    return 0


def read_limits(arguments: Sequence[str], most_runs: int) -> dict[str, Limit]:
    """Returns how much is worked on of each queue. `most_runs`: runs at the same time of a queue for
    which the arguments, `QUEUE=N` or `QUEUE=N/s`, give no number.

    Raises:
        BadParameter: an argument is something else, or no queue is left.
    """
    from dragoman.runs import Limit

    runs, rates = {"default": most_runs}, dict[str, float]()
    for argument in arguments:
        match = _LIMIT.fullmatch(argument)
        if match is None or (match["rate"] is not None and not float(match["rate"])):
            raise typer.BadParameter(
                f"{argument!r} is no limit; write QUEUE=N for N runs at the same time, or QUEUE=N/s for N a second",
                param_hint="--limit",
            )
        if match["rate"] is None:
            runs[match["queue"]] = int(match["runs"])
        else:
            rates[match["queue"]] = float(match["rate"])
            runs.setdefault(match["queue"], most_runs)
    queues = {queue: Limit(number, rates.get(queue)) for queue, number in runs.items() if number}
    if not queues:
        raise typer.BadParameter("no queue is left to work on", param_hint="--limit")
    return queues


def _load_deps(target: str | None) -> Callable[..., Any] | None:
    """Returns the function that makes the `deps` of a run.

    Raises:
        BadParameter: there is none, or it is no function.
    """
    from dragoman.cli.modules import load_value

    if target is None:
        return None
    function = load_value(target, "--deps", lambda _module, _values: None)
    if not callable(function):
        raise typer.BadParameter(
            "write MODULE:FUNCTION, such as app:make_deps; it gets the RunRequest",
            param_hint="--deps",
        )
    return function


@contextmanager
def _show_warnings() -> Generator[None]:
    """Shows warnings on standard error, unless the environment says what is shown. The same warning is
    shown once a minute: a database that is away is asked again several times a second."""
    from dragoman.logs import LoggingOptions, log_to

    if "DRAGOMAN_LOG_LEVEL" in os.environ:
        yield
        return

    shown_at: dict[str, float] = {}

    def write(line: str) -> None:
        if monotonic() - shown_at.get(line, -inf) < _REPEAT_SECONDS:
            return
        shown_at.pop(line, None)
        shown_at[line] = monotonic()
        if len(shown_at) > _MOST_LINES:
            del shown_at[next(iter(shown_at))]
        show_status("")
        echo(line, err=True)

    log_to(LoggingOptions("WARNING", write=write))
    try:
        yield
    finally:
        log_to(None)


async def _work(
    url: str,
    engine_name: str,
    queues: Mapping[str, Limit],
    agents: Mapping[str, Agent[Any]],
    options: JsonMap,
) -> None:
    """Drives runs until a signal comes, and hands them over. `options`: see `Runs`."""
    import asyncio
    from contextlib import AsyncExitStack

    from dragoman.http_server.listener import handle_signals
    from dragoman.runs import Runs
    from dragoman.runs.named_engines import open_engine
    from dragoman.serve.accounts.accounts import Accounts

    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_shared_log(url))
        engine = open_engine(engine_name, log, poll_seconds=_POLL_SECONDS)
        stack.push_async_callback(engine.close)
        for agent in agents.values():
            await stack.enter_async_context(agent)
        # What a server's callers asked for is paid for in the database of the log.
        accounts = await stack.enter_async_context(Accounts(url))
        runs = Runs(
            log,
            engine=engine,
            agents=agents,
            poll_seconds=_POLL_SECONDS,
            charge=accounts.charge_stored,
            **options,
        )
        progress = _Progress(await stack.enter_async_context(runs))
        task = asyncio.create_task(engine.work(progress.drive, queues=queues))
        with handle_signals(task.cancel, runs.hand_over):
            try:
                while not task.done():
                    progress.show(is_stopping=task.cancelling() > 0)
                    await asyncio.wait([task], timeout=_SHOW_SECONDS)
            finally:
                task.cancel()
                await asyncio.wait([task])
        show_status("")
        if not task.cancelled():
            task.result()


class _Progress:
    """Drives runs, and counts how they ended."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._counts: Counter[str] = Counter()

    async def drive(self, run_id: str) -> bool:
        """See `Runs.drive`."""
        is_again = await self._runs.drive(run_id)
        if not is_again:
            # The run is over, whether it can be counted or not.
            with suppress(DragomanError):
                self._counts[(await self._runs.status(run_id)).state] += 1
        return is_again

    def show(self, *, is_stopping: bool) -> None:
        """Shows the numbers of runs on a terminal."""
        failed = self._counts["error"] + self._counts["interrupted"]
        done = self._counts.total() - failed
        line = f"{len(self._runs.driven)} runs driven, {done} done, {failed} failed"
        if is_stopping:
            line += "; they are handed over, Ctrl-C again does it at once"
        show_status(line)
