"""What a server offers beside its tools' calls: `Resource`, `Prompt`, and what it says of its tools
(`hints`)."""

from __future__ import annotations

import msgspec

from dragoman.json_bytes import JsonMap
from dragoman.tools import Tool

__all__ = ["MCP", "Prompt", "PromptArgument", "Resource", "ToolHints", "hints"]

MCP = "mcp"
"""The key in `native` under which stands what MCP has beyond our values, by the protocol's own
names."""


class ToolHints(msgspec.Struct, frozen=True, rename="camel"):
    """What a server says of a tool. A server that is not trusted may say anything."""

    title: str | None = None
    """A name for people."""
    read_only_hint: bool = False
    """It changes nothing."""
    destructive_hint: bool = True
    """It may destroy something; of no meaning where it changes nothing."""
    idempotent_hint: bool = False
    """Calling it again with the same arguments changes nothing more."""
    open_world_hint: bool = True
    """It reaches what is outside of the server."""


class Resource(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a server lets be read, or, with a template in place of the URI, many of
    them."""

    uri: str
    """Its URI, which `MCPToolset.read_resource` takes; or a template of them (RFC 6570)."""
    name: str = ""
    """Its name."""
    title: str | None = None
    """A name for people."""
    description: str | None = None
    """What it is."""
    mime_type: str | None = None
    """Its type; `None`: not known."""
    size: int | None = None
    """In bytes; `None`: not known."""


class PromptArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a prompt may be given."""

    name: str
    """By which it is given."""
    description: str | None = None
    """What it is."""
    required: bool = False
    """Whether it must be given."""


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """Messages that a server makes of arguments: see `MCPToolset.prompt`."""

    name: str
    """By which it is asked for."""
    title: str | None = None
    """A name for people."""
    description: str | None = None
    """What it is for."""
    arguments: tuple[PromptArgument, ...] = ()
    """What it may be given."""


def hints(tool: Tool) -> ToolHints:
    """Returns what its server says of a tool; for a tool without a server the defaults."""
    native: JsonMap = (tool.native or {}).get(MCP) or {}
    annotations: JsonMap = native.get("annotations") or {}
    try:
        return msgspec.convert({"title": native.get("title"), **annotations}, ToolHints)
    except msgspec.ValidationError:
        return ToolHints()
