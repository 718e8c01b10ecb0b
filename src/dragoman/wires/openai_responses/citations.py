"""Reads and writes the sources of a text: the `annotations` of its block that name a page or a
file. Those of files that the model has made are no sources (`files.py`)."""

from __future__ import annotations

from typing import Any

from dragoman.codec.citations import MOST, find_span, keep_named, read_span
from dragoman.codec.json_values import if_list, if_objects, if_text
from dragoman.json_bytes import Json
from dragoman.message import Citation, TextPart
from dragoman.wires.openai_responses.quirks import OWN

__all__ = ["dump_annotations", "load_annotations"]


def load_annotations(entries: Any) -> tuple[Citation, ...]:
    """Returns the sources in the field `annotations` of a Responses text."""
    citations: list[Citation] = []
    for entry in if_objects(entries)[:MOST]:
        if entry.get("type") == "url_citation":
            span = read_span(entry.get("start_index"), entry.get("end_index"))
            title = if_text(entry.get("title")) or None
            citations.append(Citation(if_text(entry.get("url")) or None, title, *span))
        elif entry.get("type") == "file_citation":
            title = if_text(entry.get("filename")) or None
            file_id = if_text(entry.get("file_id")) or None
            citations.append(Citation(title=title, file_id=file_id))
    return tuple(keep_named(citations))


def dump_annotations(part: TextPart) -> list[Any]:
    """Returns the field `annotations` of a text in a Responses answer: as it came, or the text's
    sources."""
    # They hold more than is neutral, and must go back to their provider unchanged.
    fields = OWN.fields(part.native)
    if "annotations" in fields:
        return if_list(fields["annotations"])
    return [
        _dump_citation(citation, part.text)
        for citation in part.citations
        if citation.url or citation.file_id
    ]


def _dump_citation(citation: Citation, text: str) -> Json:
    """Returns a source as an annotation of the Responses API."""
    start, end = find_span(citation, text)
    title = citation.title or ""
    if citation.url:
        span = {"start_index": start, "end_index": end}
        return {"type": "url_citation", **span, "title": title, "url": citation.url}
    file = {"file_id": citation.file_id, "filename": title}
    return {"type": "file_citation", **file, "index": end}
