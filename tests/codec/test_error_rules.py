"""Errors of all providers: one class for each kind of fault, whatever wording a provider has for
it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import RunError, wires
from dragoman.codec.error_rules import ErrorInfo, build_error
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
from dragoman.retry_after import parse_duration, parse_limit_reset, parse_waiting_text
from support.traffic import WIRES, Exchange, exchanges

CODES = {
    "context_length_exceeded": ContextLengthError,
    "exceed_context_size_error": ContextLengthError,
    "too_many_prompt_tokens": ContextLengthError,
    "TOO_MANY_TOKENS": ContextLengthError,
    "model_not_found": ModelNotFoundError,
    "DeploymentNotFound": ModelNotFoundError,
    "invalid_model": ModelNotFoundError,
    "not_found_error": ModelNotFoundError,
    "invalid_api_key": AuthenticationError,
    "authentication_error": AuthenticationError,
    "API_KEY_INVALID": AuthenticationError,
    "forbidden": PermissionDeniedError,
    "insufficient_quota": RateLimitError,
    "rate_limit_error": RateLimitError,
    "RateLimitReached": RateLimitError,
    "RESOURCE_EXHAUSTED": RateLimitError,
    "server_error": ProviderError,
}
"""What the recorded providers call it → what it is. Where they call it nothing of its own, the
status and their words say it."""
WORDS = {
    "maximum context length": ContextLengthError,
    "prompt is too long": ContextLengthError,
    "max context length": ContextLengthError,
    "exceeds the maximum number of tokens": ContextLengthError,
    "is not found for API version": ModelNotFoundError,
    "does not exist": ModelNotFoundError,
    "Specified model not found": ModelNotFoundError,
    "Incorrect API key": AuthenticationError,
    "was removed on": ModelNotFoundError,
    "nonexistent": ModelNotFoundError,
    "command-does-not-exist": ModelNotFoundError,
}
ENDPOINTS = ("chat", "messages", "generate", "responses")
STATUSES = {401: AuthenticationError, 429: RateLimitError, 500: ProviderError}


def truth(exchange: Exchange) -> type[DragomanError]:
    """What a recorded error is, read as a person would read it: its code, else its status, else its
    words."""
    text = exchange.body.decode()
    if exchange.status in (401, 429):
        return STATUSES[exchange.status]
    for table in (CODES, WORDS):
        for told, kind in table.items():
            if f'"{told}"' in text if table is CODES else told in text:
                return kind
    return STATUSES.get(exchange.status, InvalidRequestError)


@pytest.mark.slow
def test_every_recorded_error_is_what_it_says() -> None:
    seen: dict[type[DragomanError], int] = {}
    for folder, wire in WIRES.items():
        for exchange in exchanges(folder):
            if exchange.status < 400:
                continue
            error = wires.get(wire).load_error(exchange.status, exchange.headers, exchange.body)
            assert type(error) is truth(exchange), (exchange, error)
            assert (error.status, error.body) == (exchange.status, exchange.body)
            ids = [
                exchange.headers.get(name)
                for name in ("x-request-id", "request-id", "mistral-correlation-id")
            ]
            if any(ids):
                assert error.request_id in ids, exchange
            if isinstance(error, RateLimitError) and "retry-after" in exchange.headers:
                assert error.retry_after, exchange
            seen[type(error)] = seen.get(type(error), 0) + 1
    assert set(seen) >= {
        AuthenticationError,
        ContextLengthError,
        InvalidRequestError,
        ModelNotFoundError,
        PermissionDeniedError,
        ProviderError,
        RateLimitError,
    }


def test_recorded_errors_inside_an_answer_are_what_they_say() -> None:
    seen = 0
    for folder, wire in WIRES.items():
        for exchange in exchanges(folder):
            if (
                exchange.status != 200
                or b'"error"' not in exchange.body
                or exchange.endpoint not in ENDPOINTS
            ):
                continue
            decoder = wires.get(wire).decoder()
            last = [*decoder.feed(exchange.body), *decoder.close()][-1]
            if isinstance(last, RunError):
                assert type(last.error) is truth(exchange), (exchange, last.error)
                assert last.error.body
                assert len(last.error.message) > 20
                seen += 1
    assert seen


def load(wire: str, status: int, body: Any, headers: dict[str, str] | None = None) -> Any:
    return wires.get(wire).load_error(status, headers or {}, json.dumps(body).encode())


CHAT = "openai_chat"

TOO_LONG = [
    "This model's maximum context length is 4097 tokens. However, you requested 4108 tokens (8 in the messages, 4100 in the completion).",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 213462 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "Unable to submit request because the input token count is 2500021 but model only supports up to 1048576.",
    "Prompt contains 65536 tokens, too large for model with 32768 maximum context length",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 8000",
    "Please reduce the length of the messages or completion.",
    "Please reduce the length of the messages or completion. Current length is 8195 while limit is 8192",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "request (2009 tokens) exceeds the available context size (512 tokens), try increasing it",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "input is too large to process. increase the physical batch size",
    "the input length exceeds the context length",
    "prompt too long; exceeded max context length by 9 tokens",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
    "`inputs` must have less than 1024 tokens. Given: 2000",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
    "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
    "Input is too long for requested model.",
    "Invalid request: Your request exceeded model token limit: 8192",
    "The prompt is too long: 140000, model maximum context length: 131071",
    "prompt token count of 130000 exceeds the limit of 128000",
    "Request body too large for gpt-4o-mini model. Max size: 8000 tokens.",
    "Input tokens exceed the configured limit of 272000 tokens.",
    "Range of input length should be [1, 30720]",
    "The number of tokens to keep from the initial prompt is greater than the context length",
    "This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021 tokens",
    "context window exceeds limit",
]
TOLD = [
    ({"detail": [{"type": "string_type", "loc": ["body", "messages", 0], "msg": "Input should be a valid string", "input": "what is the rate limit?"}]}, "body.messages.0: Input should be a valid string"),
    ({"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error":{"type":"invalid_request_error","message":"text must be non-empty"}}'}}}, "Provider returned error: text must be non-empty"),
    ({"success": False, "errors": [{"code": 5007, "message": "AiError: bad"}]}, "AiError: bad"),
    ({"error": ["too big", "too old"]}, "too big; too old"),
    ({"error": {"message": '{"error":{"message":"bad thing","code":"x"}}'}}, "bad thing"),
    ({"error": {"message": 'litellm.BadRequestError: {"error":{"message":"bad name"}}'}}, "litellm.BadRequestError: bad name"),
    ('{"error": {"message": "written twice"}}', "written twice"),
    ({"detail": {"error": {"message": "deep"}}}, "deep"),
    ({"error_from": {"faultstring": "Invalid thing", "detail": {"errorcode": "x"}}}, "Invalid thing"),
    ({"statusCode": 400, "message": ["model should not be empty"], "error": "Bad Request"}, "model should not be empty"),
    ({"type": "about:blank", "title": "Bad", "detail": "Function unknown"}, "Function unknown"),
    ({"error": {"message": "Range of x should be [1, 30720]"}}, "Range of x should be [1, 30720]"),
    ({"error": {"message": None, "code": "odd_thing"}}, "the provider answered with HTTP 400 and no words but odd_thing"),
    ({"error": {"message": "y" * 5000}}, "y" * 1000 + "…"),
    ({"error": {"error": {"error": {}}}}, "the provider answered with HTTP 400 and no words"),
]  # fmt: skip
"""Bodies of other providers and gateways → the words in them."""
PAGES = [
    (
        b"<!DOCTYPE html>\n<html><head><title>api.example | 502: Bad&nbsp;gateway</title><style>b{c:d > 3}</style></head><body>x",
        "api.example | 502: Bad\u00a0gateway".replace("\u00a0", " "),
    ),
    (
        b"<html><style>b{c:d > 3}</style><script>if (1 < 2) limit()</script><h1>Bad  gateway</h1><!-- [if] <p> --></html>",
        "Bad gateway",
    ),
    (
        b'event: error\ndata: {"type":"error","error":{"type":"odd","message":"ErrorInfo as an event"}}\n\n',
        "ErrorInfo as an event",
    ),
    (b'\xef\xbb\xbf{"error":{"message":"after a mark"}}', "after a mark"),
]
"""Bodies that are no JSON → the words in them."""
REFUSED = [
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
    "Output blocked by content filtering policy",
    "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
    "Your request was rejected as a result of our safety system.",
    "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
    "Content Exists Risk",
    "Input data may contain inappropriate content.",
    'Your chosen model requires moderation and your input was flagged for "violence".',
    "The request was rejected because it was considered high risk",
]
UNKNOWN = [
    "The model `x` does not exist or you do not have access to it.",
    "The requested model 'x' does not exist.",
    "model 'x' not found, make sure the correct model ID was used and that you have access to the model.",
    "models/x is not found for API version v1beta, or is not supported for generateContent.",
    "Invalid model: x",
    "Model Not Exist",
    "acme/x is not a valid model ID",
    "No endpoints found for acme/x.",
    "Unable to access model acme/x. Please visit the site to see the list of supported models.",
    "The model `x` has been decommissioned and is no longer supported.",
    'model "x" not found, try pulling it first',
    "The provided model identifier is invalid.",
    "The API deployment for this resource does not exist.",
    "Unknown model: x",
    "The requested model 'x' is not supported by any provider you have enabled.",
    "Publisher Model `projects/p/locations/l/publishers/google/models/x` was not found or your project does not have access to it.",
    "Model not found, inaccessible, and/or not deployed",
    "The model `text-moderation-stable` does not exist",
    "AiError: No such model @cf/x or task",
    "Could not resolve the foundation model from the provided model identifier.",
    "No models loaded. Please load a model in the developer page",
    "Unavailable model: x",
    "Function '9': Not found for account 'y'",
]
PLAIN = [
    "Invalid 'messages[3]'. Content blocks are expected to be either text or image_url type.",
    "Invalid 'input[3].call_id': string too long. Expected a string with maximum length 64, but got 80 instead.",
    "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for claude-3",
    "max_tokens is too large: 5000. This model supports at most 4096 completion tokens",
    "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "tools.0.custom.input_schema: Invalid key 'x' in schema",
    "Invalid token at position 3 of the JSON body",
    "Thinking mode does not support this tool_choice",
    "Extra inputs are forbidden",
    "Unknown parameter: 'moderation'",
    "Invalid 'messages': array too long. Expected an array with maximum length 2048",
    "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
    "The chatCompletion operation does not work with the specified model, gpt-x",
    "Request contains an invalid argument.",
    "Invalid 'timeout': must be positive",
    "Invalid schema for function 'get_context_window': In context=(), schema must be a JSON Schema",
    "Unknown parameter: 'rate_limit'.",
    "Unrecognized request argument supplied: content_filter",
    "property 'context_length' is unsupported",
    "invalid request: unknown field `rate_limit`",
    "Invalid value: 'is my rate limit the context length?'. Supported values are: 'a'",
    "1 validation error: Input should be a string [type=string_type, input_value='the context length', input_type=str]",
    "[{'loc': ('body', 'messages', 0), 'msg': 'Input should be a valid string', 'input': 'what is the context length'}]",
    "Error while downloading https://x/y.png: 401 Unauthorized",
    "Error retrieving tool list from MCP server: 'github'. Http status code: 401 (Unauthorized)",
    "The guardrail identifier or version provided in the request does not exist.",
    "No endpoints found that support tool use.",
    "This model takes no files of that kind. File x was not found",
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after",
]


@pytest.mark.parametrize("wire", wires.names("model"))
@pytest.mark.parametrize(
    ("words", "kind"),
    [
        *((words, ContextLengthError) for words in TOO_LONG),
        *((words, ContentRefusedError) for words in REFUSED),
        *((words, ModelNotFoundError) for words in UNKNOWN),
        *((words, InvalidRequestError) for words in PLAIN),
    ],
)
def test_words_mean_the_same_on_every_wire(
    wire: str, words: str, kind: type[DragomanError]
) -> None:
    """A gateway tells another provider's words in its own shape."""
    shapes: dict[str, Any] = {
        "anthropic": {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": words},
        },
        "google": {"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}},
        "cohere": {"message": words},
        "ollama": {"error": words},
        "mistral": {
            "object": "error",
            "message": words,
            "type": "invalid_request_error",
            "code": None,
        },
    }
    error = load(
        wire, 400, shapes.get(wire, {"error": {"message": words, "type": "invalid_request_error"}})
    )
    assert type(error) is kind, error
    assert error.message.startswith(words.rstrip("."))


@pytest.mark.parametrize(
    ("wire", "status", "body", "kind"),
    [
        (CHAT, 400, {"error": {"message": "request (9 tokens) is long", "type": "exceed_context_size_error", "code": 400}}, ContextLengthError),
        (CHAT, 413, {"error": {"message": "Request too large for model `x` on tokens per minute (TPM): Limit 6000", "type": "tokens", "code": "rate_limit_exceeded"}}, RateLimitError),
        (CHAT, 413, {"error": {"message": "Request body too large", "code": "tokens_limit_reached"}}, ContextLengthError),
        (CHAT, 403, {"error": {"message": "Project `p` does not have access to model `x`", "code": "model_not_found"}}, ModelNotFoundError),
        (CHAT, 403, {"error": {"message": "Country, region, or territory not supported", "code": "unsupported_country_region_territory"}}, PermissionDeniedError),
        (CHAT, 403, {"error": {"message": "Blocked", "code": 403, "metadata": {"reasons": ["flagged: violence"]}}}, ContentRefusedError),
        (CHAT, 401, {"error": {"message": "You have insufficient permissions for this operation. Missing scopes: model.request"}}, PermissionDeniedError),
        (CHAT, 404, {"object": "error", "message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}, ModelNotFoundError),
        (CHAT, 404, {"error": {"message": "No such File object: f", "type": "invalid_request_error"}}, InvalidRequestError),
        (CHAT, 404, {"detail": "Not Found"}, ModelNotFoundError),
        (CHAT, 404, {"error": {"code": "404", "message": "Resource not found"}}, ModelNotFoundError),
        (CHAT, 400, {"object": "error", "message": "This model's maximum context length is 9 tokens.", "type": "BadRequestError", "code": 400}, ContextLengthError),
        (CHAT, 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error":{"message":"prompt is too long: 9 tokens > 8 maximum"}}', "provider_name": "Anthropic"}}}, ContextLengthError),
        (CHAT, 502, {"error": {"message": "Provider returned error", "code": 502, "metadata": {"raw": "upstream timed out"}}}, ProviderTimeoutError),
        (CHAT, 429, {"error": {"message": "The engine is currently overloaded", "type": "engine_overloaded_error"}}, OverloadedError),
        (CHAT, 501, {"error": {"code": 501, "message": "This server does not support embeddings.", "type": "not_supported_error"}}, InvalidRequestError),
        (CHAT, 424, {"error": "Request failed during generation: Server error: CUDA", "error_type": "generation"}, ProviderError),
        (CHAT, 424, {"error": {"message": "MCP server: 401 (Unauthorized)", "type": "external_connector_error"}}, InvalidRequestError),
        (CHAT, 400, {"error": {"message": '{"error":{"message":"bad","code":"context_length_exceeded"}}'}}, ContextLengthError),
        (CHAT, 400, [{"error": {"code": 400, "message": "no", "details": [{"reason": "API_KEY_INVALID"}]}}], AuthenticationError),
        (CHAT, 400, {"error": {"code": "Arrearage", "message": "Access denied"}}, PermissionDeniedError),
        (CHAT, 400, {"error": {"message": "Your organization must be verified to stream this model."}}, PermissionDeniedError),
        ("anthropic", 400, {"message": "Too many tokens, please wait before trying again."}, RateLimitError),
        ("anthropic", 403, {"message": "The security token included in the request is invalid."}, AuthenticationError),
        (CHAT, 503, {"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, OverloadedError),
        (CHAT, 498, {"error": {"message": "Flex tier capacity exceeded"}}, OverloadedError),
        (CHAT, 524, {}, ProviderTimeoutError),
        (CHAT, 500, {"error": {"message": "The server had an error while processing your request", "type": "server_error"}}, ProviderError),
        (CHAT, 500, {"error": {"message": "context size exceeded"}}, ContextLengthError),
        (CHAT, 500, {"error": {"message": "The server is currently processing too many requests. Please try again later."}}, OverloadedError),
        (CHAT, 500, {"error": {"message": "timed out waiting for the runner to start"}}, ProviderTimeoutError),
        (CHAT, 403, {"error": {"message": "Forbidden", "code": "forbidden"}}, PermissionDeniedError),
        (CHAT, 400, {"error": {"message": "no", "code": "model_not_supported"}}, ModelNotFoundError),
        ("anthropic", 400, {"error": {"type": "invalid_request_error", "message": "You have reached your specified API usage limits."}}, RateLimitError),
        (CHAT, 400, {"error": {"message": "Insufficient Balance", "type": "unknown_error"}}, PermissionDeniedError),
        ("anthropic", 400, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, RateLimitError),
        ("anthropic", 413, {"type": "error", "error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}, InvalidRequestError),
        ("google", 429, {"error": {"code": 429, "message": "Quota exceeded for metric", "status": "RESOURCE_EXHAUSTED"}}, RateLimitError),
        ("google", 403, {"error": {"code": 403, "message": "Vertex AI API has not been used in project 1", "status": "PERMISSION_DENIED", "details": [{"reason": "SERVICE_DISABLED"}]}}, PermissionDeniedError),
        ("ollama", 500, {"error": "model requires more system memory (9 GiB)"}, ProviderError),
        ("mistral", 400, {"detail": "Service tier capacity exceeded for this model."}, RateLimitError),
        ("cohere", 400, {"message": "blocked by safety mode"}, ContentRefusedError),
        ("openai_responses", 404, {"error": {"message": "Response with id 'resp_1' not found."}}, InvalidRequestError),
    ],
)  # fmt: skip
def test_status_and_code_decide_with_the_words(
    wire: str, status: int, body: Any, kind: type[DragomanError]
) -> None:
    error = load(wire, status, body)
    assert type(error) is kind, error
    assert error.status == status


@pytest.mark.parametrize("wire", wires.names("model"))
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AuthenticationError),
        (402, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, ModelNotFoundError),
        (408, ProviderTimeoutError),
        (413, InvalidRequestError),
        (422, InvalidRequestError),
        (429, RateLimitError),
        (451, ContentRefusedError),
        (500, ProviderError),
        (502, ProviderError),
        (503, OverloadedError),
        (504, ProviderTimeoutError),
        (529, OverloadedError),
    ],
)
def test_a_status_alone_says_enough(wire: str, status: int, kind: type[DragomanError]) -> None:
    error = wires.get(wire).load_error(status, {"X-Request-Id": "r"}, b"")
    assert type(error) is kind
    said, _, advice = error.message.partition(". ")
    assert said.endswith(f"HTTP {status} and no words")
    assert len(advice.split()) > 1
    assert (error.status, error.request_id, error.body) == (status, "r", b"")


@pytest.mark.parametrize(
    ("headers", "body", "wait"),
    [
        ({"Retry-After": "7"}, {}, 7.0),
        ({"Retry-After-Ms": "250", "Retry-After": "7"}, {}, 0.25),
        ({}, {"error": {"message": "Rate limit reached. Please try again in 7.66s. Visit the site"}}, 7.66),
        ({}, {"error": {"message": "Please try again in 1m26.4s."}}, 86.4),
        ({}, {"error": {"message": "Please try again in 120ms."}}, 0.12),
        ({}, {"error": {"message": "Please retry after 20 seconds."}}, 20.0),
        ({}, {"error": {"message": "You may wait for it"}}, None),
        ({"X-RateLimit-Remaining-Tokens": "0", "X-RateLimit-Reset-Tokens": "6m0s", "X-RateLimit-Remaining-Requests": "9", "X-RateLimit-Reset-Requests": "9s"}, {}, 360.0),
        ({"X-RateLimit-Remaining-Tokens": "5", "X-RateLimit-Reset-Tokens": "6m0s"}, {}, None),
        ({"X-RateLimit-Reset": "12"}, {}, 12.0),
        ({"X-RateLimit-Reset": "1800000030", "Date": "Fri, 15 Jan 2027 08:00:00 GMT"}, {}, 30.0),
        ({"Date": "Fri, 15 Jan 2027 08:00:00 GMT"}, {"error": {"message": "x", "code": 429, "metadata": {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000030000"}}}}, 30.0),
    ],
)  # fmt: skip
def test_how_long_a_limit_lasts(headers: dict[str, str], body: Any, wait: float | None) -> None:
    assert load(CHAT, 429, body, headers).retry_after == pytest.approx(wait)


def test_anthropics_limits_are_dates() -> None:
    headers = {
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2027-01-15T08:00:42Z",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2027-01-15T09:00:00Z",
        "date": "Fri, 15 Jan 2027 08:00:00 GMT",
    }
    assert parse_limit_reset(headers) == 42.0


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("34.4s", 34.4), ("1h2m3s", 3723.0), ("5 minutes", 300.0), ("6ms", 0.006), ("2 days", 172800.0), ("soon", None), ("5 apples", None)],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == pytest.approx(seconds)
    assert parse_waiting_text(f"Please try again in {text}.") == pytest.approx(seconds)


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-reset", "x-ratelimit-remaining", "ratelimit-reset", "date"]), st.text(max_size=20)
    ),
    st.text(max_size=40),
)  # fmt: skip
def test_nothing_odd_makes_a_wait_raise(headers: dict[str, str], words: str) -> None:
    wait = load(CHAT, 429, {"error": {"message": f"try again in {words}"}}, headers).retry_after
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    "name",
    [
        "x-request-id",
        "Request-Id",
        "apim-request-id",
        "x-ds-trace-id",
        "x-github-request-id",
        "x-amzn-RequestId",
        "cf-ray",
    ],
)
def test_the_id_of_a_request_is_found(name: str) -> None:
    for wire in wires.names("model"):
        assert wires.get(wire).load_error(500, {name: "r1"}, b"").request_id == "r1"


@pytest.mark.parametrize(
    "wire", [CHAT, "anthropic", "google", "mistral", "ollama", "openai_responses"]
)
@pytest.mark.parametrize(
    ("body", "words"), [*((json.dumps(body).encode(), words) for body, words in TOLD), *PAGES], ids=lambda value: str(value)[:50]
)  # fmt: skip
def test_the_words_are_found_in_any_body(wire: str, body: bytes, words: str) -> None:
    error = wires.get(wire).load_error(400, {}, body)
    assert error.message.partition(". Change the request")[0] == words
    assert error.body == body


def test_a_busy_provider_tells_when_to_come_back() -> None:
    assert load("anthropic", 529, {}, {"retry-after": "7"}).retry_after == 7.0


def test_an_error_of_which_nothing_is_told_still_says_something() -> None:
    error = build_error(ErrorInfo())
    assert type(error) is ProviderError
    assert error.message == "the provider failed. This is a fault of the provider's own; try again."
    assert (error.status, error.request_id) == (None, None)


def test_a_long_page_in_place_of_an_answer_is_told_in_short() -> None:
    page = b"<html><p>" + b"no such thing " * 200 + b"</p><p>rate limit</p></html>"
    error = wires.get("openai_chat").load_error(400, {}, page)
    assert type(error) is InvalidRequestError
    assert error.message.startswith("no such thing no such thing")
    assert len(error.message) < 400
    assert error.body == page
