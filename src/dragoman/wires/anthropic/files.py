"""Files that tools of the provider's made or fetched: those that it holds by their id, those in its
answer by their bytes."""

from __future__ import annotations

from urllib.parse import quote

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.message import Content, DataPart, FilePart, ToolResultPart
from dragoman.request import Download, HttpRequest
from dragoman.wires.anthropic.content import load_media
from dragoman.wires.anthropic.quirks import NAME, OWN

__all__ = ["dump_download", "load_files"]

_BETA = {"anthropic-beta": "files-api-2025-04-14"}


def load_files(piece: Content) -> list[DataPart | FilePart]:
    """Returns the files in the result of a tool that Anthropic ran: what its code wrote, and a
    document that it fetched."""
    if (
        not isinstance(piece, ToolResultPart)
        or piece.run_by != "provider"
        or not OWN.is_ours(piece.native)
    ):
        return []
    result = if_object(piece.result)
    file_ids = [
        if_text(if_object(entry).get("file_id")) for entry in if_list(result.get("content"))
    ]
    fetched = load_media(if_object(result.get("content")))
    # The empty note marks the file as this provider's: no other can read its id.
    files: list[DataPart | FilePart] = [FilePart(id_, native={NAME: {}}) for id_ in file_ids if id_]
    # Code tools list what they wrote; a fetch has one object in the same field.
    if isinstance(fetched, DataPart):
        files.append(fetched)
    return files


def dump_download(part: FilePart) -> Download:
    """Returns the Anthropic requests for a file that the provider holds."""
    path = f"/files/{quote(part.id, safe='')}"
    return Download(
        HttpRequest(f"{path}/content", _BETA, method="GET"), HttpRequest(path, _BETA, method="GET")
    )
