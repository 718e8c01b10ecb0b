"""`dragoman mcp`: your agent or your tools as an MCP server.

`mcp` imports the target, makes a server of it unless it is one already, and serves that on standard
input and output or over HTTP. On standard output there may be nothing but the protocol, so
whatever the imported module prints goes to standard error, as do the notes for people. An agent
is entered while it is served, so that its connections are closed at the end.
"""

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
from dragoman.json_bytes import Json, JsonMap

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

__all__ = ["mcp"]

_TARGET = "MODULE:NAME"


def mcp(
    target: Annotated[
        str,
        typer.Argument(
            metavar=f"{_TARGET}|MODULE",
            help="A Python module, and the agent, toolset, list of tools or server in it; "
            "or a module alone, for its @tool functions.",
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
        typer.Option(metavar="TEXT", help="What the agent does, for models that choose a tool."),
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "-C",
            "--directory",
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="The directory to run in and to look up the module.  [default: here]",
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
            help="With --http: the bearer token that clients must send.",
        ),
    ] = None,
) -> int:
    """Serve your agent or your tools to MCP clients, such as editors and desktop assistants.

    \b
    dragoman mcp myagent:agent                 the agent as one tool, on standard input and output
    dragoman mcp myagent:agent --tools         its tools one by one
    dragoman mcp mytools                       the @tool functions of a module
    dragoman mcp myagent:agent --http          at http://127.0.0.1:8000/mcp

    \b
    A client starts the command itself. In a terminal the command shows the entry for a
    client's configuration. Clients often do not pass on environment variables: put keys
    under "env" there. Approvals, questions and sign-ins are asked for by the client; one
    that cannot ask gets an error. Addresses other than this machine's need a token.
    Standard output carries only the protocol.
    """
    if tools and both:
        raise typer.BadParameter("--tools and --both exclude each other", param_hint="--both")
    if directory is not None:
        os.chdir(directory)
    # A module that prints would break the protocol on standard output.
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
    """Returns the agent, toolset or tools that `dragoman mcp` is to serve.

    Raises:
        BadParameter: it does not exist.
    """
    from dragoman.cli.modules import find_tools, load_value

    return load_value(target, _TARGET, lambda module, values: find_tools(module, values, _TARGET))


def _make_server(
    served: Any, name: str | None, description: str | None, *, tools: bool, both: bool
) -> Server[Any]:
    """Returns the MCP server of an agent, tools, or a server itself.

    Raises:
        BadParameter: it is none of these.
    """
    from dragoman.mcp import server

    # A server of the official library is served as it is.
    if hasattr(served, "create_initialization_options"):
        return cast("Server[Any]", served)
    expose = "agent"
    if both:
        expose = "both"
    elif tools:
        expose = "tools"
    try:
        return server(served, name=name, description=description, expose=expose)
    except TypeError as error:
        raise typer.BadParameter(
            f"it is a {type(served).__name__} and not an agent, a toolset or a list of tools",
            param_hint=_TARGET,
        ) from error


async def _serve_stdio(served: Any, server: Server[Any]) -> None:
    """Serves one MCP client on standard input and output, until SIGTERM."""
    import asyncio

    from dragoman.mcp import serve_stdio

    task = asyncio.current_task()
    # Event loops on Windows have no signal handlers.
    with suppress(NotImplementedError):
        asyncio.get_running_loop().add_signal_handler(SIGTERM, cast("Any", task).cancel)
    async with _enter_agent(served):
        await serve_stdio(server)


async def _serve_http(
    served: Any, server: Server[Any], host: str, port: int, token: str | None
) -> None:
    """Serves MCP clients over HTTP, and prints the entry for a client's configuration."""
    from dragoman.mcp import serve_http

    def ready(url: str) -> None:
        entry: Json = {"url": url}
        if token is not None:
            entry["headers"] = {"Authorization": "Bearer TOKEN"}
        _print_note(
            f"serving at {url}; Ctrl-C ends it. A client reaches it with\n{_format_entry(server.name, entry)}"
        )

    async with _enter_agent(served):
        await serve_http(server, host=host, port=port, token=token, ready=ready)


def _enter_agent(served: Any) -> Any:
    """Returns a context manager that keeps an agent open while it is served over MCP."""
    from contextlib import nullcontext

    from dragoman.agent import Agent

    return cast("Any", served) if isinstance(served, Agent) else nullcontext()


def _format_configuration(name: str) -> str:
    """Returns the entry with which an MCP client starts this very command."""
    arguments = [argument for argument in sys.argv[1:] if argument]
    if not any(argument in ("-C", "--directory") for argument in arguments):
        # Clients start the command in a directory of their own.
        arguments += ["--directory", os.getcwd()]  # noqa: PTH109
    return _format_entry(name, {"command": sys.executable, "args": ["-m", "dragoman", *arguments]})


def _format_entry(name: str, fields: JsonMap) -> str:
    """Returns an entry of an MCP client's configuration as JSON."""
    return msgspec.json.format(
        msgspec.json.encode({"mcpServers": {name: fields}}), indent=2
    ).decode()


def _print_note(text: str) -> None:
    echo(text, err=True)
