"""Media ↔ `inlineData` (bytes) and `fileData` (a URI). A file that Google holds has a URI too."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode, urlsafe_b64encode

from dragoman.codec.json_values import if_text
from dragoman.codec.media import (
    ELSEWHERE,
    Media,
    describe_as_text,
    guess_media_type,
    media_label,
    read_media_text,
)
from dragoman.codec.signature_check import name_part_type
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import DataPart, FilePart, LinkPart, Native
from dragoman.wires.google.keys import merged
from dragoman.wires.google.quirks import OWN
from dragoman.wires.google.tools import OutgoingContents

__all__ = ["dump_media", "load_file", "load_inline"]

_UPLOADS = "https://generativelanguage.googleapis.com/"
_OTHER = "application/octet-stream"
_TAKEN = re.compile(r"(image|audio|video|text)/|application/(pdf|json|xml|rtf)\b", re.IGNORECASE)
"""Types of the bytes that the API takes."""


def load_inline(inner: JsonMap, block_fields: JsonMap, form: Json) -> DataPart | None:
    """Converts an `inlineData` to its part; `None` where the data are no base64. The SDKs write
    base64 in either alphabet."""
    text, mime_type = inner.get("data"), inner.get("mimeType")
    if not isinstance(text, str) or not isinstance(mime_type, str):
        return None
    try:
        data = b64decode(text.translate({45: 43, 95: 47}))
    except ValueError:
        return None
    if b64encode(data).decode() != text:
        form["data"] = "urlsafe"
        if urlsafe_b64encode(data).decode() != text:
            return None
    return DataPart(
        data, mime_type, _name(inner), _native("inlineData", inner, block_fields, form, "data")
    )


def load_file(inner: JsonMap, block_fields: JsonMap, form: Json) -> LinkPart | FilePart | None:
    """Converts a `fileData` to its part: a file where Google holds it, else a link."""
    uri, mime_type = inner.get("fileUri"), inner.get("mimeType")
    if not isinstance(uri, str) or not isinstance(mime_type, str | None):
        return None
    if mime_type is None or "*" in mime_type:
        form["mimeType"] = inner.get("mimeType", "absent")
    elif mime_type == _OTHER and guess_media_type(uri) is None:
        # It is written so where the type is not known, which the API demands.
        mime_type = None
    part_type = FilePart if uri.startswith(_UPLOADS) else LinkPart
    return part_type(
        uri, mime_type, _name(inner), _native("fileData", inner, block_fields, form, "fileUri")
    )


def dump_media(part: Media, out: OutgoingContents, position: int, index: int) -> Json:
    """Converts a part to its fields of the wire; a text in its place, where the API can know
    nothing of it."""
    wire_fields = out.own(part, position, index)
    if isinstance(part, DataPart):
        block = _inline(part, out)
    else:
        block = _file(part)
    if block is not None:
        return merged(wire_fields, block)
    if read_media_text(part) is None:
        if isinstance(part, FilePart):
            why = ELSEWHERE
        else:
            why = f"the API takes no {part.mime_type}"
        out.lose(position, index, name_part_type(part), why, media_label(part))
    return {"text": describe_as_text(part)}


def _inline(part: DataPart, out: OutgoingContents) -> Json | None:
    """Returns the part with its bytes, or None if the target is known not to take files of this
    type."""
    if out.target is not None and not _TAKEN.match(part.mime_type):
        return None
    if OWN.form(part.native).get("data") == "urlsafe":
        encode = urlsafe_b64encode
    else:
        encode = b64encode
    return {
        "inlineData": {
            "mimeType": part.mime_type,
            "data": encode(part.data).decode(),
            **_display_name(part),
        }
    }


def _complete_type(mime_type: str | None, uri: str, noted_type: object) -> str:
    """Returns the MIME type to send: the one of the part, or a guess by the URI if that is missing
    or names a whole family and did not come so."""
    if mime_type is None or ("*" in mime_type and noted_type != mime_type):
        return guess_media_type(uri) or _OTHER
    return mime_type


def _file(part: LinkPart | FilePart) -> Json | None:
    """Returns the part by its URI, or None if another provider holds the file."""
    uri = part.id if isinstance(part, FilePart) else part.url
    if isinstance(part, FilePart) and "://" not in uri and not uri.startswith("files/"):
        return None
    form = OWN.form(part.native).get("mimeType", "")
    mime_type = part.mime_type
    if mime_type is None and form != "":
        return {
            "fileData": {
                "fileUri": uri,
                **_display_name(part),
                **({} if form == "absent" else {"mimeType": None}),
            }
        }
    mime_type = _complete_type(mime_type, uri, form)
    return {"fileData": {"fileUri": uri, "mimeType": mime_type, **_display_name(part)}}


def _name(inner: JsonMap) -> str | None:
    return if_text(inner.get("displayName")) or None


def _display_name(part: Media) -> dict[str, str]:
    return {"displayName": part.name} if part.name else {}


def _native(
    key: str, inner: JsonMap, block_fields: JsonMap, form: JsonMap, read_names: str
) -> Native:
    """Returns the native fields of a file: what its part says beyond the neutral fields."""
    further = {
        name: value
        for name, value in inner.items()
        if name not in (read_names, "mimeType") and (name != "displayName" or not value)
    }
    return OWN.note({**block_fields, key: further} if further else block_fields, form=form)
