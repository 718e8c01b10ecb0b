"""The README as package indexes show it: without links into a source tree that is not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class Readme(MetadataHookInterface):
    """`[text](docs/page.md)` → `text`; pictures of the source tree are left out."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Gives the project its readme."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = re.sub(r"!\[[^\]]*\]\((?!https?://)[^)]+\)\n*", "", text)
        plain = re.sub(r"\[([^\]]+)\]\((?!https?://)[^)]+\)", r"\1", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": plain}
