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
"""Keys of a part's metadata that tell of thinking."""
_READ = ("kind", "text", "raw", "url", "data", "file", "mediaType", "filename")


def dump_content(piece: Content) -> list[Json]:
    """Returns the parts that show a piece; none if it is not shown. What they do not hold is told
    beside them, by the extension."""
    dump = _DUMPS.get(type(piece))
    return [] if dump is None else dump(piece)


def _dump_text(piece: TextPart) -> list[Json]:
    return [{**OWN.fields(piece.native), "text": piece.text}]


def _dump_bytes(piece: DataPart) -> list[Json]:
    fields = OWN.fields(piece.native)
    if OWN.form(piece.native).get("data") and (value := _json(piece.data)) is not None:
        return [{**fields, "data": value[0]}]
    raw = {"raw": b64encode(piece.data).decode(), "mediaType": piece.mime_type}
    return [{**fields, **raw, **drop_empty({"filename": piece.name})}]


def _dump_link(piece: LinkPart) -> list[Json]:
    named = drop_empty({"mediaType": piece.mime_type, "filename": piece.name})
    return [{**OWN.fields(piece.native), "url": piece.url, **named}]


def _dump_file(piece: FilePart) -> list[Json]:
    return [{"text": describe_as_text(piece)}]


def _dump_call(call: ToolCallPart) -> list[Json]:
    return [dump_data(dump_call(call))]


def _dump_result(result: ToolResultPart) -> list[Json]:
    """A result, and the files in it, which say to which call they belong."""
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
    """A JSON value → a data part."""
    return {"data": value, "mediaType": JSON_TYPE}


def load_content(part: JsonMap) -> list[Content]:
    """A part → the pieces that it shows.

    Raises:
        HistoryError: it is none.
    """
    if isinstance(part.get("root"), dict):  # as objects of older libraries have it
        part = if_object(part["root"])
    if "text" in part:
        return _load_text(part)
    if "file" in part:
        return [_file(if_object(part["file"]), part)]
    if "raw" in part or "url" in part:
        return [_file(part, part)]
    if "data" in part:
        return load_data(part)
    raise HistoryError("a part has one of text, raw, url and data; this one has none")


def _load_text(part: JsonMap) -> list[Content]:
    text = part["text"]
    if not isinstance(text, str):
        raise HistoryError("the text of a part is a text; send it as one")
    if not text:
        return []
    metadata = if_object(part.get("metadata"))
    if any(metadata.get(key) is True for key in _THOUGHTS):
        return [ThinkingPart(text)]
    return [TextPart(text, _native(part, "mediaType", "filename"))]


def load_data(part: JsonMap) -> list[Content]:
    """A data part → calls, results, or the value as a file of JSON."""
    value = part["data"]
    tools = load_tools(if_object(value)) if isinstance(value, dict) else None
    if tools is not None:
        return [*tools]
    mime_type = if_text(part.get("mediaType")) or JSON_TYPE
    fields = OWN.fields(_native(part, "mediaType", "filename"))
    native = OWN.note(fields, form={"data": True})
    return [DataPart(text_of(value).encode(), mime_type, native=native)]


def _file(fields: JsonMap, part: JsonMap) -> Content:
    """A file, by the names of any version. `fields`: where its bytes or its address are."""
    name = first_text(fields, "filename", "name") or None
    mime_type = first_text(fields, "mediaType", "mimeType", "mime_type") or None
    raw = next((fields[key] for key in ("raw", "bytes") if fields.get(key) is not None), None)
    if raw is not None:
        return DataPart(_bytes(raw), mime_type or _FILE, name, _native(part))
    url = first_text(fields, "url", "uri")
    if not url:
        raise HistoryError("a file has its bytes or a URL; this one has neither")
    return LinkPart(url, mime_type, name, _native(part))


def _bytes(raw: Any) -> bytes:
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


def _native(part: JsonMap, *more: str) -> Native:
    """Fields of a part that its piece has none for."""
    fields = read_extra_fields(part, *(name for name in _READ if name not in more))
    return OWN.note({name: value for name, value in fields.items() if value not in (None, "", {})})


def _json(data: bytes) -> tuple[Any] | None:
    try:
        return (json_bytes.decode(data),)
    except ValueError:
        return None
