"""Sources of texts (`Citation`), where an API holds them beside a whole message: which text each is
of, and where in the joined text it stands; and what of them a request cannot hold.

Positions count characters. An API that counts the bytes of UTF-8 is read and written with
`count_characters` and `count_bytes`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate, islice
from typing import Any

from msgspec.structs import replace

from dragoman.codec.outgoing_conversation import Outgoing
from dragoman.loss import Lost
from dragoman.message import NOTES, Citation, Content, Message, Native, TextPart

__all__ = [
    "MOST",
    "CitedText",
    "count_bytes",
    "count_characters",
    "find_span",
    "find_words",
    "keep_named",
    "lose_citations",
    "place_citations",
    "read_span",
]


MOST = 1000
"""Sources of a text that are read at most."""
_LONGEST_WORDS = 2000
"""Characters of the answer that are repeated with its source at most."""


def keep_named(citations: Iterable[Citation]) -> list[Citation]:
    """Returns the citations that name a source."""
    return [
        citation
        for citation in citations
        if citation.url or citation.title or citation.quote or citation.file_id
    ]


def read_span(start: Any, end: Any) -> tuple[int | None, int | None]:
    """Returns where a citation begins and ends, or None for both if that is no span of a text."""
    if type(start) is int and type(end) is int and 0 <= start < end:
        return start, end
    return None, None


def find_span(citation: Citation, text: str) -> tuple[int, int]:
    """Returns where a citation begins and ends in its text, of which it may be all."""
    start, end = read_span(citation.start, citation.end)
    if start is None or end is None or end > len(text):
        return 0, len(text)
    return start, end


def find_words(citation: Citation, text: str) -> str:
    """Returns the words of the answer that a citation is for; of many the first. `text`: that of
    the part."""
    start, end = find_span(citation, text)
    return text[start : min(end, start + _LONGEST_WORDS)]


class CitedText:
    """The texts of one response as far as they are written, and their sources."""

    def __init__(self, *, keeps_texts: bool = True) -> None:
        """Starts to collect texts and their citations. `keeps_texts`: the format repeats words of
        the texts."""
        self._keeps_texts = keeps_texts
        self.citations: list[Citation] = []
        """With their places in all texts joined."""
        self.texts: list[str] = []
        """All texts, if they are kept."""
        self._length = 0

    def add(self, piece: Content) -> None:
        """Takes the next piece of content for its citations; only texts count."""
        if not isinstance(piece, TextPart):
            return
        for citation in piece.citations:
            start, end = find_span(citation, piece.text)
            self.citations.append(
                replace(citation, start=self._length + start, end=self._length + end)
            )
        if self._keeps_texts:
            self.texts.append(piece.text)
        self._length += len(piece.text)

    @classmethod
    def of(cls, content: Iterable[Content]) -> CitedText:
        """Returns the texts of a whole message with their citations."""
        cited = cls()
        for piece in content:
            cited.add(piece)
        return cited


def place_citations(
    citations: Iterable[Citation], lengths: Mapping[int, int], open_texts: Collection[int]
) -> dict[int, list[Citation]]:
    """Returns the citations of each open text.

    Args:
        citations: with their places in all texts joined, in order.
        lengths: index of each text → its characters.
        open_texts: indexes of the texts that citations may be added to. The last of them gets those
            of other texts, as sources of the whole.
    """
    indexes = sorted(lengths)
    starts = list(accumulate([lengths[index] for index in indexes], initial=0))
    placed: dict[int, list[Citation]] = {}
    for citation in islice(citations, MOST):
        start, end = read_span(citation.start, citation.end)
        index, whole = max(open_texts), replace(citation, start=None, end=None)
        if start is not None and end is not None and start < starts[-1]:
            number = bisect_right(starts, start) - 1
            start, end = start - starts[number], end - starts[number]
            # A span over two texts belongs to neither.
            if indexes[number] in open_texts and end <= lengths[indexes[number]]:
                index, whole = indexes[number], replace(citation, start=start, end=end)
        placed.setdefault(index, []).append(whole)
    return placed


def count_characters(data: bytes, position: int) -> int:
    """Returns the number of characters in the first bytes of a text in UTF-8."""
    return len(data[:position].decode(errors="ignore"))


def count_bytes(text: str, position: int) -> int:
    """Returns the number of bytes that the first characters of a text have in UTF-8."""
    return len(text[:position].encode(errors="replace"))


def lose_citations(out: Outgoing[Any], wire: str) -> None:
    """Notes the citations that a conversation loses on this wire, whose requests take none of other
    providers. Those that the wire itself read are no loss: they go back as they came, or stand
    beside the conversation."""
    for position, message in enumerate(out.messages):
        for index, piece in enumerate(message.content):
            if not isinstance(piece, TextPart) or not piece.citations:
                continue
            if _is_own(message, wire) and out.returns_to_origin(position):
                continue
            out.lose(position, index, Lost.field, "the API takes its own alone", "citations")


def _is_own(message: Message, wire: str) -> bool:
    """True if a message came through this wire."""
    natives: list[Native] = [message.native, *[piece.native for piece in message.content]]
    return any(native and (wire in native or wire + NOTES in native) for native in natives)
