"""An agent that runs elsewhere, as a tool of one that runs here: `remote_agent`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Unpack
from urllib.parse import urlsplit

from dragoman.agent import Agent
from dragoman.arguments import expect
from dragoman.errors import SettingsError
from dragoman.model.access import Key
from dragoman.tools import Tool
from dragoman.tools.agent_tool import AgentToolOptions, name_for_models

if TYPE_CHECKING:
    from dragoman.transport import Transport

__all__ = ["remote_agent"]

_PLACES = ("a2a", "ag-ui", "ag_ui", "agents", "agent", "run", "runs", "v1", "api")
"""Parts of a path that name no agent."""


def remote_agent(
    url: str,
    name: str | None = None,
    description: str | None = None,
    *,
    api_key: Key | None = None,
    headers: Mapping[str, str] | None = None,
    transport: Transport | None = None,
    **options: Unpack[AgentToolOptions],
) -> Tool:
    """Returns a tool by which a model hands a part of its work to an agent that speaks A2A or
    AG-UI, and goes on with its answer.

    `url`: of an agent of A2A, or a model string (`a2a:https://…`, `ag-ui:https://…`). `name` and
    `description`: what the model is told of it; left out, they are made of the URL. `api_key`,
    `headers` and `transport` are as in `Agent`; `options` as in `Agent.as_tool`. What the agent
    waits for (an approval, an answer, a sign-in), the run here waits for, too. To hand over the
    whole conversation instead: `handoff(Agent("a2a:https://…"), "name")`.

    Raises:
        SettingsError: the URL is none.
        ToolError: see `Agent.as_tool`.
    """
    expect("url", url, str)
    expect("name", name, str, type(None))
    if not url.lower().startswith(("http://", "https://")):
        string = url
    else:
        string = f"a2a:{url}"
    address = string.partition(":")[2]
    host = _host_of_url(address)
    if host is None:
        raise SettingsError(
            f'a remote agent is named by its URL, and "{url}" is none; write one such as https://host/agent or ag-ui:https://host/agent'
        )
    agent = Agent(string, api_key=api_key, headers=headers, transport=transport)
    name = name or _agent_name_from_url(address, host)
    description = (
        description or f"Has the agent {name} at {host} do something, and gives its answer."
    )
    return agent.as_tool(name, description, **options)


def _host_of_url(url: str) -> str | None:
    """Returns the host of a remote agent's URL over HTTP, or None."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme in ("http", "https"):
        return parts.hostname
    return None


def _agent_name_from_url(url: str, host: str) -> str:
    """Returns a name for a remote agent: the last part of the path that names something, else the
    host."""
    parts = [
        part
        for part in urlsplit(url).path.split("/")
        if part and part not in _PLACES and "." not in part
    ]
    return name_for_models(parts[-1] if parts else host)
