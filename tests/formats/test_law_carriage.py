"""Carriage (ids, times, metadata, tokens …) survives by a fixed table of each format: what the
table says does, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages.table import markdown

from dragoman import formats
from dragoman.message import Message
from support.carriage import CARRIED, COLUMNS, KINDS, PROBE
from support.law import hop

NAMES = formats.names()
PAGE = Path(__file__).resolve().parents[2] / "docs" / "formats" / "README.md"


def survives(messages: list[Message]) -> set[str]:
    return {kind for kind, read in KINDS.items() if read(messages) == read(PROBE)}


def test_the_table_is_of_all_formats() -> None:
    assert not {*NAMES} - {*CARRIED}


@pytest.mark.parametrize("first", NAMES)
def test_what_survives_is_what_the_table_says(first: str) -> None:
    held = hop(PROBE, first).after
    assert survives(held) == CARRIED[first]
    for then in NAMES:
        back = hop(hop(held, then).after, first).after
        assert survives(back) == CARRIED[first] & CARRIED[then], then


def test_the_documented_table_is_this_one() -> None:
    rows = [
        line[1:-1].split("|")
        for line in PAGE.read_text("utf-8").splitlines()
        if line.startswith("|")
    ]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == len(COLUMNS) + 1]
    head, _, *body = cells
    assert head[1:] == [*COLUMNS]
    written = {
        name.strip("`"): {
            kind
            for column, mark in zip(COLUMNS, marks, strict=True)
            if mark
            for kind in COLUMNS[column]
        }
        for name, *marks in body
    }
    assert written == CARRIED
    assert {mark for _, *marks in body for mark in marks} == {"", "✓"}


@pytest.mark.slow
def test_the_documented_table_of_pairs_is_what_the_formats_do() -> None:
    assert (PAGE.parent / "table.md").read_text("utf-8") == markdown(), "make pages"
