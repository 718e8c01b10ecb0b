"""Checks the types of the examples, and of every Python block in README and docs, with strict
pyright and strict mypy: the blocks of a document, one after the other, as a module. A block that is
not run (`python no-run`) is the body of an asynchronous function there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(
    r"^(?P<indent> *)```python(?P<still> no-run)?\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
CONFIG = """{"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": ["%s", "%s"], "reportUnusedImport": false,
"reportDuplicateImport": false, "reportUnusedVariable": false, "reportMissingModuleSource": false}"""
"""Each block imports what it needs, for whoever copies it alone."""
MYPY = [
    "--strict",
    "--python-version=3.11",
    "--follow-imports=silent",
    "--allow-redefinition",
    f"--cache-dir={os.devnull}",  # a cache from before a change of the source made mypy report errors that are none
]
"""The source itself is checked by pyright alone: mypy holds what users write against its types."""


def module(document: Path) -> str:
    """The document's blocks at their own lines, so that an error names the line of the document."""
    text = document.read_text()
    lines = [""] * (text.count("\n") + 1)
    for found in BLOCK.finditer(text):
        first = text.count("\n", 0, found.start("code"))
        code = textwrap.dedent(found["code"])
        if found["still"]:
            lines[first - 1] = f"async def block_{first}() -> None:"
            code = textwrap.indent(code, "    ")
        for offset, line in enumerate(code.splitlines()):
            lines[first + offset] = line
    return "\n".join(lines) + "\n"


def main() -> int:
    """Checks with pyright and mypy at once; returns 1 if one of them finds an error."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "pyrightconfig.json").write_text(CONFIG % (ROOT / "src", ROOT / "tests"))
        for document in documents:
            if (code := module(document)).strip():
                name = (
                    document.relative_to(ROOT)
                    .with_suffix("")
                    .as_posix()
                    .replace("/", "__")
                    .replace("-", "_")
                )
                (place / f"{name}.py").write_text(code)
        for example in (ROOT / "examples").glob("*.py"):
            (place / f"examples__{example.name}").write_text(example.read_text())
        modules = sorted(place.glob("*.py"))
        pyright = [
            Path(sys.executable).with_name("pyright"),
            "--pythonpath",
            sys.executable,
            "--project",
            place,
        ]
        mypy = [sys.executable, "-m", "mypy", *MYPY, *modules]
        environment = os.environ | {
            "MYPYPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
        }
        checkers = [
            subprocess.Popen(
                command,
                env=environment,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            for command in (pyright, mypy)
        ]
        outputs = [checker.communicate()[0] for checker in checkers]
    print("".join(outputs).replace(f"{place}/", "").replace("__", "/"), end="")
    return max(checker.returncode != 0 for checker in checkers)


if __name__ == "__main__":
    sys.exit(main())
