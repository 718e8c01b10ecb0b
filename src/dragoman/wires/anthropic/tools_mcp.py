"""MCP servers that Anthropic calls: in a request the address of each stands in `mcp_servers`, and
what of it may be used in a tool, `mcp_toolset`. Here both are one tool."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dragoman.codec.json_values import if_list, if_object, if_objects, if_text, read_extra_fields
from dragoman.json_bytes import Json, JsonMap
from dragoman.request import ServerTool, ToolSpec

__all__ = ["MCP_OPTIONS", "SERVERS", "TOOLSET", "join_servers", "split_servers"]

TOOLSET = "mcp_toolset"
"""Type of the tool."""
SERVERS = "mcp_servers"
"""Field of a request that holds the addresses."""
_NAME = "mcp_server_name"
_OF_SERVER = ("url", "authorization_token")
_ALLOWED = "allowed_tools"
_CLOSED: JsonMap = {"enabled": False}
_OPEN: JsonMap = {"enabled": True}
MCP_OPTIONS = {
    "name": _NAME,
    "url": "url",
    "authorization": "authorization_token",
    _ALLOWED: _ALLOWED,
}
"""Common option → its field of the joined tool."""


def join_servers(
    tools: tuple[ToolSpec | ServerTool, ...], body: Json
) -> tuple[ToolSpec | ServerTool, ...]:
    """Takes `mcp_servers` out of an Anthropic body and returns the tools with the address of each
    server. Returns them as they are if servers and tools are not one for one."""
    servers = if_objects(body.get(SERVERS))
    toolsets = [tool for tool in tools if isinstance(tool, ServerTool) and tool.name == TOOLSET]
    if not servers or not _are_paired(toolsets, servers):
        return tools
    del body[SERVERS]
    joined = {
        id(tool): replace(tool, name="mcp", options=_join(tool.options, server))
        for tool, server in zip(toolsets, servers, strict=True)
    }
    return tuple([joined.get(id(tool), tool) for tool in tools])


def _are_paired(toolsets: Sequence[ServerTool], servers: Sequence[JsonMap]) -> bool:
    """True if toolsets and servers are one for one, no server holds what a joined tool has no room
    for, and no toolset closes what a joined tool would leave open."""
    names = [if_text(server.get("name")) for server in servers]
    return (
        "" not in names
        and [tool.options.get(_NAME) for tool in toolsets] == names
        and all(map(_is_simple, servers))
        and all(_is_joinable(tool.options) for tool in toolsets)
    )


def _is_simple(server: JsonMap) -> bool:
    """True if a joined tool has room for all that an Anthropic server holds."""
    known = {"type", "name", *_OF_SERVER}
    return server.get("type") == "url" and "url" in server and server.keys() <= known


def _is_joinable(options: JsonMap) -> bool:
    """True if the options of an Anthropic toolset allow each tool of its server, or those that they
    name."""
    if options.keys() & {*_OF_SERVER, _ALLOWED}:
        return False
    configs = if_object(options.get("configs"))
    rules = [options.get("default_config"), *configs.values()]
    return _names_allowed(options) or all(
        if_object(rule).get("enabled", True) is True for rule in rules
    )


def _names_allowed(options: JsonMap) -> bool:
    """True if the options of an Anthropic toolset allow the tools that they name, and no other."""
    configs = if_object(options.get("configs"))
    is_closed = bool(configs) and options.get("default_config") == _CLOSED
    return is_closed and all(config == _OPEN for config in configs.values())


def _join(options: JsonMap, server: JsonMap) -> Json:
    """Returns the options of an Anthropic toolset with those of its server."""
    joined = {**options, **read_extra_fields(server, "type", "name")}
    if _names_allowed(options):
        joined = read_extra_fields(joined, "configs", "default_config")
        joined[_ALLOWED] = list(if_object(options["configs"]))
    return joined


def _close(toolset: Json) -> Json:
    """Returns an Anthropic toolset that allows no tools but those that it lists."""
    if _ALLOWED not in toolset:
        return toolset
    allowed = [name for name in if_list(toolset.pop(_ALLOWED)) if isinstance(name, str)]
    return {
        **toolset,
        "default_config": dict(_CLOSED),
        "configs": {name: dict(_OPEN) for name in allowed},
    }


def split_servers(entries: Iterable[Json]) -> Json:
    """Returns the fields of an Anthropic body for these entries of `tools`: `tools`, and
    `mcp_servers` with the servers that they named by address."""
    tools: list[Json] = []
    servers: list[Json] = []
    for entry in entries:
        if entry.get("type") != TOOLSET or "url" not in entry:
            tools.append(entry)
            continue
        address = {name: entry[name] for name in _OF_SERVER if name in entry}
        servers.append({"type": "url", "name": if_text(entry.get(_NAME)), **address})
        tools.append(_close(read_extra_fields(entry, *_OF_SERVER)))
    if not servers:
        return {"tools": tools}
    return {"tools": tools, SERVERS: servers}
