"""How a model changes its working memory is written for models, and not for people (R-14)."""

from __future__ import annotations

import json

import pytest

from dragoman import Message, ThinkingPart, ToolCallPart, ToolResultPart, formats
from dragoman.codec.working_parts import WORKING_MEMORY
from dragoman.history import put
from dragoman.message import Role

CALL = ToolCallPart("w1", "updateWorkingMemory", {"memory": "# Secret"})
RESULT = ToolResultPart("w1", "updateWorkingMemory", {"success": True, "version": 1})
LOOK = ToolCallPart("l1", "look", {"at": "sand"})
STORED = [
    Message.user("Hello").replace(id="u0"),
    Message(Role.MODEL, (ThinkingPart("Hm."), CALL), id="a0", turn="a0"),
    Message.user(RESULT).replace(id="r0", turn="a0"),
    Message.model("Hi!").replace(id="a1", turn="a0"),
    Message.user("Look.").replace(id="u1"),
    Message.model("Both.", CALL, LOOK).replace(id="a2", turn="a2"),
    Message.user(RESULT, ToolResultPart("l1", "look", "sand")).replace(id="r2", turn="a2"),
    Message(Role.MODEL, ("Sand. <working_memory># Secret</working_memory>",), id="a3", turn="a2", metadata={WORKING_MEMORY: 2}),
]  # fmt: skip
PEOPLE = ("ag_ui", "a2a", "ai_sdk", "ai_sdk_ui", "ai_sdk_model", "mastra_v1", "mastra_v2")
"""Formats that people read."""


@pytest.mark.parametrize("name", formats.names())
def test_r14_people_do_not_see_it(name: str) -> None:
    """R-14, M-92: a step left with thinking alone is hidden, too."""
    written = json.dumps(formats.get(name).dump_messages(STORED), default=str)
    for word in ("updateWorkingMemory", "Secret", "Hm."):
        assert (word in written) is (name not in PEOPLE) or (word == "Hm." and name not in PEOPLE)
    for word in ("Hello", "Hi!", "Both.", "Sand.", "look"):
        assert word in written


@pytest.mark.parametrize("name", ["ag_ui", "a2a", "ai_sdk_ui", "mastra_v1", "mastra_v2"])
def test_a_clients_copy_without_it_changes_nothing(name: str) -> None:
    codec = formats.get(name)
    copy = codec.dump_messages([*STORED, Message.user("More.").replace(id="u2")])
    changes = put(STORED, name, copy)
    assert list(changes.messages[: len(STORED)]) == STORED
    assert [message.text for message in changes.added] == ["More."]
    assert (changes.removed, changes.edited, changes.branched) == ((), (), None)
    assert put(STORED, name, codec.dump_messages(STORED)).messages == tuple(STORED)
