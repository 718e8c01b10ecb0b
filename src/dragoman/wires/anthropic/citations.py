"""Reads and writes the sources of a text. The API gives them with a block of text, each for all of
the block, and says in which document and where in it."""

from __future__ import annotations

from typing import Any

from dragoman.codec.citations import MOST, find_words, keep_named
from dragoman.codec.json_values import first_text, if_list, if_objects, if_text
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Citation, TextPart
from dragoman.wires.anthropic.quirks import OWN

__all__ = ["dump_citations", "load_citations"]

_DOCUMENT: JsonMap = {"document_index": 0, "start_char_index": 0, "end_char_index": 0}


def load_citations(entries: Any) -> tuple[Citation, ...]:
    """Returns the sources in the field `citations` of an Anthropic text block."""
    return tuple(
        keep_named(
            Citation(
                first_text(entry, "url", "source") or None,
                first_text(entry, "title", "document_title") or None,
                quote=if_text(entry.get("cited_text")) or None,
                file_id=if_text(entry.get("file_id")) or None,
            )
            for entry in if_objects(entries)[:MOST]
        )
    )


def dump_citations(part: TextPart) -> list[Any]:
    """Returns the field `citations` of an Anthropic text block in a response: as it came, or the
    text's sources. What the provider encrypts of a source stays empty."""
    # They hold more than is neutral, and must go back to their provider unchanged.
    fields = OWN.fields(part.native)
    if "citations" in fields:
        return if_list(fields["citations"])
    return [_dump_citation(citation, part.text) for citation in part.citations]


def _dump_citation(citation: Citation, text: str) -> Json:
    """Returns a source as an element of Anthropic's `citations`."""
    quote = citation.quote or find_words(citation, text)
    if citation.url is None:
        document = {"document_title": citation.title, "file_id": citation.file_id}
        return {"type": "char_location", "cited_text": quote, **document, **_DOCUMENT}
    return {
        "type": "web_search_result_location",
        "cited_text": quote,
        "url": citation.url,
        "title": citation.title,
        "encrypted_index": "",
    }
