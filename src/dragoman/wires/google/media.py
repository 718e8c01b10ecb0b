"""Media ↔ `inlineData` (bytes) and `fileData` (a URI). A file that Google holds is told by its URI too."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

from dragoman.codec.media import Media, guessed
from dragoman.message import DataPart, FilePart, LinkPart, Native
from dragoman.wires.google.quirks import OWN

__all__ = ["dump_media", "is_taken", "load_file", "load_inline"]

_UPLOADS = "https://generativelanguage.googleapis.com/"
_OTHER = "application/octet-stream"
_TAKEN = re.compile(r"(image|audio|video|text)/|application/(pdf|json|xml|rtf)\b", re.IGNORECASE)
"""Types of the bytes that the API takes."""


def load_inline(inner: Mapping[str, Any], own: Mapping[str, Any], told: dict[str, Any]) -> DataPart | None:
    """An `inlineData` → its part; `None` where the data are no base64. The SDKs write base64 in either alphabet."""
    text, mime_type = inner.get("data"), inner.get("mimeType")
    if not isinstance(text, str) or not isinstance(mime_type, str):
        return None
    try:
        data = b64decode(text.translate({45: 43, 95: 47}))
    except ValueError:
        return None
    if b64encode(data).decode() != text:
        told["data"] = "urlsafe"
        if urlsafe_b64encode(data).decode() != text:
            return None
    return DataPart(data, mime_type, _name(inner), _native("inlineData", inner, own, told, "data"))


def load_file(inner: Mapping[str, Any], own: Mapping[str, Any], told: dict[str, Any]) -> LinkPart | FilePart | None:
    """A `fileData` → its part: a file where Google holds it, else a link."""
    uri, mime_type = inner.get("fileUri"), inner.get("mimeType")
    if not isinstance(uri, str) or not isinstance(mime_type, str | None):
        return None
    if mime_type is None or "*" in mime_type:
        told["mimeType"] = inner.get("mimeType", "absent")
    kind = FilePart if uri.startswith(_UPLOADS) else LinkPart
    return kind(uri, mime_type, _name(inner), _native("fileData", inner, own, told, "fileUri"))


def dump_media(part: Media) -> dict[str, Any] | None:
    """A part → its fields of the wire; `None` where the API can know nothing of it (a file that another provider holds)."""
    name = {"displayName": part.name} if part.name else {}
    if isinstance(part, DataPart):
        encode = urlsafe_b64encode if OWN.form(part.native).get("data") == "urlsafe" else b64encode
        return {"inlineData": {"mimeType": part.mime_type, "data": encode(part.data).decode(), **name}}
    if isinstance(part, FilePart):
        uri = part.id
        if "://" not in uri and not uri.startswith("files/"):
            return None
    else:
        uri = part.url
    told = OWN.form(part.native).get("mimeType", "")
    mime_type = part.mime_type
    if mime_type is None and told != "":
        return {"fileData": {"fileUri": uri, **name, **({} if told == "absent" else {"mimeType": None})}}
    if mime_type is None or ("*" in mime_type and told != mime_type):
        mime_type = guessed(uri) or _OTHER
    return {"fileData": {"fileUri": uri, "mimeType": mime_type, **name}}


def is_taken(part: Media) -> bool:
    """Whether the API takes files of this type, as far as that is known."""
    return not isinstance(part, DataPart) or _TAKEN.match(part.mime_type) is not None


def _name(inner: Mapping[str, Any]) -> str | None:
    name = inner.get("displayName")
    return name if isinstance(name, str) and name else None


def _native(key: str, inner: Mapping[str, Any], own: Mapping[str, Any], told: Mapping[str, Any], known: str) -> Native:
    rest = {
        name: value
        for name, value in inner.items()
        if name not in (known, "mimeType") and (name != "displayName" or not value)
    }
    return OWN.note({**own, key: rest} if rest else own, form=told)
