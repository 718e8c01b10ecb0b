"""Rule 6 of the architecture: each request of a conversation begins with the one before it.

Where a provider binds its thinking to that, the strict provider checks it. On the other wires these
tests compare the bodies of consecutive requests.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from dragoman import Agent, Message, ToolCallPart
from dragoman.message import Role
from dragoman.request import ModelRequest
from dragoman.testing import ScriptedModel
from prefix.scenes import SCENES
from prefix.stage import Stage

pytestmark = pytest.mark.anyio

LISTS = {
    "openai_chat": "messages",
    "openai_responses": "input",
    "google": "contents",
    "ollama": "messages",
    "mistral": "messages",
    "cohere": "messages",
}
"""Wire → the field of its requests that holds the conversation."""
OPENINGS = ("instructions", "system", "systemInstruction", "system_instruction", "tools")


class OfflineStage(Stage):
    """A stage before a scripted model of any wire."""

    def __init__(self, wire: str, *, is_streamed: bool) -> None:
        super().__init__("", "", is_streamed=is_streamed)
        self.scripted = ScriptedModel(answer, wire=wire)
        # Responses would go on from what the provider stores, and send no more than what is new.
        self.options = {"store": False} if wire == "openai_responses" else {}

    def agent(self, **options: Any) -> Agent[None]:
        return Agent(self.scripted, options=self.options, **options)


def answer(request: ModelRequest) -> Message:
    """Answers `tools N` with N rounds of two calls, and anything else with a text."""
    position = max(
        index
        for index, message in enumerate(request.messages)
        if message.role is Role.USER and message.text
    )
    rounds = sum(bool(message.tool_calls) for message in request.messages[position:])
    words = request.messages[position].text.split()
    wanted = int(words[words.index("tools") + 1]) if "tools" in words else 0
    if rounds < wanted:
        number = len(request.messages)
        calls = [
            ToolCallPart(f"call_{number}_{index}", tool.name, {name: f"{name} {number}"})
            for index, tool in enumerate(request.tools[:2])
            for name in tool.input_schema["required"]
        ]
        return Message.model(*calls)
    return Message.model(f"Answer {len(request.messages)}.")


@pytest.mark.parametrize("is_streamed", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize(
    "scene", ["talk", "tools", "approvals", "working memory", "recall", "stored history"]
)
@pytest.mark.parametrize("wire", list(LISTS))
async def test_each_request_begins_with_the_one_before(
    wire: str, scene: str, is_streamed: bool
) -> None:
    stage = OfflineStage(wire, is_streamed=is_streamed)
    await SCENES[scene].play(stage)
    bodies = stage.scripted.bodies
    assert len(bodies) >= 10
    for before, after in pairwise(bodies):
        for name in OPENINGS:
            assert before.get(name) == after.get(name)
        said = before[LISTS[wire]]
        assert after[LISTS[wire]][: len(said)] == said
