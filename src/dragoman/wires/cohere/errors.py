"""Errors `{"id": …, "message": …}` ⇄ our exceptions. The kind is told by the status and by the words."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import errors
from dragoman.codec.error_rules import ErrorInfo, ErrorReader, ErrorRules, error_from, error_info, patterns
from dragoman.codec.json_values import if_object, if_text
from dragoman.codec.serving import ErrorResponse, error_response
from dragoman.errors import DragomanError

__all__ = ["dump_error", "error_of", "load_error"]

_RULES = ErrorRules(
    words=patterns((errors.ProviderTimeoutError, r"^TIMEOUT\b"), (errors.ContentRefusedError, r"\bsafety\b")),
    statuses={498: errors.ContentRefusedError},
)
_SENT: tuple[tuple[type[DragomanError], int, str], ...] = (
    (errors.ContextLengthError, 400, "too many tokens"),
    (errors.InvalidRequestError, 400, ""),
    (errors.HistoryError, 400, ""),
    (errors.AuthenticationError, 401, "invalid api token"),
    (errors.PermissionDeniedError, 403, ""),
    (errors.ModelNotFoundError, 404, "model not found"),
    (errors.ContentRefusedError, 400, "blocked output"),
    (errors.RateLimitError, 429, "too many requests"),
    (errors.OverloadedError, 503, "overloaded"),
    (errors.ProviderTimeoutError, 504, ""),
    (errors.ProviderConnectionError, 502, ""),
    (DragomanError, 500, ""),
)
"""Class → status, and the words by which the kind is known inside a stream."""


def dump_error(error: DragomanError) -> ErrorResponse:
    """An exception → status, headers and body."""
    status, words = next(row[1:] for row in _SENT if isinstance(error, row[0]))
    known = not words or type(error_from(ErrorInfo(words=error.message), rules=_RULES)) is type(error)
    identified = {} if error.request_id is None else {"id": error.request_id}
    body = {**identified, "message": error.message if known else f"{words}: {error.message}"}
    return error_response(error, status, body)


def _info(payload: Any) -> ErrorInfo:
    return msgspec.structs.replace(error_info(payload), request_id=if_text(if_object(payload).get("id")) or None)


_READER = ErrorReader(_info, _RULES)
load_error, error_of = _READER.load_error, _READER.error_of
