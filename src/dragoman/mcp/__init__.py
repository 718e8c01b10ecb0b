"""The Model Context Protocol: an agent or tools as a server for MCP clients."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.mcp.server_http import http_app, serve_http
    from dragoman.mcp.server_stdio import serve_stdio
    from dragoman.mcp.servers import server

__all__ = ["http_app", "serve_http", "serve_stdio", "server"]

_MODULES = {"http_app": "server_http", "serve_http": "server_http", "serve_stdio": "server_stdio", "server": "servers"}
"""What few programs need, and where it stands."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dragoman.mcp' has no attribute {name!r}")
    try:
        return getattr(import_module(f"dragoman.mcp.{_MODULES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        from dragoman.errors import SettingsError

        raise SettingsError('this needs the library mcp: pip install "dragoman[mcp]"') from error
