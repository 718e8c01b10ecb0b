"""Results of ours as an MCP tool's: texts, files, links, JSON."""

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
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolResultPart

__all__ = ["blocks", "error_result", "json_result", "tool_result"]


def error_result(text: str) -> CallToolResult:
    """A call that failed, and why."""
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


def json_result(value: Any, *, more: Iterable[ResultPart] = ()) -> CallToolResult:
    """A JSON value: a text as it is, all else as JSON; an object is structured content too."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    structured = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    return CallToolResult(
        content=[TextContent(text=text), *blocks(more)], structured_content=structured
    )


def tool_result(part: ToolResultPart) -> CallToolResult:
    """What a tool returned. Of an error `{"error": "…"}` the words alone."""
    if part.is_content:
        return CallToolResult(content=blocks(part.result), is_error=part.is_error)
    value: Any = part.result
    if part.is_error and isinstance(value, Mapping):
        words: Any = cast("Mapping[str, Any]", value).get("error")
        value = words if isinstance(words, str) else cast("Mapping[str, Any]", value)
    return json_result(value).model_copy(update={"is_error": part.is_error})


def blocks(parts: Iterable[ResultPart]) -> list[ContentBlock]:
    """Parts as content. A file that only its provider holds is named."""
    return [_block(place, part) for place, part in enumerate(parts)]


def _block(place: int, part: ResultPart) -> ContentBlock:
    if isinstance(part, TextPart):
        return TextContent(text=part.text)
    if isinstance(part, LinkPart):
        return ResourceLink(uri=part.url, name=part.name or part.url, mime_type=part.mime_type)
    if isinstance(part, FilePart):
        return TextContent(text=f"[the file {part.name or part.id}, which only its provider holds]")
    kind = part.mime_type.partition("/")[0]
    data = b64encode(part.data).decode()
    if kind == "image":
        return ImageContent(data=data, mime_type=part.mime_type)
    if kind == "audio":
        return AudioContent(data=data, mime_type=part.mime_type)
    uri = f"attachment:///{quote(part.name or str(place))}"
    if kind == "text" and (text := _text(part)) is not None:
        return EmbeddedResource(
            resource=TextResourceContents(uri=uri, mime_type=part.mime_type, text=text)
        )
    return EmbeddedResource(
        resource=BlobResourceContents(uri=uri, mime_type=part.mime_type, blob=data)
    )


def _text(part: DataPart) -> str | None:
    try:
        return part.data.decode()
    except UnicodeDecodeError:
        return None
