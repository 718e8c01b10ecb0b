"""What a tool returned, where it is texts and files: items of a content ↔ parts."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.codec.media import decoded
from dragoman.message import DataPart, FilePart, LinkPart, TextPart, ToolResultPart
from dragoman.wires.ai_sdk_messages.own import OWN, UI, applied, noted

__all__ = ["CONTENT", "as_result", "dump_content", "load_content", "plain_output"]

CONTENT = "content"
"""Type of an output that is texts and files."""
_Item = TextPart | DataPart | LinkPart | FilePart
_DATA = ("media", "image-data", "file-data")
_URLS = ("image-url", "file-url")
_IDS = ("image-file-id", "file-id")


def load_content(value: Any, dialect: str) -> tuple[_Item, ...] | None:
    """The items of a content → parts; `None`: one of them is none that is known."""
    parts: list[_Item] = []
    for item in if_list(value):
        fields = if_object(item)
        part = _load(fields)
        if part is None:
            return None
        made = _dump(part, "v5" if fields.get("type") == "media" else None)
        native = noted(
            fields,
            made,
            dialect,
            part.native,
            {"type": "media"} if fields.get("type") == "media" else {},
        )
        parts.append(
            cast("Any", type(part))(
                **{
                    **{name: getattr(part, name) for name in part.__struct_fields__},
                    "native": native,
                }
            )
        )
    return tuple(parts) or None


def as_result(value: Any, dialect: str = UI) -> Any:
    """What a tool returned, as JSON has it → a value of JSON, or parts."""
    fields = if_object(value)
    if len(fields) != 2 or fields.get("type") != CONTENT:
        return value
    parts = load_content(fields.get("value"), dialect)
    return value if parts is None else parts


def dump_content(
    parts: Sequence[_Item], dialect: str, version: str | None = None
) -> list[dict[str, Any]]:
    """The inverse."""
    out: list[dict[str, Any]] = []
    for part in parts:
        read = OWN.form(part.native).get("type") == "media" if part.native else False
        out.append(
            applied(
                part.native, _dump(part, "v5" if read and version is None else version), dialect
            )
        )
    return out


def plain_output(result: ToolResultPart, dialect: str = UI) -> Any:
    """A result as a value of JSON; parts as the model messages of the family have them."""
    return (
        {"type": CONTENT, "value": dump_content(result.result, dialect)}
        if result.is_content
        else result.result
    )


def _load(fields: Mapping[str, Any]) -> _Item | None:
    kind, mime_type = fields.get("type"), if_text(fields.get("mediaType"))
    name = fields.get("filename") if isinstance(fields.get("filename"), str) else None
    if kind == "text":
        return (
            TextPart(fields["text"])
            if isinstance(fields.get("text"), str) and fields["text"]
            else None
        )
    if kind in _DATA:
        data = decoded(fields.get("data"))
        return DataPart(data, mime_type, name) if data is not None and mime_type else None
    if kind in _URLS and isinstance(fields.get("url"), str):
        return LinkPart(fields["url"], mime_type or None, name)
    if kind in _IDS and isinstance(fields.get("fileId"), str):
        return FilePart(fields["fileId"], mime_type or None, name)
    return None


def _dump(part: _Item, version: str | None) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    kind = "image" if (part.mime_type or "").startswith("image/") else "file"
    name = {"filename": part.name} if part.name is not None else {}
    if isinstance(part, DataPart):
        data = b64encode(part.data).decode()
        if version == "v5":
            return {"type": "media", "data": data, "mediaType": part.mime_type}
        return {"type": f"{kind}-data", "data": data, "mediaType": part.mime_type, **name}
    mime = {"mediaType": part.mime_type} if part.mime_type else {}
    if isinstance(part, LinkPart):
        return {"type": f"{kind}-url", "url": part.url, **mime, **name}
    return {
        "type": "image-file-id" if kind == "image" else "file-id",
        "fileId": part.id,
        **mime,
        **name,
    }
