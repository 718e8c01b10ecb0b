"""Writes the folder from which mkdocs builds the site, and lets it build.

The folder holds the pages of `docs/`, the README as its first steps, the reference that is made of
the docstrings, and `llms.txt`, a list of the pages for language models.

Run: python -m docs_site FOLDER MKDOCS
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from docs_site import reference

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\((?!https?:)([^)#]*)(#[^)]*)?\)")


def main(folder: Path, mkdocs: str) -> int:
    """Builds the site into `folder/html`. Returns mkdocs' exit code: 1 where a link is dead or a page
    is in no section."""
    docs = folder / "docs"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", docs)
    (docs / "start.md").write_text(_start_page())
    for page in docs.rglob("*.md"):
        page.write_text(_unescape_code(page.read_text()))
    index = (docs / "index.md").read_text()
    index = index.replace("../README.md", "start.md")
    (docs / "index.md").write_text(
        index.replace(
            "[API](api.md)", "[every class and function](reference/index.md) · [API](api.md)"
        )
    )
    for name, text in reference.pages().items():
        path = docs / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    settings = (ROOT / "scripts" / "docs_site" / "mkdocs.yml").read_text()
    (folder / "mkdocs.yml").write_text(settings + _further_sections(docs))
    (docs / "llms.txt").write_text(_list_for_models(docs))
    command = [mkdocs, "build", "--config-file", str(folder / "mkdocs.yml")]
    silent = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, check=False, env=silent).returncode


def _unescape_code(text: str) -> str:
    """Returns a page whose tables have `|` in code as mkdocs reads it; other readers want `\\|`."""
    return re.sub(r"`[^`\n]+`", lambda code: code[0].replace(r"\|", "|"), text)


def _start_page() -> str:
    """Returns the README with its links as they are from within `docs/`."""
    text = (ROOT / "README.md").read_text().replace("# dragoman", "# Start", 1)
    return text.replace("](docs/", "](")


def _further_sections(docs: Path) -> str:
    """Returns the entries of the sections whose pages are counted: formats and reference."""
    formats = [
        f"      - {path.relative_to(docs)}"
        for path in sorted((docs / "formats").glob("*.md"))
        if path.stem != "README"
    ]
    pages = [f"          - reference/{name}.md" for name in reference.GROUPS]
    return "\n".join([*formats, "  - Classes and functions:", *[page[4:] for page in pages]]) + "\n"


def _list_for_models(docs: Path) -> str:
    """Returns the pages with their first sentences."""
    lines = [
        "# dragoman",
        "",
        "> One conversation, every model provider: a Python library, command line and server.",
        "",
    ]
    for path in sorted(docs.rglob("*.md")):
        title, _, rest = path.read_text().partition("\n")
        first = next((line for line in rest.splitlines() if re.match(r"[A-Z`\[]", line)), "")
        sentence = _LINK.sub("]", first).split(". ")[0].replace("[", "").replace("]", "")
        page = path.relative_to(docs).with_suffix(".html")
        lines.append(f"- [{title.lstrip('# ')}]({page}): {sentence}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2]))
