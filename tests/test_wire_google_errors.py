"""The google wire's errors: one class for each kind, from the bodies that the API sends, and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    InvalidRequestError,
    LimitReachedError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
)
from dragoman.wires import google as wire


def load(status, message="", name=None, details=(), headers=None):
    error = {"code": status, "message": message, **({"status": name} if name else {}), "details": list(details)}
    return wire.load_error(status, headers or {}, json.dumps({"error": error}).encode())


@pytest.mark.parametrize(
    ("status", "name", "message", "kind"),
    [
        (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", InvalidRequestError),
        (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", AuthenticationError),
        (400, "INVALID_ARGUMENT", "API key expired. Please renew the API key.", AuthenticationError),
        (400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ContextLengthError),
        (400, "INVALID_ARGUMENT", "The prompt was blocked by our safety filters.", ContentRefusedError),
        (400, "FAILED_PRECONDITION", "User location is not supported for the API use.", PermissionDeniedError),
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", AuthenticationError),
        (403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers.", PermissionDeniedError),
        (404, "NOT_FOUND", "models/x is not found for API version v1beta", ModelNotFoundError),
        (404, "NOT_FOUND", "CachedContent not found", InvalidRequestError),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", RateLimitError),
        (499, "CANCELLED", "The operation was cancelled.", InvalidRequestError),
        (500, "INTERNAL", "An internal error has occurred.", ProviderError),
        (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", OverloadedError),
        (504, "DEADLINE_EXCEEDED", "Deadline expired", ProviderTimeoutError),
        (418, None, "", InvalidRequestError),
        (400, None, "", InvalidRequestError),
        (499, None, "", InvalidRequestError),
        (500, None, "", ProviderError),
        (599, "SOMETHING_NEW", "", ProviderError),
    ],
)  # fmt: skip
def test_one_class_for_each_kind(status, name, message, kind):
    error = load(status, message, name)
    assert type(error) is kind
    assert message.rstrip(".") in error.message
    assert error.status == status


def test_the_reason_tells_a_bad_key():
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    assert type(load(400, "?", "INVALID_ARGUMENT", details)) is AuthenticationError


def wait(details=(), headers=None):
    return load(429, "slow down", "RESOURCE_EXHAUSTED", details, headers).retry_after


def test_how_long_to_wait():
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}
    date = {"retry-after": "Wed, 21 Oct 2026 07:28:10 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}
    assert wait([{"@type": "x.QuotaFailure"}, retry]) == 34.4
    assert wait([retry], {"Retry-After": "5"}) == 34.4
    assert wait(headers={"Retry-After": "5"}) == 5
    assert wait(headers={"Retry-After-Ms": "1500"}) == 1.5
    assert wait(headers=date) == 10
    assert wait(headers={"retry-after": date["retry-after"]}) is None
    assert wait([{**retry, "retryDelay": "soon"}]) is None
    assert wait([{**retry, "retryDelay": 3}]) is None
    assert wait() is None


def test_the_requests_id():
    info = {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "r1"}
    assert load(500, "", details=[info]).request_id == "r1"
    assert load(500, headers={"X-Request-Id": "r2"}).request_id == "r2"


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>Bad Gateway</html>", b"[]", b"[1]", b'"words"', b'{"error": "words"}', b'{"error": null}', b'{"error": {}}', b"\xff",
     b'{"error": {"message": ["x"], "details": "?", "status": 3}}', b"[" * 5000],
)  # fmt: skip
def test_odd_bodies_are_read_as_far_as_they_go(body):
    error = wire.load_error(502, {}, body)
    assert type(error) is ProviderError
    assert (error.status, error.body) == (502, body)
    assert error.message


def test_a_stream_without_event_stream_sends_its_error_in_an_array():
    error = wire.load_error(
        404, {}, b'[{"error": {"code": 404, "message": "models/x is not found", "status": "NOT_FOUND"}}]'
    )
    assert type(error) is ModelNotFoundError


KINDS = [
    AuthenticationError, ContentRefusedError, ContextLengthError, InvalidRequestError, ModelNotFoundError, OverloadedError,
    PermissionDeniedError, ProviderError, ProviderTimeoutError, RateLimitError,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_as_the_same_class(kind):
    error = kind("something about it", request_id="r1", **({"retry_after": 2.5} if kind is RateLimitError else {}))
    status, body = wire.dump_error(error)
    again = wire.load_error(status, {}, json.dumps(body).encode())
    assert type(again) is kind
    assert "something about it" in again.message
    assert again.request_id == "r1"
    assert body["error"]["code"] == status
    if isinstance(again, RateLimitError):
        assert again.retry_after == 2.5


def test_our_own_errors_have_a_status_too():
    assert wire.dump_error(ProviderConnectionError("no line"))[0] == 502
    assert wire.dump_error(LimitReachedError("enough", result=None))[0] == 500


@given(
    st.integers(300, 599),
    st.binary(max_size=30) | st.text(max_size=20).map(lambda text: json.dumps({"error": {"message": text}}).encode()),
)
def test_no_body_is_too_odd(status, body):
    assert isinstance(wire.load_error(status, {}, body), ProviderError)
