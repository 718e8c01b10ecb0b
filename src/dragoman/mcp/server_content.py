"""Dumps dragoman's values for an MCP client: results as texts, files, links and JSON; tools, and an
agent as a tool."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import msgspec
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_types import Tool as MCPTool
from pydantic import ValidationError

from dragoman.codec.json_values import if_object
from dragoman.content import ResultPart
from dragoman.errors import ToolError
from dragoman.json_bytes import Json, JsonMap
from dragoman.mcp.offers import MCP
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolResultPart
from dragoman.orchestration.output_type import typed_output
from dragoman.tools import Tool

__all__ = [
    "AgentEntry",
    "describe_agent",
    "dump_blocks",
    "make_error_result",
    "make_json_result",
    "dump_tool",
    "dump_tool_result",
    "make_valid_name",
]

_STRANGE = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST = 128
"""Most characters of a tool's name in MCP."""


def make_error_result(text: str) -> CallToolResult:
    """Returns the result of a failed call, with the reason."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def make_json_result(value: Any, *, more: Iterable[ResultPart] = ()) -> CallToolResult:
    """Returns a JSON value as a result: a text as it is, other values as JSON. An object is
    structured content too."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    structured = cast("Json", value) if isinstance(value, dict) else None
    return CallToolResult(
        content=[TextContent(text=text), *dump_blocks(more)], structured_content=structured
    )


def dump_tool_result(part: ToolResultPart) -> CallToolResult:
    """Returns a tool's result. Of an error `{"error": "…"}` only the message is sent."""
    if part.is_content:
        return CallToolResult(content=dump_blocks(part.result), is_error=part.is_error)
    value: Any = part.result
    if part.is_error and isinstance(value, Mapping):
        message: Any = cast("JsonMap", value).get("error")
        value = message if isinstance(message, str) else cast("JsonMap", value)
    return make_json_result(value).model_copy(update={"is_error": part.is_error})


def dump_blocks(parts: Iterable[ResultPart]) -> list[ContentBlock]:
    """Returns parts as MCP content. A file that only its provider has is named."""
    return [_dump_block(index, part) for index, part in enumerate(parts)]


def _dump_block(index: int, part: ResultPart) -> ContentBlock:
    """Returns a part as a content block. `index` names a file without a name."""
    if isinstance(part, TextPart):
        return TextContent(text=part.text)
    if isinstance(part, LinkPart):
        return ResourceLink(uri=part.url, name=part.name or part.url, mime_type=part.mime_type)
    if isinstance(part, FilePart):
        return TextContent(text=f"[the file {part.name or part.id}, which only its provider holds]")
    media_type = part.mime_type.partition("/")[0]
    data = b64encode(part.data).decode()
    if media_type == "image":
        return ImageContent(data=data, mime_type=part.mime_type)
    if media_type == "audio":
        return AudioContent(data=data, mime_type=part.mime_type)
    # Embedded resources need a URI, but no client can read this one.
    uri = f"attachment:///{quote(part.name or str(index))}"
    if media_type == "text" and (text := _decode_text(part)) is not None:
        return EmbeddedResource(
            resource=TextResourceContents(uri=uri, mime_type=part.mime_type, text=text)
        )
    return EmbeddedResource(
        resource=BlobResourceContents(uri=uri, mime_type=part.mime_type, blob=data)
    )


def _decode_text(part: DataPart) -> str | None:
    """Returns a text file's text, or None if it is not UTF-8."""
    try:
        return part.data.decode()
    except UnicodeDecodeError:
        return None


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
    """Returns a tool as clients see it. Title and annotations in `native["mcp"]` are passed on.

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
    """Returns an agent as a tool with one argument, the prompt.

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
