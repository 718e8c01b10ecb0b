"""pydantic-ai itself: what it writes we read exactly, and what we write it reads and means the
same. `make service` installs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import formats, wires
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import HistoryError
from dragoman.formats import pydantic_ai
from dragoman.message import Message
from support import traffic

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".cache/pydantic_ai/bin/python"
pytestmark = pytest.mark.service


def library(*args: str, given: str = "") -> Any:
    """What the script prints that runs in the library's environment."""
    if not PYTHON.exists():
        pytest.skip("pydantic-ai is not installed: run `make service`")
    script = Path(__file__).parent / "pydantic_ai/library.py"
    ran = subprocess.run(
        [PYTHON, script, *args],
        input=given,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_what_it_writes_comes_back_exactly() -> None:
    histories = library("write")
    kinds = {
        part["part_kind"] for history in histories for entry in history for part in entry["parts"]
    }
    assert {
        "system-prompt",
        "user-prompt",
        "tool-return",
        "retry-feedback",
        "thinking",
        "file",
        "builtin-tool-call",
    } <= kinds
    outcomes = {
        part.get("outcome") for history in histories for entry in history for part in entry["parts"]
    }
    assert {"success", "retried", "denied"} <= outcomes
    for history in histories:
        messages = pydantic_ai.load_messages(history)
        assert (
            pydantic_ai.dump_messages([Message.from_json(each.to_json()) for each in messages])
            == history
        )
        assert formats.detect(history) == "pydantic_ai"
        answered = {result.id for message in messages for result in message.tool_results}
        assert answered <= {call.id for message in messages for call in message.tool_calls}


def test_what_we_write_it_reads_and_means_the_same() -> None:
    written: list[Any] = []
    said: list[tuple[str, ...]] = []
    for folder in ("anthropic", "google", "openai_chat", "openai_responses"):
        wire = wires.get(traffic.WIRES[folder])
        for exchange in traffic.exchanges(folder):
            try:
                messages = wire.load_request(exchange.request or {}, path=exchange.url).messages
            except HistoryError:
                continue
            written.append(pydantic_ai.dump_messages(messages))
            said.append(chain(written[-1]))
    assert len(written) > 100
    read = library("read", given=json.dumps(written))
    assert [chain(history) for history in read] == said


def chain(history: Any) -> tuple[str, ...]:
    return tuple(chain_neutral_digests(pydantic_ai.load_messages(untyped(history))))


def untyped(value: Any) -> Any:
    """The same with links and uploaded files of no type: the library tells it by the URL where it
    was not told."""
    if isinstance(value, list):
        return [untyped(each) for each in value]
    if not isinstance(value, dict):
        return value
    is_elsewhere = str(value.get("kind")).endswith("-url") or value.get("kind") == "uploaded-file"
    return {key: untyped(each) for key, each in value.items()} | (
        {"media_type": None} if is_elsewhere else {}
    )
