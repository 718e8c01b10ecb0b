"""An answer that the provider suspends goes on: the same request again, with its token."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.codec.dump_cache import DumpedRequest, History
from dragoman.fold import fold
from dragoman.message import FinishReason, Message, Origin
from dragoman.request import ModelRequest
from dragoman.wires import google as wire

TARGET = Origin("google", model="gemini-3")
ASK = Message.user("Tell me all.")


def suspended(**fields: Any) -> Message:
    content = {"role": "model", "parts": [{"text": "Part one, "}]}
    candidate = {"content": content, "finishReason": "CONTINUATION", "index": 0, **fields}
    (message,) = fold(wire.load_response({"candidates": [candidate]}, origin=TARGET))
    return message


def test_a_suspended_answer_is_paused_and_one_without_a_token_is_cut() -> None:
    assert suspended(continuationToken="abc").finish_reason is FinishReason.pause
    assert suspended().finish_reason is FinishReason.length


@pytest.mark.parametrize("remembers", [False, True])
def test_the_same_request_is_sent_with_the_token(remembers: bool) -> None:
    messages = (*[Message.user("a"), Message.model("b")] * 10, ASK)
    paused = suspended(continuationToken="abc")
    before = wire.dump_request(ModelRequest("gemini-3", messages), target=TARGET)
    request = ModelRequest("gemini-3", (*messages, paused))
    turn = DumpedRequest(History(), request.messages, TARGET, "google") if remembers else None
    http = wire.dump_http(request, target=TARGET, history=turn)
    assert http.body == {**before, "continuationToken": "abc"}
    if turn is not None:
        asked = DumpedRequest(None, messages, TARGET, "google")
        wire.dump_http(ModelRequest("gemini-3", messages), target=TARGET, history=asked)
        assert turn.prefix == asked.prefix


def test_another_provider_and_a_finished_answer_get_no_token() -> None:
    paused = suspended(continuationToken="abc")
    for last, target in (
        (paused, Origin("vertex", model="m")),
        (paused.replace(finish_reason=FinishReason.stop), TARGET),
        (Message.model("x").replace(finish_reason=FinishReason.pause), TARGET),
    ):
        body = wire.dump_request(ModelRequest("m", (ASK, last)), target=target)
        assert "continuationToken" not in body
        assert len(body["contents"]) == 2
