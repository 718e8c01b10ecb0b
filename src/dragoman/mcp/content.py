"""Loads content of the protocol as parts, with fields that parts lack in `native`, and the result
of a call as what a tool returns."""

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
_LINK_FIELDS = tuple(types.ResourceLink.model_fields)


def load_parts(blocks: Iterable[Block | Any]) -> tuple[_Part, ...]:
    """Returns the parts of MCP content blocks. Empty texts are left out.

    Raises:
        ToolError: data is not base64.
    """
    return tuple(filter(None, map(_load_block, blocks)))


def load_resource(contents: _Contents, beside: JsonMap = {}) -> _Part | None:
    """Returns the content of an MCP resource as a part. `beside`: further fields for its `native`.

    Raises:
        ToolError: data is not base64.
    """
    uri = contents.uri
    if isinstance(contents, types.TextResourceContents):
        if not contents.text:
            return None
        native: Json = {"uri": uri}
        if contents.mime_type:
            native["mimeType"] = contents.mime_type
        return TextPart(contents.text, {MCP: {**native, **beside}})
    name = unquote(urlsplit(uri).path.rpartition("/")[2]) or None
    mime_type = contents.mime_type or "application/octet-stream"
    return DataPart(
        _decode_server_base64(contents.blob, uri), mime_type, name, {MCP: {"uri": uri, **beside}}
    )


def check_size(parts: Iterable[_Part], most: int, server: str, beside: int = 0) -> None:
    """Raises `ToolError` if the parts of MCP content and `beside` further bytes are larger than
    `most`."""
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
    """Returns an MCP content block as a part, or None if it is an empty text."""
    beside = _dump_fields(block, "annotations", "meta")
    native = {MCP: beside} if beside else None
    if isinstance(block, types.TextContent):
        # An empty text is nothing for a model, and some providers refuse one.
        if not block.text:
            return None
        return TextPart(block.text, native)
    if isinstance(block, types.ImageContent | types.AudioContent):
        return DataPart(
            _decode_server_base64(block.data, block.type), block.mime_type, native=native
        )
    if isinstance(block, types.EmbeddedResource):
        return load_resource(block.resource, beside)
    if isinstance(block, types.ResourceLink):
        return _load_link(block)
    raise ToolError(
        f"the MCP server gave a piece of content that cannot be read: {type(block).__name__}"
    )


def _load_link(link: types.ResourceLink) -> _Part:
    """Returns MCP content that links to media on the web as a link, which a provider may fetch.
    Other resources only their server can read, so they become a text with their URI."""
    mime_type = link.mime_type or ""
    if urlsplit(link.uri).scheme in ("http", "https") and mime_type.startswith(_MEDIA):
        beside = _dump_fields(link, "title", "description", "size", "annotations", "meta")
        return LinkPart(link.uri, mime_type, link.name or None, {MCP: beside} if beside else None)
    details = [link.title or link.name, mime_type, link.description]
    details_text = ", ".join([text for text in details if text])
    text = f"{link.uri} ({details_text})" if details_text else link.uri
    return TextPart(text, {MCP: {"type": "resource_link", **_dump_fields(link, *_LINK_FIELDS)}})


def _dump_fields(block: Any, *names: str) -> Json:
    """Returns fields of a block that no part has, with the protocol's names."""
    return block.model_dump(mode="json", by_alias=True, exclude_none=True, include=set(names))


def _decode_server_base64(data: str, what: str) -> bytes:
    """Decodes base64 of the MCP server. Raises `ToolError` if it is invalid."""
    try:
        return b64decode(data, validate=True)
    except ValueError as error:
        raise ToolError(f"the MCP server gave data that is no base64 ({what[:200]})") from error


def load_result(result: types.CallToolResult, most: int, server: str) -> Any:
    """Returns what an MCP tool returns: structured content if there are no texts or they say the
    same, a single text as it is, else parts with structured content as a last text. No content is
    `{}`.

    Raises:
        ToolError: the tool failed, the content cannot be read, or it has more than `most`
            bytes. After a failure, `content` is what the server sent.
    """
    parts = load_parts(result.content)
    structured_size = 0
    if result.structured_content is not None:
        structured_size = len(msgspec.json.encode(result.structured_content))
    check_size(parts, most, server, structured_size)
    # A failed call has content too, which the model should see.
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
    """Returns the value of an MCP result's content as `load_result` does."""
    # A text with native fields came from a resource or has annotations: it stays a part.
    texts = [part.text for part in parts if isinstance(part, TextPart) and part.native is None]
    only_texts = len(texts) == len(parts)
    structured = result.structured_content
    if structured is None:
        if not parts:
            return {}
        if only_texts and len(texts) == 1:
            return texts[0]
        return tuple(parts)
    if not parts:
        return structured
    # The protocol asks servers to repeat structured content as text, for older clients.
    for value in _list_spellings(structured):
        if _texts_equal(texts, value):
            return value if only_texts else tuple(parts)
    return (*parts, TextPart(msgspec.json.encode(structured).decode()))


def _list_spellings(structured: Any) -> list[Any]:
    """Returns MCP's structured content, and the value within `{"result": …}`, in which servers wrap
    values that are not objects."""
    if isinstance(structured, dict):
        fields = cast("Json", structured)
        if fields.keys() == {"result"}:
            return [fields, fields["result"]]
    return [structured]


def _texts_equal(texts: Sequence[str], value: Any) -> bool:
    """True if the texts of MCP content say the value: as one text, or one text per item of a
    list."""
    if len(texts) == 1 and _text_equals(texts[0], value):
        return True
    if not isinstance(value, list):
        return False
    items = cast("list[Any]", value)
    return 0 < len(items) == len(texts) and all(map(_text_equals, texts, items))


def _text_equals(text: str, value: Any) -> bool:
    """True if a text of MCP content is the value, or its JSON."""
    if isinstance(value, str):
        return text == value
    try:
        return msgspec.json.decode(text) == value
    except (msgspec.DecodeError, UnicodeError):
        return False
