"""Files that tools of the provider's made and it holds: those that a text cites, in a container or
beside it."""

from __future__ import annotations

from urllib.parse import quote

from dragoman.codec.json_values import if_objects, if_text
from dragoman.message import Content, DataPart, FilePart, TextPart
from dragoman.request import Download, HttpRequest
from dragoman.wires.openai_responses.quirks import NAME, OWN

__all__ = ["dump_download", "load_files"]

_MADE = ("container_file_citation", "file_path")
"""Types of the annotations that cite a file which was made; others cite what was searched."""


def load_files(piece: Content) -> list[DataPart | FilePart]:
    """The files that a text cites as made for it, each once."""
    if not isinstance(piece, TextPart):
        return []
    found: dict[str, DataPart | FilePart] = {}
    for one in if_objects(OWN.fields(piece.native).get("annotations")):
        if one.get("type") in _MADE and (id_ := if_text(one.get("file_id"))):
            container = if_text(one.get("container_id"))
            fields = {"container_id": container} if container else {}
            found.setdefault(
                id_, FilePart(id_, None, if_text(one.get("filename")) or None, {NAME: fields})
            )
    return list(found.values())


def dump_download(part: FilePart) -> Download:
    """How the provider is asked for a file that it holds."""
    container = if_text(OWN.fields(part.native).get("container_id"))
    path = f"/files/{quote(part.id, safe='', errors='replace')}"
    if container:
        return Download(
            HttpRequest(
                f"/containers/{quote(container, safe='', errors='replace')}{path}/content",
                method="GET",
            )
        )
    return Download(HttpRequest(f"{path}/content", method="GET"), HttpRequest(path, method="GET"))
