"""A vendor's look-alike of the Chat family: a record, as a plug-in would have it, is a whole
wire."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import Message, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.codec.native import WireNative
from dragoman.errors import SettingsError
from dragoman.fold import fold
from dragoman.message import Content, FinishReason, Origin, Role
from dragoman.request import ModelRequest, Settings, ToolSpec
from dragoman.wires.chat import ChatDialect
from dragoman.wires.chat.content import dump_noted_block
from dragoman.wires.chat.record import OutgoingChat
from dragoman.wires.chat.usage import FINISH, WORDS

ACME = ChatDialect(
    name="acme", own=WireNative("acme"), title="Acme", thinking=("thought",), calls="actions", tools="abilities",
    finish={**FINISH, "acted": FinishReason.tool_calls}, words={**WORDS, FinishReason.tool_calls: ("acted",)},
)  # fmt: skip
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
ANSWER = {"role": "assistant", "content": "So:", "thought": "hm", "actions": [CALL]}
WIRE_FORM = [
    {"role": "user", "content": "Add."},
    ANSWER,
    {"role": "tool", "tool_call_id": "c1", "content": "2"},
]
PARTS = (ThinkingPart("hm"), "So:", ToolCallPart("c1", "add", {"a": 1}))
MESSAGES = [
    Message.user("Add."),
    Message(Role.MODEL, PARTS),
    Message.user(ToolResultPart("c1", "add", "2")),
]
RESPONSE = {
    "id": "r", "object": "chat.completion", "created": 0, "model": "m",
    "choices": [{"index": 0, "message": ANSWER, "logprobs": None, "finish_reason": "acted"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}  # fmt: skip


def test_conversations() -> None:
    assert ACME.load_messages(WIRE_FORM) == MESSAGES
    assert ACME.dump_messages(MESSAGES) == WIRE_FORM
    loaded = ACME.load_messages(WIRE_FORM, origin=Origin("acme"))
    assert ACME.dump_messages(loaded, target=Origin("acme")) == WIRE_FORM


def test_requests() -> None:
    function = {
        "name": "add",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    }
    abilities = [{"type": "function", "function": function}]
    body = {"model": "m", "messages": WIRE_FORM, "abilities": abilities, "top_p": 0.5}
    tools = (ToolSpec("add", "", function["parameters"]),)
    request = ModelRequest("m", tuple(MESSAGES), tools, Settings(top_p=0.5))
    assert ACME.load_request(body) == request
    assert ACME.dump_request(request) == body
    assert ACME.dump_http(request).path == "/chat/completions"


def test_responses_whole_and_streamed() -> None:
    events = ACME.load_response(RESPONSE)
    (message,) = fold(events)
    assert (message.content, message.finish_reason) == (
        MESSAGES[1].content,
        FinishReason.tool_calls,
    )
    assert ACME.dump_response(events) == RESPONSE
    encoder, decoder = ACME.encoder(), ACME.decoder()
    stream = b"".join([encoder.feed(event) for event in events]) + encoder.close()
    assert json.loads(stream.split(b"\n\n")[1][6:])["choices"][0]["delta"] == {"thought": "hm"}
    (again,) = fold(
        [event for data in stream.splitlines(keepends=True) for event in decoder.feed(data)]
        + decoder.close()
    )
    assert (again.content, again.finish_reason, again.usage) == (
        message.content,
        message.finish_reason,
        message.usage,
    )


def test_a_vendor_may_write_plain_texts_in_a_form_of_its_own() -> None:
    def loud(out: OutgoingChat, position: int, place: int, piece: Content) -> dict[str, Any] | None:
        block = dump_noted_block(out, position, place, piece)
        return block and {**block, "text": block["text"].upper()}

    class Loud(ChatDialect, frozen=True, kw_only=True, eq=False):
        dump_noted_block = staticmethod(loud)

    messages = [Message.user("a"), Message.model("b")]
    sent = [{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}]
    assert Loud(name="acme", own=WireNative("acme"), straight=False).dump_messages(messages) == sent


def test_a_lone_name_where_names_are_wanted_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"thinking is a tuple of names, also for one: \('inner',\)"
    ):
        ChatDialect(name="acme", own=WireNative("acme"), thinking="inner")  # pyright: ignore[reportArgumentType]
