"""The architecture page names modules; each must exist, so that its walks stay true when code
moves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "architecture.md").read_text()
MODULES = sorted(set(re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", PAGE)))


def test_the_page_walks_through_every_part_of_the_package() -> None:
    packages = {path.parent.name for path in (ROOT / "src" / "dragoman").glob("*/__init__.py")}
    named = {module.split("/")[0] for module in MODULES}
    assert packages <= named
    assert len(MODULES) > 40


@pytest.mark.parametrize("module", MODULES)
def test_a_named_module_exists(module: str) -> None:
    assert (ROOT / "src" / "dragoman" / module).exists()
