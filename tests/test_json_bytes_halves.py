"""Texts with half a character, as a client leaves them that cuts an emoji in UTF-16: replaced and
told where they enter."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from dragoman import Agent, Message, formats, json_bytes, serve, tool, wires
from dragoman.event import PartDelta
from dragoman.history.list import MessageList
from dragoman.json_bytes import replace_halves
from dragoman.message import DataPart, ToolCallPart
from dragoman.testing import ScriptedModel, call
from support.asgi import exchange

pytestmark = [pytest.mark.anyio, pytest.mark.mend("1.16")]
HALF, REPLACED = "Hi \ud83d", "Hi \ufffd"


def test_halves_are_replaced_at_any_depth() -> None:
    value: dict[str, Any] = {"a": [HALF, {"b\ude00": ("x", HALF)}], "n": 1}
    assert replace_halves(value, "a test") == {
        "a": [REPLACED, {"b\ufffd": ("x", REPLACED)}],
        "n": 1,
    }
    assert replace_halves("\ud83d" + "\ude00", "a test") == "😀"
    message = Message.model(
        HALF, ToolCallPart("c", "f", {"x": HALF}), DataPart(b"\xff", "image/png", name=HALF)
    )
    mended = replace_halves(message, "a test")
    json.dumps(mended.to_json().decode())
    assert mended.text == REPLACED


def test_what_holds_none_is_the_same_object(caplog: pytest.LogCaptureFixture) -> None:
    values: list[Any] = [
        "é 😀",
        {"a": ["é"]},
        Message.user("é 😀"),
        [Message.user("é")],
        1,
        None,
        object(),
    ]
    for value in values:
        assert replace_halves(value, "a test") is value
    deep: list[Any] = [HALF]
    for _ in range(100_000):
        deep = [deep]
    assert replace_halves(deep, "a test") is deep  # refused as too deep elsewhere
    assert not caplog.records


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (rb'"Hi \ud83d"', REPLACED),
        (rb'"\uD83Dx\uDE00"', "\ufffdx\ufffd"),
        (rb'"\ud83d\ude00"', "😀"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\\ud83d \ud83d"', "\\ud83d \ufffd"),
        (rb'{"\ud83d": "\u00e9"}', {"\ufffd": "é"}),
    ],
)
def test_json_that_escapes_halves_is_read(written: bytes, read: Any) -> None:
    assert json_bytes.decode(written) == read
    assert json_bytes.decode(written.decode()) == read


def test_json_that_is_none_stays_refused() -> None:
    for odd in (b'"\\ud83d', b"{", b'"\\x"', b"\xff"):
        with pytest.raises(ValueError):
            json_bytes.decode(odd)


async def test_a_prompt_and_a_result_with_half_a_character_are_told_stored_and_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    def look() -> dict[str, str]:
        """Looks."""
        return {"seen": HALF}

    model = ScriptedModel([call("look"), "Done."])
    with caplog.at_level(logging.WARNING, logger="dragoman"):
        result = await Agent(model, tools=[look]).send(HALF)
    assert model.requests[0].messages[-1].text == REPLACED
    assert REPLACED in str(model.requests[1].messages[-1].tool_results[0].result)
    assert [Message.from_json(message.to_json()) for message in result.messages] == [
        *result.messages
    ]
    assert [record.getMessage().partition(" holds")[0] for record in caplog.records] == [
        "a text in the prompt",
        "a text in the result of look",
    ]


@pytest.mark.mend("1.12")
@pytest.mark.parametrize("to", formats.names())
def test_a_converted_conversation_can_be_written_as_json(to: str) -> None:
    converted = formats.convert([{"role": "user", "content": HALF}], to, format="openai_chat")
    assert "\\ud83d" not in json.dumps(converted.payload)
    json.dumps(converted.payload, ensure_ascii=False).encode()


def test_messages_that_are_added_are_mended() -> None:
    added = MessageList().add([{"role": "user", "content": HALF}]).add(Message.user(HALF))
    assert [message.text for message in added] == [REPLACED, REPLACED]


def test_a_models_stream_goes_on() -> None:
    chunk = b'data: {"id":"r","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi \\ud83d"}}]}\n\n'
    decoder = wires.get("openai_chat").decoder()
    events = [*decoder.feed(chunk), *decoder.feed(b"data: [DONE]\n\n"), *decoder.close()]
    assert [event.delta for event in events if isinstance(event, PartDelta)] == [REPLACED]


async def test_a_run_whose_client_cut_an_emoji_is_answered_and_stored() -> None:
    model = ScriptedModel(["Hello."])
    app = serve.app({"a": Agent(model)})
    body = b'{"model": "a", "messages": [{"role": "user", "content": "Hi \\ud83d"}]}'
    answer = await exchange(app, "POST", "/v1/chat/completions", body)
    assert answer.status == 200
    assert model.requests[0].messages[-1].text == REPLACED
