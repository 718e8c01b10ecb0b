"""Checks of errors: status, headers and body of a refusal → an exception, and back."""

from __future__ import annotations

import msgspec

from dragoman import errors
from dragoman.errors import DragomanError, ProviderError, RateLimitError
from dragoman.testing.check import attempt, require, require_equal
from dragoman.testing.mutation import JsonValue
from dragoman.testing.wire.bench import WireBench, round_trip_json, wire_check

__all__ = [
    "errors_return_by_class",
    "load_error_raises_nothing",
    "statuses_tell_the_class",
    "retry_after_is_read",
    "retry_after_is_written",
]

_CERTAIN = (
    errors.AuthenticationError,
    errors.PermissionDeniedError,
    errors.ModelNotFoundError,
    errors.InvalidRequestError,
    errors.ContextLengthError,
    errors.RateLimitError,
    errors.OverloadedError,
    errors.ProviderTimeoutError,
    errors.ProviderError,
)
"""Error classes that every provider has. Not every provider can say that content is refused."""
_STATUSES: dict[int, tuple[type[DragomanError], ...]] = {
    400: (errors.InvalidRequestError,),
    401: (errors.AuthenticationError,),
    403: (errors.PermissionDeniedError,),
    404: (errors.ModelNotFoundError, errors.InvalidRequestError),
    408: (errors.ProviderTimeoutError,),
    413: (errors.InvalidRequestError,),
    422: (errors.InvalidRequestError,),
    429: (errors.RateLimitError,),
    500: (errors.ProviderError,),
    502: (errors.ProviderError,),
    503: (errors.OverloadedError,),
    504: (errors.ProviderTimeoutError,),
    529: (errors.OverloadedError,),
}


@wire_check("error", look="load_error, dump_error")
def errors_return_by_class(bench: WireBench) -> None:
    """An error that is written and read has the same class and message and a status from 400 to
    599."""
    for error_class in _CERTAIN:
        response = bench.wire.dump_error(error_class("The kit says no."))
        require(
            400 <= response.status <= 599,
            f"the status of {error_class.__name__} is {response.status}",
        )
        body = msgspec.json.encode(round_trip_json(response.body, "dump_error"))
        loaded = bench.wire.load_error(response.status, response.headers, body)
        require_equal(
            type(loaded).__name__,
            error_class.__name__,
            f"the class of an error with status {response.status}",
        )
        require(
            "The kit says no." in loaded.message,
            f"the message of {error_class.__name__} is lost: {loaded.message!r}",
        )


@wire_check("error", look="load_error: the table of statuses")
def statuses_tell_the_class(bench: WireBench) -> None:
    """The status alone decides the class if the body says nothing, such as a proxy's page."""
    for status, kinds in _STATUSES.items():
        # Bodies of proxies and gateways, which know nothing of the format.
        for body in (b"<html><body>no</body></html>", b"", b"{}", b"null"):
            loaded = bench.wire.load_error(status, {}, body)
            names = " or ".join(error_class.__name__ for error_class in kinds)
            require(
                type(loaded) in kinds,
                f"{status} with the body {body!r} must be {names} and is {type(loaded).__name__}",
            )
            require(loaded.message, f"{status} with the body {body!r} has no message")


@wire_check("error", look="load_error: retry_after(headers)")
def retry_after_is_read(bench: WireBench) -> None:
    """The seconds to wait after a 429 are read from `Retry-After`."""
    body = bench.wire.dump_error(RateLimitError("Too fast.")).body
    loaded = bench.wire.load_error(429, {"retry-after": "7"}, msgspec.json.encode(body))
    require(isinstance(loaded, RateLimitError), f"429 is {loaded!r}")
    require_equal(getattr(loaded, "retry_after", None), 7.0, "`retry_after`")


@wire_check("error", look="dump_error: codec.serving.error_response")
def retry_after_is_written(bench: WireBench) -> None:
    """An error with seconds to wait writes `retry-after`; one without does not. Header names are
    lower case."""
    headers = bench.wire.dump_error(RateLimitError("Too fast.", retry_after=7.0)).headers
    require_equal(headers.get("retry-after"), "7", "the header `retry-after`")
    require_equal(
        [name for name in headers if name != name.lower()],
        [],
        "names of headers that are not in lower case",
    )
    require(
        "retry-after" not in bench.wire.dump_error(RateLimitError("Too fast.")).headers,
        "a wait is made up",
    )


@wire_check("error", look="load_error")
def load_error_raises_nothing(bench: WireBench) -> None:
    """`load_error` returns a `ProviderError` with the raw body for every status and body, and
    raises nothing."""
    good = bench.wire.dump_error(ProviderError("No.")).body
    wrong: list[JsonValue] = [None, 5, "text", [], {}, [5], {"message": 5, "code": [], "type": {}}]
    spoilt: list[JsonValue] = [{**good, key: bad} for key in good for bad in wrong]
    # Bytes that are not UTF-8, JSON that is too deep for a recursive parser, other JSON, no JSON.
    bodies = [
        b"\xff\xfe",
        b"[" * 20_000,
        b'"text"',
        b"[]",
        b"5",
        b"{",
        *map(msgspec.json.encode, spoilt),
    ]
    for status in (*_STATUSES, 418, 599):
        for body in bodies:
            what = f"{status} with {body[:200]!r}"
            loaded = attempt(
                lambda status=status, body=body: bench.wire.load_error(status, {}, body), what
            )
            require(isinstance(loaded, ProviderError), f"{what} is {loaded!r}")
            require_equal(loaded and loaded.body, body, "`body` of the error")
