"""Content of the protocol → parts of ours, with nothing left out: what a part has no field for is
in its `native`; and the result of a call → what a tool returns."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import msgspec
from mcp import types

from dragoman.errors import ToolError
from dragoman.json_bytes import Json, JsonMap
from dragoman.mcp.offers import MCP
from dragoman.message import DataPart, LinkPart, TextPart

__all__ = ["Block", "check_size", "load_parts", "load_resource", "load_result"]

Block = (
    types.TextContent
    | types.ImageContent
    | types.AudioContent
    | types.ResourceLink
    | types.EmbeddedResource
)
_Part = TextPart | DataPart | LinkPart
_Contents = types.TextResourceContents | types.BlobResourceContents
_MEDIA = ("image/", "audio/", "video/", "application/pdf")


def load_parts(blocks: Iterable[Block | Any]) -> tuple[_Part, ...]:
    """Returns the parts that say what the blocks say. Empty texts are left out.

    Raises:
        ToolError: data is no base64.
    """
    parts = [_load_block(block) for block in blocks]
    return tuple([part for part in parts if part is not None])


def load_resource(contents: _Contents, beside: JsonMap = {}) -> _Part | None:
    """Returns the part that holds what was read of a resource. `beside`: further fields for its
    `native`.

    Raises:
        ToolError: data is no base64.
    """
    uri = contents.uri
    if isinstance(contents, types.TextResourceContents):
        native = {
            "uri": uri,
            **({"mimeType": contents.mime_type} if contents.mime_type else {}),
            **beside,
        }
        return TextPart(contents.text, {MCP: native}) if contents.text else None
    name = unquote(urlsplit(uri).path.rpartition("/")[2]) or None
    mime_type = contents.mime_type or "application/octet-stream"
    return DataPart(_decode(contents.blob, uri), mime_type, name, {MCP: {"uri": uri, **beside}})


def check_size(parts: Iterable[_Part], most: int, server: str, beside: int = 0) -> None:
    """Raises `ToolError` if the parts, with `beside` bytes more, are larger than `most`."""
    for part in parts:
        if isinstance(part, TextPart):
            beside += len(part.text)
        elif isinstance(part, DataPart):
            beside += len(part.data)
    if beside > most:
        raise ToolError(
            f"{server} gave {beside:,} bytes, and no more than {most:,} are taken; ask for less of it"
        )


def _load_block(block: Any) -> _Part | None:
    beside = _dump_fields(block, "annotations", "meta")
    native = {MCP: beside} if beside else None
    if isinstance(block, types.TextContent):
        return TextPart(block.text, native) if block.text else None
    if isinstance(block, types.ImageContent | types.AudioContent):
        return DataPart(_decode(block.data, block.type), block.mime_type, native=native)
    if isinstance(block, types.EmbeddedResource):
        return load_resource(block.resource, beside)
    if isinstance(block, types.ResourceLink):
        return _load_link(block)
    raise ToolError(
        f"the MCP server gave a piece of content that cannot be read: {type(block).__name__}"
    )


def _load_link(link: types.ResourceLink) -> _Part:
    """Returns a file of the web as a link, which a provider may fetch. Any other resource only its
    server can read, so a text names it."""
    mime_type = link.mime_type or ""
    if urlsplit(link.uri).scheme in ("http", "https") and mime_type.startswith(_MEDIA):
        beside = _dump_fields(link, "title", "description", "size", "annotations", "meta")
        return LinkPart(link.uri, mime_type, link.name or None, {MCP: beside} if beside else None)
    details = [link.title or link.name, mime_type, link.description]
    details_text = ", ".join([text for text in details if text])
    native = {"type": "resource_link", **_dump_fields(link, *type(link).model_fields)}
    return TextPart(f"{link.uri} ({details_text})" if details_text else link.uri, {MCP: native})


def _dump_fields(block: Any, *names: str) -> Json:
    """Returns the fields that no part has, by the protocol's names."""
    return block.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(names))


def _decode(data: str, what: str) -> bytes:
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise ToolError(f"the MCP server gave data that is no base64 ({what[:200]})") from error


def load_result(result: types.CallToolResult, most: int, server: str) -> Any:
    """Returns what a tool returns: structured content if the texts say the same or there are none;
    a single text as it is; otherwise parts, with structured content as a last text; `{}` if there
    is nothing.

    Raises:
        ToolError: the tool failed, with what it gave as content; or it gave what cannot be read, or more than `most` bytes.
    """
    parts = load_parts(result.content)
    beside = (
        b"" if result.structured_content is None else msgspec.json.encode(result.structured_content)
    )
    check_size(parts, most, server, len(beside))
    value = _choose_value(result, parts)
    if not result.is_error:
        return value
    if isinstance(value, str):
        raise ToolError(value)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    raise ToolError(
        "\n".join(texts) or f"the tool of {server} failed and does not say why",
        content=value or None,
    )


def _choose_value(
    result: types.CallToolResult, parts: Sequence[TextPart | DataPart | LinkPart]
) -> Any:
    texts = [part.text for part in parts if isinstance(part, TextPart) and part.native is None]
    only_texts = len(texts) == len(parts)
    structured = result.structured_content
    if structured is not None:
        if only_texts and not texts:
            return structured
        for value in _list_spellings(structured):
            if _texts_equal(texts, value):
                return value if only_texts else tuple(parts)
        return (*parts, TextPart(msgspec.json.encode(structured).decode()))
    if not parts:
        return {}
    return texts[0] if only_texts and len(texts) == 1 else tuple(parts)


def _list_spellings(structured: Any) -> list[Any]:
    """Returns the value, and the value within it: servers wrap in `{"result": …}` what is no
    object."""
    fields = cast("Json", structured) if isinstance(structured, dict) else {}
    return [structured, *([fields["result"]] if fields.keys() == {"result"} else [])]


def _texts_equal(texts: Sequence[str], value: Any) -> bool:
    """True if the texts say what a value does: as one text, or one text for each item of a list."""
    if len(texts) == 1 and _text_equals(texts[0], value):
        return True
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return bool(items) and len(items) == len(texts) and all(map(_text_equals, texts, items))


def _text_equals(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        return msgspec.json.decode(text) == value
    except (msgspec.DecodeError, UnicodeError):
        return False
