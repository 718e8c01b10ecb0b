"""`dragoman proxy`: records what a program says to its providers, and answers from the recordings.

Words after `--` are a program, which is run with the base URLs of the proxy, and whose exit code is
the command's. Without them the proxy serves until it is asked to end.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.core import TyperGroup

from dragoman.cli.terminal import echo
from dragoman.runtime import extra_hint

if TYPE_CHECKING:
    from dragoman.proxy.server import RecordingProxy
    from dragoman.proxy.upstreams import Upstream

__all__ = ["FolderOption", "ProxyGroup", "proxy"]

_CHILD = "dragoman.child"
"""Key in the context's `meta` of the words after `--`."""
_MEGABYTE = 2**20
_UNKNOWN = 1
"""Exit code if a request was not recorded, and no provider was to be asked."""

FolderOption = Annotated[
    Path, typer.Option("-f", "--folder", metavar="DIR", help="Where the recordings are.")
]


class ProxyGroup(TyperGroup):
    """The commands of `dragoman proxy`, and a program after `--`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Keeps what stands behind `--` as the program."""
        if "--" in args:
            position = args.index("--")
            ctx.meta[_CHILD] = args[position + 1 :]
            args = args[:position]
        return super().parse_args(ctx, args)  # pyright: ignore[reportArgumentType]


def proxy(
    context: typer.Context,
    folder: FolderOption = Path("recordings"),
    mode: Annotated[
        Literal["record-new", "record", "replay"],
        typer.Option(
            envvar="DRAGOMAN_PROXY_MODE",
            help="Ask the provider for what is not recorded, for all, or for nothing.",
        ),
    ] = "record-new",
    ci: Annotated[
        bool,
        typer.Option(
            "--ci",
            "--no-network",
            help="As --mode replay: a request that is not recorded fails, and so does the command.",
        ),
    ] = False,
    replay: Annotated[
        Literal["exact", "nearest"],
        typer.Option(
            help="With nearest, what is not recorded gets the answer to the request that is most like it; "
            "no provider is asked.",
        ),
    ] = "exact",
    upstreams: Annotated[
        list[str] | None,
        typer.Option(
            "--upstream",
            metavar="NAME=URL",
            help="Send /NAME to this URL, beside the providers' names.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    most: Annotated[
        int,
        typer.Option("--most-mb", min=1, metavar="MB", help="Most megabytes of recordings."),
    ] = 1024,
    log: Annotated[bool, typer.Option("--log", help="Print a line per request.")] = False,
) -> int:
    """Record what a program says to its providers, and answer from the recordings.

    \b
    dragoman proxy -- pytest -q                record what is new, answer the rest
    dragoman proxy --ci -- pytest -q           only answer: no network, no key
    dragoman proxy --port 4000                 serve; prints the variables for other programs
    dragoman proxy list                        the recordings in ./recordings
    dragoman proxy show 12                     one of them: request, answer, decoded messages
    dragoman proxy report                      what of them dragoman does not know

    \b
    A program finds the proxy by the variables that the official clients read. Recordings hold no
    keys. Only this machine reaches it. Its page shows the recordings in a browser.
    """
    if context.invoked_subcommand is not None:
        return 0
    try:
        import starlette  # noqa: F401  # pyright: ignore[reportUnusedImport]
        import uvicorn  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        from dragoman.errors import SettingsError

        raise SettingsError(f"the proxy needs {error.name}: {extra_hint('serve')}") from error
    from dragoman.http_server.listener import run_in_loop
    from dragoman.proxy.recordings import RecordingIndex
    from dragoman.proxy.server import RecordingProxy
    from dragoman.proxy.upstreams import find_upstreams
    from dragoman.transport.exchange_file import ExchangeFolder

    if folder.exists() and not folder.is_dir():
        raise typer.BadParameter(f"{folder} is no folder", param_hint="--folder")
    is_nearest = replay == "nearest"
    if ci or is_nearest:
        mode = "replay"
    recordings = RecordingIndex(ExchangeFolder(folder, most * _MEGABYTE))
    # One damaged file does not end a test run.
    for problem in recordings.problems:
        _tell(f"left out: {problem}")
    hosts = find_upstreams(upstreams or (), os.environ)
    recording_proxy = RecordingProxy(
        recordings,
        hosts,
        mode=mode,
        is_nearest=is_nearest,
        tell=_tell,
        log=_tell if log else None,
    )
    command = context.meta.get(_CHILD)
    if command == []:
        raise typer.BadParameter("a program must follow --, such as: -- pytest -q")
    code = run_in_loop(
        _serve(recording_proxy, hosts, command, port=port, is_offline=mode == "replay")
    )
    _tell(f"{_format_counts(recording_proxy)} ({folder})")
    return code or (_UNKNOWN if recording_proxy.counts["unknown"] else 0)


async def _serve(
    recording_proxy: RecordingProxy,
    upstreams: Mapping[str, Upstream],
    command: Sequence[str] | None,
    *,
    port: int,
    is_offline: bool,
) -> int:
    """Serves while a program runs, or until a signal comes. Returns the program's exit code."""
    import asyncio

    from dragoman.cli.child import run_child
    from dragoman.http_server.listener import handle_signals, open_listener, server_url
    from dragoman.proxy.page import page_routes
    from dragoman.proxy.serving import make_app, serve_proxy
    from dragoman.proxy.upstreams import client_keys, client_variables

    host = "127.0.0.1"
    with open_listener(host, port) as listener:
        url = server_url(host, listener)
        variables = client_variables(upstreams, url)
        # Otherwise a client would ask the provider with a placeholder.
        if is_offline:
            variables |= client_keys(os.environ)
        app = make_app(recording_proxy, page_routes(recording_proxy.recordings.folder))
        async with recording_proxy.running(), serve_proxy(app, listener):
            if command is not None:
                return await run_child(command, variables)
            _greet(url, upstreams, variables)
            stop = asyncio.Event()
            with handle_signals(stop.set):
                await stop.wait()
    return 0


def _greet(url: str, upstreams: Mapping[str, Upstream], variables: Mapping[str, str]) -> None:
    """Prints where the proxy is, and the variables for programs."""
    echo(f"recording at {url}; Ctrl-C ends it. In a browser: {url}/\n")
    for name, text in variables.items():
        echo(f"export {name}={text}")
    unnamed = [host for host in upstreams.values() if not host.variables]
    for host in unnamed:
        echo(f"# {host.name}: {host.client_url(url)}")
    sys.stdout.flush()


def _tell(line: str) -> None:
    echo(f"proxy: {line}", err=True)


def _format_counts(recording_proxy: RecordingProxy) -> str:
    """Returns how many requests were answered in which way."""
    counts = recording_proxy.counts
    return ", ".join(f"{counts[name]} {name}" for name in counts if counts[name]) or "no requests"
