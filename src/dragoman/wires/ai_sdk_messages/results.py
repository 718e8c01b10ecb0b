"""What a tool returned: texts and files as items of a content, and calls that failed or were refused."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, text_or_json
from dragoman.codec.media import decoded
from dragoman.message import (
    DataPart,
    FilePart,
    LinkPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.ai_sdk_messages.own import OWN, UI, note, restore

__all__ = [
    "CONTENT",
    "as_result",
    "denial",
    "denial_reason",
    "dump_content",
    "dump_failure",
    "load_content",
    "plain_output",
    "refusal",
    "unread_result",
]

CONTENT = "content"
"""Type of an output that is texts and files."""
DENIED = "denied: somebody decided that this call is not to be run"
_Item = TextPart | DataPart | LinkPart | FilePart
_DATA = ("media", "image-data", "file-data")
_URLS = ("image-url", "file-url")
_IDS = ("image-file-id", "file-id")


def load_content(value: Any, dialect: str) -> tuple[_Item, ...] | None:
    """Returns the items of a content as parts, or None if one of them is unknown."""
    parts: list[_Item] = []
    for item in if_list(value):
        fields = if_object(item)
        part = _load_item(fields)
        if part is None:
            return None
        is_media = fields.get("type") == "media"
        made = _dump_item(part, "v5" if is_media else None)
        form = {"type": "media"} if is_media else {}
        native = note(fields, made, dialect, part.native, form)
        parts.append(msgspec.structs.replace(part, native=native))
    return tuple(parts) or None


def as_result(value: Any, dialect: str = UI) -> Any:
    """Returns what a tool returned: a JSON value, or parts if it is a content of known items."""
    fields = if_object(value)
    if len(fields) != 2 or fields.get("type") != CONTENT:
        return value
    parts = load_content(fields.get("value"), dialect)
    return value if parts is None else parts


def dump_content(
    parts: Sequence[_Item], dialect: str, version: str | None = None
) -> list[dict[str, Any]]:
    """Returns parts as the items of a content. The inverse of `load_content`."""
    items: list[dict[str, Any]] = []
    for part in parts:
        is_media = OWN.form(part.native).get("type") == "media" if part.native else False
        made = _dump_item(part, "v5" if is_media and version is None else version)
        items.append(restore(part.native, made, dialect))
    return items


def plain_output(result: ToolResultPart, dialect: str = UI) -> Any:
    """Returns a result as a JSON value; parts become a content, as in the family's model messages."""
    if not result.is_content:
        return result.result
    return {"type": CONTENT, "value": dump_content(result.result, dialect)}


def _load_item(fields: Mapping[str, Any]) -> _Item | None:
    kind, mime_type = fields.get("type"), if_text(fields.get("mediaType"))
    name = fields.get("filename") if isinstance(fields.get("filename"), str) else None
    if kind == "text":
        text = if_text(fields.get("text"))
        return TextPart(text) if text else None
    if kind in _DATA:
        data = decoded(fields.get("data"))
        return DataPart(data, mime_type, name) if data is not None and mime_type else None
    if kind in _URLS and isinstance(fields.get("url"), str):
        return LinkPart(fields["url"], mime_type or None, name)
    if kind in _IDS and isinstance(fields.get("fileId"), str):
        return FilePart(fields["fileId"], mime_type or None, name)
    return None


def _dump_item(part: _Item, version: str | None) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    kind = "image" if (part.mime_type or "").startswith("image/") else "file"
    name = {"filename": part.name} if part.name is not None else {}
    if isinstance(part, DataPart):
        held = {"data": b64encode(part.data).decode(), "mediaType": part.mime_type}
        if version == "v5":
            return {"type": "media", **held}
        return {"type": f"{kind}-data", **held, **name}
    mime = {"mediaType": part.mime_type} if part.mime_type else {}
    if isinstance(part, LinkPart):
        return {"type": f"{kind}-url", "url": part.url, **mime, **name}
    type_ = "image-file-id" if kind == "image" else "file-id"
    return {"type": type_, "fileId": part.id, **mime, **name}


def dump_failure(result: ToolResultPart) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the fields of a part for a result that failed or was refused, and the fields of the result that nobody reads from them."""
    value = {"result": msgspec.to_builtins(result.result)}
    if result.denied:
        is_read = denial(denial_reason(result)) == (result.result, result.is_error)
        return {"state": "output-denied"}, {} if is_read else {**value, "is_error": result.is_error}
    is_read = isinstance(result.result, str)
    unread = {} if is_read else {**value, "is_content": result.is_content}
    return {"state": "output-error", "errorText": text_or_json(plain_output(result))}, unread


def unread_result(result: ToolResultPart, call: ToolCallPart) -> dict[str, Any]:
    """Returns the fields of a result that differ from those of its call."""
    fields: dict[str, Any] = {}
    if result.name != call.name:
        fields["name"] = result.name
    if result.run_by != call.run_by:
        fields["run_by"] = result.run_by
    return fields


def denial(reason: Any) -> tuple[Any, bool]:
    """Returns what the model is told of a call that was refused, and that it is an error."""
    return {"error": f"denied: {reason}" if reason else DENIED}, True


def denial_reason(result: ToolResultPart) -> str | None:
    """Returns the reason for which a call was refused, or None where none was given. The inverse of `denial`."""
    text = if_text(if_object(result.result).get("error"))
    has_reason = text != DENIED and text.startswith("denied: ")
    return text.removeprefix("denied: ") if has_reason else None


def refusal(id_: str, reason: Any) -> dict[str, Any]:
    """Returns the approval of a refused call of which nothing else is known."""
    return {"id": id_, "approved": False, **({"reason": reason} if reason else {})}
