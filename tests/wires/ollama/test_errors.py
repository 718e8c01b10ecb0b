"""Errors of Ollama's wire, both ways."""

from __future__ import annotations

import json

import pytest

from dragoman import errors
from dragoman.wires import ollama as wire


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (
            400,
            {"error": "prompt too long; exceeded max context length by 9 tokens"},
            "ContextLengthError",
        ),
        (400, {"error": "the input length exceeds the context length"}, "ContextLengthError"),
        (
            400,
            {"error": "registry.ollama.ai/library/gemma:2b does not support tools"},
            "InvalidRequestError",
        ),
        (400, {"error": "odd"}, "InvalidRequestError"),
        (401, {"error": "unauthorized"}, "AuthenticationError"),
        (402, {"error": "pay"}, "PermissionDeniedError"),
        (403, {"error": "no"}, "PermissionDeniedError"),
        (404, {"error": "model 'x' not found"}, "ModelNotFoundError"),
        (404, {"error": 'model "x" not found, try pulling it first'}, "ModelNotFoundError"),
        (404, b"404 page not found", "InvalidRequestError"),
        (429, {"error": "you have reached your usage limit"}, "RateLimitError"),
        (500, {"error": "model requires more system memory (9 GiB)"}, "ProviderError"),
        (502, b"<html><body>Bad Gateway</body></html>", "ProviderError"),
        (
            503,
            {"error": "server busy, please try again. maximum pending requests exceeded"},
            "OverloadedError",
        ),
        (500, b"", "ProviderError"),
        (400, b"\xff[", "InvalidRequestError"),
    ],
)
def test_each_fault_has_its_class_and_keeps_the_servers_words(status, body, kind):
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    error = wire.load_error(status, {"X-Request-Id": "r1"}, raw)
    assert type(error).__name__ == kind
    assert (error.status, error.body, error.request_id) == (status, raw, "r1")
    if isinstance(body, dict):
        assert body["error"].rstrip(".") in error.message


def test_how_long_to_wait_is_told_in_seconds_or_by_dates():
    def wait(**headers):
        return wire.load_error(
            429, {k.replace("_", "-"): v for k, v in headers.items()}, b"{}"
        ).retry_after

    later = {"retry_after": "Wed, 21 Oct 2026 07:28:30 GMT"}
    assert wait(retry_after="7") == 7
    assert wait(**later, date="Wed, 21 Oct 2026 07:28:00 GMT") == 30
    assert (wait(**later), wait(retry_after="soon"), wait()) == (None, None, None)


@pytest.mark.parametrize(
    "kind", ["ContextLengthError", "ModelNotFoundError", "RateLimitError", "AuthenticationError"]
)
def test_an_error_that_is_written_is_read_back(kind):
    status, headers, body = wire.dump_error(getattr(errors, kind)("so it is"))
    assert type(wire.load_error(status, headers, json.dumps(body).encode())).__name__ == kind


def test_status_headers_and_body_of_an_error():
    headers = {"content-type": "application/json"}
    assert wire.dump_error(errors.InvalidRequestError("so it is")) == (
        400,
        headers,
        {"error": "so it is"},
    )
    busy = errors.OverloadedError("server busy", retry_after=1.5)
    assert wire.dump_error(busy) == (
        503,
        {**headers, "retry-after": "1.5"},
        {"error": "server busy"},
    )
