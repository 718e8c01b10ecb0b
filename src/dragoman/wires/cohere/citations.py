"""Reads and writes the sources of an answer: the message's field `citations`, each a piece of the
text and the documents that it is from."""

from __future__ import annotations

from typing import Any

from dragoman.codec.citations import MOST, CitedText, find_words, keep_named, read_span
from dragoman.codec.json_values import first_text, if_object, if_objects
from dragoman.json_bytes import Json
from dragoman.message import Citation

__all__ = ["dump_citations", "load_citations"]


def load_citations(entries: Any) -> list[Citation]:
    """Returns the sources (citations) of a Cohere answer, with their places in its text."""
    citations: list[Citation] = []
    for entry in if_objects(entries):
        span = read_span(entry.get("start"), entry.get("end"))
        for source in if_objects(entry.get("sources"))[:MOST]:
            if source.get("type") == "tool":
                # The result of a tool of the client's stands in the conversation.
                continue
            document = if_object(source.get("document"))
            citations.append(
                Citation(
                    first_text(document, "url") or None,
                    first_text(document, "title") or None,
                    *span,
                    quote=first_text(document, "snippet", "text") or None,
                    file_id=first_text(source, "id") or None,
                )
            )
    return keep_named(citations)


def dump_citations(cited: CitedText) -> list[Json]:
    """Returns the field `citations` of a Cohere message for the sources of its texts."""
    if not cited.citations:
        return []
    text = "".join(cited.texts)
    by_span: dict[tuple[int, int], list[Json]] = {}
    for citation in cited.citations:
        span = citation.start or 0, citation.end or 0
        by_span.setdefault(span, []).append(_dump_source(citation))
    return [
        {
            "start": start,
            "end": end,
            "text": find_words(Citation(start=start, end=end), text),
            "sources": sources,
        }
        for (start, end), sources in by_span.items()
    ]


def _dump_source(citation: Citation) -> Json:
    """Returns a source as Cohere's citations name it."""
    fields = {"url": citation.url, "title": citation.title, "snippet": citation.quote}
    id_ = citation.file_id or citation.url or citation.title or ""
    document = {"id": id_, **{name: value for name, value in fields.items() if value}}
    return {"type": "document", "id": id_, "document": document}
