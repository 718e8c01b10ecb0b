"""`scripts/rename.py` renames a symbol in every file, and nothing else of its name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "rename.py"
MODULE = '''\
__all__ = ["decoded"]


def decoded(text: str) -> str:
    """«decoded» 𝄞"""
    found = "𝄞" + text
    return found
'''
TEST = """\
from media import decoded


def test() -> None:
    found = decoded(text="decoded")
    assert found
"""


@pytest.mark.slow
def test_a_function_its_parameter_and_its_variable_are_renamed_everywhere(tmp_path: Path) -> None:
    module, test, names = tmp_path / "src/media.py", tmp_path / "tests/test_media.py", "names.txt"
    for path, text in ((module, MODULE), (test, TEST)):
        path.parent.mkdir()
        path.write_text(text)
    (tmp_path / names).write_text(
        "src/media.py:decoded.found result\n"
        "src/media.py:decoded.text value\n"
        "src/media.py:decoded decode\n"
        "src/media.py:missing other\n"
    )
    run = subprocess.run(
        [sys.executable, SCRIPT, names], cwd=tmp_path, capture_output=True, text=True, timeout=50
    )
    assert run.returncode == 1, run.stderr
    assert "src/media.py:missing: not renamed" in run.stdout
    assert module.read_text() == MODULE.replace("found", "result").replace("text", "value").replace(
        "decoded", "decode"
    ).replace("«decode»", "«decoded»")
    assert test.read_text() == TEST.replace("decoded(text", "decode(value").replace(
        "import decoded", "import decode"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == [names, "src", "tests"]
