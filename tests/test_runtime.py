"""A hint to install an extra names the way in which dragoman itself was installed."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from dragoman import runtime
from dragoman.runtime import extra_hint

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.mend("4.2")


@pytest.mark.parametrize(
    ("record", "hint"),
    [
        ({"url": "file:///home/ada/dragoman", "dir_info": {"editable": True}}, "pip install '.[sql]' in /home/ada/dragoman"),
        ({"url": "file:///home/ada/a%20b", "dir_info": {}}, "pip install '.[sql]' in /home/ada/a b"),
        ({"url": "file:///d/dragoman-0.1.0-py3-none-any.whl"}, "pip install '/d/dragoman-0.1.0-py3-none-any.whl[sql]'"),
        ({"url": "https://example.com/dragoman.git", "vcs_info": {}}, "pip install 'dragoman[sql] @ https://example.com/dragoman.git'"),
        (None, "pip install 'dragoman[sql]'"),
    ],
)  # fmt: skip
def test_the_hint_fits_the_installation(
    record: Any, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Distribution:
        def read_text(self, name: str) -> str | None:
            assert name == "direct_url.json"
            return None if record is None else json.dumps(record)

    monkeypatch.setattr("importlib.metadata.distribution", lambda name: Distribution())
    runtime._direct_url.cache_clear()
    try:
        assert extra_hint("sql") == hint
    finally:
        runtime._direct_url.cache_clear()


def test_no_message_names_a_package_of_an_index() -> None:
    """The name may be somebody else's there."""
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "runtime.py":
            text = re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL)
            assert not re.search(r"pip install ['\"]dragoman", text), path


def test_the_extra_all_has_every_other_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (everything,) = extras.pop("all")
    assert everything == f"dragoman[{','.join(sorted(extras))}]"
