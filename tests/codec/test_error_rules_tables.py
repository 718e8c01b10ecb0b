"""Every line of what is known of providers' errors counts: statuses, numbers of vendors, headers,
bounds, and what goes before what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman import wires
from dragoman.codec.error_body import collect_codes, collect_words, parse_body, strip_quoted_names
from dragoman.codec.error_rules import (
    ErrorInfo,
    ErrorRules,
    build_error,
    compile_patterns,
    find_request_id,
    load_error_response,
    read_error_info,
    read_vendor_status,
)
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
)
from dragoman.retry_after import (
    parse_duration,
    parse_limit_reset,
    parse_retry_after,
    parse_waiting_text,
)
from dragoman.wires.openai_chat.dialect import WIRE

DATE = "Fri, 15 Jan 2027 08:00:00 GMT"
"""1,800,000,000 seconds since 1970."""
ADVICE = {
    AuthenticationError: "Check the API key.",
    PermissionDeniedError: "Check what the key may do, and the account's credit and region.",
    ModelNotFoundError: "Check the model's name, that the key may use it, and the base URL.",
    ContextLengthError: "Shorten the conversation, or take a model with a longer context.",
    ContentRefusedError: "Change what is asked: the provider's policy refuses it.",
    RateLimitError: "Wait, then try again, or ask for a higher limit.",
    OverloadedError: "Try again later, or take another model.",
    ProviderTimeoutError: "Try again.",
    InvalidRequestError: "Change the request.",
    ProviderError: "This is a fault of the provider's own; try again.",
}


def read(
    status: int, body: Any, headers: dict[str, str] | None = None, **how: Any
) -> ProviderError:
    return load_error_response(status, headers or {}, json.dumps(body).encode(), **how)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidRequestError),
        (401, AuthenticationError),
        (402, PermissionDeniedError),
        (403, PermissionDeniedError),
        (404, InvalidRequestError),
        (408, ProviderTimeoutError),
        (423, InvalidRequestError),
        (424, ProviderError),
        (425, InvalidRequestError),
        (429, RateLimitError),
        (451, ContentRefusedError),
        (499, InvalidRequestError),
        (500, ProviderError),
        (501, InvalidRequestError),
        (503, OverloadedError),
        (504, ProviderTimeoutError),
        (524, ProviderTimeoutError),
        (529, OverloadedError),
        (599, ProviderError),
    ],
)
def test_a_status_says_it_where_the_words_do_not_and_each_kind_has_its_advice(
    status: int, kind: type[ProviderError]
) -> None:
    error = read(status, {"error": {"message": "so."}})
    assert type(error) is kind
    assert error.message == f"so. {ADVICE[kind]}"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (1000, ProviderError),
        (1001, ProviderTimeoutError),
        (1002, RateLimitError),
        (1004, AuthenticationError),
        (1008, PermissionDeniedError),
        (1026, ContentRefusedError),
        (1027, ContentRefusedError),
        (1039, RateLimitError),
        (1041, RateLimitError),
        (2013, InvalidRequestError),
        (2045, RateLimitError),
        (2049, AuthenticationError),
        (2056, RateLimitError),
    ],
)
def test_minimaxs_numbers_say_it_without_words(code: int, kind: type[ProviderError]) -> None:
    words = "so" if kind in (ProviderError, InvalidRequestError) else "context length"
    error = WIRE.error_of({"base_resp": {"status_code": code, "status_msg": words}})
    assert type(error) is kind
    assert (error.message, error.status) == (f"{words}. {ADVICE[kind]}", None)


@pytest.mark.parametrize("kind", ADVICE)
def test_every_kind_says_what_to_do(kind: type[ProviderError]) -> None:
    assert (
        read(418, {"message": "so"}, rules=ErrorRules(statuses={418: kind})).message
        == f"so. {ADVICE[kind]}"
    )


def test_a_fault_without_words_says_what_there_is() -> None:
    assert (
        build_error(ErrorInfo(), status=500).message
        == f"the provider answered with HTTP 500 and no words. {ADVICE[ProviderError]}"
    )
    assert build_error(ErrorInfo(codes="x_1"), status=500).message.startswith(
        "the provider answered with HTTP 500 and no words but x_1."
    )
    assert build_error(ErrorInfo(codes="17"), status=500).message.startswith(
        "the provider answered with HTTP 500 and no words. "
    )
    assert build_error(ErrorInfo(status=500)).message.startswith(
        "the provider answered with HTTP 500 and no words. "
    )
    assert (
        build_error(ErrorInfo(codes="X")).message == f"the provider failed. {ADVICE[ProviderError]}"
    )
    reason = {"error": {"message": "Param bad.", "param": "a b"}}
    assert read_error_info(reason).text == "Param bad.: a b"
    assert read_error_info({"error": {"message": "is a b", "param": "a b"}}).text == "is a b"
    assert read_error_info({"error": {"message": "bad", "param": "a"}}).text == "bad"


def test_a_fault_is_the_providers_only_from_500_on() -> None:
    assert type(read(400, {"message": "too many requests"})) is RateLimitError
    assert type(read(500, {"message": "too many requests"})) is OverloadedError


@pytest.mark.parametrize(
    "told", [None, "x", {}, {"status_code": 0}, {"status_code": "1004"}, {"status_code": None}]
)
def test_what_is_no_number_of_minimaxs_is_no_fault(told: Any) -> None:
    assert read_vendor_status({"base_resp": told}) == 0
    assert WIRE.error_of({"base_resp": told}) is None


@pytest.mark.parametrize(
    "where", [lambda one: {"error": one}, lambda one: one, lambda one: [{"error": one}]]
)
@pytest.mark.parametrize(
    "key", ["raw_status_code", "status_code", "statusCode", "StatusCode", "status", "code"]
)
def test_an_error_may_tell_its_status_itself(key: str, where: Any) -> None:
    assert read_error_info(where({"message": "so", key: 503})).status == 503
    assert read_error_info(where({"message": "so", key: "404"})).status == 404
    for odd in (200, 600, 4000, "x404", None, {}):
        assert read_error_info(where({"message": "so", key: odd})).status is None
    assert build_error(read_error_info(where({"message": "so", key: 503}))).status == 503
    assert (
        type(build_error(read_error_info(where({"message": "so", key: 429})), status=503))
        is OverloadedError
    )


def test_the_inner_status_goes_before_the_outer_one() -> None:
    assert read_error_info({"error": {"code": 404}, "code": 500}).status == 404


@pytest.mark.parametrize(
    "payload",
    [
        {"request_id": "r", "error": {"request_id": "s"}},
        {"error": {"request_id": "r"}},
        [{"request_id": "r"}],
    ],
)
def test_the_id_in_a_body_is_found(payload: Any) -> None:
    assert read_error_info(payload).request_id == "r"
    assert read_error_info({"request_id": 3, "error": {"request_id": ""}}).request_id is None


IDS = [
    "mistral-correlation-id", "x-request-id", "request-id", "apim-request-id", "x-kong-request-id", "x-ds-trace-id",
    "x-github-request-id", "x-amzn-requestid", "x-goog-request-id", "nvcf-reqid", "x-generation-id",
]  # fmt: skip
TRACES = ["x-debug-trace-id", "cf-ray"]


def test_headers_that_hold_an_id_have_an_order_and_the_body_stands_within_it() -> None:
    for place, name in enumerate(IDS):
        later = {other: f"of {other}" for other in reversed([*IDS[place + 1 :], *TRACES])}
        assert find_request_id({**later, name: "r"}, "told") == "r", name
        assert find_request_id({**later, name: ""}, "told") != "", name
    for place, name in enumerate(TRACES):
        later = dict.fromkeys(TRACES[place + 1 :], "x")
        assert find_request_id({**later, name: "r"}) == "r"
        assert find_request_id({**later, name: "r"}, "told") == "told"
    assert find_request_id({"other": "x", "cf-ray": ""}) is None


def test_what_a_provider_behind_a_gateway_says_is_shown_in_short() -> None:
    body = {
        "error": {
            "message": "Provider returned error",
            "metadata": {"raw": "y" * 800, "headers": {"Retry-After": 5}},
        }
    }
    error = read(400, body)
    assert error.message == f"Provider returned error: {'y' * 500}. Change the request."
    info = read_error_info(body)
    assert info.headers == {"retry-after": "5"}


def test_only_the_beginning_of_long_words_tells_the_kind_and_is_shown() -> None:
    long = "y" * 3990
    assert type(read(400, {"message": f"{long} rate limit"})) is InvalidRequestError
    assert type(read(400, {"message": f"{long[:3980]} rate limit"})) is RateLimitError
    assert read(400, {"message": "y" * 1000}).message == f"{'y' * 1000}. Change the request."
    assert read(400, {"message": "y" * 1001}).message == f"{'y' * 1000}…. Change the request."
    many = {"error": {"message": "so", "details": [{"reason": f"r{n:04}"} for n in range(900)]}}
    assert len(read_error_info(many).codes) == 4000
    assert read_error_info({"error": {"code": "a", "type": "b"}, "type": "a"}).codes == "a b"


def test_what_a_wire_says_in_a_way_of_its_own_goes_before() -> None:
    rules = ErrorRules(
        patterns=compile_patterns((ContextLengthError, "SO LONG")),
        statuses={401: ContentRefusedError, 418: OverloadedError},
        advice={ContextLengthError: "Own advice."},
    )
    assert read(400, {"message": "so long"}, rules=rules).message == "so long. Own advice."
    assert type(read(500, {"message": "so long"}, rules=rules)) is ContextLengthError
    assert type(read(401, {"message": "so"}, rules=rules)) is ContentRefusedError
    assert type(read(418, {"message": "so"}, rules=rules)) is OverloadedError
    assert type(read(429, {"message": "so"}, rules=rules)) is RateLimitError


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("bad request", InvalidRequestError),
        ("unexpected endpoint", InvalidRequestError),
        ("does not support that", InvalidRequestError),
        ("service unavailable", OverloadedError),
        ("timed out", ProviderTimeoutError),
        ("it broke", ProviderError),
    ],
)
def test_without_a_status_the_words_tell_whose_fault_it_is(
    words: str, kind: type[ProviderError]
) -> None:
    error = build_error(ErrorInfo(text=words))
    assert (type(error), error.status, error.message) == (kind, None, f"{words}. {ADVICE[kind]}")
    assert type(build_error(ErrorInfo(text="bad request"), status=500)) is ProviderError
    assert type(build_error(ErrorInfo(text="timed out"), status=424)) is ProviderTimeoutError


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("the model is gone", ModelNotFoundError),
        ("no such deployment", ModelNotFoundError),
        ("engine?", ModelNotFoundError),
        ("the endpoint is gone", ModelNotFoundError),
        ("Resource not found", ModelNotFoundError),
        ("404 Not Found", ModelNotFoundError),
        ("the file is gone", InvalidRequestError),
    ],
)
def test_a_404_is_of_the_model_or_of_something_else(words: str, kind: type[ProviderError]) -> None:
    assert type(read(404, {"message": words})) is kind


def test_the_first_wait_that_is_told_counts() -> None:
    told = ErrorInfo(text="try again in 3s", retry_after=1.0, headers={"x-ratelimit-reset": "4"})
    assert build_error(told, status=429, headers={"retry-after": "2"}).retry_after == 1.0  # type: ignore[attr-defined]
    after = [
        (
            ErrorInfo(text="try again in 3s", headers={"x-ratelimit-reset": "4"}),
            {"retry-after": "2"},
            2.0,
        ),
        (ErrorInfo(text="try again in 3s", headers={"x-ratelimit-reset": "4"}), {}, 3.0),
        (ErrorInfo(headers={"x-ratelimit-reset": "4"}), {"x-ratelimit-reset": "5"}, 4.0),
        (ErrorInfo(retry_after=0.0), {"retry-after": "2"}, 0.0),
        (ErrorInfo(), {"x-ratelimit-reset": "5"}, 5.0),
    ]
    for one, headers, wait in after:
        error = build_error(one, status=429, headers=headers)
        assert isinstance(error, RateLimitError)
        assert error.retry_after == wait
    busy = build_error(
        ErrorInfo(text="try again in 3s"), status=503, headers={"x-ratelimit-reset": "5"}
    )
    assert isinstance(busy, OverloadedError)
    assert busy.retry_after == 3.0
    idle = build_error(ErrorInfo(), status=503, headers={"x-ratelimit-reset": "5"})
    assert isinstance(idle, OverloadedError)
    assert idle.retry_after is None


@pytest.mark.parametrize(
    ("headers", "now", "wait"),
    [
        ({"retry-after": "7"}, None, 7.0),
        ({"retry-after": "0.5"}, None, 0.5),
        ({"retry-after": "7", "retry-after-ms": "1500"}, None, 1.5),
        ({"retry-after": "7", "retry-after-ms": "soon"}, None, 7.0),
        ({"retry-after": "7", "retry-after-ms": "0"}, None, 7.0),
        ({"retry-after": "0"}, None, None),
        ({"retry-after": "-1"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({"retry-after": "nan"}, None, None),
        ({"retry-after": "soon"}, None, None),
        ({}, None, None),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT", "date": DATE}, None, 30.0),
        ({"retry-after": "2027-01-15T08:00:30Z", "date": DATE}, None, 30.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT", "date": DATE}, 1_800_000_010.0, 20.0),
        ({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, None, None),
        ({"retry-after": DATE, "date": DATE}, None, None),
        ({"retry-after": "soon", "date": DATE}, None, None),
        ({"retry-after": DATE}, 1_800_000_001.0, None),
        ({"retry-after": "0" * 99 + "7" + "0"}, None, 7.0),
    ],
)
def test_what_retry_after_asks_for(
    headers: dict[str, str], now: float | None, wait: float | None
) -> None:
    assert parse_retry_after(headers, now) == wait


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({}, None),
        ({"x-ratelimit-reset": "12"}, 12.0),
        ({"ratelimit-reset": " 12.5 "}, 12.5),
        ({"x-ratelimit-reset": "0"}, None),
        ({"x-other": "1", "x-ratelimit-reset": "12"}, 12.0),
        ({"x-ratelimit-reset": "100000000000", "date": DATE}, 98_200_000_000.0),
        ({"x-ratelimit-reset": "1m2.5s"}, 62.5),
        ({"x-ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-reset": "12", "x-ratelimit-remaining": "0"}, 12.0),
        ({"x-ratelimit-reset": "12", "x-ratelimit-remaining": "1"}, None),
        ({"x-ratelimit-reset": "12", "x-ratelimit-remaining": "soon"}, None),
        ({"x-ratelimit-reset-tokens": "12"}, None),
        ({"x-ratelimit-tokens-reset": "12"}, None),
        ({"x-ratelimit-reset-tokens": "12", "x-ratelimit-remaining-tokens": "0"}, 12.0),
        ({"a-ratelimit-tokens-reset": "12", "a-ratelimit-tokens-remaining": "0.0", "x-ratelimit-reset": "9"}, 12.0),
        ({"x-ratelimit-reset": "99999999"}, 99999999.0),
        ({"x-ratelimit-reset": "100000000", "date": DATE}, None),
        ({"x-ratelimit-reset": "1800000030", "date": DATE}, 30.0),
        ({"x-ratelimit-reset": "1800000030500", "date": DATE}, 30.5),
        ({"x-ratelimit-reset": "1800000030"}, None),
        ({"x-ratelimit-reset": "1800000000", "date": DATE}, None),
        ({"x-ratelimit-reset": "2027-01-15T08:00:42Z", "date": DATE}, 42.0),
        ({"x-ratelimit-reset": "Fri, 15 Jan 2027 08:00:42 GMT", "date": DATE}, 42.0),
        ({"x-ratelimit-reset": "1s" + " " * 98}, 1.0),
        ({"x-ratelimit-reset": "1s" + " " * 99}, None),
        ({"x-ratelimit" + "-" * 83 + "-reset": "3"}, None),
        ({"x-ratelimit-reset": "9" * 16}, None),
    ],
)  # fmt: skip
def test_what_headers_tell_of_limits(headers: dict[str, str], wait: float | None) -> None:
    assert parse_limit_reset(headers) == wait


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *((f"2{unit}", 0.002) for unit in ("ms", " milliseconds", " millisecond")),
        *((f"2{unit}", 172800.0) for unit in ("d", " days", " day")),
        *((f"2{unit}", 7200.0) for unit in ("h", " hours", " hr", " hrs", "H")),
        *((f"2{unit}", 120.0) for unit in ("m", " minutes", " mins", " min", " MIN")),
        *((f"2{unit}", 2.0) for unit in ("s", " seconds", " secs", " second")),
        ("1d1h1m1.5s500ms", 90062.0),
        ("2 moons", None),
        ("2", None),
        (f"{'9' * 400}s", None),
    ],
)
def test_every_word_for_a_time_is_read(text: str, seconds: float | None) -> None:
    assert parse_duration(text) == (None if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 1m2.5s.", 62.5),
        ("retry after 20 seconds", 20.0),
        ("Wait for 2 minutes, then", 120.0),
        ("wait it about 5s", 5.0),
        ("again in soon", None),
        ("in 5s", None),
    ],
)
def test_words_that_ask_to_wait(words: str, seconds: float | None) -> None:
    assert parse_waiting_text(words) == seconds


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"[1]", [1]),
        (b'"{\\"a\\": 1}"', {"a": 1}),
        (b"\xef\xbb\xbf{}", {}),
        (b"3", "3"),
        (b" null ", None),
        (b"", ""),
        (b"so  it\nis", "so it is"),
        (b"a &amp; b", "a & b"),
        (b"x" * 400, "x" * 300),
        (b"\xff", "\ufffd"),
        (b'event: x\ndata: so\ndata: {"a": 2}\n\n', {"a": 2}),
        (b"<title>  The title </title>rest", "The title"),
        (b" " * 9000 + b"<title>late</title>", "late"),
        (b"<!-- c --><script>s</script><STYLE>t</STYLE><b>seen</b><!-- open", "seen"),
        (b"<p>" + b" " * 65533 + b"never", ""),
        (b"&amp;" * 900, "&" * 300),
        (b"<script>a\nb</script>c<br>d", "c d"),
        (b"&#" + b"1" * 5000 + b";", "\ufffd"),
        (b"[" * 5000, "[" * 300),
    ],
)
def test_what_a_body_holds(body: bytes, found: Any) -> None:
    assert parse_body(body) == found


WORDS = [
    "message", "Message", "detail", "error", "errors", "raw", "data", "msg", "error_description", "errorMessage", "error_from",
    "faultstring", "title", "base_resp", "status_msg",
]  # fmt: skip


def test_words_stand_in_any_of_these_fields_the_first_that_says_something_first() -> None:
    for place, key in enumerate(WORDS):
        later = {other: f"of {other}" for other in reversed(WORDS[place + 1 :]) if other != "error"}
        if key != "msg":
            later.pop("msg", None)  # of checked fields
            assert collect_words({**later, key: "so"}) == "so", key
            assert collect_words({**later, key: {"message": "so"}}) == "so", key
        assert collect_words({key: "so"}) == "so", key
    assert collect_words({"other": "so"}) == ""
    assert collect_words({"message": "outer", "error": {"message": "inner"}}) == "inner"
    assert collect_words({"message": "outer", "error": "inner"}) == "outer"
    assert collect_words({"message": "outer", "error": {"x": 1}}) == "outer"


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, ""),
        (3, ""),
        ("", ""),
        ("so", "so"),
        (["a", "", {"message": "b"}], "a; b"),
        (
            [{"loc": ["body", 0], "msg": "bad"}, {"msg": "alone"}, {"other": 1}],
            "body.0: bad; alone",
        ),
        ({"msg": "one", "loc": ["x"]}, "one"),
        ('before {"message": "in"}', "before in"),
        ('before {"other": "in"}', 'before {"other": "in"}'),
        ('before [{"message": "in"}]', "before in"),
        ("before {no json}", "before {no json}"),
    ],
)
def test_words_of_every_shape(told: Any, said: str) -> None:
    assert collect_words(told) == said


def test_what_is_told_too_deep_is_not_looked_for() -> None:
    deep: Any = "so"
    for _ in range(7):
        deep = {"error": deep}
    assert collect_words(deep) == "so"
    assert collect_words({"error": deep}) == ""
    coded: Any = {"code": "c"}
    for _ in range(7):
        coded = {"error": coded}
    assert list(collect_codes(coded)) == ["c"]
    assert list(collect_codes({"error": coded})) == []
    listed: Any = "so"
    for _ in range(7):
        listed = [listed]
    assert collect_words(listed) == "so"
    assert collect_words([listed]) == ""
    said, told = 'x {"message": "so"}', {"code": "c"}
    for _ in range(2):
        said = "x " + json.dumps({"message": said})
    assert collect_words(said) == "x x x so"
    for _ in range(3):
        told = {"raw": "x " + json.dumps(told)}
    assert list(collect_codes(told)) == ["c"]
    for _ in range(4):
        told = {"raw": "x " + json.dumps(told)}
    assert list(collect_codes(told)) == ["c"]
    assert list(collect_codes({"raw": "x " + json.dumps(told)})) == []
    lists: Any = {"code": "c"}
    for _ in range(7):
        lists = [lists]
    assert list(collect_codes(lists)) == ["c"]
    assert list(collect_codes([lists])) == []


@pytest.mark.parametrize(
    "key", ["code", "type", "status", "reason", "reasons", "error_type", "errorcode"]
)
def test_codes_are_found_on_all_levels(key: str) -> None:
    assert list(collect_codes({key: "c"})) == ["c"]
    assert list(collect_codes({key: ["c", 3, None, "", {}]})) == ["c", "3"]
    assert list(collect_codes({key: {"code": "x"}})) == []
    assert list(collect_codes([{key: "c"}, {key: 0}])) == ["c"]
    for inner in ("error", "errors", "innererror", "details", "detail", "metadata", "error_from"):
        assert (
            list(collect_codes({inner: {key: "c"}}))
            == list(collect_codes({inner: [{key: "c"}]}))
            == ["c"]
        )
    assert list(collect_codes({"other": {key: "c"}})) == []
    assert list(collect_codes({"raw": f'so {{"{key}": "c"}}'})) == ["c"]


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("the field 'a.b-c/d:[0]' is", "the field '' is"),
        ('model "x" and `y`', "model '' and ''"),
        ("it 'is so' then", "it 'is so' then"),
        ("input_value='rate limit', x", "input_value='', x"),
        ("{'input': 'rate limit'}", "{'': ''}"),
        ("the value: 'rate limit' and got \"a\nb\"", "the value: '' and got ''"),
    ],
)
def test_what_words_quote_of_the_request_does_not_count(said: str, left: str) -> None:
    assert strip_quoted_names(said) == left


def test_every_wire_reads_a_header_in_any_case_and_keeps_the_body() -> None:
    for wire in wires.names("model"):
        error = wires.get(wire).load_error(
            429, {"Retry-After": "3", "X-Request-Id": "r"}, b'{"a": 1}'
        )
        assert (error.status, error.request_id, error.body) == (429, "r", b'{"a": 1}')
        assert getattr(error, "retry_after", None) == 3.0
