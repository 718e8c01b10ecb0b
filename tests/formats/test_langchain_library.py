"""LangChain itself: what it writes we read exactly, and what we write it reads as it is. `make
service` installs it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import formats, wires
from dragoman.errors import HistoryError
from dragoman.formats import langchain
from dragoman.message import Message, Origin
from support import traffic

PYTHON = Path(__file__).resolve().parents[2] / ".cache/langchain/bin/python"
pytestmark = pytest.mark.service


def library(what: str, given: Any = None) -> Any:
    """What the script prints that runs in the library's environment."""
    if not PYTHON.exists():
        pytest.skip("LangChain is not installed: run `make service`")
    script = Path(__file__).parent / "langchain/library.py"
    ran = subprocess.run(
        [PYTHON, script, what],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def exact(conversation: list[Any]) -> list[Message]:
    messages = [Message.from_json(each.to_json()) for each in langchain.load_messages(conversation)]
    assert langchain.dump_messages(messages) == conversation
    assert formats.detect(conversation) == "langchain"
    return messages


def test_what_it_writes_comes_back_exactly() -> None:
    conversations = library("write")
    assert len(conversations) == 6
    for conversation in conversations:
        exact(conversation)


def test_what_its_models_made_of_recorded_answers_comes_back_and_what_is_signed_goes_back() -> None:
    bodies: list[Any] = []
    for folder in ("anthropic", "openai_responses", "openai_chat", "openrouter"):
        for exchange in traffic.exchanges(folder):
            try:
                bodies.append((traffic.WIRES[folder], json.loads(exchange.body)))
            except ValueError:  # a stream
                continue
    read, signed = library("decode", bodies), 0
    assert len(read) > 500
    for wire, body, versions in read:
        for conversation in versions:
            messages = [Message.user("Hi."), *exact(conversation)]
            if wire == "anthropic":
                sent = wires.get(wire).dump_messages(messages, target=Origin("anthropic"))[
                    "messages"
                ][1:]
                found = [
                    each
                    for entry in sent
                    for each in entry["content"]
                    if isinstance(each, dict) and "thinking" in each["type"]
                ]
                expected = [block for block in body["content"] if "thinking" in block["type"]]
            elif wire == "openai_responses":
                sent = wires.get(wire).dump_messages(messages, target=Origin("openai"))["input"]
                found, expected = _reasoning(sent), _reasoning(body["output"])
            else:
                continue
            assert found == expected
            signed += bool(expected)
    assert signed > 100


def _reasoning(items: list[Any]) -> list[Any]:
    """Reasoning items without what a response alone has."""
    held = [item for item in items if item.get("type") == "reasoning"]
    return [
        {
            key: item[key]
            for key in item
            if (key != "status" and item[key] not in (None, [])) or key == "summary"
        }
        for item in held
    ]


def test_what_is_written_it_reads_as_it_is() -> None:
    written: list[Any] = []
    for folder in sorted({*traffic.WIRES} - {"openai_embeddings", "cohere_v1"}):
        for number, exchange in enumerate(traffic.exchanges(folder)):
            if number % 3:
                continue
            try:
                messages = (
                    wires.get(traffic.WIRES[folder]).load_request(exchange.request or {}).messages
                )
            except HistoryError:
                continue
            written.append(langchain.dump_messages(messages))
    assert len(written) > 500
    assert library("read", written) == json.loads(json.dumps(written))
