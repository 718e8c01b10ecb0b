"""Errors of the wires of the Chat family: status, type and code."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman import errors, wires

NAMES = ("openai_chat", "mistral")
named = pytest.mark.parametrize("name", NAMES)
JSON = {"content-type": "application/json"}


CHAT_ERRORS = [
    (errors.AuthenticationError, 401, "invalid_request_error", "invalid_api_key"),
    (errors.PermissionDeniedError, 403, "invalid_request_error", "forbidden"),
    (errors.ModelNotFoundError, 404, "invalid_request_error", "model_not_found"),
    (errors.ContextLengthError, 400, "invalid_request_error", "context_length_exceeded"),
    (errors.InvalidRequestError, 400, "invalid_request_error", None),
    (errors.HistoryError, 400, "invalid_request_error", None),
    (errors.ContentRefusedError, 400, "invalid_request_error", "content_filter"),
    (errors.RateLimitError, 429, "rate_limit_error", "rate_limit_exceeded"),
    (errors.OverloadedError, 503, "server_error", "overloaded"),
    (errors.ProviderTimeoutError, 504, "server_error", "timeout"),
    (errors.ProviderError, 502, "server_error", None),
    (errors.ProviderConnectionError, 502, "server_error", None),
    (errors.DecodeError, 502, "server_error", None),
    (errors.SettingsError, 500, "server_error", None),
]
MISTRAL_ERRORS = [
    (errors.AuthenticationError, 401, "unauthorized", "1000"),
    (errors.PermissionDeniedError, 403, "forbidden", None),
    (errors.ModelNotFoundError, 400, "invalid_model", "1500"),
    (errors.ContextLengthError, 400, "context_length_exceeded", "3051"),
    (errors.InvalidRequestError, 400, "invalid_request_invalid_args", "3051"),
    (errors.HistoryError, 400, "invalid_request_message_order", "3230"),
    (errors.ContentRefusedError, 403, "content_policy", None),
    (errors.RateLimitError, 429, "rate_limited", "1300"),
    (errors.OverloadedError, 503, "overloaded", None),
    (errors.ProviderTimeoutError, 504, "timeout", None),
    (errors.ProviderError, 502, "internal_server_error", None),
    (errors.ProviderConnectionError, 502, "internal_server_error", None),
    (errors.DecodeError, 502, "internal_server_error", None),
    (errors.SettingsError, 500, "internal_server_error", None),
]


@pytest.mark.parametrize(
    ("name", "kind", "status", "type_", "code"),
    [("openai_chat", *one) for one in CHAT_ERRORS] + [("mistral", *one) for one in MISTRAL_ERRORS],
)
def test_each_error_has_its_status_its_type_and_its_code(
    name: str, kind: type[errors.DragomanError], status: int, type_: str, code: str | None
) -> None:
    def body(status: int) -> Any:
        if name == "openai_chat":
            return {"error": {"message": "no", "type": type_, "param": None, "code": code}}
        told = {"object": "error", "message": "no", "type": type_, "param": None, "code": code}
        return {**told, "raw_status_code": status}

    dump = wires.get(name).dump_error
    assert dump(kind("no")) == (status, JSON, body(status))
    for own, sent in ((400, 400), (418, 418), (399, status), (200, status)):
        error = kind("no")
        error.status = own
        assert dump(error) == (sent, JSON, body(sent))


@named
def test_the_wait_that_an_error_asks_for_stands_in_its_headers(name: str) -> None:
    dump = wires.get(name).dump_error
    for error in (
        errors.RateLimitError("no", retry_after=20),
        errors.OverloadedError("no", retry_after=20),
    ):
        assert dump(error).headers == {**JSON, "retry-after": "20"}
