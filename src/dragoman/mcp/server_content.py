"""Dumps tool results for an MCP client: as texts, files, links and JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, cast
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
)

from dragoman.content import ResultPart
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolResultPart

__all__ = ["dump_blocks", "make_error_result", "make_json_result", "dump_tool_result"]


def make_error_result(text: str) -> CallToolResult:
    """Returns the result of a failed call, with the reason."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def make_json_result(value: Any, *, more: Iterable[ResultPart] = ()) -> CallToolResult:
    """Returns a JSON value as the content of an MCP result: a text as it is, other values as JSON.
    An object is structured content too."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    structured = cast("Json", value) if isinstance(value, dict) else None
    return CallToolResult(
        content=[TextContent(text=text), *dump_blocks(more)], structured_content=structured
    )


def dump_tool_result(part: ToolResultPart) -> CallToolResult:
    """Returns an MCP tool's result. Of an error `{"error": "…"}` only the message is sent."""
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
    """Returns a part as an MCP content block. `index` names a file without a name."""
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
    """Returns as MCP content a text file's text, or None if it is not UTF-8."""
    try:
        return part.data.decode()
    except UnicodeDecodeError:
        return None
