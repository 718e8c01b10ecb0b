"""Which format a conversation is in is told by its structure; where that does not tell it, nothing
is guessed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from dragoman import Message, TextPart, ToolCallPart, ToolResultPart, formats, wires
from dragoman.codec.digest import chain_neutral_digests
from dragoman.errors import HistoryError
from dragoman.formats.detection import detect_list
from dragoman.formats.registry import detectable, layout
from support import traffic

LISTS = {
    field: [name for name in detectable() if field in (layout(name).fields or ())]
    for field in ("contents", "input", "messages", "conversations")
}
TEXT: dict[str, Any] = {"role": "user", "content": "Hi."}
CALL = ToolCallPart("call_1", "look", {"at": "it"})
TALK = [
    Message.user("Look."),
    Message.model(TextPart("I look."), CALL),
    Message.user(ToolResultPart("call_1", "look", {"seen": 1})),
    Message.model("Seen."),
]

CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    ],
}
MESSAGES: Mapping[str, Any] = {
    "openai_chat": [TEXT, CHAT_CALL, {"role": "tool", "tool_call_id": "call_1", "content": "1"}],
    "anthropic": [TEXT, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]}],
    "google": [{"role": "user", "parts": [{"text": "Hi."}]}, {"role": "model", "parts": [{"text": "Ho."}]}],
    "openai_responses": [TEXT, {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}],
    "ollama": [TEXT, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "look", "arguments": {}}}]}],
    "cohere": [TEXT, {"role": "assistant", "tool_plan": "I look.", "tool_calls": [{**CHAT_CALL["tool_calls"][0], "id": "look_0"}]}],
    "bedrock_converse": [
        {"role": "user", "content": [{"text": "Hi."}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "look", "input": {}}}]},
    ],
    "google_interactions": [
        {"type": "user_input", "content": [{"type": "text", "text": "Hi."}]},
        {"type": "function_call", "id": "c", "name": "look", "arguments": {}},
        {"type": "thought", "signature": "x"},
    ],
    "dragoman": [{"v": 2, "role": "user", "content": [{"type": "text", "text": "Hi."}]}],
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_what_one_format_alone_has_tells_it(name: str) -> None:
    assert formats.detect(MESSAGES[name]) == name
    assert formats.detect(MESSAGES[name][-1]) == name  # one message, in no list


@pytest.mark.parametrize("name", formats.names())
def test_what_a_format_writes_is_read_as_it_was(name: str) -> None:
    format_ = formats.get(name)
    losses: list[Any] = []
    payload = format_.dump_messages(TALK, losses=losses)
    body = (
        {next(field for field, names in LISTS.items() if name in names): payload}
        if name in wires.names("model")
        else payload
    )
    found = detect_list(payload if isinstance(payload, list | dict) else body)[0]
    said = chain_neutral_digests(format_.load_messages(payload))
    assert chain_neutral_digests(formats.get(found.format).load_messages(found.payload)) == said


def test_plain_texts_are_read_alike_by_all_and_have_the_usual_format() -> None:
    assert formats.detect([TEXT, {"role": "assistant", "content": "Ho."}]) == "openai_chat"
    assert formats.detect(["Hi.", TEXT]) == "openai_chat"


def test_where_formats_read_it_differently_nothing_is_guessed() -> None:
    several = [TEXT, {"role": "assistant", "content": "Ho.", "reasoning": "Hm."}, TEXT]
    names = [name for name in LISTS["messages"] if formats.get(name).votes(several[1])]
    payloads = {"anthropic": {"messages": several}}
    chains = {
        tuple(chain_neutral_digests(formats.get(name).load_messages(payloads.get(name, several))))
        for name in names
    }
    assert len(chains) > 1, "all formats read it alike now: find another example"
    with pytest.raises(HistoryError, match=r"openai_chat .*read them differently: pass format="):
        formats.detect(several)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"system": "Be brief."}, "anthropic"),
        ({"tools": [{"name": "look", "input_schema": {}}]}, "anthropic"),
        ({"keep_alive": 5}, "ollama"),
        ({"safe_prompt": True}, "mistral"),
        ({"citation_options": {}}, "cohere"),
        ({"max_completion_tokens": 5}, "openai_chat"),
        ({}, "openai_chat"),
    ],
)
def test_fields_beside_the_messages_tell_it_too(fields: dict[str, Any], name: str) -> None:
    assert formats.detect({"model": "m", "messages": [TEXT], **fields}) == name


def test_a_mixed_list_is_told_apart() -> None:
    mixed = [*MESSAGES["openai_chat"], *MESSAGES["google"], "And?", *MESSAGES["anthropic"][1:]]
    found = detect_list(mixed)
    assert [(each.format, each.start) for each in found] == [
        ("openai_chat", 0),
        ("google", 3),
        ("anthropic", 6),
    ]
    assert found[2].payload == {"messages": MESSAGES["anthropic"][1:]}
    with pytest.raises(HistoryError, match="openai_chat and google and anthropic"):
        formats.detect(mixed)


@pytest.mark.parametrize(
    "value", [None, 5, "", [], {}, [5], [[TEXT]], [{}], {"messages": []}, {"messages": [5]}, [None]]
)
def test_what_is_no_conversation_is_refused(value: Any) -> None:
    with pytest.raises(HistoryError):
        formats.detect(value)


@pytest.mark.parametrize("folder", sorted({*traffic.WIRES} - {"openai_embeddings", "cohere_v1"}))
def test_recorded_bodies_are_told(folder: str) -> None:
    """No recorded request is read in another way than its own wire reads it."""
    wire, seen = wires.get(traffic.WIRES[folder]), 0
    for exchange in traffic.exchanges(folder):
        body = exchange.request or {}
        field = next((field for field in LISTS if isinstance(body.get(field), list)), None)
        if field is None or traffic.WIRES[folder] not in LISTS[field]:
            continue
        try:
            found = detect_list(body)
        except HistoryError:
            continue
        seen += 1
        assert len(found) == 1, exchange
        if found[0].format != wire.name:
            own = (
                body[field]
                if wire.name != "anthropic"
                else {name: body[name] for name in ("system", "messages") if name in body}
            )
            assert chain_neutral_digests(
                formats.get(found[0].format).load_messages(found[0].payload)
            ) == chain_neutral_digests(wire.load_messages(own)), exchange
    assert seen


def test_the_format_of_what_stands_before_is_chosen_without_reading(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = wires.get("openai_chat").dump_messages(TALK)

    def never(*_: Any) -> Any:
        raise AssertionError("it was read")

    detect_list(written[:1])  # what is known of the formats is found out once
    monkeypatch.setattr("dragoman.formats.detection._digest_reading", never)
    for message in written:
        assert [run.format for run in detect_list([message], near="openai_chat")] == ["openai_chat"]
    with pytest.raises(AssertionError, match="it was read"):
        detect_list(written[:1])
