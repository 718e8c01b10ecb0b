"""What is a little wrong: refused with its place, or read and written without a crash; and how much
work a usual conversation is."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest

from dragoman import formats
from dragoman.errors import HistoryError
from dragoman.wires.ai_sdk_messages.read_parts import Reading
from support.ai_sdk_samples import AI_4, CORE, EVERY_PART, MODEL_PARTS, MODEL_TALK, TALK, text, ui

DOCUMENTS = [TALK, EVERY_PART, AI_4, MODEL_TALK, MODEL_PARTS, CORE]
VALUES: list[Any] = [
    None, True, 0, 1.5, "", "x", [], {}, [1], {"type": "text"}, {"a": 1}, "data:a/b;base64,AA==", "file-1",
    {"dragoman": {"messages": [{"id": None}]}}, {"dragoman": {"fields": {"name": "x"}}}, {"dragoman": {"native": {"x": {}}}},
    {"openai": {"itemId": "x", "reasoningEncryptedContent": None}},
]  # fmt: skip
NAMES = [
    "type",
    "state",
    "id",
    "text",
    "content",
    "parts",
    "role",
    "providerMetadata",
    "approval",
    "metadata",
    "step",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in entries:
        yield from places(inner, (*path, key))


def mutated(seed: int) -> list[Any]:
    """A conversation with one thing wrong, or two."""
    draw = random.Random(seed)
    document = copy.deepcopy(draw.choice(DOCUMENTS))
    for _ in range(draw.choice([1, 1, 2])):
        *path, last = draw.choice(list(places(document)))
        holder: Any = document
        for key in path:
            holder = holder[key]
        way = draw.random()
        if way < 0.6:
            holder[last] = copy.deepcopy(draw.choice(VALUES))
        elif way < 0.8 and len(document) > 1:
            del holder[last]
        elif isinstance(holder, dict):
            holder[draw.choice(NAMES)] = copy.deepcopy(draw.choice(VALUES))
    return document


@pytest.mark.slow
def test_what_is_a_little_wrong_is_refused_or_read() -> None:
    family = [formats.get(name) for name in ("ai_sdk_ui", "ai_sdk_model")]
    refused = 0
    for seed in range(400):
        payload = mutated(seed)
        for format_ in family:
            try:
                messages = format_.load_messages(payload)
            except HistoryError as error:
                assert error.message.startswith(("[", "messages")), error.message
                refused += 1
                continue
            for other in family:
                for version in (None, "v4", "v5"):
                    other.dump_messages(messages, version=version)  # pyright: ignore[reportCallIssue]
    assert 100 < refused < 700


@pytest.mark.parametrize("depth", [100, 100_000])
def test_what_nests_too_deep_is_refused(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    message = ui("a", "assistant", {"type": "data-x", "data": value})
    if depth < 128:
        assert formats.get("ai_sdk_ui").dump_messages(
            formats.get("ai_sdk_ui").load_messages([message])
        ) == [message]
        return
    with pytest.raises(HistoryError):
        formats.get("ai_sdk_ui").load_messages([message])


def test_a_usual_conversation_is_not_written_while_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The work of a message is its own: nothing is compared with what would be written of a part
    that is as the library writes it."""
    compared: list[Any] = []
    plain = Reading.read
    monkeypatch.setattr(
        Reading, "read", lambda *given, **named: compared.append(given) or plain(*given, **named)
    )
    signed = {
        "type": "reasoning",
        "text": "Hm.",
        "state": "done",
        "providerMetadata": {"anthropic": {"signature": "c2ln"}},
    }
    talk = [
        {**message, "id": f"{message['id']}-{n}"}
        for n in range(50)
        for message in [*TALK, ui("b", "assistant", signed, text("So."))]
    ]
    messages = formats.get("ai_sdk_ui").load_messages(talk)
    assert formats.get("ai_sdk_ui").dump_messages(messages) == talk
    assert compared == []
    assert len(messages) == 50 * 5
