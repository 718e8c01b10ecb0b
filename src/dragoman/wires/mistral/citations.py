"""Writes the sources of a text as chunks of the content, behind the text. Chunks that the API itself
sends (`reference`) name sources by a number alone, and are kept as they are."""

from __future__ import annotations

from dragoman.json_bytes import Json
from dragoman.message import Content, TextPart

__all__ = ["dump_references"]


def dump_references(part: Content) -> list[Json]:
    """Returns Mistral's `reference` chunks for the sources of a text, one for each page or
    document."""
    if not isinstance(part, TextPart):
        return []
    sources = dict.fromkeys([(citation.url, citation.title) for citation in part.citations])
    return [
        {"type": "tool_reference", "tool": "web_search", "title": title or url or "", "url": url}
        for url, title in sources
        if url or title
    ]
