"""`dragoman mcp`: an agent or tools of the user's as a server for MCP clients."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout, suppress
from pathlib import Path
from signal import SIGTERM
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
import typer

from dragoman.cli.terminal import INTERRUPTED, echo
from dragoman.json_bytes import JsonMap

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

__all__ = ["mcp"]

_TARGET = "MODULE:NAME"


def mcp(
    target: Annotated[
        str,
        typer.Argument(
            metavar=f"{_TARGET}|MODULE",
            help="A Python module, and the agent, toolset, list of tools or server in it. The module alone: its @tool functions.",
            show_default=False,
        ),
    ],
    tools: Annotated[
        bool, typer.Option("--tools", help="Serve the agent's tools one by one, not the agent.")
    ] = False,
    both: Annotated[bool, typer.Option("--both", help="Serve the agent and its tools.")] = False,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The server's name.  [default: the agent's]", show_default=False
        ),
    ] = None,
    description: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What the agent does, for the models that are to ask it."
        ),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "-C",
            "--directory",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Where to run, and to look for the module.  [default: here]",
            show_default=False,
        ),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP, at /mcp, not on standard input.")
    ] = False,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="With --http: the address.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --http: the port; 0 takes a free one.")
    ] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN",
            envvar="DRAGOMAN_MCP_TOKEN",
            help="With --http: what clients must send as bearer token.",
        ),
    ] = None,
) -> int:
    """Serve an agent, or tools, to MCP clients such as editors and desktop assistants.

    \b
    dragoman mcp myagent:agent                 the agent as one tool, on standard input and output
    dragoman mcp myagent:agent --tools         its tools one by one
    dragoman mcp mytools                       the @tool functions of a module
    dragoman mcp myagent:agent --http          at http://127.0.0.1:8000/mcp

    \b A client starts the command itself. In a terminal it shows what to put into a client's
    configuration. Keys are taken from the environment, which clients often do not pass on: put them
    under "env" there. What a call waits for (an approval, a question, a sign-in) the client asks
    its user; one that cannot is told so. Another address than this machine's needs a token.
    Standard output is the protocol's alone.
    """
    if tools and both:
        raise typer.BadParameter("--tools and --both exclude each other", param_hint="--both")
    if directory is not None:
        os.chdir(directory)
    with redirect_stdout(sys.stderr):
        served = _load_target(target)
        server = _make_server(served, name, description, tools=tools, both=both)

    if not http and sys.stdin is None:
        raise typer.BadParameter(
            "there is no standard input; serve with --http", param_hint="--http"
        )
    if not http and sys.stdin.isatty():
        _print_note(
            f"serving on standard input; a client starts it with\n{_format_configuration(server.name)}"
        )

    import asyncio

    try:
        asyncio.run(
            _serve_http(served, server, host, port, token) if http else _serve_stdio(served, server)
        )
    except asyncio.CancelledError:
        return INTERRUPTED
    return 0


def _load_target(target: str) -> Any:
    """What is to be served.

    Raises:
        BadParameter: it is not there.
    """
    from dragoman.cli.modules import find_tools, load_value

    return load_value(target, _TARGET, lambda module, values: find_tools(module, values, _TARGET))


def _make_server(
    served: Any, name: str | None, description: str | None, *, tools: bool, both: bool
) -> Server[Any]:
    from dragoman.mcp import server

    # A server already.
    if hasattr(served, "create_initialization_options"):
        return cast("Server[Any]", served)
    try:
        return server(
            served,
            name=name,
            description=description,
            expose="both" if both else "tools" if tools else "agent",
        )
    except TypeError as error:
        raise typer.BadParameter(
            f"it is a {type(served).__name__}, and no agent, toolset or list of tools",
            param_hint=_TARGET,
        ) from error


async def _serve_stdio(served: Any, server: Server[Any]) -> None:
    import asyncio

    from dragoman.mcp import serve_stdio

    task = asyncio.current_task()
    # Windows has none.
    with suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(SIGTERM, cast("Any", task).cancel)
    async with _enter_agent(served):
        await serve_stdio(server)


async def _serve_http(
    served: Any, server: Server[Any], host: str, port: int, token: str | None
) -> None:
    from dragoman.mcp import serve_http

    def ready(url: str) -> None:
        headers = {"headers": {"Authorization": "Bearer TOKEN"}} if token is not None else {}
        _print_note(
            f"serving at {url}; Ctrl-C ends it. A client reaches it with\n{_format_entry(server.name, {'url': url, **headers})}"
        )

    async with _enter_agent(served):
        await serve_http(server, host=host, port=port, token=token, ready=ready)


def _enter_agent(served: Any) -> Any:
    from contextlib import nullcontext

    from dragoman.agent import Agent

    return cast("Any", served) if isinstance(served, Agent) else nullcontext()


def _format_configuration(name: str) -> str:
    """What a client needs to start this very command."""
    arguments = [argument for argument in sys.argv[1:] if argument]
    if not any(argument in ("-C", "--directory") for argument in arguments):
        arguments += ["--directory", os.getcwd()]  # noqa: PTH109
    return _format_entry(name, {"command": sys.executable, "args": ["-m", "dragoman", *arguments]})


def _format_entry(name: str, fields: JsonMap) -> str:
    return msgspec.json.format(
        msgspec.json.encode({"mcpServers": {name: fields}}), indent=2
    ).decode()


def _print_note(text: str) -> None:
    echo(text, err=True)
