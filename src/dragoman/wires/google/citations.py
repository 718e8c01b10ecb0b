"""Reads and writes the sources of an answer: `groundingMetadata` of a candidate, which lists sources
(`groundingChunks`) and says which pieces of the text they support. Places count bytes."""

from __future__ import annotations

from typing import Any

from dragoman.codec.citations import (
    MOST,
    CitedText,
    count_bytes,
    count_characters,
    find_words,
    keep_named,
    read_span,
)
from dragoman.codec.json_values import first_text, if_list, if_object, if_objects
from dragoman.json_bytes import Json, JsonMap
from dragoman.message import Citation

__all__ = ["GROUNDING", "dump_grounding", "load_citations"]

GROUNDING = "groundingMetadata"


def load_citations(fields: JsonMap, text: str) -> list[Citation]:
    """Returns the sources (citations) of a Gemini answer, with their places in its text. `fields`:
    of the candidate, beside its content."""
    grounding = if_object(fields.get(GROUNDING))
    sources = [_load_source(chunk) for chunk in if_objects(grounding.get("groundingChunks"))]
    data = text.encode(errors="replace")
    citations: list[Citation] = []
    used: set[int] = set()
    for support in if_objects(grounding.get("groundingSupports")):
        start, end = None, None
        if len(citations) < MOST:
            start, end = _find_place(if_object(support.get("segment")), text, data)
        for index in if_list(support.get("groundingChunkIndices"))[:MOST]:
            if type(index) is int and 0 <= index < len(sources):
                source = sources[index]
                used.add(index)
                citations.append(
                    Citation(source.url, source.title, start, end, source.quote, source.file_id)
                )
    citations += [source for index, source in enumerate(sources) if index not in used]
    return keep_named(citations)


def _load_source(chunk: JsonMap) -> Citation:
    """Returns the source in one of Gemini's `groundingChunks`, an object that holds the source
    under its kind."""
    source = if_object(next(iter(chunk.values()), None))
    quote = first_text(source, "text") or None
    return Citation(
        first_text(source, "uri") or None, first_text(source, "title") or None, quote=quote
    )


def _find_place(segment: JsonMap, text: str, data: bytes) -> tuple[int | None, int | None]:
    """Returns where a segment that a Gemini citation names stands in the text. It says so in bytes,
    and gives its words."""
    begin, end, said = segment.get("startIndex", 0), segment.get("endIndex"), segment.get("text")
    if type(begin) is int and type(end) is int and 0 <= begin < end:
        start = count_characters(data, begin)
        stop = count_characters(data, end)
        if not isinstance(said, str) or text[start:stop] == said:
            return read_span(start, stop)
    if isinstance(said, str) and said and (start := text.find(said)) >= 0:
        return start, start + len(said)
    return None, None


def dump_grounding(cited: CitedText) -> Json:
    """Returns the field `groundingMetadata` for the sources of texts in a Gemini answer, or no
    field if there are none."""
    if not cited.citations:
        return {}
    text = "".join(cited.texts)
    chunks: dict[tuple[Any, ...], int] = {}
    supports: dict[tuple[int, int], list[int]] = {}
    for citation in cited.citations:
        key = (citation.url, citation.title or citation.file_id)
        index = chunks.setdefault(key, len(chunks))
        span = citation.start or 0, citation.end or 0
        if index not in (indexes := supports.setdefault(span, [])):
            indexes.append(index)
    return {
        GROUNDING: {
            "groundingChunks": [_dump_source(url, title) for url, title in chunks],
            "groundingSupports": [
                {"segment": _dump_place(text, *span), "groundingChunkIndices": indexes}
                for span, indexes in supports.items()
            ],
        }
    }


def _dump_source(url: str | None, title: str | None) -> Json:
    if url:
        return {"web": {"uri": url, "title": title or url}}
    return {"retrievedContext": {"title": title or ""}}


def _dump_place(text: str, start: int, end: int) -> Json:
    """Returns the segment of a text that a Gemini citation names, in bytes."""
    first: Json = {}
    if start:
        # The API leaves out a zero.
        first["startIndex"] = count_bytes(text, start)
    said = find_words(Citation(start=start, end=end), text)
    return {**first, "endIndex": count_bytes(text, end), "text": said}
