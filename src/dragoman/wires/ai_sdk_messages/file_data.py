"""Files as ai 4 and Mastra have them: parts `file` with `data` (a data URL, a URL, a provider's id, base64, or bytes as JSON has them), and
attachments ↔ pieces."""

from __future__ import annotations

from base64 import b64encode
from typing import Any, Literal, cast

from dragoman.codec.json_values import if_object
from dragoman.codec.media import Media, decoded
from dragoman.content import file_type
from dragoman.message import DataPart, FilePart, LinkPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.dialect import ATTACHMENT
from dragoman.wires.ai_sdk_messages.media import (
    file_at,
    holder,
    type_of,
    url_of,
    with_name,
    with_type,
)
from dragoman.wires.ai_sdk_messages.own import OURS, OWN, applied
from dragoman.wires.ai_sdk_messages.reading import Reading, load_mark

__all__ = ["bytes_of", "dump_attachment", "dump_data", "load_attachment", "load_data"]

_KEY = "providerMetadata"
_Form = Literal["base64", "numbers", "buffer", "bytes"]


def load_data(part: dict[str, Any], it: Reading, where: str) -> None:
    """A file. One whose data nobody could read is a mark."""
    found = _load(part.get("data"), part.get("mimeType"))
    if found is None:
        load_mark(part, it, where)
        return
    piece, form = found
    piece = with_name(piece, part.get("filename"))
    ours = if_object(if_object(part.get(_KEY)).get(OURS))
    if isinstance(piece, LinkPart) and isinstance(if_object(ours.get("fields")).get("id"), str):
        piece = FilePart(piece.url, piece.mime_type, piece.name)
    it.opens()
    dialect = it.dialect
    it.add(
        it.read(
            piece,
            part,
            lambda made: dump_data(made, dialect),
            "file",
            form={"data": form} if form else {},
        )
    )


def dump_data(piece: Media, dialect: str) -> dict[str, Any]:
    """The inverse."""
    fields: dict[str, Any] = {} if piece.mime_type is not None else {"mime_type": None}
    made: dict[str, Any] = {"type": "file", "mimeType": type_of(piece), "data": _dump(piece)}
    if piece.name is not None:
        made["filename"] = piece.name
    if isinstance(piece, FilePart) and (
        holder(piece) is not None or not piece.id.startswith("file-")
    ):
        fields["id"] = piece.id
    if metadata := metadata_of("file", piece.native, fields):
        made[_KEY] = metadata
    return applied(piece.native, made, dialect) if piece.native else made


def load_attachment(given: Any, it: Reading, where: str) -> bool:
    """An attachment of a message, a file with a URL; whether it is one."""
    fields = if_object(given)
    if not isinstance(fields.get("url"), str):
        return False
    piece = with_type(
        with_name(file_at(fields["url"]), fields.get("name")), fields.get("contentType")
    )
    dialect = it.dialect
    it.opens()
    it.add(
        it.read(piece, fields, lambda made: dump_attachment(made, dialect), form={"as": ATTACHMENT})
    )
    del where
    return True


def dump_attachment(piece: Media, dialect: str) -> dict[str, Any]:
    """The inverse."""
    made: dict[str, Any] = {} if piece.name is None else {"name": piece.name}
    made |= {"contentType": type_of(piece), "url": url_of(piece)}
    return applied(piece.native, made, dialect) if piece.native else made


def bytes_of(value: Any) -> tuple[bytes, _Form] | None:
    """Bytes as JSON has them: base64, an object or a list of numbers, Node's buffer. `None`: they are none."""
    if isinstance(value, bytes):
        return value, "bytes"
    if isinstance(value, str):
        data = decoded(value)
        return None if data is None else (data, "base64")
    fields = if_object(value)
    try:
        if (
            fields.get("type") == "Buffer"
            and len(fields) == 2
            and isinstance(fields.get("data"), list)
        ):
            return bytes(cast("list[int]", fields["data"])), "buffer"
        if fields and all(key == str(at) for at, key in enumerate(fields)):
            return bytes(cast("list[int]", [*fields.values()])), "numbers"
    except (TypeError, ValueError):
        pass
    return None


def _load(data: Any, mime_type: Any) -> tuple[Media, str] | None:
    type_ = mime_type if isinstance(mime_type, str) and mime_type else None
    if isinstance(data, str) and (_is_url(data) or (found := bytes_of(data)) is None):
        return (with_type(file_at(data), type_), "") if data else None
    found = bytes_of(data)
    if found is None:
        return None
    return DataPart(found[0], type_ or file_type("", found[0])), found[1]


def _dump(piece: Media) -> Any:
    form = OWN.form(piece.native).get("data") if piece.native else None
    if not isinstance(piece, DataPart) or form is None:
        return url_of(piece)
    if form == "buffer":
        return {"type": "Buffer", "data": [*piece.data]}
    if form == "numbers":
        return {str(at): number for at, number in enumerate(piece.data)}
    return piece.data if form == "bytes" else b64encode(piece.data).decode()


def _is_url(data: str) -> bool:
    """Whether a text is a URL, a data URL or a provider's id rather than base64."""
    return ":" in data[:12] or data.startswith(("//", "file-", "file_", "./", "../"))
