"""Reads errors as exceptions and writes them. The name of an error stands in a header, in the body,
or is the type of an event in a stream; the body is `{"message": …}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman import errors
from dragoman.codec.error_body import parse_body
from dragoman.codec.error_rules import ErrorInfo, build_error, read_error_info
from dragoman.codec.json_values import first_text, if_object
from dragoman.codec.serving import ErrorResponse, error_response, error_status, look_up_class
from dragoman.errors import DragomanError, ProviderError
from dragoman.json_bytes import Json

__all__ = ["describe_error", "dump_error", "error_of", "load_error"]

_TYPE_HEADER = "x-amzn-errortype"
_MEANINGS: Mapping[str, int] = {
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ExpiredTokenException": 401,
    "IncompleteSignatureException": 401,
    "InvalidSignatureException": 401,
    "MissingAuthenticationTokenException": 401,
    "UnrecognizedClientException": 401,
    "ResourceNotFoundException": 404,
    "ModelTimeoutException": 408,
    "ModelErrorException": 424,
    "ModelStreamErrorException": 424,
    "ServiceQuotaExceededException": 429,
    "ThrottlingException": 429,
    "InternalServerException": 500,
    # Its status is 429, but the caller has exceeded nothing: the model is being loaded.
    "ModelNotReadyException": 503,
    "ServiceUnavailableException": 503,
}
"""Name of an error → the HTTP status that says what it means."""
_NAMES: Mapping[type[DragomanError], str] = {
    errors.InvalidRequestError: "ValidationException",
    errors.HistoryError: "ValidationException",
    errors.ContentRefusedError: "ValidationException",
    errors.AuthenticationError: "UnrecognizedClientException",
    errors.PermissionDeniedError: "AccessDeniedException",
    errors.ModelNotFoundError: "ResourceNotFoundException",
    errors.RateLimitError: "ThrottlingException",
    errors.OverloadedError: "ServiceUnavailableException",
    errors.ProviderTimeoutError: "ModelTimeoutException",
}
_IN_STREAM = ("ValidationException", "ThrottlingException", "ServiceUnavailableException")
"""Errors that the events of a stream can tell, beside that of the server."""
_WORDS: Mapping[type[DragomanError], str] = {
    errors.ContextLengthError: "Input is too long for requested model",
    errors.ContentRefusedError: "blocked by content filtering policy",
    errors.ModelNotFoundError: "model not found",
}
"""Class → the words by which clients know the kind."""
_SERVER = "InternalServerException"


def load_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """Returns the exception for an error response of Amazon Bedrock. Never raises."""
    lower = {name.lower(): text for name, text in headers.items()}
    info = _read_info(parse_body(body), lower.get(_TYPE_HEADER, ""))
    return build_error(info, status=status, headers=lower, body=body)


def error_of(payload: Any, name: str = "") -> ProviderError:
    """Returns the exception for an error inside a Converse stream. `name`: the type of its
    event."""
    return build_error(_read_info(payload, name))


def describe_error(error: DragomanError) -> Json:
    """Returns the event of a Converse stream that tells of an error."""
    name = look_up_class(_NAMES, error, _SERVER)
    if name not in _IN_STREAM:
        name = _SERVER
    return {name[0].lower() + name[1:]: _dump_body(error)}


def dump_error(error: DragomanError) -> ErrorResponse:
    """Returns the error answer of Amazon Bedrock for an exception: status, headers and body."""
    response = error_response(error, error_status(error), _dump_body(error))
    name = look_up_class(_NAMES, error, _SERVER)
    return response._replace(headers={**response.headers, _TYPE_HEADER: name})


def _dump_body(error: DragomanError) -> Json:
    """Returns the body of a Bedrock error, whose words name the kind."""
    phrase, message = look_up_class(_WORDS, error, ""), error.message
    if phrase and phrase.lower() not in message.lower():
        message = f"{phrase}: {message}"
    return {"message": message}


def _read_info(payload: Any, name: str) -> ErrorInfo:
    """Reads the JSON of a Bedrock error. `name`: that of the error, if it stands beside it."""
    fields = if_object(payload)
    name = name or first_text(fields, "__type", "code", "Code")
    # Such as `com.amazon.coral#ThrottlingException` and `ThrottlingException:http://…`.
    name = name.partition(":")[0].rpartition("#")[2]
    name = name[:1].upper() + name[1:]
    text = first_text(fields, "message", "Message", "originalMessage")
    info = replace(read_error_info(payload), means=_MEANINGS.get(name))
    return replace(info, text=text or info.text, codes=f"{name} {info.codes}".strip())
