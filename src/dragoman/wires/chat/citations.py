"""Reads and writes the sources of an answer. The API gives them beside the text, as the field
`annotations` of the message; some vendors give a list beside the choices instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dragoman.codec.citations import read_span
from dragoman.codec.json_values import first_text, if_list, if_object, if_objects
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Citation

__all__ = ["BESIDE", "dump_annotations", "load_citations"]

BESIDE = ("search_results", "citations")
"""Fields beside the choices that list sources, the one that says more first."""
_QUOTES = ("content", "snippet")


def load_citations(annotations: Any, response: JsonMap) -> list[Citation]:
    """Returns the sources of a Chat Completions answer, with their places in all of its text.

    Args:
        annotations: the field of the message.
        response: the fields beside the choices.
    """
    entries = [
        if_object(entry.get("url_citation"))
        for entry in if_objects(annotations)
        if entry.get("type") == "url_citation"
    ]
    listed = next(filter(None, (if_list(response.get(name)) for name in BESIDE)), None)
    for source in [] if entries else listed or []:
        entries.append({"url": source} if isinstance(source, str) else if_object(source))
    return [
        Citation(
            first_text(entry, "url") or None,
            first_text(entry, "title") or None,
            *read_span(entry.get("start_index"), entry.get("end_index")),
            quote=first_text(entry, *_QUOTES) or None,
        )
        for entry in entries
        if first_text(entry, "url")
    ]


def dump_annotations(citations: Iterable[Citation]) -> list[Json]:
    """Returns the field `annotations` of a Chat Completions message for sources that are pages; the
    API has no annotation for others. Their places are those in the message's text."""
    return [
        {
            "type": "url_citation",
            "url_citation": {
                "start_index": citation.start,
                "end_index": citation.end,
                "title": citation.title or "",
                "url": citation.url,
            },
        }
        for citation in citations
        if citation.url
    ]
