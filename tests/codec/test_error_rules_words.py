"""What errors say: the words of the recorded ones stay, permanent faults do not say "try again",
vendors' own shapes are read."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from dragoman import wires
from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    DragomanError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
)
from dragoman.event import RunError
from dragoman.wires.openai_chat.dialect import WIRE
from support.traffic import WIRES, exchanges

ALL = sorted(set(WIRES.values()))
WAIT = re.compile(r"again in (?:(\d+)m)?([\d.]+)s\b")


def load(wire: str, status: int, body: Any) -> DragomanError:
    return wires.get(wire).load_error(status, {}, json.dumps(body).encode())


def test_recorded_errors_keep_their_words_and_waits() -> None:
    """Read here by hand: the message where the provider puts it, seconds in its words, else the
    header."""
    words, waits = 0, 0
    for folder, wire in WIRES.items():
        for exchange in exchanges(folder):
            if exchange.status < 400:
                continue
            error = wires.get(wire).load_error(exchange.status, exchange.headers, exchange.body)
            assert error.message.endswith("."), exchange
            try:
                body = json.loads(exchange.body)
            except ValueError:
                continue
            inner = body.get("error", body) if isinstance(body, dict) else {}
            message = inner.get("message") if isinstance(inner, dict) else inner
            if isinstance(message, str) and message and "{" not in message:
                assert message.rstrip(".")[:900] in error.message, exchange
                words += 1
            if not isinstance(error, RateLimitError | OverloadedError):
                continue
            if header := exchange.headers.get("retry-after"):
                assert error.retry_after == float(header), exchange
                waits += 1
            elif found := WAIT.search(str(message)):
                assert error.retry_after == pytest.approx(
                    60 * int(found[1] or 0) + float(found[2])
                ), exchange
                waits += 1
    assert words > 50
    assert waits


@pytest.mark.parametrize("wire", ALL)
def test_what_a_model_cannot_read_is_no_fault_that_passes(wire: str) -> None:
    """llama.cpp tells it with status 500."""
    hint = "audio input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
    error = load(wire, 500, {"error": {"code": 500, "message": hint, "type": "server_error"}})
    assert type(error) is InvalidRequestError
    assert "try again" not in error.message
    assert (
        type(load(wire, 500, {"error": {"message": "something broke", "type": "server_error"}}))
        is ProviderError
    )


@pytest.mark.parametrize("wire", ALL)
def test_a_limit_of_none_is_a_lack_of_permission(wire: str) -> None:
    """OpenAI's 429 for a model that an organisation may not use: waiting does not help."""
    text = "Rate limit reached for m in organization org-1 on requests per min (RPM): Limit {}, Requested 1."
    error = load(wire, 429, {"error": {"message": text.format(0), "code": "rate_limit_exceeded"}})
    assert type(error) is PermissionDeniedError
    assert "Wait" not in error.message
    for limit in ("3", "10", "30, Used 0"):
        error = load(
            wire, 429, {"error": {"message": text.format(limit), "code": "rate_limit_exceeded"}}
        )
        assert type(error) is RateLimitError


def test_a_reason_in_the_place_of_a_fields_name_is_shown() -> None:
    """Xiaomi's."""
    body = {
        "error": {
            "code": "400",
            "message": "Param Incorrect",
            "param": "Not supported model bad model",
            "type": "",
        }
    }
    error = load("openai_chat", 400, body)
    assert type(error) is ModelNotFoundError
    assert error.message.startswith("Param Incorrect: Not supported model bad model. ")
    named = {"error": {"message": "Invalid value.", "param": "messages[0].role"}}
    assert load("openai_chat", 400, named).message == "Invalid value. Change the request."


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        (1000, "unknown error", ProviderError),
        (1001, "timed out", ProviderTimeoutError),
        (1002, "rate limit", RateLimitError),
        (1004, "login fail: carry the key in the header", AuthenticationError),
        (1008, "insufficient balance", PermissionDeniedError),
        (1026, "input new_sensitive", ContentRefusedError),
        (1027, "output new_sensitive", ContentRefusedError),
        (1039, "token limit", RateLimitError),
        (2013, "invalid params, messages is empty", InvalidRequestError),
        (2013, "invalid params, unknown model 'x'", ModelNotFoundError),
        (2049, "invalid api key", AuthenticationError),
    ],
)
def test_minimax_tells_errors_in_a_shape_of_its_own(
    code: int, words: str, kind: type[DragomanError]
) -> None:
    """With status 200, without choices."""
    body = {"id": "r1", "choices": None, "base_resp": {"status_code": code, "status_msg": words}}
    for error in (
        WIRE.error_of(body),
        load("openai_chat", 400 if kind is InvalidRequestError else 200, body),
    ):
        assert type(error) is kind
        assert words in error.message
    for event in wires.get("openai_chat").load_response(body)[-1:]:
        assert isinstance(event, RunError)
        assert type(event.error) is kind
    assert WIRE.error_of({"choices": [], "base_resp": {"status_code": 0, "status_msg": ""}}) is None
    assert WIRE.error_of({"choices": [], "base_resp": "x"}) is None
