"""Reads and writes the output of a tool result: a JSON value or a content of texts and files, and the
output of calls that failed or were denied."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.codec.json_values import if_list, if_object, if_text, text_or_json
from dragoman.codec.media import decode_base64
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolCallPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.notes import (
    OWN,
    UI,
    Fields,
    Part,
    Parts,
    note,
    present,
    restore,
    text_in,
)

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
"""Type of an output with texts and files."""
DENIED = "denied: somebody decided that this call is not to be run"
_Item = TextPart | DataPart | LinkPart | FilePart
_DATA = ("media", "image-data", "file-data")
_URLS = ("image-url", "file-url")
_IDS = ("image-file-id", "file-id")


def load_content(value: Any, dialect: str) -> tuple[_Item, ...] | None:
    """Returns the AI SDK items of a tool's content as parts, or None if one of them is unknown."""
    parts: list[_Item] = []
    for item in if_list(value):
        fields = if_object(item)
        part = _load_item(fields)
        if part is None:
            return None
        # What ai 5 had for all kinds of data is written so again, in any later release.
        version, form = None, {}
        if fields.get("type") == "media":
            version, form = "v5", {"type": "media"}
        native = note(fields, _dump_item(part, version), dialect, part.native, form)
        parts.append(msgspec.structs.replace(part, native=native))
    return tuple(parts) or None


def as_result(value: Any, dialect: str = UI) -> Any:
    """Returns the tool result in an AI SDK tool output: a JSON value, or parts for a content of
    known items."""
    fields = if_object(value)
    # A tool may return an object with a field `type` of its own: only exactly this shape is a
    # content.
    if len(fields) != 2 or fields.get("type") != CONTENT:
        return value
    parts = load_content(fields.get("value"), dialect)
    return value if parts is None else parts


def dump_content(parts: Sequence[_Item], dialect: str, version: str | None = None) -> Parts:
    """Returns parts as the AI SDK items of a content. The inverse of `load_content`."""
    items: Parts = []
    for part in parts:
        release = version
        if version is None and OWN.form(part.native).get("type") == "media":
            release = "v5"
        items.append(restore(part.native, _dump_item(part, release), dialect))
    return items


def plain_output(result: ToolResultPart, dialect: str = UI) -> Any:
    """Returns a tool result as the AI SDK's output, a JSON value. Parts become a content, as in
    model messages."""
    if not result.is_content:
        return result.result
    return {"type": CONTENT, "value": dump_content(result.result, dialect)}


def _load_item(fields: Fields) -> _Item | None:
    """Returns an AI SDK item of a content as a part, or None if it is unknown."""
    item_type = fields.get("type")
    if item_type == "text":
        text = text_in(fields, "text")
        return TextPart(text) if text else None
    name, mime_type = text_in(fields, "filename"), if_text(fields.get("mediaType"))
    if item_type in _DATA:
        data = decode_base64(fields.get("data"))
        if mime_type and data is not None:
            return DataPart(data, mime_type, name)
        return None
    if item_type in _URLS:
        url = text_in(fields, "url")
        if url is None:
            return None
        return LinkPart(url, mime_type or None, name)
    if item_type in _IDS:
        id_ = text_in(fields, "fileId")
        if id_ is None:
            return None
        return FilePart(id_, mime_type or None, name)
    return None


def _dump_item(part: _Item, version: str | None) -> Part:
    """Returns a part as an AI SDK item of a content. `version` v5 has one type for all data."""
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    is_image = (part.mime_type or "").startswith("image/")
    about = present(mediaType=part.mime_type or None, filename=part.name)
    if isinstance(part, DataPart):
        data = b64encode(part.data).decode()
        if version == "v5":
            return {"type": "media", "data": data, "mediaType": part.mime_type}
        item_type = "file-data"
        if is_image:
            item_type = "image-data"
        return {
            "type": item_type,
            "data": data,
            **about,
            "mediaType": part.mime_type,
        }
    if isinstance(part, LinkPart):
        return {
            "type": "image-url" if is_image else "file-url",
            "url": part.url,
            **about,
        }
    return {
        "type": "image-file-id" if is_image else "file-id",
        "fileId": part.id,
        **about,
    }


def dump_failure(result: ToolResultPart) -> tuple[Part, Part]:
    """Returns the AI SDK output fields for a failed or denied tool result, and its fields that a
    reader would miss."""
    value: Part = {"result": msgspec.to_builtins(result.result)}
    # A part has a text or a reason only; any other value of the result is carried.
    if result.denied:
        is_read = denial(denial_reason(result)) == (result.result, result.is_error)
        fields = {"state": "output-denied"}
        value["is_error"] = result.is_error
    else:
        is_read = isinstance(result.result, str)
        fields = {"state": "output-error", "errorText": text_or_json(plain_output(result))}
        value["is_content"] = result.is_content
    return fields, {} if is_read else value


def unread_result(result: ToolResultPart, call: ToolCallPart) -> Part:
    """Returns the fields of a tool output's result that differ from its call."""
    fields: Part = {}
    if result.name != call.name:
        fields["name"] = result.name
    if result.run_by != call.run_by:
        fields["run_by"] = result.run_by
    return fields


def denial(reason: Any) -> tuple[Any, bool]:
    """Returns the tool output that AI SDK messages have for a denied call, and whether it is an
    error, which it always is."""
    text = DENIED
    if reason:
        text = f"denied: {reason}"
    return {"error": text}, True


def denial_reason(result: ToolResultPart) -> str | None:
    """Returns the reason in an AI SDK tool output for which a call was denied, or None. The inverse
    of `denial`."""
    text = if_text(if_object(result.result).get("error"))
    has_reason = text != DENIED and text.startswith("denied: ")
    if has_reason:
        return text.removeprefix("denied: ")
    return None


def refusal(id_: str, reason: Any) -> Part:
    """Returns the approval of a denied call of which only the id and reason are known."""
    return present(id=id_, approved=False, reason=reason or None)
