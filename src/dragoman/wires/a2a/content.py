"""Parts ⇄ pieces of content: 1.0's (`text`, `raw`, `url`, `data`), and those with a `kind` of 0.2
and 0.3."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import drop_empty, first_text, if_object, if_text, read_extra_fields
from dragoman.codec.media import decode_base64, describe_as_text
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import (
    Content,
    DataPart,
    FilePart,
    LinkPart,
    Native,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.a2a.quirks import OWN, text_of
from dragoman.wires.a2a.tools import dump_call, dump_result, load_tools

__all__ = ["JSON_TYPE", "dump_content", "dump_data", "load_content", "load_data"]

JSON_TYPE = "application/json"
_FILE = "application/octet-stream"
_THOUGHTS = ("thought", "adk_thought")
"""Keys in a part's metadata that mark thinking."""
_READ = ("kind", "text", "raw", "url", "data", "file", "mediaType", "filename")


def dump_content(piece: Content) -> list[Json]:
    """Returns the A2A parts that show a piece of content, or an empty list for hidden content.

    The extension carries what these parts cannot hold.
    """
    dump = _DUMPS.get(type(piece))
    return [] if dump is None else dump(piece)


def _dump_text(piece: TextPart) -> list[Json]:
    """Returns a text part."""
    return [{**OWN.fields(piece.native), "text": piece.text}]


def _dump_bytes(piece: DataPart) -> list[Json]:
    """Returns bytes as an A2A file part, or as a data part if they were read from one and are still
    JSON."""
    fields = OWN.fields(piece.native)
    # The bytes of a file that was read from a data part may have been edited since.
    if OWN.form(piece.native).get("data") and (value := _load_json(piece.data)) is not None:
        return [{**fields, "data": value[0]}]
    raw = {"raw": b64encode(piece.data).decode(), "mediaType": piece.mime_type}
    return [{**fields, **raw, **drop_empty({"filename": piece.name})}]


def _dump_link(piece: LinkPart) -> list[Json]:
    """Returns a file part that names a URL."""
    named = drop_empty({"mediaType": piece.mime_type, "filename": piece.name})
    return [{**OWN.fields(piece.native), "url": piece.url, **named}]


def _dump_file(piece: FilePart) -> list[Json]:
    """Returns a text part that names a provider's file, which no other agent can open."""
    return [{"text": describe_as_text(piece)}]


def _dump_call(call: ToolCallPart) -> list[Json]:
    """Returns the data part of a tool call."""
    return [dump_data(dump_call(call))]


def _dump_result(result: ToolResultPart) -> list[Json]:
    """Returns the A2A data part of a tool result, and a part for each file in it with the id of its
    call."""
    pieces = result.result if result.is_content else ()
    files = [piece for piece in pieces if isinstance(piece, DataPart | LinkPart)]
    metadata = {"metadata": {"toolCallId": result.id}}
    parts = [{**part, **metadata} for file in files for part in dump_content(file)]
    return [dump_data(dump_result(result)), *parts]


_DUMPS: Mapping[type, Callable[[Any], list[Json]]] = {
    TextPart: _dump_text,
    DataPart: _dump_bytes,
    LinkPart: _dump_link,
    FilePart: _dump_file,
    ToolCallPart: _dump_call,
    ToolResultPart: _dump_result,
}


def dump_data(value: Any) -> Json:
    """Returns a data part with a JSON value."""
    return {"data": value, "mediaType": JSON_TYPE}


def load_content(part: JsonMap) -> list[Content]:
    """Returns the pieces of content in an A2A part.

    Raises:
        HistoryError: the part has none of text, raw, url and data.
    """
    if isinstance(part.get("root"), dict):  # as objects of older libraries have it
        part = if_object(part["root"])
    if "text" in part:
        return _load_text(part)
    if "file" in part:
        return [_load_file(if_object(part["file"]), part)]
    if "raw" in part or "url" in part:
        return [_load_file(part, part)]
    if "data" in part:
        return load_data(part)
    raise HistoryError("a part has one of text, raw, url and data; this one has none")


def _load_text(part: JsonMap) -> list[Content]:
    """Returns an A2A text part as a text or thinking piece, or nothing for an empty text."""
    text = part["text"]
    if not isinstance(text, str):
        raise HistoryError("the text of a part is a text; send it as one")
    if not text:
        return []
    metadata = if_object(part.get("metadata"))
    if any(metadata.get(key) is True for key in _THOUGHTS):
        return [ThinkingPart(text)]
    return [TextPart(text, _load_native(part, "mediaType", "filename"))]


def load_data(part: JsonMap) -> list[Content]:
    """Returns the calls and results in an A2A data part, or its value as a JSON file."""
    value = part["data"]
    tools = None
    if isinstance(value, dict):
        tools = load_tools(if_object(value))
    if tools is not None:
        return [*tools]
    mime_type = if_text(part.get("mediaType")) or JSON_TYPE
    fields = OWN.fields(_load_native(part, "mediaType", "filename"))
    native = OWN.note(fields, form={"data": True})
    return [DataPart(text_of(value).encode(), mime_type, native=native)]


def _load_file(fields: JsonMap, part: JsonMap) -> Content:
    """Returns a file from the field names of any version's A2A file part.

    Args:
        fields: the object with the bytes or the address.
        part: the part around it, whose other fields go to `native`.
    """
    name = first_text(fields, "filename", "name") or None
    mime_type = first_text(fields, "mediaType", "mimeType", "mime_type") or None
    raw = next((fields[key] for key in ("raw", "bytes") if fields.get(key) is not None), None)
    if raw is not None:
        return DataPart(_load_bytes(raw), mime_type or _FILE, name, _load_native(part))
    url = first_text(fields, "url", "uri")
    if not url:
        raise HistoryError("a file has its bytes or a URL; this one has neither")
    return LinkPart(url, mime_type, name, _load_native(part))


def _load_bytes(raw: Any) -> bytes:
    """Returns the bytes of base64 in an A2A part, which may use the alphabet of URLs and lack its
    padding."""
    if (data := decode_base64(raw)) is not None:
        return data
    if not isinstance(raw, str):
        raise HistoryError("the bytes of a file are base64; send them as a text")
    # Some agents write the alphabet of URLs, or leave the padding out.
    plain = raw.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as error:
        raise HistoryError("the bytes of a file are no base64; encode them so") from error


def _load_native(part: JsonMap, *more: str) -> Native:
    """Returns the fields of an A2A part that a piece of content has no field for.

    Args:
        part: the part.
        more: names that count as unread, although other pieces read them.
    """
    fields = read_extra_fields(part, *(name for name in _READ if name not in more))
    return OWN.note({name: value for name, value in fields.items() if value not in (None, "", {})})


def _load_json(data: bytes) -> tuple[Any] | None:
    """Returns the JSON value in the bytes of an A2A part, in a tuple, or None if the bytes are no
    JSON."""
    try:
        return (json_bytes.decode(data),)
    except ValueError:
        return None
