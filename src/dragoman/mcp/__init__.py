"""The Model Context Protocol: tools of MCP servers for agents (`mcp`). Needs the extra `mcp` once a server is reached."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.mcp.toolset import mcp  # not when first asked for: the package has its name

if TYPE_CHECKING:
    from dragoman.mcp.oauth import MemoryTokenStore, OAuth, TokenStore
    from dragoman.mcp.offers import Prompt, PromptArgument, Resource, ToolHints, hints
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
    "mcp",
]

_MODULES = {
    "MCPToolset": "toolset",
    "MemoryTokenStore": "oauth",
    "OAuth": "oauth",
    "Prompt": "offers",
    "PromptArgument": "offers",
    "Resource": "offers",
    "TokenStore": "oauth",
    "ToolHints": "offers",
    "hints": "offers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dragoman.mcp' has no attribute {name!r}")
    return getattr(import_module(f"dragoman.mcp.{_MODULES[name]}"), name)
