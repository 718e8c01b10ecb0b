"""The command line in tests: in this process (the fixture `cli`) or in one of its own (`shell`)."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

SRC = str(Path(__file__).parents[2] / "src")


class Stdin(io.TextIOWrapper):
    """Standard input that holds these bytes; with `None` it is a terminal."""

    def __init__(self, data: bytes | None) -> None:
        super().__init__(io.BytesIO(data or b""), encoding="utf-8")
        self.is_terminal = data is None

    def isatty(self) -> bool:
        return self.is_terminal


def shell(
    *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments],
        input=stdin,
        capture_output=True,
        timeout=50,
        env={**os.environ, "PYTHONPATH": SRC, **environment},
    )


def one_line(err: str, *words: str) -> bool:
    """Whether it is one plain line that holds these words."""
    return err.startswith("error: ") and err.count("\n") == 1 and all(word in err for word in words)
