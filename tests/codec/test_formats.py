"""What the operations of every wire do the same way around what is its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.codec.outgoing_conversation import Outgoing, prepare_outgoing
from dragoman.codec.serving import ErrorResponse, Problem
from dragoman.codec.wire_operations import (
    ConversationFormat,
    RequestDump,
    RequestEnvelope,
    RequestFormat,
    ResponseFormat,
)
from dragoman.errors import HistoryError, InvalidRequestError
from dragoman.event import RunError
from dragoman.fold import unfold
from dragoman.loss import Loss, Lost
from dragoman.message import Message, Origin
from dragoman.request import HttpRequest, ModelRequest
from dragoman.wires.cohere import Quirks
from dragoman.wires.cohere.encode import Encoder

DEEP = json.loads("[" * 200 + "]" * 200)


def load(payload: Any, origin: Origin | None, problems: list[Problem] | None) -> list[Message]:
    return [Message.user(text) for text in payload if isinstance(text, str)]


def outgoing(messages: Any, target: Any, quirks: Any, losses: Any) -> Outgoing[Any]:
    return prepare_outgoing(
        Outgoing[Any], messages, target, quirks or Quirks(), losses, ids={}, names={}
    )


CONVERSATIONS = ConversationFormat(
    load, outgoing, lambda out: [message.text for message in out.messages]
)


def read(body: Mapping[str, Any], received: RequestEnvelope) -> ModelRequest:
    return ModelRequest(
        "", tuple(CONVERSATIONS.load(body["texts"], received.origin, received.problems))
    )


def sent(sending: RequestDump[Quirks]) -> HttpRequest:
    texts = [message.text for message in sending.request.messages]
    return HttpRequest("/chat", body={"texts": texts, **sending.request.options})


def fault(body: Mapping[str, Any]) -> InvalidRequestError | None:
    return None if body["texts"] else InvalidRequestError("there is nothing to send")


REQUESTS = RequestFormat("acme", Quirks, read, sent, ("texts",), fault)


def test_a_conversation_goes_both_ways() -> None:
    assert CONVERSATIONS.dump_messages(CONVERSATIONS.load_messages(["Hi.", "Well?"])) == [
        "Hi.",
        "Well?",
    ]


def test_what_nests_too_deep_is_refused_unless_the_format_itself_notes_it() -> None:
    with pytest.raises(HistoryError, match="deeper"):
        CONVERSATIONS.load_messages(["Hi.", DEEP])
    assert CONVERSATIONS.load_messages(["Hi.", DEEP], problems=[]) == [Message.user("Hi.")]


@pytest.mark.parametrize("field", ["texts", "further"])
def test_a_body_is_bounded_but_for_a_conversation_whose_problems_are_noted(field: str) -> None:
    body = {"texts": ["Hi."], field: ["Hi.", DEEP]}
    with pytest.raises(HistoryError, match="deeper"):
        REQUESTS.load_request(body)
    if field == "texts":
        assert REQUESTS.load_request(body, problems=[]).messages == (Message.user("Hi."),)
    else:
        with pytest.raises(HistoryError, match="deeper"):
            REQUESTS.load_request(body, problems=[])


def test_options_that_are_fields_of_another_wire_are_losses() -> None:
    request = ModelRequest("", (Message.user("Hi."),), options={"n": 2}, wire="other")
    losses: list[Loss] = []
    assert REQUESTS.dump_request(request, losses=losses) == {"texts": ["Hi."]}
    assert [(loss.what, loss.which) for loss in losses] == [(Lost.option, "n")]
    assert REQUESTS.dump_request(request.replace(wire="acme")) == {"texts": ["Hi."], "n": 2}


def test_a_body_that_cannot_be_sent_is_refused_where_it_would_be() -> None:
    assert REQUESTS.dump_request(ModelRequest("")) == {"texts": []}
    with pytest.raises(InvalidRequestError, match="nothing to send"):
        REQUESTS.dump_http(ModelRequest(""))


RESPONSES = ResponseFormat(
    Encoder,
    lambda message, envelope: {"text": message.text, **envelope},
    lambda error: ErrorResponse(500, {}, {"error": error.message}),
)


def test_a_whole_response_is_one_message_in_its_envelope() -> None:
    events = unfold([Message.model("Hel"), Message.model("lo.")])
    losses: list[Loss] = []
    assert RESPONSES.dump_response(events, losses=losses, id="r-1") == {
        "text": "Hello.",
        "id": "r-1",
    }
    assert losses == []


def test_a_response_that_failed_is_the_errors_body() -> None:
    events = [*unfold([Message.model("Hel")]), RunError(InvalidRequestError("no"))]
    assert RESPONSES.dump_response(events, id="r-1") == {"error": "no"}


def test_an_encoder_has_its_envelope() -> None:
    encoder = RESPONSES.encoder(id="r-1")
    stream = (
        b"".join([encoder.feed(event) for event in unfold([Message.model("Hi.")])])
        + encoder.close()
    )
    assert b'"id":"r-1"' in stream
