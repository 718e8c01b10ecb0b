"""Tools of ours, and an agent, as an MCP client sees them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from mcp_types import Tool as MCPTool
from mcp_types import ToolAnnotations
from pydantic import ValidationError

from dragoman.codec.json_values import if_object
from dragoman.errors import ToolError
from dragoman.mcp.offers import MCP
from dragoman.orchestration.typed import typed_output
from dragoman.tools import Tool

__all__ = ["AgentEntry", "agent_entry", "tool_entry", "valid_name"]

_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 128
"""Characters of a tool's name, as MCP has it."""


class AgentEntry(NamedTuple):
    """An agent as a tool."""

    listed: MCPTool
    """As it is listed."""
    output_type: Any
    """Of its answers."""
    is_wrapped: bool
    """Whether an answer is no object, and stands in one, `{"result": …}`."""


def valid_name(name: str) -> str:
    """A name for people as that of an MCP tool."""
    return _STRANGE.sub("_", name).strip("_")[:_LONGEST] or "ask"


def tool_entry(tool: Tool) -> MCPTool:
    """A tool as it is listed. Title and annotations in `native["mcp"]` are told as they are.

    Raises:
        ToolError: its signature has a type without JSON Schema, or what stands there cannot be told.
    """
    spec = tool.spec
    own = if_object((tool.native or {}).get(MCP))
    ours = {"idempotentHint": tool.idempotent, "destructiveHint": bool(tool.requires_approval)}
    hints = {
        **{name: True for name, holds in ours.items() if holds},
        **if_object(own.get("annotations")),
    }
    try:
        return MCPTool(
            name=spec.name,
            title=own.get("title"),
            description=spec.description.strip() or None,
            input_schema={"type": "object", **spec.input_schema},
            annotations=ToolAnnotations.model_validate(hints, by_name=False) if hints else None,
        )
    except ValidationError as error:
        raise ToolError(
            f"what {tool.name!r} says in native[{MCP!r}] is no title and annotations: {error}"
        ) from error


def agent_entry(title: str, description: str | None, output_type: Any) -> AgentEntry:
    """An agent as a tool of one prompt.

    Raises:
        SettingsError: the output type cannot be described.
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
        name=valid_name(title),
        title=title,
        description=description or f"Asks {title}, an agent, and gives its answer.",
        input_schema={"type": "object", "properties": {"prompt": prompt}, "required": ["prompt"]},
        output_schema=schema,
    )
    return AgentEntry(listed, output_type, is_wrapped)
