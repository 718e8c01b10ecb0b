"""Values for what a server offers beside calls of tools: `Resource`, `Prompt`, and its remarks
about its tools (`hints`)."""

from __future__ import annotations

import msgspec

from dragoman.json_bytes import JsonMap
from dragoman.tools import Tool

__all__ = ["MCP", "Prompt", "PromptArgument", "Resource", "ToolHints", "hints"]

MCP = "mcp"
"""Key in `native` for fields of MCP that dragoman's values lack, with the protocol's names."""


class ToolHints(msgspec.Struct, frozen=True, rename="camel"):
    """A server's remarks about a tool. An untrusted server may say anything."""

    title: str | None = None
    """A name for people."""
    read_only_hint: bool = False
    """The tool changes nothing."""
    destructive_hint: bool = True
    """The tool may destroy something. Meaningless if it is read-only."""
    idempotent_hint: bool = False
    """A second call with the same arguments changes nothing more."""
    open_world_hint: bool = True
    """The tool reaches things outside of the server."""


class Resource(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that a server lets clients read, or a template of such resources."""

    uri: str
    """The URI for `MCPToolset.read_resource`, or a URI template (RFC 6570)."""
    name: str = ""
    """The resource's name."""
    title: str | None = None
    """A name for people."""
    description: str | None = None
    """A description."""
    mime_type: str | None = None
    """The MIME type, if known."""
    size: int | None = None
    """The size in bytes, if known."""


class PromptArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    """A parameter of a prompt."""

    name: str
    """The parameter's name."""
    description: str | None = None
    """A description."""
    required: bool = False
    """True if the argument must be given."""


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A template of messages on a server, see `MCPToolset.prompt`."""

    name: str
    """The prompt's name."""
    title: str | None = None
    """A name for people."""
    description: str | None = None
    """The prompt's purpose."""
    arguments: tuple[PromptArgument, ...] = ()
    """The prompt's parameters."""


def hints(tool: Tool) -> ToolHints:
    """Returns the hints that an MCP server offers about a tool, or the defaults for a tool without
    a server."""
    native: JsonMap = (tool.native or {}).get(MCP) or {}
    annotations: JsonMap = native.get("annotations") or {}
    try:
        return msgspec.convert({"title": native.get("title"), **annotations}, ToolHints)
    # A server may send hints of the wrong type; the defaults assume the worst.
    except msgspec.ValidationError:
        return ToolHints()
