"""Reads and writes the sources of a text: the `citations` of a block `citationsContent`, each for
all of its text."""

from __future__ import annotations

from typing import Any

from dragoman.codec.citations import MOST, find_words, keep_named
from dragoman.codec.json_values import first_text, if_object, if_objects, if_text
from dragoman.json_bytes import Json
from dragoman.message import Citation, TextPart

__all__ = ["dump_citations", "load_citations"]


def load_citations(entries: Any) -> tuple[Citation, ...]:
    """Returns the sources in the field `citations` of a Converse block."""
    return tuple(keep_named([_load_citation(entry) for entry in if_objects(entries)[:MOST]]))


def dump_citations(part: TextPart) -> list[Json]:
    """Returns the sources of a text as Converse citations, for an answer."""
    return [_dump_citation(citation, part.text) for citation in part.citations]


def _load_citation(entry: Json) -> Citation:
    """Returns a Converse citation, with the words of its source."""
    web = if_object(if_object(entry.get("location")).get("web"))
    quotes = [if_text(block.get("text")) for block in if_objects(entry.get("sourceContent"))]
    source = if_text(entry.get("source"))
    is_url = source.startswith(("http://", "https://"))
    return Citation(
        if_text(web.get("url")) or (source if is_url else "") or None,
        first_text(entry, "title") or None,
        quote="".join(quotes) or None,
        file_id=None if is_url else source or None,
    )


def _dump_citation(citation: Citation, text: str) -> Json:
    """Returns a source of a text as a Converse citation."""
    quote = citation.quote or find_words(citation, text)
    entry: Json = {"sourceContent": [{"text": quote}]}
    if citation.title:
        entry["title"] = citation.title
    if source := citation.file_id or citation.url:
        entry["source"] = source
    if citation.url:
        entry["location"] = {"web": {"url": citation.url}}
    return entry
