"""The Agents SDK itself: what it writes we read, and it reads what we write."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import Message, formats, wires
from dragoman.formats import openai_agents
from dragoman.loss import Loss
from dragoman.message import Origin
from support.histories import NEUTRAL

PYTHON = Path(__file__).parents[2] / ".cache" / "openai_agents" / "bin" / "python"
PROGRAM = Path(__file__).parent / "openai_agents" / "sdk.py"
pytestmark = [
    pytest.mark.service,
    pytest.mark.skipif(not PYTHON.exists(), reason="make .cache/openai_agents/.done"),
]


def sdk(do: str, given: Any = None) -> Any:
    ran = subprocess.run(
        [PYTHON, PROGRAM, do], input=json.dumps(given), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def lists() -> dict[str, Any]:
    return sdk("write")


def test_what_the_sdk_writes_is_written_as_it_was(lists: dict[str, Any]) -> None:
    assert len(lists) >= 12
    for name, items in lists.items():
        losses: list[Loss] = []
        messages = [
            Message.from_json(message.to_json()) for message in openai_agents.load_messages(items)
        ]
        assert openai_agents.dump_messages(messages, losses=losses) == items, name
        assert losses == [], name
        told = {"openai_agents"} if "provider_data" in json.dumps(items) else {"openai_responses"}
        assert {formats.detect(items)} == told, name


def test_what_anthropic_signed_goes_back_from_the_sdk(lists: dict[str, Any]) -> None:
    messages = openai_agents.load_messages(lists["claude"])
    payload: Any = wires.get("anthropic").dump_messages(messages, target=Origin("anthropic"))
    blocks = [
        block
        for message in payload["messages"]
        for block in message["content"]
        if "thinking" in block["type"]
    ]
    assert blocks == [
        {"type": "thinking", "thinking": "Hm.", "signature": "S1=="},
        {"type": "thinking", "thinking": "Hm.", "signature": "S1=="},
        {"type": "redacted_thinking", "data": "D=="},
        {"type": "thinking", "thinking": "", "signature": "S2=="},
    ]


def test_the_sdk_reads_what_we_write(lists: dict[str, Any]) -> None:
    written = {name: openai_agents.dump_messages(messages) for name, messages in NEUTRAL.items()}
    written |= {
        f"sdk: {name}": openai_agents.dump_messages(openai_agents.load_messages(one))
        for name, one in lists.items()
    }
    signed = {
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "S"},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "t", "name": "look", "input": {"at": "Rome"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a cat"}],
            },
        ]
    }
    origin = Origin("anthropic", model="claude-sonnet-4-5")
    written["signed"] = openai_agents.dump_messages(
        wires.get("anthropic").load_messages(signed, origin=origin)
    )
    found = sdk("read", written)
    for name, items in written.items():
        assert found[name]["session"] == items, name
        assert found[name]["run"] == items, name
    sent = next(message for message in found["signed"]["chat"] if message["role"] == "assistant")
    assert sent["thinking_blocks"] == [{"type": "thinking", "thinking": "Hm.", "signature": "S"}]
    assert sent["tool_calls"][0]["id"] == "t"
