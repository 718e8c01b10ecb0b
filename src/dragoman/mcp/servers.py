"""`server`: your agent or your tools as a server for MCP clients."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, cast

from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from dragoman.agent import Agent
from dragoman.arguments import expect
from dragoman.errors import SettingsError
from dragoman.mcp.server_exposure import Exposure, Options, make_call_provider
from dragoman.mcp.server_tools import describe_agent
from dragoman.tools import Tool, Toolset

__all__ = ["Exposed", "Served", "server"]

Served: TypeAlias = Agent[Any] | Tool | Toolset | Iterable[Tool | Toolset | Callable[..., Any]]
"""Values that `server` can serve."""
Exposed: TypeAlias = Literal["agent", "tools", "both"]
"""What clients see of an agent."""

_ANSWER_SECONDS = 24 * 3600.0
"""Seconds for which a waiting call can be answered."""
_SHORTEST_KEY = 32


def server(
    served: Served,
    *,
    name: str | None = None,
    expose: Exposed = "agent",
    description: str | None = None,
    output_type: Any = str,
    options: Options | None = None,
    key: str | bytes | None = None,
) -> Server[Any]:
    """Makes an MCP server of the official library from an agent or tools. `serve_stdio`, `http_app`
    or the library serve it.

    Args:
        served: an agent, a tool, a toolset, or a list of tools and functions.
        name: the server's name, and that of the tool that asks the agent; by default the
            agent's display name.
        expose: show the agent as one tool that takes a prompt, its tools one by one, or `both`.
            Tools without an agent are always served one by one.
        description: what the agent does, for models that choose a tool.
        output_type: the type of the agent's output, as in `Agent.send_for`.
        options: options of every run, or a function of the client's request that returns them.
        key: a secret of at least 32 bytes, the same in all processes at one address. It seals
            what a waiting call needs while the client keeps it. By default each process has its
            own.

    Each call is a run, which ends when the client cancels it or leaves.

    Raises:
        SettingsError: the key is too short, or the output type has no JSON Schema.
        ToolError: a tool cannot be described, or two tools have the same name.
        TypeError: `served` is neither an agent nor tools.
    """
    expect("name", name, str, type(None))
    if not isinstance(served, Agent):
        tools = (served,) if isinstance(served, (Tool, Toolset)) else served
        # Tools without an agent get one whose model is never asked.
        served, expose = (
            Agent(
                make_call_provider(),
                tools=cast("Iterable[Tool | Toolset]", tools),
                display_name=name or "tools",
            ),
            "tools",
        )
    title = name or served.display_name
    entry = None if expose == "tools" else describe_agent(title, description, output_type)
    exposure = Exposure(served, entry, tools=expose != "agent", options=options)
    mcp_server = Server[Any](
        title,
        on_list_tools=exposure.list_tools,
        on_call_tool=exposure.call_tool,
        lifespan=exposure.lifespan,
    )
    # Seals the state of a waiting call, which the client keeps.
    mcp_server.middleware.append(RequestStateBoundary(_make_security(key), default_audience=title))
    return mcp_server


def _make_security(key: str | bytes | None) -> RequestStateSecurity:
    """Returns for an MCP server the library's sealing of what clients keep, with a key."""
    if key is not None and len(key) < _SHORTEST_KEY:
        raise SettingsError(
            f"the key has {len(key)} bytes; it must be a secret of {_SHORTEST_KEY} or more"
        )
    return RequestStateSecurity(keys=[key or os.urandom(_SHORTEST_KEY)], ttl=_ANSWER_SECONDS)
