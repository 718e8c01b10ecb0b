"""UI messages held against the library: what it writes comes back equal, what we write it takes,
and tells the model the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ai_sdk.corpus import written
from ai_sdk.meaning import of_messages, of_prompt

from dragoman import formats, wires
from dragoman.errors import HistoryError
from dragoman.message import Message, Role
from dragoman.repair import repair
from support import traffic
from support.ai_sdk import VERSIONS, AiSdk

pytestmark = pytest.mark.service
UI = formats.get("ai_sdk_ui")
MODEL_FOLDERS = (
    "anthropic",
    "openai_chat",
    "openai_responses",
    "google",
    "mistral",
    "cohere",
    "ollama",
)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_library_writes_comes_back_equal(library: AiSdk, version: int) -> None:
    count = 0
    for each in written(library, version, seeds=12):
        for state in each.states:
            messages = UI.load_messages(state)
            assert UI.dump_messages(messages) == state, each.name
            assert formats.detect(state) == "ai_sdk_ui"
            count += 1
        stored = [Message.from_json(message.to_json()) for message in UI.load_messages(each.ui)]
        assert UI.dump_messages(stored) == each.ui
    assert count > 250


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_written_for_another_version_that_one_takes(library: AiSdk, version: int) -> None:
    for each in written(library, version):
        messages = UI.load_messages(each.ui)
        for other in VERSIONS:
            made = UI.dump_messages(messages, version=f"v{other}")
            if other == 4 and _waits(messages):
                continue  # ai 4 throws at any call that has no result yet, its own too
            assert library("check_ui", version=other, messages=made) is None, (each.name, other)


def _waits(messages: list[Message]) -> bool:
    calls = [call.id for message in messages for call in message.tool_calls]
    results = [result.id for message in messages for result in message.tool_results]
    return len(calls) > len(results)


def _recorded() -> list[list[Message]]:
    found: list[list[Message]] = []
    for folder in MODEL_FOLDERS:
        for number, exchange in enumerate(traffic.exchanges(folder)):
            if number % 5:
                continue
            try:
                messages = (
                    wires.get(traffic.WIRES[folder]).load_request(exchange.request or {}).messages
                )
            except HistoryError:
                continue
            found.append(list(messages))
    return found


def test_recorded_conversations_are_taken_and_tell_the_model_the_same(library: AiSdk) -> None:
    recorded = _recorded()
    if not recorded:
        pytest.skip("the recorded traffic is not here")
    compared = 0
    for messages in recorded:
        mended = repair(messages)
        for version in (5, 7):
            losses: list[Any] = []
            made = json.loads(
                json.dumps(UI.dump_messages(mended, version=f"v{version}", losses=losses))
            )
            if not made:
                continue
            assert library("check_ui", version=version, messages=made) is None
            if losses or not all(_is_plain(message) for message in mended):
                continue
            prompt = library("prompt", version=version, messages=made, ui=True)
            assert of_prompt(prompt) == of_messages(mended)
            compared += 1
    assert compared > 150


def _is_plain(message: Message) -> bool:
    """Whether a prompt of the library's says all of it in its own words."""
    results = [piece for piece in message.content if hasattr(piece, "is_error")]
    return not any(
        result.is_error or result.denied or result.is_content for result in results
    ) and all(
        getattr(piece, "run_by", "agent") == "agent"
        and getattr(piece, "state", "complete") == "complete"
        for piece in message.content
    )


def test_what_was_said_within_a_turn_tells_the_model_the_same(library: AiSdk) -> None:
    asked = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "How warm?"}]}
    call = {
        "type": "tool-f",
        "toolCallId": "c",
        "state": "output-available",
        "input": {},
        "output": 1,
    }
    said = {"type": "steering-message", "id": "s", "parts": [{"type": "text", "text": "In Rome."}]}
    end = {"type": "text", "text": "21.", "state": "done"}
    made = [
        asked,
        {"id": "a", "role": "assistant", "parts": [call, said, {"type": "step-start"}, end]},
    ]
    assert library("check_ui", version=7, messages=made) is None
    loaded = UI.load_messages(made)
    assert of_prompt(library("prompt", version=7, messages=made, ui=True)) == of_messages(loaded)
    for version in (5, 6):
        shown = UI.dump_messages(loaded, version=f"v{version}")
        assert of_prompt(
            library("prompt", version=version, messages=shown, ui=True)
        ) == of_messages(loaded)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_that_says_nothing_is_taken(library: AiSdk, version: int) -> None:
    messages = [Message.user("Hi."), Message(Role.MODEL, ()), Message(Role.USER, ())]
    made = UI.dump_messages(messages, version=f"v{version}")
    assert library("check_ui", version=version, messages=made) is None
