"""The Model Context Protocol: tools of MCP servers for agents (`mcp`), and agents and tools as MCP
servers (`server`). The extra `mcp` is needed once a server is reached or made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Imported at once: the function has the name of the package, so a lazy import would find the
# package.
from dragoman.mcp.toolset import mcp
from dragoman.runtime import extra_hint, lazy

if TYPE_CHECKING:
    from dragoman.mcp.offers import Prompt, PromptArgument, Resource, ToolHints, hints
    from dragoman.mcp.options import MemoryTokenStore, OAuth, TokenStore
    from dragoman.mcp.server_http import http_app, serve_http
    from dragoman.mcp.server_stdio import serve_stdio
    from dragoman.mcp.servers import server
    from dragoman.mcp.toolset import MCPToolset

__all__ = [
    "MCPToolset",
    "MemoryTokenStore",
    "OAuth",
    "Prompt",
    "PromptArgument",
    "Resource",
    "TokenStore",
    "ToolHints",
    "hints",
    "http_app",
    "mcp",
    "serve_http",
    "serve_stdio",
    "server",
]

_MODULES = {
    "MCPToolset": "toolset",
    "MemoryTokenStore": "options",
    "OAuth": "options",
    "Prompt": "offers",
    "PromptArgument": "offers",
    "Resource": "offers",
    "TokenStore": "options",
    "ToolHints": "offers",
    "hints": "offers",
    "http_app": "server_http",
    "serve_http": "server_http",
    "serve_stdio": "server_stdio",
    "server": "servers",
}

_load = lazy("dragoman.mcp", _MODULES)


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        from dragoman.errors import SettingsError

        raise SettingsError(f"this needs the library mcp: {extra_hint('mcp')}") from error
