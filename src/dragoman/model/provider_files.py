"""Files that models and their providers' tools made: lists them and downloads them."""

from __future__ import annotations

from collections.abc import Iterable
from mimetypes import guess_type

import msgspec

from dragoman import wires
from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.marks import list_fetched
from dragoman.errors import SettingsError
from dragoman.json_bytes import Json
from dragoman.message import NOTES, Content, DataPart, FilePart, Message, Role
from dragoman.model.access import Access, ModelRoute
from dragoman.providers.base_url import join_url
from dragoman.request import HttpRequest

__all__ = ["download", "list_files"]

_UNKNOWN_TYPE = "application/octet-stream"


def list_files(messages: Iterable[Message]) -> list[DataPart | FilePart]:
    """Returns the provider's files in the model's messages, in order: those it sent and those its
    provider's tools made or fetched. A file that was downloaded already is listed by its bytes
    alone."""
    messages = [message for message in messages if message.role is Role.MODEL]
    pieces = [piece for message in messages for piece in message.content]
    fetched = list_fetched(messages)
    files: list[DataPart | FilePart] = []
    for piece in pieces:
        if isinstance(piece, (DataPart, FilePart)):
            files.append(piece)
            continue
        for name in _wire_names(piece):
            if (wire := _find_file_wire(name)) is not None:
                files += wire.load_files(piece)
    return [file for file in files if not isinstance(file, FilePart) or file.id not in fetched]


def _wire_names(piece: Content) -> list[str]:
    """Returns the names of the wires that a piece came through."""
    return list(dict.fromkeys(name.removesuffix(NOTES) for name in piece.native or ()))


async def download(access: Access, part: FilePart) -> DataPart:
    """Downloads a file that the provider stores. Returns its bytes, with the reported name and
    media type or a guess.

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
    name, mime_type = part.name, part.mime_type
    if download.about is not None:
        about = await _fetch_about(access, download.about, route)
        # The route's key was read for the first request: a key function is asked again.
        route = None
        name = name or if_text(about.get("filename")) or None
        mime_type = if_text(about.get("mime_type")) or mime_type
    headers, data = await access.fetch(
        msgspec.structs.replace(download.content, path=join_url(base_url, download.content.path)),
        route,
    )
    if not mime_type or mime_type.endswith("/*"):
        declared = headers.get("content-type", "").partition(";")[0].strip()
        mime_type = guess_type(name or "")[0] or declared or _UNKNOWN_TYPE
    return DataPart(data, mime_type, name)


async def _fetch_about(access: Access, request: HttpRequest, route: ModelRoute) -> Json:
    """Returns what the provider says about a file that it stores; empty if that is no JSON
    object."""
    url = join_url(route.base_url, request.path)
    _, body = await access.fetch(msgspec.structs.replace(request, path=url), route)
    try:
        return if_object(msgspec.json.decode(body))
    except (msgspec.DecodeError, UnicodeError):
        return {}


def _find_file_wire(name: str) -> wires.FileWire | None:
    """Returns the wire of that name if its providers store files, otherwise None."""
    if name not in wires.names():
        return None
    wire = wires.get(name)
    return wire if isinstance(wire, wires.FileWire) else None
