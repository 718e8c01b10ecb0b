"""Errors on the mistral wire: one class for each kind, from whatever the API sends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import errors, providers
from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    DragomanError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
)
from dragoman.providers.keys import request_headers
from dragoman.wires import mistral
from support.traffic import exchanges


def load(status: int, body: Any = b"", **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return mistral.load_error(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, data
    )


def fault(
    message: Any, kind: str = "invalid_request_error", code: str | None = None
) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": kind, "param": None, "code": code}


def test_every_recorded_error_is_of_its_class_and_says_the_providers_words() -> None:
    seen = 0
    for exchange in exchanges("mistral"):
        if exchange.status < 400:
            continue
        error = mistral.load_error(exchange.status, exchange.headers, exchange.body)
        told = json.loads(exchange.body)
        expected = AuthenticationError if exchange.status == 401 else InvalidRequestError
        if told.get("type") == "invalid_model":
            expected = ModelNotFoundError
        assert type(error) is expected, (exchange, error)
        assert error.message.startswith((told.get("message") or told["detail"]).rstrip(".")), (
            exchange
        )
        assert (error.status, error.body) == (exchange.status, exchange.body)
        assert error.request_id == exchange.headers.get("mistral-correlation-id")
        seen += 1
    assert seen > 5


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"detail": "Invalid API Key"}, AuthenticationError),
        (401, {"message": "Unauthorized", "request_id": "r1"}, AuthenticationError),
        (402, fault("no credit"), PermissionDeniedError),
        (403, {"detail": "Forbidden"}, PermissionDeniedError),
        (403, fault("blocked by guardrails", "content_policy"), ContentRefusedError),
        (400, fault("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "invalid_request_invalid_args", "3051"), ContextLengthError),
        (400, fault("Unexpected role 'user' after role 'tool'", "invalid_request_message_order", "3230"), InvalidRequestError),
        (400, fault("Invalid model: x", "invalid_model", "1500"), ModelNotFoundError),
        (404, {"detail": "Not Found"}, ModelNotFoundError),
        (422, fault({"detail": [{"type": "missing", "loc": ["body", "messages", 0], "msg": "Field required"}]}), InvalidRequestError),
        (422, {"detail": [{"loc": ["body"], "msg": "bad"}]}, InvalidRequestError),
        (429, fault("Service tier capacity exceeded for this model.", "service_tier_capacity_exceeded", "3505"), RateLimitError),
        (429, {"message": "Requests rate limit exceeded"}, RateLimitError),
        (408, b"", ProviderTimeoutError),
        (500, fault("Internal server error", "internal_server_error"), ProviderError),
        (502, b"<html><h1>Bad gateway</h1></html>", ProviderError),
        (503, fault("unreachable backend", "unreachable_backend"), OverloadedError),
        (504, b"", ProviderTimeoutError),
        (529, b"{}", OverloadedError),
    ],
)  # fmt: skip
def test_each_kind_has_a_class(status: int, body: Any, kind: type[DragomanError]) -> None:
    error = load(status, body)
    assert type(error) is kind, error
    assert error.status == status


def test_the_fields_that_are_wrong_are_named() -> None:
    detail = [{"loc": ["body", "messages", 0], "msg": "Field required"}, {"msg": "x"}]
    for body in ({"detail": detail}, fault({"detail": detail})):
        assert load(422, body).message == "body.messages.0: Field required; x. Change the request."


def test_how_long_to_wait_and_whom_to_tell() -> None:
    error = load(429, fault("slow down"), retry_after="7", Mistral_Correlation_Id="c1")
    assert (error.retry_after, error.request_id) == (7.0, "c1")
    assert load(401, {"message": "Unauthorized", "request_id": "r1"}).request_id == "r1"
    assert load(500).message.startswith("the provider answered with HTTP 500 and no words")
    assert "Bad gateway" in load(502, b"<html><h1>Bad gateway</h1></html>").message


@given(st.integers(400, 599), st.binary(max_size=60) | st.recursive(st.none() | st.booleans() | st.text(max_size=5) | st.integers(), lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["detail", "message", "object", "loc", "msg", "error", "code"]), inner, max_size=3)))  # fmt: skip
def test_no_body_is_too_odd(status: int, body: Any) -> None:
    error = load(status, body)
    assert isinstance(error, DragomanError)
    assert error.message
    assert error.status == status


@pytest.mark.parametrize(
    "kind",
    [
        AuthenticationError,
        PermissionDeniedError,
        ModelNotFoundError,
        ContextLengthError,
        InvalidRequestError,
        ContentRefusedError,
        RateLimitError,
        OverloadedError,
        ProviderTimeoutError,
        ProviderError,
    ],
)
def test_an_error_is_dumped_so_that_its_class_is_read_back(kind: type[DragomanError]) -> None:
    words = {
        ContextLengthError: "too large for model with 5 maximum context length",
        ContentRefusedError: "blocked by moderation",
    }
    status, _, body = mistral.dump_error(kind(words.get(kind, "no")))
    assert body["object"] == "error"
    assert body["raw_status_code"] == status
    assert type(load(status, body)) is kind


def test_every_error_can_be_dumped() -> None:
    for name in (each for each in errors.__all__ if each.endswith("Error")):
        made = getattr(errors, name)
        more = {"result": None} if name == "LimitReachedError" else {}
        status, _, body = mistral.dump_error(made("x", **more))
        assert 400 <= status < 600
        assert body["message"] == "x"
    assert mistral.dump_error(RateLimitError("x", status=418)).status == 418


def test_d74_a_missing_key_is_reported_like_the_others() -> None:
    for name in ("mistral", "mistralai"):
        provider = providers.get(name)
        with pytest.raises(
            AuthenticationError, match="MISTRAL_API_KEY is required for Mistral provider"
        ):
            request_headers(provider, system={})
        assert (provider.chat_model, provider.embeddings_model) == (
            "mistral-small-latest",
            "mistral-embed",
        )
        assert (
            request_headers(provider, system={"MISTRAL_API_KEY": "k"})["authorization"]
            == "Bearer k"
        )
