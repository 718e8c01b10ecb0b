"""The openai_responses wire's errors: one class for each kind, from whatever a vendor's body looks like."""

from __future__ import annotations

import json

import pytest

from dragoman.errors import (
    AuthenticationError,
    ContentRefusedError,
    ContextLengthError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    ProviderError,
    ProviderTimeoutError,
    RateLimitError,
    StreamCutError,
)
from dragoman.wires import openai_responses as wire


def load(status, body=b"", **headers):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return wire.load_error(status, {name.replace("_", "-"): value for name, value in headers.items()}, data)


def told(message="what happened", **fields):
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **fields}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, told(code="invalid_api_key"), AuthenticationError),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided."}, AuthenticationError),
        (402, told(), PermissionDeniedError),
        (403, told(), PermissionDeniedError),
        (404, told(code="model_not_found"), ModelNotFoundError),
        (400, told("The requested model 'x' does not exist.", code="model_not_found"), ModelNotFoundError),
        (404, told(code="DeploymentNotFound"), ModelNotFoundError),
        (400, told(code="context_length_exceeded"), ContextLengthError),
        (400, told("Your input exceeds the context window of this model."), ContextLengthError),
        (400, told(code="content_filter", innererror={}), ContentRefusedError),
        (400, told("rejected as a result of our safety system", code="content_policy_violation"), ContentRefusedError),
        (400, told(code="previous_response_not_found"), InvalidRequestError),
        (404, told("Previous response with id 'resp_1' not found."), InvalidRequestError),
        (404, told("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."), InvalidRequestError),
        (400, told("Unsupported parameter: 'temperature'"), InvalidRequestError),
        (413, told(), InvalidRequestError),
        (418, told(), InvalidRequestError),
        (429, told(code="rate_limit_exceeded"), RateLimitError),
        (400, told(code="insufficient_quota"), RateLimitError),
        (500, told(type="server_error"), ProviderError),
        (503, told(), OverloadedError),
        (504, b"<html><body><h1>504 Gateway Time-out</h1></body></html>", ProviderTimeoutError),
        (500, b"", ProviderError),
        (500, b"\xff\xfe", ProviderError),
        (400, {"detail": [{"loc": ["body"], "msg": "field required"}]}, InvalidRequestError),
        (400, {"error": "plain words"}, InvalidRequestError),
        (400, [1], InvalidRequestError),
        (500, {"error": None}, ProviderError),
    ],
)  # fmt: skip
def test_kinds(status, body, kind):
    error = load(status, body)
    assert type(error) is kind
    assert error.status == status and error.body is not None
    assert error.message


def test_the_message_is_the_providers_words_and_what_to_do():
    assert load(400, told("No.")).message == "No. Change the request."
    assert load(502, b"<html><p>Bad  gateway</p></html>").message.startswith("Bad gateway. ")
    assert "HTTP 500 and no words" in load(500).message


def test_the_request_id():
    assert load(500, told(), x_request_id="req_1").request_id == "req_1"
    assert load(500, told(), **{"Apim-Request-Id": "az"}).request_id == "az"
    assert load(500, told()).request_id is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        ({"retry_after": "Fri, 21 Nov 2026 10:00:09 GMT", "date": "Fri, 21 Nov 2026 10:00:00 GMT"}, 9.0),
        ({"retry_after": "Fri, 21 Nov 2026 10:00:00 GMT", "date": "Fri, 21 Nov 2026 10:00:09 GMT"}, None),
        ({"retry_after": "Fri, 21 Nov 2026 10:00:09 GMT"}, None),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers, seconds):
    assert load(429, told(), **headers).retry_after == seconds


def test_errors_that_no_provider_told_of_are_written_too():
    assert wire.dump_error(StreamCutError("cut"))[0] == 502
    assert wire.dump_error(ProviderError("x", status=507))[0] == 507
