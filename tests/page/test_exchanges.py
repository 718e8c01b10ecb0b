"""The proxy's page in a real Chromium: the list of recordings, and one of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.cli import SRC

pytestmark = [pytest.mark.service, pytest.mark.timeout(180)]
_RECORD = {
    "request": {
        "method": "POST",
        "url": "https://api.openai.com/v1/chat/completions",
        "body": {"model": "m", "messages": [{"role": "user", "content": "<b>Hi</b>"}]},
    },
    "response": {
        "status": 200,
        "headers": {"content-type": "application/json"},
        "body_text": json.dumps(
            {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello.", "mood_ring": "red"}, "finish_reason": "stop"}]}
        ),
    },
}  # fmt: skip


def test_recordings_are_listed_and_shown(open_page: Any, tmp_path: Path) -> None:
    (tmp_path / "0001.json").write_text(json.dumps(_RECORD))
    (tmp_path / "0002.json").write_text("{")
    command = [sys.executable, "-m", "dragoman", "proxy", "-f", str(tmp_path), "--ci"]
    environment = {**os.environ, "PYTHONPATH": SRC}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[2].rstrip(";")
        try:
            page = open_page(base=url)
            page.locator("tbody tr").nth(1).wait_for()
            assert "is no recorded exchange" in page.locator("tbody").inner_text()
            page.get_by_role("link", name="0001").click()
            page.get_by_text("choices.message.mood_ring").wait_for()
            text = page.locator("main").inner_text()
            assert "is kept for its provider alone" in text
            assert '"content": "<b>Hi</b>"' in text
            assert '"text": "Hello."' in text
            page.get_by_label("Back").click()
            page.get_by_role("link", name="0002").wait_for()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
