"""The checks of official clients that stand beside the project, where they do: strict validation of
every raw object and event."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.service

CHECKS = Path(__file__).parents[4] / "shared" / "checks"
KEY = "one-secret-key"


@pytest.mark.parametrize(
    ("script", "base", "passed"), [("openai_check.py", "/v1", 22), ("anthropic_check.py", "", 10)]
)
def test_official_clients_find_nothing_wrong(
    url: str, behind: str, script: str, base: str, passed: int
) -> None:
    if not (CHECKS / script).exists():
        pytest.skip("the checks do not stand beside the project (../shared/checks)")
    done = subprocess.run(
        [
            sys.executable,
            script,
            url + base,
            "--api-key",
            KEY,
            *(["--model", "m"] if behind.startswith("agent") else []),
        ],
        cwd=CHECKS,
        capture_output=True,
        text=True,
        timeout=300,
    )
    failed = [line for line in done.stdout.splitlines() if '"ok": false' in line]
    lacking = (
        ["embeddings"] if behind in ("agent anthropic", "gateway anthropic") else []
    )  # which that API has not
    assert [
        line for line in failed if not any(f'"check": "{name}"' in line for name in lacking)
    ] == []
    assert done.stdout.splitlines()[-1].startswith(f"{passed - len(failed)} passed, 0 failed")
