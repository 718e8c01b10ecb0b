"""Finds files that tools of the provider's made: those that a text cites, in a container or beside
it."""

from __future__ import annotations

from urllib.parse import quote

from dragoman.codec.json_values import if_objects, if_text
from dragoman.message import Content, DataPart, FilePart, TextPart
from dragoman.request import Download, HttpRequest
from dragoman.wires.openai_responses.quirks import NAME, OWN

__all__ = ["dump_download", "load_files"]

_MADE = ("container_file_citation", "file_path")
"""Types of the annotations that cite a file which was made. Others cite what was searched."""


def load_files(piece: Content) -> list[DataPart | FilePart]:
    """Returns the files that a Responses text cites as made for it, each once."""
    if not isinstance(piece, TextPart):
        return []
    files: dict[str, DataPart | FilePart] = {}
    for annotation in if_objects(OWN.fields(piece.native).get("annotations")):
        file_id = if_text(annotation.get("file_id"))
        if annotation.get("type") not in _MADE or not file_id or file_id in files:
            continue
        container = if_text(annotation.get("container_id"))
        fields = {"container_id": container} if container else {}
        name = if_text(annotation.get("filename")) or None
        files[file_id] = FilePart(file_id, None, name, {NAME: fields})
    return list(files.values())


def dump_download(part: FilePart) -> Download:
    """Returns the Responses requests that fetch a file from the provider."""
    path = f"/files/{quote(part.id, safe='', errors='replace')}"
    container = if_text(OWN.fields(part.native).get("container_id"))
    if not container:
        content = HttpRequest(f"{path}/content", method="GET")
        return Download(content, HttpRequest(path, method="GET"))
    folder = f"/containers/{quote(container, safe='', errors='replace')}"
    return Download(HttpRequest(f"{folder}{path}/content", method="GET"))
