"""What a server lists → tools of ours, the same ones as long as it lists the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.logs import logger
from dragoman.mcp.offers import MCP, hints
from dragoman.mcp.options import Options
from dragoman.tools import SignIn, Tool, ToolContext

if TYPE_CHECKING:
    from mcp import types

    from dragoman.mcp.toolset import MCPToolset

__all__ = ["Known", "as_tools", "sign_in_tool"]

_LOG = logger("mcp")
Known = dict[str, tuple[Any, Tool]]
"""Name → what was listed, and the tool that it became."""


def as_tools(
    toolset: MCPToolset, options: Options, listed: Iterable[types.Tool], known: Known
) -> Known:
    """The tools of a list. `known`: those of the last."""
    found: Known = {}
    for one in listed:
        if not one.name or one.name in found:
            _LOG.warning(
                "%s lists a tool %r that is there already or has no name: it is left out",
                toolset.name,
                one.name,
            )
            continue
        before = known.get(one.name)
        found[one.name] = (
            before
            if before is not None and before[0] == one
            else (one, _tool(toolset, options, one))
        )
    return found


def _tool(toolset: MCPToolset, options: Options, given: types.Tool) -> Tool:
    async def call(dragoman_context: ToolContext[Any], **arguments: Any) -> Any:
        return await toolset.call_tool(given.name, arguments, dragoman_context)

    tool = Tool(
        options.prefix + given.name,
        _description(options, given.description),
        call,
        _schema(given.input_schema),
        timeout=options.timeout,
        native=_native(given),
    )
    hint = hints(tool)
    policy = options.requires_approval
    changed = {
        "idempotent": hint.read_only_hint or hint.idempotent_hint,
        "requires_approval": policy(tool) if callable(policy) else policy,
    }
    return msgspec.structs.replace(tool, **changed)


def _description(options: Options, description: str | None) -> str:
    """As given; behind the name that the caller gave the server."""
    return f"{options.name}: {description}" if options.name and description else description or ""


def _schema(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema if schema.get("type") == "object" else {"type": "object", **schema}


def _native(given: types.Tool) -> dict[str, Any] | None:
    """What a server says of a tool and no model is told."""
    fields = given.model_dump(
        mode="json", by_alias=True, exclude_none=True, include={"title", "annotations"}
    )
    return {MCP: fields} if fields else None


def sign_in_tool(toolset: MCPToolset, options: Options) -> Tool:
    """The tool that stands for all of a server's until somebody has signed in."""

    async def sign_in(dragoman_context: ToolContext[Any]) -> str:
        address = await toolset.sign_in(next(toolset.addresses(dragoman_context), None))
        if address is not None:
            raise SignIn(address, f"Please sign in to {toolset.name}.")
        return f"Somebody has signed in to {toolset.name}: its tools are there now."

    name = re.sub(r"\W+", "_", f"{options.prefix}sign_in_to_{toolset.name}")[:64]
    words = f"Asks the user to sign in to {toolset.name}, whose tools are there only afterwards. Call it when you need them."
    return Tool(name, words, sign_in, {"type": "object", "properties": {}}, idempotent=True)
