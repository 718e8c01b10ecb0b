"""Distributions with an entry point of ours, as pip would have installed them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

__all__ = ["Install", "installer"]

Install = Callable[[str, str, str], None]
"""Name of the entry point, code of the module, name of the module → it is there."""


def installer(
    group: str, modules: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Install]:
    """Installs distributions with one module and one entry point of a group. `modules`: how the
    names of all of them begin."""

    def install(entry: str, code: str, module: str) -> None:
        monkeypatch.syspath_prepend(folder)
        (folder / f"{module}.py").write_text(code)
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{entry} = {module}\n")

    yield install
    for name in [name for name in sys.modules if name.startswith(modules)]:
        del sys.modules[name]
