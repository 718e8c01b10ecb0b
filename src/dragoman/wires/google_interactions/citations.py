"""Reads and writes the sources of a text: its block's `annotations`. Places count bytes of the
text."""

from __future__ import annotations

from typing import Any

from dragoman.codec.citations import (
    MOST,
    count_bytes,
    count_characters,
    find_span,
    keep_named,
    read_span,
)
from dragoman.codec.json_values import drop_empty, first_text, if_objects
from dragoman.json_bytes import Json
from dragoman.message import Citation, TextPart

__all__ = ["dump_annotations", "load_annotations"]

_SOURCES = ("url_citation", "file_citation", "place_citation")
"""Types of annotations that name a source. Others say how the text is spoken."""


def load_annotations(entries: Any, text: str) -> tuple[Citation, ...]:
    """Returns the sources in the field `annotations` of a text of the Interactions API."""
    sources = [entry for entry in if_objects(entries)[:MOST] if entry.get("type") in _SOURCES]
    if not sources:
        return ()
    encoded = text.encode(errors="replace")
    return tuple(keep_named([_load_source(entry, encoded) for entry in sources]))


def _load_source(entry: Json, encoded: bytes) -> Citation:
    """Returns an annotation as a citation. The API leaves out an index of zero. `encoded`: the text
    in UTF-8."""
    start, end = read_span(entry.get("start_index", 0), entry.get("end_index"))
    if start is not None and end is not None:
        start, end = count_characters(encoded, start), count_characters(encoded, end)
    return Citation(
        first_text(entry, "url") or None,
        first_text(entry, "title", "file_name", "name") or None,
        *read_span(start, end),
        file_id=first_text(entry, "document_uri", "place_id") or None,
    )


def dump_annotations(part: TextPart) -> list[Json]:
    """Returns the sources of a text as annotations of the Interactions API."""
    annotations: list[Json] = []
    for citation in part.citations:
        start, end = find_span(citation, part.text)
        span = {
            "start_index": count_bytes(part.text, start),
            "end_index": count_bytes(part.text, end),
        }
        # The API has no annotation for other sources than pages and files.
        if citation.url:
            source: Json = {"type": "url_citation", "url": citation.url, "title": citation.title}
        else:
            source = {
                "type": "file_citation",
                "document_uri": citation.file_id,
                "file_name": citation.title,
            }
        annotations.append(drop_empty(source) | span)
    return annotations
