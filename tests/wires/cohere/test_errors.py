"""The cohere wire: one class for each kind of error, both ways."""

from __future__ import annotations

import json

import pytest

from dragoman import errors
from dragoman.wires import cohere as wire


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"error_type": "TOO_MANY_TOKENS", "message": "size limit exceeded"},
            "ContextLengthError",
        ),
        (
            400,
            {"message": "invalid request: all elements in history must have a message"},
            "InvalidRequestError",
        ),
        (400, {"message": "blocked output: please try again"}, "ContentRefusedError"),
        (401, {"message": "invalid api token"}, "AuthenticationError"),
        (402, {"message": "pay"}, "PermissionDeniedError"),
        (403, {"message": "no"}, "PermissionDeniedError"),
        (404, {"message": "model 'x' not found, make sure"}, "ModelNotFoundError"),
        (404, {"message": "no such path"}, "InvalidRequestError"),
        (422, {"message": "unknown field"}, "InvalidRequestError"),
        (429, {"message": "trial keys are limited"}, "RateLimitError"),
        (498, {"message": "blocked"}, "ContentRefusedError"),
        (500, {"message": "internal"}, "ProviderError"),
        (502, b"<html><body>Bad Gateway</body></html>", "ProviderError"),
        (503, {"data": "busy"}, "OverloadedError"),
        (504, b"", "ProviderTimeoutError"),
        (400, b"\xff[", "InvalidRequestError"),
        (400, [], "InvalidRequestError"),
    ],
)
def test_each_fault_has_its_class_and_keeps_the_providers_words(status, body, kind):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = wire.load_error(status, {"X-Debug-Trace-Id": "t1", "Retry-After": "7"}, raw)
    assert type(error).__name__ == kind
    assert (error.status, error.body, error.request_id) == (status, raw, "t1")
    assert getattr(error, "retry_after", 7) == 7
    if isinstance(body, dict):
        assert body.get("message", body.get("data")) in error.message


@pytest.mark.parametrize(
    "kind",
    [
        "ContextLengthError",
        "ModelNotFoundError",
        "RateLimitError",
        "AuthenticationError",
        "ContentRefusedError",
    ],
)
def test_an_error_that_is_written_is_read_back(kind):
    status, headers, body = wire.dump_error(getattr(errors, kind)("so it is", request_id="r"))
    error = wire.load_error(status, headers, json.dumps(body).encode())
    assert (type(error).__name__, error.request_id) == (kind, "r")


def test_status_headers_and_body_of_an_error():
    error = errors.RateLimitError("too many requests", retry_after=1.5, request_id="r")
    headers = {"content-type": "application/json", "retry-after": "1.5"}
    assert wire.dump_error(error) == (429, headers, {"id": "r", "message": "too many requests"})
    plain = wire.dump_error(errors.DragomanError("so it is"))
    assert plain == (500, {"content-type": "application/json"}, {"message": "so it is"})
