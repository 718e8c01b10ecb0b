"""Writes the pages of the documentation that are made from the source: `make pages`."""

from pathlib import Path

from pages import capabilities, endpoints, fields, models, seed_mapping, switching, table

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "capabilities": capabilities.markdown,
    "endpoints": endpoints.markdown,
    "formats/a2a-mapping": seed_mapping.markdown,
    "formats/table": table.markdown,
    "fields": fields.markdown,
    "models": models.markdown,
    "records": fields.records,
    "switching": switching.markdown,
}

for name, page in PAGES.items():
    (DOCS / f"{name}.md").write_text(page(), "utf-8")
