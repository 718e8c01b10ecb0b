"""How many rooms of a wire a conversation passes through, so that who reads how it is written has
few files to open.

Counted are files of `wires/`; what stands in `codec/` and below is the same for all wires.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dragoman.wires
from dragoman import wires
from dragoman.message import Message, Origin, ToolCallPart, ToolResultPart
from dragoman.request import ModelRequest, Settings, ToolSpec

FOLDER = str(Path(dragoman.wires.__file__).parent)
MOST = 5
CONVERSATION = (
    Message.user("What is the weather in Paris?"),
    Message.model(ToolCallPart("call_1", "weather", {"city": "Paris"})),
    Message.user(ToolResultPart("call_1", "weather", "It is sunny.")),
    Message.model("Sunny."),
)
REQUEST = ModelRequest(
    "a-model",
    CONVERSATION,
    (ToolSpec("weather", "The weather.", {"type": "object"}),),
    Settings(max_tokens=100),
)
JOBS: dict[str, Callable[[wires.Wire, Origin | None], Any]] = {
    "messages": lambda wire, target: wire.dump_messages(CONVERSATION, target=target),
    "request": lambda wire, target: wire.dump_request(REQUEST, target=target),
}

PLACES = [
    ("mistral", "messages"),
    ("openai_chat", "messages"),
    ("anthropic", "messages"),
    ("anthropic", "request"),
    ("cohere", "request"),
    ("ollama", "messages"),
]


def passed(job: Callable[[], Any]) -> set[str]:
    """The files of wires in which something is called."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            files.add(frame.f_code.co_filename)

    job()  # imports are not counted
    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    return {file.removeprefix(FOLDER) for file in files if file.startswith(FOLDER)}


@pytest.mark.parametrize(
    "to", [None, Origin("someone", model="a-model")], ids=["as it is", "to a target"]
)
@pytest.mark.parametrize(("name", "job"), PLACES)
def test_a_conversation_passes_through_few_rooms(name: str, job: str, to: Origin | None) -> None:
    wire = wires.get(name)
    found = passed(lambda: JOBS[job](wire, to))
    assert 0 < len(found) <= MOST, found
