"""Errors on the openai_chat wire: one class for each kind, from whatever a vendor sends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors
from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    DecodeError,
    DragomanError,
    HistoryError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    StreamCutError,
)
from dragoman.wires import openai_chat
from support.traffic import exchanges

FOLDERS = ("openai_chat", "openai_compatible", "openrouter", "together", "ollama_openai")
BY_STATUS = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: ModelNotFoundError,
    429: RateLimitError,
    500: ProviderError,
}
TOO_LONG = ("context-length", "context-overflow")


def load(status: int, body: Any = b"", **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return openai_chat.load_error(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, data
    )


def test_groqs_error_says_what_the_model_wrote_in_place_of_a_call() -> None:
    """`failed_generation`; its words say nothing of the error's kind."""
    wrote = '<function=look>{"a": rate limit reached}</function>'
    told = {"message": "Failed to call a function.", "code": "tool_use_failed"}
    error = load(400, {"error": {**told, "failed_generation": wrote}})
    assert type(error) is InvalidRequestError
    assert error.message == (
        f"Failed to call a function. The model wrote: {wrote}. Change the request."
    )
    assert len(load(400, {"error": {**told, "failed_generation": "x" * 9000}}).message) < 1200
    for nothing in ("", None, 5):
        error = load(400, {"error": {**told, "failed_generation": nothing}})
        assert error.message == "Failed to call a function. Change the request."


def test_every_recorded_error_is_of_its_class_and_says_the_vendors_words() -> None:
    seen = 0
    for exchange in exchanges(*FOLDERS):
        if exchange.status < 400:
            continue
        error = openai_chat.load_error(exchange.status, exchange.headers, exchange.body)
        expected = BY_STATUS.get(exchange.status, InvalidRequestError)
        if exchange.status == 400 and any(word in exchange.id for word in TOO_LONG):
            expected = ContextLengthError
        if b"no-such/embedding-model" in exchange.body:
            expected = ModelNotFoundError
        assert type(error) is expected, (exchange, error)
        assert error.status == exchange.status
        assert error.body == exchange.body
        if exchange.body.startswith(b"{"):
            told = json.loads(exchange.body)
            told = told.get("error", told)
            words = told if isinstance(told, str) else told["message"]
            assert error.message.startswith(words.rstrip(".")), exchange
        assert error.message.endswith((".", "again.")), exchange
        if "retry-after" in exchange.headers and isinstance(error, RateLimitError):
            assert error.retry_after == float(exchange.headers["retry-after"]), exchange
        seen += 1
    assert seen > 40


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, {"error": {"message": "x", "code": "context_length_exceeded"}}, ContextLengthError),
        (400, {"error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, ContextLengthError),
        (400, {"error": {"message": "filtered", "code": "content_filter", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, ContentRefusedError),
        (403, {"error": {"message": "Your input was flagged", "code": 403}}, ContentRefusedError),
        (402, {"error": {"message": "Insufficient credits", "code": 402}}, PermissionDeniedError),
        (400, {"error": {"message": "acme/x is not a valid model ID", "code": 400}}, ModelNotFoundError),
        (400, {"error": {"message": "The model acme/x does not exist"}}, ModelNotFoundError),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided"}, AuthenticationError),
        (413, {"error": {"message": "Too large", "code": "rate_limit_exceeded"}}, RateLimitError),
        (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, InvalidRequestError),
        (404, {"error": "no such model"}, ModelNotFoundError),
        (400, [{"error": {"message": "Bad", "code": 400}}], InvalidRequestError),
        (500, {"error": {"message": "The engine is currently overloaded"}}, OverloadedError),
        (503, b"", OverloadedError),
        (529, {}, OverloadedError),
        (504, b"<html><title>Gateway Timeout</title></html>", ProviderTimeoutError),
        (502, b"<html><body><h1>Bad gateway</h1></body></html>", ProviderError),
        (418, b'"tea"', InvalidRequestError),
        (400, None, InvalidRequestError),
        (500, b"[" * 100_000, ProviderError),
        (500, b"\xff\xfe", ProviderError),
    ],
)  # fmt: skip
def test_each_kind_has_its_class(status: int, body: Any, kind: type[DragomanError]) -> None:
    error = load(status, body)
    assert type(error) is kind
    assert error.status == status
    assert len(error.message) > 10


def test_html_is_told_without_its_marks() -> None:
    assert load(502, b"<html><body><h1>Bad  gateway</h1></body></html>").message.startswith(
        "Bad gateway. "
    )


def test_upstream_words_of_a_gateway_are_told() -> None:
    body = {
        "error": {
            "code": 429,
            "message": "Provider returned error",
            "metadata": {"raw": "try again shortly"},
        }
    }
    assert load(429, body).message.startswith("Provider returned error: try again shortly")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "44"}, 44.0),
        ({"Retry_After": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "9"}, 0.25),
        ({"retry_after_ms": "0", "retry_after": "1"}, 1.0),
        (
            {
                "retry_after": "Wed, 21 Oct 2026 07:28:10 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            10.0,
        ),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:10 GMT"}, None),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert load(429, {"error": {"message": "slow"}}, **headers).retry_after == seconds


def test_the_request_id_is_found_in_headers_and_body() -> None:
    assert load(400, {}, X_Request_Id="req_1").request_id == "req_1"
    assert load(400, {}, apim_request_id="req_2").request_id == "req_2"
    assert load(400, {"id": "req_3", "error": {"message": "x"}}).request_id == "req_3"


@given(st.integers(400, 599), st.binary(max_size=40) | st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "metadata", "detail"]), inner, max_size=3)).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_no_body_makes_it_raise(status: int, body: bytes) -> None:
    error = openai_chat.load_error(status, {}, body)
    assert isinstance(error, DragomanError)
    assert error.message


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for name in errors.__all__
        if isinstance(kind := getattr(errors, name), type) and issubclass(kind, ProviderError)
    ],
)
def test_an_error_that_is_dumped_is_loaded_as_its_class(kind: type[DragomanError]) -> None:
    status, _, body = openai_chat.dump_error(kind("It went wrong"))
    again = load(status, body)
    connection = issubclass(kind, errors.ProviderConnectionError)
    without_word = {
        errors.ResumeError: errors.InvalidRequestError,
        errors.RequestTooLargeError: errors.InvalidRequestError,
        errors.UnsupportedTypeError: errors.InvalidRequestError,
        errors.BudgetError: errors.RateLimitError,
        errors.CircuitOpenError: errors.OverloadedError,
    }
    assert type(again) is (ProviderError if connection else without_word.get(kind, kind))
    assert again.message.startswith("It went wrong")
    assert body["error"].keys() == {"message", "type", "param", "code"}


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (HistoryError("x"), 400),
        (DecodeError("x"), 502),
        (StreamCutError("x"), 502),
        (DragomanError("x"), 500),
        (ProviderError("x", status=418), 418),
    ],
)
def test_the_status_of_an_error(error: DragomanError, status: int) -> None:
    assert openai_chat.dump_error(error).status == status
