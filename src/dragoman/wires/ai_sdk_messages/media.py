"""Files: parts of UI messages ↔ pieces."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.codec.json_values import if_object
from dragoman.codec.media import Media, data_url, from_url, guessed, plain_data
from dragoman.message import DataPart, FilePart, LinkPart
from dragoman.wires.ai_sdk_messages.carriage import metadata_of
from dragoman.wires.ai_sdk_messages.own import OURS, UI, applied
from dragoman.wires.ai_sdk_messages.reading import Reading, text_field

__all__ = [
    "OTHER",
    "carried_file",
    "with_name",
    "with_type",
    "dump_file",
    "file_at",
    "holder",
    "load_file",
    "type_of",
    "unread",
    "url_of",
]

OTHER = "application/octet-stream"
_HOLDERS = {
    "openai": "openai_responses",
    "azure": "openai_responses",
    "anthropic": "anthropic",
    "google": "google",
}
"""Provider that holds a file → the wire that knows its ids."""
_IDS = ("file-", "file_")
"""How the ids of files begin that stand where a URL would."""


def load_file(part: dict[str, Any], it: Reading, where: str) -> None:
    """A file."""
    it.opens()
    mime_type = part.get("mediaType")
    name = part.get("filename")
    reference = if_object(part.get("providerReference"))
    piece: Media
    if reference and all(isinstance(each, str) for each in reference.values()):
        provider, id_ = next(iter(reference.items()))
        piece = FilePart(id_, native=held_by(provider))
    else:
        piece = carried_file(part) or file_at(text_field(part, "url", where))
    piece = with_type(with_name(piece, name), mime_type)
    it.add(it.read(piece, part, dump_file, "file", extra=piece.native or {}))


def dump_file(piece: Media) -> dict[str, Any]:
    """The inverse."""
    fields, mime_type = unread(piece), type_of(piece)
    made: dict[str, Any] = {"type": "file", "mediaType": mime_type}
    if piece.name is not None:
        made["filename"] = piece.name
    made["url"] = url_of(piece)
    if isinstance(piece, FilePart) and (provider := holder(piece)) is not None:
        made["providerReference"] = {provider: piece.id}
        fields.pop("id", None)
    if metadata := metadata_of(
        "reference" if "providerReference" in made else "file", piece.native, fields
    ):
        made["providerMetadata"] = metadata
    return applied(piece.native, made, UI)


def file_at(url: str) -> Media:
    """What stands where a URL does: data, a provider's id of a file, or a URL."""
    if url.startswith(_IDS) and "/" not in url and ":" not in url:
        return FilePart(url)
    return plain_data(url) or from_url(url)


def carried_file(part: dict[str, Any], key: str = "providerMetadata") -> Media | None:
    """A file that its URL alone does not tell as what it is."""
    fields = if_object(if_object(if_object(part.get(key)).get(OURS)).get("fields"))
    if isinstance(id_ := fields.get("id"), str):
        return FilePart(id_)
    return LinkPart(url) if isinstance(url := fields.get("url"), str) else None


def unread(piece: Media) -> dict[str, Any]:
    """The fields of a file that are not read again from its URL and type."""
    if isinstance(piece, DataPart):
        return {}
    fields: dict[str, Any] = {} if piece.mime_type else {"mime_type": piece.mime_type}
    if isinstance(piece, FilePart) and not isinstance(file_at(piece.id), FilePart):
        fields["id"] = piece.id
    elif isinstance(piece, LinkPart) and not isinstance(file_at(piece.url), LinkPart):
        fields["url"] = piece.url
    return fields


def type_of(piece: Media) -> str:
    """The type of a file, which no part is without."""
    return piece.mime_type or (guessed(piece.url) if isinstance(piece, LinkPart) else None) or OTHER


def url_of(piece: Media) -> str:
    """The inverse."""
    return (
        data_url(piece)
        if isinstance(piece, DataPart)
        else piece.url
        if isinstance(piece, LinkPart)
        else piece.id
    )


def holder(piece: FilePart) -> str | None:
    """The provider that holds a file, by the family's name; `None`: it is not known."""
    return next((name for name, wire in _HOLDERS.items() if wire in (piece.native or {})), None)


def held_by(provider: str) -> dict[str, Any] | None:
    """The mark that a wire of a provider knows a file's id."""
    wire = _HOLDERS.get(provider)
    return {wire: {}} if wire else None


def with_name(piece: Media, name: Any) -> Media:
    """A file with a name, where that is one."""
    return msgspec.structs.replace(piece, name=name) if isinstance(name, str) else piece


def with_type(piece: Media, mime_type: Any) -> Media:
    """A file with a type, where that is one and its data says no other."""
    if isinstance(piece, DataPart) or not isinstance(mime_type, str):
        return piece
    return msgspec.structs.replace(piece, mime_type=mime_type)
