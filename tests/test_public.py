"""What `import dragoman` offers, as documented, and what it costs: the modules that it may load."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman

DOCUMENTED = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
SOURCE = Path(__file__).parents[1] / "src"
ALLOWED = {"dragoman", "msgspec", "typing_extensions"}  # the last is loaded by msgspec, where it is installed

PROBE = """
import sys
before = set(sys.modules)
{statement}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - set(sys.stdlib_module_names) - {{"__mp_main__"}}))
"""

GROUND = ["message", "event", "fold", "emit", "framing", "digest", "replay", "repair", "request", "result", "errors"]
GROUND += ["capability", "wires", "providers.provider"]


def test_the_public_names_are_those_that_are_documented():
    documented = re.findall(r"^\| `(\w+)`", DOCUMENTED, re.MULTILINE)
    assert sorted(documented) == sorted(dragoman.__all__)
    assert len(set(dragoman.__all__)) == len(dragoman.__all__) <= 60
    assert sorted(dir(dragoman)) == sorted(dragoman.__all__)
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        dragoman.nothing  # noqa: B018


def third_party(statement: str) -> set[str]:
    """The top-level modules outside the standard library that a fresh interpreter loads for this statement."""
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


@pytest.mark.parametrize("statement", ["import dragoman", "import " + ", ".join(f"dragoman.{name}" for name in GROUND)])
def test_import_budget(statement: str):
    """No HTTP client, no server, no pydantic, no embedded model until one is used (rule 9 of the design)."""
    loaded = third_party(statement)
    assert "dragoman" in loaded
    assert loaded <= ALLOWED, f"{statement!r} loads {sorted(loaded - ALLOWED)}; import it where it is first needed"


def test_the_budget_sees_what_is_loaded():
    assert "pydantic" in third_party("import dragoman, pydantic")
