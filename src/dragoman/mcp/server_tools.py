"""Which tools an MCP server lists: those of an agent, and the agent itself as a tool."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mcp_types import Tool as MCPTool
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from dragoman.codec.json_values import if_object
from dragoman.errors import ToolError
from dragoman.mcp.offers import MCP
from dragoman.orchestration.output_type import typed_output
from dragoman.tools import Tool

__all__ = ["AgentEntry", "make_valid_name", "dump_tool", "describe_agent"]


_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")


_LONGEST = 128
"""Most characters of a tool's name in MCP."""


class AgentEntry(NamedTuple):
    """An agent as a tool."""

    tool: MCPTool
    """The tool that clients see."""
    output_type: Any
    """The type of the agent's output."""
    is_wrapped: bool
    """True if an output is not an object and is wrapped in `{"result": …}`."""


def make_valid_name(name: str) -> str:
    """Returns a display name as a valid name of an MCP tool."""
    return _STRANGE.sub("_", name).strip("_")[:_LONGEST] or "ask"


def dump_tool(tool: Tool) -> MCPTool:
    """Returns a tool as the MCP server lists it for clients. Title and annotations in
    `native["mcp"]` are passed on.

    Raises:
        ToolError: the tool has a type without JSON Schema, or its title or annotations are invalid.
    """
    spec = tool.spec
    native = if_object((tool.native or {}).get(MCP))
    known_hints = {
        "idempotentHint": tool.idempotent,
        "destructiveHint": bool(tool.requires_approval),
    }
    # Only hints that hold are sent. The author's own annotations win.
    hints = {
        **{name: True for name, holds in known_hints.items() if holds},
        **if_object(native.get("annotations")),
    }
    try:
        return MCPTool(
            name=spec.name,
            title=native.get("title"),
            description=spec.description.strip() or None,
            input_schema={"type": "object", **spec.input_schema},
            annotations=ToolAnnotations.model_validate(hints, by_name=False) if hints else None,
        )
    except ValidationError as error:
        raise ToolError(
            f"what {tool.name!r} says in native[{MCP!r}] is no title and annotations: {error}"
        ) from error


def describe_agent(title: str, description: str | None, output_type: Any) -> AgentEntry:
    """Returns an agent as the MCP server lists it: a tool with one argument, the prompt.

    Raises:
        SettingsError: the output type has no JSON Schema.
    """
    prompt = {
        "type": "string",
        "description": "What to do or to answer, with all that must be known for it.",
    }
    schema, is_wrapped = None, False
    if output_type is not str:
        schema = dict(typed_output(output_type).schema)
        from pydantic import TypeAdapter

        is_wrapped = TypeAdapter(output_type).json_schema().get("type") != "object"
    listed = MCPTool(
        name=make_valid_name(title),
        title=title,
        description=description or f"Asks {title}, an agent, and gives its answer.",
        input_schema={"type": "object", "properties": {"prompt": prompt}, "required": ["prompt"]},
        output_schema=schema,
    )
    return AgentEntry(listed, output_type, is_wrapped)
