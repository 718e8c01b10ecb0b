"""Official clients parse an answer with a token and send it back, as their users do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dragoman import Message, ToolCallPart, wires
from dragoman.fold import unfold
from dragoman.request import ModelRequest
from dragoman.serve.seals.open_messages import open_messages
from dragoman.serve.seals.seal_events import seal_events
from dragoman.serve.seals.token_encryption import Sealer
from support.gateway_cases import thought
from support.switching import TARGETS

SEALER = Sealer([b"k" * 32])
ASKED: Mapping[str, Any] = {"role": "user", "content": "Look."}


def chat(body: bytes) -> Any:
    from openai.types.chat import ChatCompletion

    message = ChatCompletion.model_validate_json(body).choices[0].message
    return {"model": "m", "messages": [ASKED, message.model_dump(exclude_none=True)]}


def responses(body: bytes) -> Any:
    from openai.types.responses import Response

    items = Response.model_validate_json(body).output
    return {"model": "m", "input": [ASKED, *(item.model_dump(exclude_none=True) for item in items)]}


def anthropic(body: bytes) -> Any:
    from anthropic.types import Message as Answer

    blocks = [
        block.model_dump(exclude_none=True) for block in Answer.model_validate_json(body).content
    ]
    return {
        "model": "m",
        "max_tokens": 9,
        "messages": [ASKED, {"role": "assistant", "content": blocks}],
    }


def google(body: bytes) -> Any:
    from google.genai.types import GenerateContentResponse

    candidates: Any = GenerateContentResponse.model_validate_json(body).candidates
    content = candidates[0].content.model_dump(exclude_none=True, by_alias=True, mode="json")
    return {"contents": [{"role": "user", "parts": [{"text": "Look."}]}, content]}


@pytest.mark.parametrize(
    ("client", "resent", "upstream"),
    [
        ("openai_chat", chat, "anthropic"),
        ("openai_responses", responses, "google"),
        ("anthropic", anthropic, "openai_responses"),
        ("google", google, "anthropic"),
    ],
)
@pytest.mark.slow
def test_an_official_client_brings_it_back(
    client: str, resent: Callable[[bytes], Any], upstream: str
) -> None:
    wire: Any = wires.get(client)
    answer = Message.model(
        thought(upstream), "I look.", ToolCallPart("call_1", "look", {"at": "home"})
    )
    answer = answer.replace(id="m1", origin=TARGETS[upstream])
    asked = ModelRequest("m", (Message.user("Look."),))
    envelope = wire.envelope(asked, id="id1", now=datetime(2026, 1, 1, tzinfo=UTC))
    events = seal_events(unfold([answer]), wire, SEALER, "anna")
    body = resent(msgspec.json.encode(wire.dump_response(events, **envelope)))
    loaded = wire.load_request(json.loads(json.dumps(body))).messages
    (_, message), losses = open_messages(loaded, wire, SEALER, "anna")
    assert not losses
    assert message.content == answer.content
    assert message.origin == answer.origin
