"""Files that models and their providers' tools made: which there are, and their bytes where the
provider holds them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from mimetypes import guess_type

import msgspec

from dragoman import wires
from dragoman.codec.json_values import if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json
from dragoman.message import NOTES, Content, DataPart, FilePart, Message, Role
from dragoman.model.access import Access, ModelRoute
from dragoman.providers.address import join_url

__all__ = ["download", "list_files"]

_UNKNOWN_TYPE = "application/octet-stream"


def list_files(messages: Iterable[Message]) -> list[DataPart | FilePart]:
    """The files in the model's messages, in order: what the model said, what its provider's tools
    made or fetched."""
    pieces = [
        piece for message in messages if message.role is Role.MODEL for piece in message.content
    ]
    holders = {
        name: _find_file_wire(name)
        for name in {name for piece in pieces for name in _wire_names(piece)}
    }
    files: list[DataPart | FilePart] = []
    for piece in pieces:
        if isinstance(piece, (DataPart, FilePart)):
            files.append(piece)
        else:
            for name in _wire_names(piece):
                holder = holders[name]
                files += [] if holder is None else holder.load_files(piece)
    return files


def _wire_names(piece: Content) -> list[str]:
    """The wires that a piece came through."""
    return list(dict.fromkeys(name.removesuffix(NOTES) for name in piece.native or ()))


async def download(access: Access, part: FilePart) -> DataPart:
    """A file that the provider holds → its bytes, with the name and media type that are told of it,
    else guessed.

    Raises:
        SettingsError: the file is another provider's, or the provider holds none.
        ProviderError: it refused.
    """
    provider = access.provider
    holder = _find_file_wire(provider.wire)
    if holder is None:
        raise SettingsError(
            f"{provider.display_name} provider has no files to download", provider=provider.name
        )
    if (names := _wire_names(part)) and provider.wire not in names:
        raise SettingsError(
            f"file {part.id} is held by a provider of the wire {', '.join(names)}, not by {provider.display_name}: "
            "pass the model that made it",
            provider=provider.name,
        )
    route: ModelRoute | None = await access.route(provider.chat_model or "")
    base_url = route.base_url
    download = holder.dump_download(part)
    name, mime_type, about = part.name, part.mime_type, Json()
    if download.about is not None:
        _, body = await access.fetch(
            msgspec.structs.replace(download.about, path=join_url(base_url, download.about.path)),
            route,
        )
        # its key was for the first request
        route = None
        with suppress(msgspec.DecodeError, UnicodeError):
            about = if_object(msgspec.json.decode(body))
        name = name or if_text(about.get("filename")) or None
        mime_type = if_text(about.get("mime_type")) or mime_type
    headers, data = await access.fetch(
        msgspec.structs.replace(download.content, path=join_url(base_url, download.content.path)),
        route,
    )
    if not mime_type or mime_type.endswith("/*"):
        declared = headers.get("content-type", "").partition(";")[0].strip()
        mime_type = (guess_type(name)[0] if name else None) or declared or _UNKNOWN_TYPE
    return DataPart(data, mime_type, name)


def _find_file_wire(name: str) -> wires.FileWire | None:
    """The wire of that name, if its providers hold files."""
    wire = wires.get(name) if name in wires.names() else None
    return wire if isinstance(wire, wires.FileWire) else None
