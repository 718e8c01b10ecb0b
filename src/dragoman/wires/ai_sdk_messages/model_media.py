"""Files in model messages ↔ pieces: by their base64, by bytes as JSON has them, by URL, by a provider's id."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, cast

from dragoman.codec.json_values import if_object
from dragoman.codec.media import Media, data_url, decoded, from_url
from dragoman.content import file_type
from dragoman.message import DataPart, FilePart, LinkPart, Native
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.media import (
    carried_file,
    file_at,
    held_by,
    holder,
    type_of,
    unread,
    url_of,
    with_name,
    with_type,
)
from dragoman.wires.ai_sdk_messages.own import OWN, applied
from dragoman.wires.ai_sdk_messages.reading import Reading, fault

__all__ = ["KEY", "MIME", "dump_file", "load_file"]

KEY = "providerOptions"
MIME = {"model": "mediaType", "core": "mimeType"}
"""Dialect → its field of a file's type."""
_PNG = "image/png"
_BYTES = 2**26


def load_file(part: dict[str, Any], it: Reading, where: str) -> None:
    """A file, or an image."""
    is_image = part["type"] == "image"
    mime_type, field = part.get(MIME[it.dialect]), "image" if is_image else "data"
    form: dict[str, Any] = {"type": part["type"]}
    native: Native = None
    given = part.get(field)
    piece: Media | None = carried_file(part, KEY)
    if piece is None and isinstance(given, str):
        piece = _at(given, mime_type, is_image=is_image)
        form |= {"tag": "data-url"} if given.startswith("data:") else {}
    elif piece is None:
        piece, native, form = _tagged(given, mime_type, form, is_image=is_image)
    if piece is None:
        fault(f"{where}.{field} must be base64, bytes, a URL or a reference to a file")
    piece = with_type(with_name(piece, part.get("filename")), mime_type)
    if is_image == _is_image(piece, it.dialect):
        del form["type"]
    it.add(
        it.read(
            piece, part, lambda made: dump_file(made, it.dialect), "file", KEY, form, native or {}
        )
    )


def dump_file(piece: Media, dialect: str, version: str | None = None) -> dict[str, Any]:
    """The inverse."""
    form = OWN.form(piece.native) if piece.native else {}
    form = form if form.get("in", dialect) == dialect else {}
    fields, tag = unread(piece), form.get("tag")
    held: Any = b64encode(piece.data).decode() if isinstance(piece, DataPart) else url_of(piece)
    if isinstance(piece, DataPart):
        if "bytes" in form:
            held = _as_bytes(piece.data, form["bytes"])
        elif tag in ("data-url", "url"):
            held = data_url(piece)
    elif isinstance(piece, LinkPart) and decoded(held) is not None:
        fields["url"] = held
    provider = holder(piece) if isinstance(piece, FilePart) else None
    if provider is not None and dialect == "model" and (version in (None, "v7") or tag):
        held = (
            {"type": "reference", "reference": {provider: held}}
            if tag != "plain"
            else {provider: held}
        )
        fields.pop("id", None)
    elif tag in ("data", "url"):
        held = {"type": tag, tag: held}
    is_image = form["type"] == "image" if "type" in form else _is_image(piece, dialect)
    made: dict[str, Any] = (
        {"type": "image", "image": held} if is_image else {"type": "file", "data": held}
    )
    if piece.name is not None:
        made["filename"] = piece.name
    made[MIME[dialect]] = type_of(piece)
    if metadata := metadata_of(
        "reference" if isinstance(held, dict) else "file", piece.native, fields
    ):
        made[KEY] = metadata
    return applied(piece.native, made, dialect)


def _at(text: str, mime_type: Any, *, is_image: bool) -> Media:
    """A file by a text: base64, a URL, a provider's id."""
    if (data := decoded(text)) is None:
        return file_at(text)
    return DataPart(
        data, mime_type if isinstance(mime_type, str) else _PNG if is_image else file_type("", data)
    )


def _is_image(piece: Media, dialect: str) -> bool:
    """Whether a file is a part `image`, as ai 4 has them."""
    return dialect == "core" and type_of(piece).startswith("image/")


def _tagged(
    given: Any, mime_type: Any, form: dict[str, Any], *, is_image: bool
) -> tuple[Media | None, Native, dict[str, Any]]:
    """A file that is no string: what it is tagged as, a reference, or bytes."""
    fields = if_object(given)
    tag = fields.get("type")
    if (
        len(fields) == 2
        and tag in ("data", "url")
        and isinstance(text := fields.get(cast("str", tag)), str)
    ):
        piece = _at(text, mime_type, is_image=is_image) if tag == "data" else from_url(text)
        return piece, None, {**form, "tag": tag}
    reference = (
        if_object(fields.get("reference")) if len(fields) == 2 and tag == "reference" else fields
    )
    if len(reference) == 1 and all(isinstance(each, str) for each in reference.values()):
        provider, id_ = next(iter(reference.items()))
        return (
            FilePart(id_),
            held_by(provider),
            {**form, "tag": "reference" if tag == "reference" else "plain"},
        )
    data, as_ = _bytes_of(given)
    if data is None:
        return None, None, form
    found = mime_type if isinstance(mime_type, str) else file_type("", data)
    return DataPart(data, found), None, {**form, "bytes": as_}


def _bytes_of(given: Any) -> tuple[bytes | None, str]:
    """Bytes as JSON has them: of Node's `Buffer`, or of a `Uint8Array`, an object of numbers."""
    if isinstance(given, bytes):
        return given, "python"
    fields = if_object(given)
    listed: Any = (
        fields.get("data")
        if fields.keys() == {"type", "data"} and fields.get("type") == "Buffer"
        else None
    )
    as_ = "buffer"
    if listed is None and fields and list(fields) == [str(at) for at in range(len(fields))]:
        listed, as_ = list(fields.values()), "array"
    if not isinstance(listed, list) or len(cast("list[Any]", listed)) > _BYTES:
        return None, ""
    numbers = cast("list[Any]", listed)
    if not all(type(number) is int and 0 <= number < 256 for number in numbers):
        return None, ""
    return bytes(numbers), as_


def _as_bytes(data: bytes, as_: Any) -> Any:
    if as_ == "buffer":
        return {"type": "Buffer", "data": list(data)}
    return {str(at): number for at, number in enumerate(data)} if as_ == "array" else data
