"""A stream without `alt=sse`: a JSON array that grows."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import Message, ToolCallPart, serve
from dragoman.errors import OverloadedError
from dragoman.event import Event, RunError
from dragoman.fold import fold, unfold
from dragoman.message import ThinkingPart
from dragoman.testing import ScriptedModel
from dragoman.wires import google
from support.asgi import exchange

ANSWER = Message.model(
    ThinkingPart("Hm."), "Grüße.", ToolCallPart("c1", "look", {"at": "]"})
).replace(id="m")


def written(events: list[Event]) -> list[bytes]:
    encoder = google.encoder(id="r", model="m", array=True)
    return [*map(encoder.feed, events), encoder.close(), encoder.close()]


@given(st.lists(st.integers(0, 600)))
def test_it_comes_back_however_it_is_cut(places: list[int]) -> None:
    data = b"".join(written(unfold([ANSWER])))
    assert all("candidates" in each for each in json.loads(data))
    cuts = [0, *sorted(min(place, len(data)) for place in places), len(data)]
    decoder = google.decoder()
    events = [event for a, b in itertools.pairwise(cuts) for event in decoder.feed(data[a:b])]
    [message] = fold([*events, *decoder.close()])
    assert message.text == ANSWER.text
    assert [call.arguments for call in message.tool_calls] == [{"at": "]"}]


def test_white_space_between_its_pieces_says_nothing() -> None:
    encoder = google.encoder(array=True)
    ping = getattr(encoder, "ping")  # noqa: B009
    assert json.loads(ping.join([b"", *written(unfold([ANSWER])), b""])) == json.loads(
        b"".join(written(unfold([ANSWER])))
    )


def test_an_error_in_the_middle_ends_the_array() -> None:
    events = [*unfold([ANSWER])[:-1], RunError(OverloadedError("too busy"))]
    *_, last = json.loads(b"".join(written(events)))
    assert last["error"]["code"] == 503


def test_without_an_answer_it_is_empty() -> None:
    assert json.loads(b"".join(written([]))) == []


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("", "application/json"),
        ("?alt=json", "application/json"),
        ("?key=k&alt=sse", "text/event-stream"),
        ("?$alt=sse", "text/event-stream"),
        ("?alt=sse&key=k", "text/event-stream"),
        ("?alt=ssee", "application/json"),
    ],
)
@pytest.mark.anyio
async def test_a_server_streams_as_its_client_asks(query: str, kind: str) -> None:
    app = serve.app(gateway=serve.Gateway({"m": ScriptedModel(lambda _: "Hello there.", chunks=4)}))
    body = json.dumps({"contents": [{"parts": [{"text": "Hi"}]}]}).encode()
    path = f"/v1beta/models/m:streamGenerateContent{query}"
    answer = await exchange(app, "POST", path, body, headers={"content-type": "application/json"})
    assert answer.headers["content-type"] == kind
    decoder = google.decoder()
    [message] = fold([*decoder.feed(answer.body), *decoder.close()])
    assert message.text == "Hello there."
    assert (answer.body[:1] == b"[") is (kind == "application/json")
    if kind == "application/json":
        assert len(json.loads(answer.body)) > 2
