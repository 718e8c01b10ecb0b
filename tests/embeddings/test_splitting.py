"""Texts cut into chunks: the command line's rules (`embed create`)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.embeddings.splitting import Chunk, chunks
from dragoman.errors import InvalidRequestError

TEXTS = st.text(st.sampled_from("ab .!?\n\t\r日"), max_size=200)
SIZES = st.integers(1, 40)


def test_paragraphs_that_fit_are_chunks_trimmed() -> None:
    text = "  First one.\nStill it. \n \t\n\n\n  Second.  "
    assert chunks(text) == [
        Chunk("First one.\nStill it.", 2),
        Chunk("Second.", text.index("Second")),
    ]


def test_sentences_of_longer_ones_are_packed() -> None:
    text = "Intro.\n\nOne two. Three four!  Five?\nSix seven eight. Nine"
    assert chunks(text, 24, 0) == [
        Chunk("Intro.", 0),
        Chunk("One two. Three four!", 8),
        Chunk("Five? Six seven eight.", text.index("Five")),
        Chunk("Nine", text.index("Nine")),
    ]


def test_a_sentence_that_does_not_fit_is_cut_into_windows() -> None:
    assert chunks("Hi. abcdefghij. Yo.", 6, 2) == [
        Chunk("Hi.", 0),
        Chunk("abcdef", 4),
        Chunk("efghij", 8),
        Chunk("ij.", 12),
        Chunk("Yo.", 16),
    ]


def test_what_fits_exactly_fits() -> None:
    assert chunks("ab.\ncd.", 7, 1) == [Chunk("ab.\ncd.", 0)]
    assert chunks("ab.\ncd.  ef.", 7, 1) == [Chunk("ab. cd.", 0), Chunk("ef.", 9)]
    assert chunks("ab.\ncd.  ef.", 6, 1) == [Chunk("ab.", 0), Chunk("cd.", 4), Chunk("ef.", 9)]
    assert chunks("abcdef.\ngh.", 7, 1) == [Chunk("abcdef.", 0), Chunk("gh.", 8)]
    assert chunks("abcdefghij", 6, 2) == [Chunk("abcdef", 0), Chunk("efghij", 4)]


def test_usually_they_have_512_characters_and_windows_share_100() -> None:
    assert [(chunk.offset, len(chunk.text)) for chunk in chunks("x" * 1000)] == [
        (0, 512),
        (412, 512),
        (824, 176),
    ]


def test_dots_inside_words_end_no_sentence() -> None:
    assert [chunk.text for chunk in chunks("Version 3.11 is out. Get it.", 20, 0)] == [
        "Version 3.11 is out.",
        "Get it.",
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n\n", "\t\r\n"])
def test_what_holds_no_text_has_no_chunks(text: str) -> None:
    assert chunks(text) == []


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (10, 10), (10, 11), (10, -1)])
def test_sizes_that_make_no_sense_are_refused(size: int, overlap: int) -> None:
    with pytest.raises(InvalidRequestError, match="the overlap must be below the size"):
        chunks("text", size, overlap)


@given(TEXTS, SIZES, st.data())
def test_nothing_is_lost_and_offsets_are_true(text: str, size: int, data: st.DataObject) -> None:
    overlap = data.draw(st.integers(0, size - 1))
    cut = chunks(text, size, overlap)
    assert all(chunk.text.strip() and len(chunk.text) <= size for chunk in cut)
    assert [chunk.offset for chunk in cut] == sorted({chunk.offset for chunk in cut})
    for chunk in cut:
        assert text[chunk.offset] == chunk.text[0]
        words = r"\s+".join(map(re.escape, chunk.text.split()))
        assert re.match(r"\s*" + words, text[chunk.offset :])
    covered = {place for chunk in cut for place in spanned(text, chunk)}
    assert {place for place, sign in enumerate(text) if not sign.isspace()} <= covered


def spanned(text: str, chunk: Chunk) -> range:
    """The places of the text that a chunk holds."""
    words = r"\s+".join(map(re.escape, chunk.text.split()))
    found = re.match(r"\s*" + words, text[chunk.offset :])
    assert found
    return range(chunk.offset, chunk.offset + found.end())
