"""Ollama's older endpoint, `/api/generate`: its requests are conversations, and are answered in its
own form."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from dragoman import wires
from dragoman.errors import HistoryError
from dragoman.fold import fold, unfold
from dragoman.message import DataPart, MarkPart, Message, ThinkingPart, ToolCallPart
from dragoman.wires import ollama as wire
from support.ollama import PNG

GENERATE = "/api/generate"


@pytest.mark.parametrize(
    ("body", "messages"),
    [
        ({"model": "m", "prompt": "hi"}, (Message.user("hi"),)),
        (
            {"model": "m", "prompt": "hi", "system": "be brief"},
            (Message.system("be brief"), Message.user("hi")),
        ),
        (
            {"model": "m", "prompt": "what?", "images": [b64encode(PNG).decode()], "stream": False},
            (Message.user(DataPart(PNG, "image/png"), "what?"),),
        ),
        (
            {
                "model": "m",
                "prompt": "hi",
                "suffix": "x",
                "raw": True,
                "context": [1],
                "options": {"seed": 1},
                "format": "json",
            },
            (Message.user("hi"),),
        ),
        ({"model": "m", "prompt": "", "keep_alive": 0}, ()),
        ({"model": "m", "prompt": "a", "system": 5, "images": [5]}, (Message.user("a"),)),
    ],
)
def test_a_prompt_is_a_conversation_and_is_written_as_it_was(
    body: dict[str, Any], messages: tuple[Message, ...]
):
    request = wire.load_request(body)
    assert request.messages == messages
    http = wire.dump_http(request)
    assert (http.path, http.body) == (GENERATE, body)
    for name in wires.names("model"):
        wires.get(name).dump_request(request)


def test_a_body_without_prompt_is_known_by_its_path():
    request = wire.load_request({"model": "m", "keep_alive": 0}, path=GENERATE)
    assert (request.messages, wire.dump_http(request).path) == ((), GENERATE)
    for body in ({"model": "m"}, [], None):
        with pytest.raises(HistoryError, match="messages"):
            wire.load_request(body)  # pyright: ignore[reportArgumentType]
    with pytest.raises(HistoryError, match="messages"):
        wire.load_request([], path=GENERATE)  # pyright: ignore[reportArgumentType]


def test_what_is_more_than_a_prompt_goes_to_the_chat_endpoint():
    request = wire.load_request({"model": "m", "prompt": "hi", "stream": True})
    longer = request.replace(
        messages=[*request.messages, Message.model("yes"), Message.user("so?")]
    )
    http = wire.dump_http(longer)
    assert http.path == "/api/chat" and isinstance(http.body, dict)
    assert [entry["role"] for entry in http.body["messages"]] == ["user", "assistant", "user"]
    audio = request.replace(messages=[Message.user("a", DataPart(b"x", "audio/wav"))])
    assert wire.dump_http(audio).path == "/api/chat"


ANSWER = Message.model(ThinkingPart("hm"), "yes", ToolCallPart("a", "f", {"x": 1}))


def test_an_answer_is_written_in_the_form_of_the_endpoint():
    whole = wire.dump_response(unfold([ANSWER]), model="m", path=GENERATE)
    assert (whole["response"], whole["thinking"], whole["done"]) == (
        "yes",
        "hm",
        True,
    ) and "message" not in whole
    assert fold(wire.load_response(whole))[0].content == ANSWER.content
    encoder = wire.encoder(model="m", path=GENERATE)
    lines = [
        json.loads(line)
        for line in (b"".join(map(encoder.feed, unfold([ANSWER]))) + encoder.close()).splitlines()
    ]
    assert [(line["response"], line.get("thinking"), line["done"]) for line in lines] == [
        ("", "hm", False),
        ("yes", None, False),
        ("", None, False),
        ("", None, True),
    ]
    decoder = wire.decoder()
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert fold([*decoder.feed(data), *decoder.close()])[0].content == ANSWER.content


def test_a_prompt_with_marks_is_still_a_prompt():
    body = {"model": "m", "system": "be brief", "prompt": "hi"}
    request = wire.load_request(body, path=GENERATE)
    mark = MarkPart("step", {"ui": {"n": 1}})
    marked = tuple(
        [message.replace(content=(mark, *message.content)) for message in request.messages]
    )
    assert wire.dump_request(request.replace(messages=marked)) == body
