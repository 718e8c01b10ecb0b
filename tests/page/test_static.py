"""The files of the page: what stands in them, and what may not."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import dragoman

STATIC = Path(dragoman.__file__).parent / "serve" / "page" / "static"
VENDOR = STATIC / "vendor"
FILES = [path for path in STATIC.rglob("*") if path.is_file()]
OURS = [path for path in FILES if VENDOR not in path.parents]
MOST_BYTES = 80_000


def test_what_others_wrote_is_what_the_lock_says() -> None:
    lock = json.loads((VENDOR / "lock.json").read_text())
    assert {row["file"] for row in lock} == {path.name for path in VENDOR.glob("*.js")}
    licences = (VENDOR / "LICENSES.txt").read_text()
    for row in lock:
        content = (VENDOR / row["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == row["sha256"], row["file"]
        assert row["version"] and row["licence"]
        assert row["package"].lower() in licences.lower()


def test_the_page_is_small() -> None:
    sizes = {
        path.name: len(gzip.compress(path.read_bytes(), 9))
        for path in FILES
        if path.suffix in (".js", ".css", ".html", ".svg")
    }
    assert sum(sizes.values()) <= MOST_BYTES, sizes


def test_no_file_of_ours_is_long() -> None:
    for path in OURS:
        assert path.read_text().count("\n") <= 300, path.name


def test_nothing_is_asked_of_elsewhere_and_no_script_stands_inline() -> None:
    page = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|style=|javascript:", page)
    for path in OURS:
        text = path.read_text()
        assert not re.search(
            r"(?:src|href|from|import|fetch)\s*[=(]?\s*[\"'`](?:https?:)?//", text
        ), path
        assert "innerHTML" not in text and "eval(" not in text, path.name


def test_every_file_that_a_module_names_is_there() -> None:
    for path in OURS:
        for name in re.findall(r'(?:from|import) "\./([\w./-]+)"', path.read_text()):
            assert (STATIC / name).exists(), (path.name, name)
    page = (STATIC / "index.html").read_text()
    for name in re.findall(r'"/page/static/([\w./-]+)"', page):
        assert (STATIC / name).exists(), name
