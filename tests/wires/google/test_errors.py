"""Errors of Google's wire: one class for each kind, both ways."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    HistoryError,
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
from dragoman.event import RunError
from dragoman.wires import google as wire


def test_errors_to_the_last_field():
    def error(code, name, message, headers=None, **more):
        body = {"error": {"code": code, "message": message, "status": name, **more}}
        return code, {"content-type": "application/json", **(headers or {})}, body

    assert [wire.dump_error(kind("x")) for kind in (
        errors.ContextLengthError, errors.ContentRefusedError, errors.InvalidRequestError, errors.HistoryError, errors.AuthenticationError,
        errors.PermissionDeniedError, errors.ModelNotFoundError, errors.RateLimitError, errors.OverloadedError, errors.ProviderTimeoutError,
        errors.ProviderConnectionError, errors.DragomanError,
    )] == [
        error(400, "INVALID_ARGUMENT", "The input token count exceeds the maximum number of tokens allowed: x"),
        error(400, "INVALID_ARGUMENT", "Blocked by safety settings: x"), error(400, "INVALID_ARGUMENT", "x"), error(400, "INVALID_ARGUMENT", "x"),
        error(401, "UNAUTHENTICATED", "x"), error(403, "PERMISSION_DENIED", "x"), error(404, "NOT_FOUND", "model: x"),
        error(429, "RESOURCE_EXHAUSTED", "x"), error(503, "UNAVAILABLE", "x"), error(504, "DEADLINE_EXCEEDED", "x"),
        error(502, "UNKNOWN", "x"), error(500, "INTERNAL", "x"),
    ]  # fmt: skip
    rpc = "type.googleapis.com/google.rpc."
    assert wire.dump_error(errors.RateLimitError("no Model", retry_after=1.5, request_id="q")) == error(
        429, "RESOURCE_EXHAUSTED", "no Model", {"retry-after": "1.5"},
        details=[{"@type": f"{rpc}RetryInfo", "retryDelay": "1.5s"}, {"@type": f"{rpc}RequestInfo", "requestId": "q"}],
    )  # fmt: skip
    assert wire.dump_error(errors.OverloadedError("x", retry_after=30)) == error(
        503,
        "UNAVAILABLE",
        "x",
        {"retry-after": "30"},
        details=[{"@type": f"{rpc}RetryInfo", "retryDelay": "30s"}],
    )
    assert (
        wire.dump_error(errors.ModelNotFoundError("no Model")).body["error"]["message"]
        == "no Model"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("INVALID_ARGUMENT", errors.InvalidRequestError), ("OUT_OF_RANGE", errors.InvalidRequestError), ("UNAUTHENTICATED", errors.AuthenticationError),
        ("PERMISSION_DENIED", errors.PermissionDeniedError), ("FAILED_PRECONDITION", errors.PermissionDeniedError), ("NOT_FOUND", errors.ModelNotFoundError),
        ("RESOURCE_EXHAUSTED", errors.RateLimitError), ("UNAVAILABLE", errors.OverloadedError), ("DEADLINE_EXCEEDED", errors.ProviderTimeoutError),
    ],
)  # fmt: skip
def test_an_error_of_a_stream_is_known_by_its_name_alone(name, kind):
    event = wire.load_response({"error": {"status": name, "message": "model x"}})[-1]
    assert isinstance(event, RunError) and type(event.error) is kind


def test_a_history_that_cannot_be_read_is_the_callers_fault():
    assert wire.dump_error(HistoryError("no conversation")).status == 400


def load_error(status, message="", name=None, details=(), headers=None):
    error = {
        "code": status,
        "message": message,
        **({"status": name} if name else {}),
        "details": list(details),
    }
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
    error = load_error(status, message, name)
    assert type(error) is kind
    assert message.rstrip(".") in error.message
    assert error.status == status


def test_the_reason_tells_a_bad_key():
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]
    assert type(load_error(400, "?", "INVALID_ARGUMENT", details)) is AuthenticationError


def wait(details=(), headers=None):
    return load_error(429, "slow down", "RESOURCE_EXHAUSTED", details, headers).retry_after


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
    assert load_error(500, "", details=[info]).request_id == "r1"
    assert load_error(500, headers={"X-Request-Id": "r2"}).request_id == "r2"


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
        404,
        {},
        b'[{"error": {"code": 404, "message": "models/x is not found", "status": "NOT_FOUND"}}]',
    )
    assert type(error) is ModelNotFoundError


KINDS = [
    AuthenticationError, ContentRefusedError, ContextLengthError, InvalidRequestError, ModelNotFoundError, OverloadedError,
    PermissionDeniedError, ProviderError, ProviderTimeoutError, RateLimitError,
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_read_as_the_same_class(kind):
    waits = kind in (RateLimitError, OverloadedError)
    error = kind("something about it", request_id="r1", **({"retry_after": 2.5} if waits else {}))
    status, _, body = wire.dump_error(error)
    again = wire.load_error(status, {}, json.dumps(body).encode())
    assert type(again) is kind
    assert "something about it" in again.message
    assert again.request_id == "r1"
    assert body["error"]["code"] == status
    if waits:
        assert again.retry_after == 2.5


def test_our_own_errors_have_a_status_too():
    assert wire.dump_error(ProviderConnectionError("no line")).status == 502
    assert wire.dump_error(LimitReachedError("enough", result=None)).status == 500


@given(
    st.integers(300, 599),
    st.binary(max_size=30)
    | st.text(max_size=20).map(lambda text: json.dumps({"error": {"message": text}}).encode()),
)
def test_no_body_is_too_odd(status, body):
    assert isinstance(wire.load_error(status, {}, body), ProviderError)
