"""The AI SDK (ai 4 to 7) and Mastra themselves, in one Node process that answers commands. `make
service` installs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.aimock import node

__all__ = ["VERSIONS", "AiSdk", "AiSdkError", "ai_sdk"]

HOME = Path(__file__).parents[2] / ".cache" / "ai_sdk"
VERSIONS = (4, 5, 6, 7)


class AiSdkError(Exception):
    """What the library threw."""


class AiSdk:
    """The running process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def __call__(self, command: str, **given: Any) -> Any:
        """The answer to a command of `tests/ai_sdk/node/driver.mjs`, as JSON has it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"command": command, **given}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the Node process ended"
        answer = json.loads(line)
        if "error" in answer:
            raise AiSdkError(answer["error"])
        return answer["value"]


@contextmanager
def ai_sdk() -> Generator[AiSdk]:
    """Starts the process, and ends it."""
    if not (HOME / ".done").is_file():
        pytest.skip("the AI SDK is not installed: run `make service`")
    command = [
        *node(),
        "--preserve-symlinks",
        "--preserve-symlinks-main",
        str(HOME / "driver" / "driver.mjs"),
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HOME)
    try:
        yield AiSdk(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(20)
