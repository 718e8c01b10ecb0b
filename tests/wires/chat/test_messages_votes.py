"""How surely one JSON message is of a wire of the Chat family."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.wires import mistral, openai_chat

WIRES = {"openai_chat": openai_chat, "mistral": mistral}


def assistant(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def call(
    call_id: Any = "call_1", arguments: Any = "{}", name: str = "f", **fields: Any
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return assistant(
        tool_calls=[{"id": call_id, "type": "function", "function": function, **fields}]
    )


def image(url: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": url}


DATA = "data:image/png;base64,eA=="
VOTES: list[tuple[Any, int, int]] = [
    ({"role": "user", "content": "hi"}, 1, 1),
    ({"role": "system", "content": "hi"}, 1, 1),
    (assistant(content="hi"), 1, 1),
    (user({"type": "text", "text": ""}), 1, 1),
    (user(), 1, 1),
    (assistant(content=None), 1, 1),
    (assistant(content="", tool_calls=None), 1, 1),
    ({"role": "developer", "content": "hi"}, 2, 0),
    (assistant(content="hi", refusal=None), 3, 1),
    (assistant(function_call={"name": "f", "arguments": "{}"}), 3, 0),
    (assistant(audio={"id": "a"}), 2, 0),
    (assistant(content="hi", prefix=True), 1, 3),
    (call(), 3, 1),
    (call("abcdefghi"), 2, 3),
    (call("functions.f:0"), 2, 1),
    (call(None), 1, 1),
    (call(arguments={}), 0, 0),
    (call(name=""), 0, 0),
    (call(type="odd"), 0, 0),
    (assistant(tool_calls=[5]), 0, 0),
    ({"role": "tool", "tool_call_id": "call_1", "content": "1"}, 3, 1),
    ({"role": "tool", "tool_call_id": "abcdefghi", "content": "1"}, 2, 3),
    ({"role": "tool", "name": "f", "content": "1"}, 1, 1),
    ({"role": "function", "name": "f", "content": "1"}, 3, 0),
    (user(image({"url": DATA})), 2, 2),
    (user(image(DATA)), 0, 2),
    (user({"type": "input_audio", "input_audio": {"data": "eA==", "format": "wav"}}), 3, 0),
    (user({"type": "document_url", "document_url": "https://a.test/x.pdf"}), 0, 3),
    (assistant(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]), 0, 1),
    # of other formats
    ({"role": "tool", "tool_name": "f", "content": "1"}, 0, 0),
    ({"role": "tool", "toolCallId": "call_1", "content": "1"}, 0, 0),
    ({"role": "user", "parts": [{"text": "hi"}]}, 0, 0),
    ({"role": "model", "parts": [{"text": "hi"}]}, 0, 0),
    (assistant(parts=[{"type": "text", "text": "hi"}]), 0, 0),
    (assistant(toolCalls=[]), 0, 0),
    (user({"type": "input_text", "text": "hi"}), 0, 0),
    (user({"type": "tool_result", "tool_use_id": "t", "content": "1"}), 0, 0),
    (user({"type": "text", "text": "hi"}, {"type": "image", "source": {}}), 0, 0),
    (user({"type": "file", "data": "eA==", "mediaType": "application/pdf"}), 0, 0),
    ({"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}, 0, 0),
    ({"role": "user", "content": 5}, 0, 0),
    ({"role": ["user"], "content": "hi"}, 0, 0),
    ({}, 0, 0), ([], 0, 0), (None, 0, 0), ("user", 0, 0),
]  # fmt: skip


@pytest.mark.parametrize(("message", "of_chat", "of_mistral"), VOTES)
def test_how_surely_a_message_is_of_a_format(message: Any, of_chat: int, of_mistral: int) -> None:
    assert (openai_chat.votes(message), mistral.votes(message)) == (of_chat, of_mistral)


words = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "user",
        "assistant",
        "tool",
        "image_url",
    ]
)
values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | words | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words | st.integers(), inner, max_size=5)
    ),
    max_leaves=12,
)


@given(values, st.sampled_from([*WIRES]))
def test_votes_never_raise(message: Any, name: str) -> None:
    assert WIRES[name].votes(message) in range(4)
    fields = {"role": "assistant", "content": message, "tool_calls": message}
    assert WIRES[name].votes(fields) in range(4)
