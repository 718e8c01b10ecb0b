"""The openai_responses wire's errors: one class for each kind, from whatever a vendor's body looks
like."""

from __future__ import annotations

import json

import pytest

from dragoman import errors
from dragoman.codec.serving import ErrorResponse
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
    return wire.load_error(
        status, {name.replace("_", "-"): value for name, value in headers.items()}, data
    )


def error_body(message="what happened", **fields):
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": None,
            "code": None,
            **fields,
        }
    }


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, error_body(code="invalid_api_key"), AuthenticationError),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided."}, AuthenticationError),
        (402, error_body(), PermissionDeniedError),
        (403, error_body(), PermissionDeniedError),
        (404, error_body(code="model_not_found"), ModelNotFoundError),
        (400, error_body("The requested model 'x' does not exist.", code="model_not_found"), ModelNotFoundError),
        (404, error_body(code="DeploymentNotFound"), ModelNotFoundError),
        (400, error_body(code="context_length_exceeded"), ContextLengthError),
        (400, error_body("Your input exceeds the context window of this model."), ContextLengthError),
        (400, error_body(code="content_filter", innererror={}), ContentRefusedError),
        (400, error_body("rejected as a result of our safety system", code="content_policy_violation"), ContentRefusedError),
        (400, error_body(code="previous_response_not_found"), InvalidRequestError),
        (404, error_body("Previous response with id 'resp_1' not found."), InvalidRequestError),
        (404, error_body("Item with id 'rs_1' not found. Items are not persisted when `store` is set to false."), InvalidRequestError),
        (400, error_body("Unsupported parameter: 'temperature'"), InvalidRequestError),
        (413, error_body(), InvalidRequestError),
        (418, error_body(), InvalidRequestError),
        (429, error_body(code="rate_limit_exceeded"), RateLimitError),
        (400, error_body(code="insufficient_quota"), RateLimitError),
        (500, error_body(type="server_error"), ProviderError),
        (503, error_body(), OverloadedError),
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
    assert load(400, error_body("No.")).message == "No. Change the request."
    assert load(502, b"<html><p>Bad  gateway</p></html>").message.startswith("Bad gateway. ")
    assert "HTTP 500 and no words" in load(500).message


def test_the_request_id():
    assert load(500, error_body(), x_request_id="req_1").request_id == "req_1"
    assert load(500, error_body(), **{"Apim-Request-Id": "az"}).request_id == "az"
    assert load(500, error_body()).request_id is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "1.5"}, 1.5),
        ({"retry_after_ms": "250", "retry_after": "7"}, 0.25),
        (
            {
                "retry_after": "Fri, 21 Nov 2026 10:00:09 GMT",
                "date": "Fri, 21 Nov 2026 10:00:00 GMT",
            },
            9.0,
        ),
        (
            {
                "retry_after": "Fri, 21 Nov 2026 10:00:00 GMT",
                "date": "Fri, 21 Nov 2026 10:00:09 GMT",
            },
            None,
        ),
        ({"retry_after": "Fri, 21 Nov 2026 10:00:09 GMT"}, None),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
def test_how_long_to_wait(headers, seconds):
    assert load(429, error_body(), **headers).retry_after == seconds


def test_errors_that_no_provider_told_of_are_written_too():
    assert wire.dump_error(StreamCutError("cut")).status == 502
    assert wire.dump_error(ProviderError("x", status=507)).status == 507


def test_errors_to_the_last_field():
    def error(status, kind, code):
        body = {"error": {"message": "x", "type": kind, "param": None, "code": code}}
        return ErrorResponse(status, {"content-type": "application/json"}, body)

    assert [wire.dump_error(kind("x")) for kind in (
        errors.ContextLengthError, errors.ContentRefusedError, errors.InvalidRequestError, errors.HistoryError, errors.AuthenticationError,
        errors.PermissionDeniedError, errors.ModelNotFoundError, errors.RateLimitError, errors.OverloadedError, errors.ProviderTimeoutError,
        errors.ProviderConnectionError, errors.DragomanError,
    )] == [
        error(400, "invalid_request_error", "context_length_exceeded"), error(400, "invalid_request_error", "content_policy_violation"),
        error(400, "invalid_request_error", "invalid_prompt"), error(400, "invalid_request_error", "invalid_prompt"),
        error(401, "invalid_request_error", "invalid_api_key"), error(403, "invalid_request_error", "forbidden"),
        error(404, "invalid_request_error", "model_not_found"), error(429, "rate_limit_error", "rate_limit_exceeded"),
        error(503, "server_error", "overloaded"), error(504, "server_error", "timeout"), error(502, "server_error", "server_error"),
        error(500, "server_error", "server_error"),
    ]  # fmt: skip
    for status, sent in ((None, 400), (200, 400), (399, 400), (400, 400), (422, 422)):
        assert wire.dump_error(errors.InvalidRequestError("x", status=status)).status == sent


def test_how_long_to_wait_is_written_and_read_back():
    for kind in (errors.RateLimitError, errors.OverloadedError):
        refusal = wire.dump_error(kind("x", retry_after=2.5))
        assert refusal.headers == {"content-type": "application/json", "retry-after": "2.5"}
        assert (
            wire.load_error(
                refusal.status, refusal.headers, json.dumps(refusal.body).encode()
            ).retry_after
            == 2.5
        )
