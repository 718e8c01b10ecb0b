"""Parts ⇄ pieces of content: 1.0's (`text`, `raw`, `url`, `data`), and those with a `kind` of 0.2 and 0.3."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from dragoman import json_bytes
from dragoman.codec.json_values import if_object, if_text, rest
from dragoman.codec.media import as_text, decoded
from dragoman.errors import HistoryError
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


def dump_content(piece: Content) -> list[dict[str, Any]]:
    """A piece → the parts that show it; none: it is not shown. What they do not hold is told beside them, by the extension."""
    if isinstance(piece, TextPart):
        return [{**OWN.fields(piece.native), "text": piece.text}]
    if isinstance(piece, DataPart):
        if OWN.form(piece.native).get("data") and (value := _json(piece.data)) is not None:
            return [{**OWN.fields(piece.native), "data": value[0]}]
        raw = {"raw": b64encode(piece.data).decode(), "mediaType": piece.mime_type}
        return [{**OWN.fields(piece.native), **raw, **_named(piece.name)}]
    if isinstance(piece, LinkPart):
        kind = {"mediaType": piece.mime_type} if piece.mime_type else {}
        return [{**OWN.fields(piece.native), "url": piece.url, **kind, **_named(piece.name)}]
    if isinstance(piece, FilePart):
        return [{"text": as_text(piece)}]
    if isinstance(piece, ToolCallPart):
        return [dump_data(dump_call(piece))]
    if isinstance(piece, ToolResultPart):
        beside = (
            [each for each in piece.result if isinstance(each, DataPart | LinkPart)]
            if piece.is_content
            else []
        )
        shown = [
            {**part, "metadata": {"toolCallId": piece.id}}
            for each in beside
            for part in dump_content(each)
        ]
        return [dump_data(dump_result(piece)), *shown]
    return []


def dump_data(value: Any) -> dict[str, Any]:
    """A JSON value → a data part."""
    return {"data": value, "mediaType": JSON_TYPE}


def load_content(part: Mapping[str, Any]) -> list[Content]:
    """A part → the pieces that it shows.

    Raises:
        HistoryError: it is none.
    """
    if isinstance(part.get("root"), dict):  # as objects of older libraries have it
        part = if_object(part["root"])
    if "text" in part:
        text = part["text"]
        if not isinstance(text, str):
            raise HistoryError("the text of a part is a text; send it as one")
        if any(if_object(part.get("metadata")).get(key) is True for key in _THOUGHTS):
            return [ThinkingPart(text)] if text else []
        return [TextPart(text, _native(part, "mediaType", "filename"))] if text else []
    if "file" in part:
        return [_file(if_object(part["file"]), part)]
    if "raw" in part or "url" in part:
        return [_file(part, part)]
    if "data" in part:
        return load_data(part)
    raise HistoryError("a part has one of text, raw, url and data; this one has none")


def load_data(part: Mapping[str, Any]) -> list[Content]:
    """A data part → calls, results, or the value as a file of JSON."""
    value = part["data"]
    if isinstance(value, dict) and (found := load_tools(if_object(value))) is not None:
        return [*found]
    mime_type = if_text(part.get("mediaType")) or JSON_TYPE
    fields = OWN.fields(_native(part, "mediaType", "filename"))
    return [
        DataPart(text_of(value).encode(), mime_type, native=OWN.note(fields, form={"data": True}))
    ]


def _file(fields: Mapping[str, Any], part: Mapping[str, Any]) -> Content:
    name = next((each for key in ("filename", "name") if (each := if_text(fields.get(key)))), None)
    mime_type = next(
        (
            each
            for key in ("mediaType", "mimeType", "mime_type")
            if (each := if_text(fields.get(key)))
        ),
        None,
    )
    raw = next(
        (fields[key] for key in ("raw", "bytes") if key in fields and fields[key] is not None), None
    )
    if raw is not None:
        data = _bytes(raw)
        return DataPart(data, mime_type or _FILE, name, _native(part))
    url = next((each for key in ("url", "uri") if (each := if_text(fields.get(key)))), "")
    if not url:
        raise HistoryError("a file has its bytes or a URL; this one has neither")
    return LinkPart(url, mime_type, name, _native(part))


def _bytes(raw: Any) -> bytes:
    if (data := decoded(raw)) is not None:
        return data
    if not isinstance(raw, str):
        raise HistoryError("the bytes of a file are base64; send them as a text")
    plain = raw.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except ValueError as error:
        raise HistoryError("the bytes of a file are no base64; encode them so") from error


def _native(part: Mapping[str, Any], *more: str) -> Native:
    """Fields of a part that its piece has none for."""
    left = rest(part, *(name for name in _READ if name not in more))
    return OWN.note({name: value for name, value in left.items() if value not in (None, "", {})})


def _named(name: str | None) -> dict[str, str]:
    return {"filename": name} if name else {}


def _json(data: bytes) -> tuple[Any] | None:
    try:
        return (json_bytes.decode(data),)
    except ValueError:
        return None
