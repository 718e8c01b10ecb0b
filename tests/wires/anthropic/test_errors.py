"""The anthropic wire: one class for each kind of error, both ways."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.errors import DragomanError, HistoryError, RateLimitError
from dragoman.wires import anthropic as wire


def test_a_conversation_that_cannot_be_read_is_a_bad_request():
    answer = wire.dump_error(HistoryError("no messages"))
    assert (answer.status, answer.body["error"]["type"]) == (400, "invalid_request_error")
    assert wire.dump_error(DragomanError("x")).status == 500


def body(kind, message):
    return json.dumps(
        {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_b"}
    ).encode()


@pytest.mark.parametrize(
    ("status", "kind", "message", "expected"),
    [
        (401, "authentication_error", "invalid x-api-key", "AuthenticationError"),
        (403, "permission_error", "Your key may not do this", "PermissionDeniedError"),
        (402, "billing_error", "Payment required", "PermissionDeniedError"),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            "PermissionDeniedError",
        ),
        (404, "not_found_error", "model: claude-9", "ModelNotFoundError"),
        (404, "not_found_error", "File not found", "InvalidRequestError"),
        (
            400,
            "invalid_request_error",
            "messages: at least one message is required",
            "InvalidRequestError",
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 3 tokens > 2 maximum",
            "ContextLengthError",
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            "ContextLengthError",
        ),
        (
            400,
            "invalid_request_error",
            "Output blocked by content filtering policy",
            "ContentRefusedError",
        ),
        (500, "api_error", "Output blocked by content filtering policy", "ContentRefusedError"),
        (413, "request_too_large", "Request exceeds the maximum size", "InvalidRequestError"),
        (429, "rate_limit_error", "Too many tokens", "RateLimitError"),
        (500, "api_error", "Internal server error", "ProviderError"),
        (504, "timeout_error", "Timed out", "ProviderTimeoutError"),
        (529, "overloaded_error", "Overloaded", "OverloadedError"),
        (418, "new_error", "Teapot", "InvalidRequestError"),
        (500, "new_error", "Oops", "ProviderError"),
        (429, "new_error", "Slowly", "RateLimitError"),
    ],
)
def test_one_class_for_each_kind(status, kind, message, expected):
    raw = body(kind, message)
    error = wire.load_error(status, {"Request-Id": "req_h"}, raw)
    assert type(error).__name__ == expected
    assert (error.status, error.request_id, error.body) == (status, "req_h", raw)
    assert error.message.startswith(message)
    assert len(error.message) > len(message) + 5  # and what to do
    assert wire.load_error(status, {}, raw).request_id == "req_b"


@pytest.mark.parametrize(
    ("status", "raw", "expected"),
    [
        (502, b"<html>Bad gateway</html>", "ProviderError"),
        (503, b"", "OverloadedError"),
        (529, b"", "OverloadedError"),
        (504, b"", "ProviderTimeoutError"),
        (408, b"", "ProviderTimeoutError"),
        (403, b"", "PermissionDeniedError"),
        (402, b"", "PermissionDeniedError"),
        (413, b"", "InvalidRequestError"),
        (422, b"", "InvalidRequestError"),
        (418, b"", "InvalidRequestError"),
        (401, b'"who are you"', "AuthenticationError"),
        (400, b'{"error": "bad thing"}', "InvalidRequestError"),
        (400, b'{"detail": "bad thing"}', "InvalidRequestError"),
        (
            404,
            b'{"error": {"message": "The model x does not exist", "code": 404}}',
            "ModelNotFoundError",
        ),
        (500, b"[]", "ProviderError"),
        (500, b'{"error": {"message": {"a": 1}, "type": []}}', "ProviderError"),
        (500, b"\xff\xfe", "ProviderError"),
        (500, b"[" * 100_000, "ProviderError"),
    ],
)
def test_odd_bodies(status, raw, expected):
    error = wire.load_error(status, {}, raw)
    assert type(error).__name__ == expected
    assert len(error.message) < 500


def test_a_string_in_the_body_is_the_message():
    assert wire.load_error(400, {}, b'{"error": "bad thing"}').message.startswith("bad thing.")
    assert "bad thing" in wire.load_error(400, {}, b'{"detail": "bad thing"}').message
    assert "502" in wire.load_error(502, {}, b"").message


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "soon, maybe", "date": "now"}, None),
    ],
)
def test_how_long_to_wait(headers, seconds):
    error = wire.load_error(429, headers, body("rate_limit_error", "Slowly"))
    assert isinstance(error, RateLimitError)
    assert error.retry_after == seconds


@given(
    st.integers(100, 599),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5)),
    st.binary(max_size=40),
)
def test_no_answer_makes_it_raise(status, headers, raw):
    assert isinstance(wire.load_error(status, headers, raw), DragomanError)


KINDS = [
    "AuthenticationError", "ContentRefusedError", "ContextLengthError", "InvalidRequestError", "ModelNotFoundError",
    "OverloadedError", "PermissionDeniedError", "ProviderError", "ProviderTimeoutError", "RateLimitError",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_errors_there_and_back(kind):
    status, headers, written = wire.dump_error(
        getattr(errors, kind)("It failed", request_id="req_1")
    )
    assert written["type"] == "error"
    assert "It failed" in written["error"]["message"]
    again = wire.load_error(status, headers, json.dumps(written).encode())
    assert type(again).__name__ == kind
    assert again.request_id == "req_1"


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.SettingsError("x"), 500),
        (errors.ProviderConnectionError("x"), 502),
        (errors.StreamCutError("x"), 502),
    ],
)
def test_other_errors_are_faults_of_the_server(error, status):
    body = {"type": "error", "error": {"type": "api_error", "message": "x"}}
    assert wire.dump_error(error) == (status, {"content-type": "application/json"}, body)


@pytest.mark.parametrize(
    "error", [RateLimitError("x", retry_after=1.5), errors.OverloadedError("x", retry_after=30)]
)
def test_the_wait_that_an_error_asks_for_is_a_header(error):
    status, headers, written = wire.dump_error(error)
    again = wire.load_error(status, headers, json.dumps(written).encode())
    assert (type(again), again.retry_after) == (type(error), error.retry_after)
