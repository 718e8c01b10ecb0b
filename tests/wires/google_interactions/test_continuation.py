"""Interactions that Google suspends go on by their token (R, section 1)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman import Agent
from dragoman.fold import fold
from dragoman.message import FinishReason
from dragoman.transport import Exchange, Player
from dragoman.wires import google_interactions as wire

pytestmark = pytest.mark.anyio


def body(status: str, text: str, **fields: Any) -> bytes:
    steps = [{"type": "model_output", "content": [{"type": "text", "text": text}]}]
    return json.dumps({"id": f"v1_{text}", "status": status, "steps": steps, **fields}).encode()


SUSPENDED = body("requires_continuation", "One", continuation_token="t1")


@pytest.mark.parametrize("stored", [True, False])
async def test_an_agent_goes_on_with_a_suspended_interaction(stored: bool) -> None:
    player = Player([Exchange(body=SUSPENDED), Exchange(body=body("completed", "Two"))])
    options = {} if stored else {"store": False}
    agent = Agent("google-interactions:gemini-3.5-flash", transport=player, api_key="x", options=options)  # fmt: skip
    result = await agent.send("Count.")
    assert (result.output, result.finish_reason) == ("OneTwo", FinishReason.stop)
    first, second = [
        msgspec.json.decode(msgspec.json.encode(each.body)) for each in player.requests
    ]
    assert second["continuation_token"] == "t1"
    assert second.get("previous_interaction_id") == ("v1_One" if stored else None)
    assert second.get("input") == (None if stored else first["input"])


def test_without_a_token_it_is_a_limit_and_is_written_as_it_came() -> None:
    events = wire.load_response(body("requires_continuation", "One"))
    assert fold(events)[0].finish_reason is FinishReason.length
    events = wire.load_response(SUSPENDED)
    assert fold(events)[0].finish_reason is FinishReason.pause
    written = wire.dump_response(events)
    assert (written["status"], written["continuation_token"]) == ("requires_continuation", "t1")
