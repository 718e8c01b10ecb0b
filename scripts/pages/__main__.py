"""Writes the pages of the documentation that are made from the source: `make pages`."""

from pathlib import Path

from pages import capabilities, fields, switching

DOCS = Path(__file__).parents[2] / "docs"

for page in (capabilities, fields, switching):
    (DOCS / f"{page.__name__.rpartition('.')[2]}.md").write_text(page.markdown(), "utf-8")
