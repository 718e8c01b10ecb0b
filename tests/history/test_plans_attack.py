"""A plan against what becomes of a conversation: each difference between what was given and what is
read again of what is sent has its loss, and each loss shows a difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman import formats, wires
from dragoman.codec.marks import holds_only_waits
from dragoman.formats.registry import Format
from dragoman.history import plan
from dragoman.history.plans import write
from dragoman.history.target import find_target
from dragoman.loss import Lost
from dragoman.message import (
    Content,
    DataPart,
    LinkPart,
    MarkPart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.wires.google.quirks import Quirks
from support.conversations import conversations
from support.histories import NEUTRAL
from support.law import unexplained
from support.switching import FOLDERS, PROVIDERS, recorded
from support.versions import VERSIONS

WIRES = {
    **{
        f"{provider.name}:{provider.chat_model or 'llama3.2'}": wire
        for wire, provider in PROVIDERS.items()
    },
    "google:gemini-2.5-flash": "google",
}
PROVIDERS_TOO = ("anthropic", "google", "mistral", "ollama", "cohere")
"""Names of formats that are names of providers."""
FORMATS: dict[str, str | Format] = {
    **{name: name for name in formats.names() if name not in PROVIDERS_TOO},
    **VERSIONS,
}
"""Name, and version where there are several → the format."""
FIELDS: tuple[tuple[type, dict[str, Any]], ...] = (
    (TextPart, {"anthropic": {"citations": [{"type": "char_location", "cited_text": "x"}]}}),
    (TextPart, {"google": {"thoughtSignature": "c2ln"}}),
    (TextPart, {"anthropic": {"cache_control": {"type": "ephemeral"}}}),
    (DataPart, {"openai_chat": {"image_url": {"detail": "low"}}}),
    (DataPart, {"google": {"videoMetadata": {"fps": 1}}}),
    (LinkPart, {"openai_responses": {"detail": "low"}}),
    (ToolCallPart, {"google": {"thoughtSignature": "c2ln"}}),
    (ToolCallPart, {"openai_responses": {"id": "fc_1", "status": "completed", "namespace": "n"}}),
    (ToolResultPart, {"anthropic": {"cache_control": {"type": "ephemeral"}}}),
)
FEW = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
WAITS = Message.user(MarkPart("interrupt", {"dragoman": {"id": "i1"}}))


@st.composite
def harmed(draw: Any) -> list[Message]:
    """A conversation as a user may have it: with marks, fields of formats' own, and results that
    are lost, doubled or in a wrong place."""
    messages: list[Message] = draw(
        conversations(open_calls=True, repeated_calls=False)
    )  # else it is not said whose a lone result is
    out: list[Message] = []
    for message in messages:
        content: list[Content] = []
        owner = draw(
            st.sampled_from(["anthropic", "google", "openai_chat", "openai_responses"])
        )  # one signs a message
        for piece in message.content:
            dice = draw(st.integers(0, 19))
            if dice == 0:
                content.append(MarkPart("step", {"elsewhere": {"n": 1}}))
            if dice == 1 and isinstance(piece, ToolResultPart) and piece.run_by != "provider":
                continue
            if dice == 2 and isinstance(piece, ToolResultPart) and piece.run_by != "provider":
                content.append(piece)
            own = (
                [own for kind, own in FIELDS if type(piece) is kind and owner in own]
                if dice in (3, 4, 5, 6)
                else []
            )
            if own and not piece.native and getattr(piece, "run_by", "") != "provider":
                piece = msgspec.structs.replace(piece, native=own[0])
            content.append(piece)
        if content or not message.content:
            out.append(message.replace(content=tuple(content)))
        if draw(st.integers(0, 19)) == 0:
            out.append(WAITS)
    return out


def read_again(messages: Sequence[Message], target: str) -> list[Message]:
    """What is written of them for a target, as its format reads it."""
    found = find_target(FORMATS.get(target, target))
    payload = without_placeholders(
        json.loads(msgspec.json.encode(write(messages, found, fields=False).payload))
    )
    if target in WIRES:
        return list(wires.get(WIRES[target]).load_request(payload, origin=found.origin).messages)
    return formats.get(found.name).load_messages(payload)


def without_placeholders(payload: Any) -> Any:
    """What is written, without the signature that stands in for one that there is not."""
    if isinstance(payload, dict):
        return {
            key: without_placeholders(value)
            for key, value in payload.items()
            if value != Quirks().placeholder
        }
    return (
        [without_placeholders(each) for each in payload] if isinstance(payload, list) else payload
    )


def wrong(messages: Sequence[Message], target: str) -> list[str]:
    """Where the plan is not exact."""
    found = plan(messages, FORMATS.get(target, target))
    after = read_again(messages, target)
    everything = [*found.losses, *found.repairs]
    serious = [loss for loss in found.losses if loss.what is not Lost.field]
    before = [
        Message.system() if holds_only_waits(message) else message for message in messages
    ]  # of which nothing is ever sent
    told = unexplained(before, after, everything)
    return [
        each
        for each in told
        if not any(f"{loss!r}" in each for loss in found.repairs) or "missing and" in each
    ] + [f"{loss} is double" for loss in set(serious) if serious.count(loss) > 1]


@pytest.mark.parametrize("target", [*WIRES, *FORMATS])
@FEW
@given(messages=harmed())
def test_losses_are_the_differences(target: str, messages: list[Message]) -> None:
    assert wrong(messages, target) == []


@pytest.mark.parametrize("target", [*WIRES, *FORMATS])
def test_losses_are_the_differences_of_every_kind(target: str) -> None:
    for name, messages in NEUTRAL.items():
        assert wrong(messages, target) == [], name


@pytest.mark.slow
@pytest.mark.parametrize("target", [*WIRES, *FORMATS])
@MANY
@given(messages=harmed())
def test_losses_are_the_differences_of_many(target: str, messages: list[Message]) -> None:
    assert wrong(messages, target) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", [name for name, folders in FOLDERS.items() if folders])
def test_losses_are_the_differences_of_what_was_recorded(first: str) -> None:
    seen = 0
    for name, messages in recorded(first, every=7):
        for target in WIRES:
            seen += 1
            assert wrong(messages, target) == [], (name, target)
    assert seen
