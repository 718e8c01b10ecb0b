"""What a provider says of an error → the exception that it is. A wire reads its own shape; what it
means is the same for all.

First counts the status that says it all, then the words, then the status that says little. All of
it is data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from dragoman.codec.error_body import collect_codes, collect_words, parse_body, strip_quoted_names
from dragoman.codec.json_values import as_text, if_object, if_objects, if_text
from dragoman.codec.serving import look_up_class
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
from dragoman.json_bytes import JsonMap
from dragoman.retry_after import parse_limit_reset, parse_retry_after, parse_waiting_text

__all__ = [
    "ErrorReader",
    "ErrorRules",
    "Patterns",
    "ErrorInfo",
    "build_error",
    "load_error_response",
    "find_request_id",
    "compile_patterns",
    "read_error_info",
    "read_vendor_status",
]

_Kind = type[ProviderError]
Patterns = tuple[tuple[_Kind, str | re.Pattern[str]], ...]
"""Kinds, and the words by which each is known, as regular expressions, which the first error
compiles."""


class ErrorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What was read in an error."""

    text: str = ""
    """The provider's own, for people."""
    codes: str = ""
    """What else says of its kind: code, type, reason."""
    means: int | None = None
    """The HTTP status that its code stands for, where it has one; goes before the response's
    own."""
    status: int | None = None
    """The status that it tells itself, where the response has none."""
    request_id: str | None = None
    """The provider's id of the request, where the body tells it."""
    retry_after: float | None = None
    """Seconds."""
    headers: Mapping[str, str] = {}
    """Of a provider behind this one, names in lower case."""
    refused: str = ""
    """What the model wrote and the provider refused. It is shown, but says nothing of the kind."""


def compile_patterns(*lines: tuple[_Kind, str]) -> Patterns:
    """Returns error classes with their patterns, made insensitive to case."""
    return tuple((error_class, f"(?i){pattern}") for error_class, pattern in lines)


class ErrorRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a wire says in a way of its own."""

    patterns: Patterns = ()
    """Before those that all use."""
    statuses: Mapping[int, _Kind] = {}
    """A status that says it all, before those that all use."""
    advice: Mapping[_Kind, str] = {}
    """Kind of error → what to do about it, in place of the usual words."""


_USUAL = ErrorRules()
_STATUSES: Mapping[int, _Kind] = {
    401: AuthenticationError,
    402: PermissionDeniedError,
    408: ProviderTimeoutError,
    429: RateLimitError,
    451: ContentRefusedError,
    501: InvalidRequestError,
    503: OverloadedError,
    504: ProviderTimeoutError,
    524: ProviderTimeoutError,
    529: OverloadedError,
}
"""A status that says it all."""
_BETTER: Mapping[_Kind, Patterns] = {
    AuthenticationError: compile_patterns(
        (PermissionDeniedError, r"insufficient permissions|missing scopes")
    ),
    RateLimitError: compile_patterns(
        (OverloadedError, r"overloaded"), (PermissionDeniedError, r"\blimit:? 0\b.{0,40}requested")
    ),
}
"""Kind by such a status → words by which it is another one after all."""
_WORDS = compile_patterns(
    (
        InvalidRequestError,
        r"(unknown|unsupported|unrecogni[sz]ed|unexpected|additional|extra) (request )?(parameter|argument|field|key|propert|option|name)|"
        r"(audio|image|video|vision|file|document|media|multimodal) inputs? (is|are) not supported|extra inputs|MCP server|external_connector|(download|fetch|retriev)\w* .{0,40}(https?:|\burl\b|image|file|media|multimodal)|"
        r"guardrail.{0,60}(identifier|format|not found|not exist)|no endpoints found that",
    ),
    (
        RateLimitError,
        r"rate.?limit|too.?many.?requests|insufficient.?quota|(current|your) quota|quota.?exceeded|throttl|usage limit|"
        r"(tokens|requests) per (sec|min|hour|day)|RESOURCE_EXHAUSTED|wait before trying",
    ),
    (
        ContextLengthError,
        r"context.?(length|size|window|limit|overflow)|too.?many.?(prompt.?|input.?)?tokens|token.?limit.?(exceed|reach)|"
        r"(prompt|input|messages?)( is| are|:)? too (long|large)|total length of .{0,20}too long|too large (for model|to process)|"
        r"reduce (the|your) (length|message|prompt|input)|token count.{0,80}(exceed|only supports|limit)|"
        r"exceed\w* .{0,40}(number of tokens|token limit|max\w* (prompt |input |content )?(length|tokens))|"
        r"max\w* (prompt|model|input) length|longer than the (maximum )?model|tokens_limit_reached|max size: \d+ tokens|"
        r"tokens \+ .{1,20} must be <=|must have less than \d+ tokens|tokens exceed the configured limit|"
        r"range of input length|number of tokens to keep",
    ),
    (
        ContentRefusedError,
        r"content.?(filter|policy|management|moderation)|(bio|violation|usage|cyber).?polic|policy.?violation|responsible.?ai|"
        r"flagged|moderation|guardrail|usage guideline|by safety setting|safety (filter|polic|system|check)|SAFETY_CHECK|"
        r"blocked (input|output|prompt)|content exists risk|inappropriate content|data.?inspection.?failed|sensitive content|"
        r"considered high risk",
    ),
    (
        ModelNotFoundError,
        r"model.?(not.?(found|exist|supported\b)|decommissioned)|(not supported|unknown|invalid|no such|nonexistent|unavailable).model\b|deployment.?not.?found|"
        r"\b(models?|deployment|engine)\b((?!\. ).){0,200}(not found|n.t found|does not exist|do not exist|not a valid model|was removed|"
        r"decommissioned|has been (deprecated|retired)|identifier is invalid)|(not a valid|no such) model|no endpoints found|"
        r"unable to access model|not supported by any provider|try pulling it|"
        r"could not resolve the .{0,20}model|no models? (is )?loaded|model is not loaded|function .{0,80}not found for account",
    ),
    (
        AuthenticationError,
        r"(invalid|incorrect|wrong|missing|expired|no)[ _](x-)?(api|subscription)[ _-]?(key|token)|"
        r"api[ _-]?key.{0,40}(not valid|invalid|incorrect|expired|not found|missing|required|not provided)|"
        r"authentication.?(error|fail|required|method)|unauthenticated|unauthori[sz]ed|"
        r"invalid (authori[sz]ation|bearer|access.?token|credential|api.?key)|security token .{0,30}(invalid|expired)",
    ),
    (
        PermissionDeniedError,
        r"(?<!are )\bforbidden\b|permission.?(denied|error)|insufficient (permissions|balance|credit|funds)|credit balance|"
        r"billing|not allowed to access|not authori[sz]ed to|country.{0,20}not supported|must be verified|arrearage|good standing",
    ),
)
"""What an error says of itself, in its codes and words; the first that fits."""
_FAULTS = compile_patterns(
    (
        OverloadedError,
        r"too.?many.?requests|overload|(no|at|out of|insufficient) capacity|server.?(is.?)?busy|maximum pending|service.?unavailable",
    ),
    (ProviderTimeoutError, r"time.?out|timed out|deadline.?exceeded|gateway time"),
)
"""The same, where the request was not at fault; before those for a status from 500 on."""
_MODEL = re.compile(
    r"\b(models?|deployment|engine|endpoint)\b|resource not found|^(\W|404|not.?found)*$",
    re.IGNORECASE,
)
"""A 404 that speaks of a model, or of nothing."""
_INVALID = re.compile(
    r"invalid|unsupported|not supported|unexpected endpoint|does not support|bad.?request|validation|image_",
    re.IGNORECASE,
)
_ADVICE: Mapping[_Kind, str] = {
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
_DEPENDENCY = 424
"""What failed stands behind the provider's API: its own model's server."""
_REQUEST_IDS = (
    "mistral-correlation-id",
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-kong-request-id",
    "x-ds-trace-id",
    "x-github-request-id",
    "x-amzn-requestid",
    "x-goog-request-id",
    "nvcf-reqid",
    "x-generation-id",
)
"""Headers that hold the id by which a provider finds a request again."""
_TRACES = ("x-debug-trace-id", "cf-ray")
"""Those that say less than an id in the body."""
_STATUS_KEYS = ("raw_status_code", "status_code", "statusCode", "StatusCode", "status", "code")
_VENDOR_STATUSES: Mapping[int, int] = {
    1001: 504,
    1002: 429,
    1004: 401,
    1008: 402,
    1026: 451,
    1027: 451,
    1039: 429,
    1041: 429,
    2013: 400,
    2045: 429,
    2049: 401,
    2056: 429,
}
"""`base_resp.status_code` of MiniMax → the status that it stands for."""
# Characters of words, and of codes, that tell the kind.
_READ = 4000
# Characters of the words of a provider behind a gateway.
_BEHIND = 500
# Characters of words in a message.
_SHOWN = 1000


def read_error_info(payload: Any) -> ErrorInfo:
    """Reads by the rules for errors an error's payload in any of the usual shapes."""
    outer = next(iter(if_objects(payload)), if_object(payload))
    error = if_object(outer.get("error"))
    statuses = (as_text(fields.get(key)) for fields in (error, outer) for key in _STATUS_KEYS)
    # OpenRouter: what the provider behind it said.
    behind = if_object(error.get("metadata"))
    text = collect_words(payload)
    # Xiaomi: not a field's name, but the reason.
    param = if_text(error.get("param"))
    if " " in param and param not in text:
        reason = param
    else:
        reason = ""
    return ErrorInfo(
        text=": ".join(
            filter(None, (text, reason, collect_words(if_text(behind.get("raw")))[:_BEHIND]))
        ),
        codes=" ".join(dict.fromkeys(collect_codes(payload)))[:_READ],
        status=next(
            (int(status) for status in statuses if re.fullmatch("[45][0-9][0-9]", status)), None
        ),
        means=_VENDOR_STATUSES.get(read_vendor_status(outer)),
        request_id=if_text(outer.get("request_id")) or if_text(error.get("request_id")) or None,
        headers={
            name.lower(): as_text(value) for name, value in if_object(behind.get("headers")).items()
        },
    )


def read_vendor_status(fields: JsonMap) -> int:
    """Returns MiniMax's fault number in an answer whose HTTP status tells of none; 0 if there is no
    fault."""
    code = if_object(fields.get("base_resp")).get("status_code")
    return code if isinstance(code, int) else 0


def load_error_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    read: Callable[[Any], ErrorInfo] = read_error_info,
    rules: ErrorRules = _USUAL,
) -> ProviderError:
    """Converts an error response to its exception. Never raises: odd bodies (HTML, empty, a string)
    are read as far as they go.

    `read` reads what `error_body.parse_body` found in the body.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    return build_error(read(parse_body(body)), status=status, headers=lower, body=body, rules=rules)


def build_error(
    info: ErrorInfo,
    *,
    status: int | None = None,
    headers: Mapping[str, str] = {},
    body: bytes | None = None,
    rules: ErrorRules = _USUAL,
) -> ProviderError:
    """Returns the exception that the error rules choose for what is known of an error. `status`:
    the response's; without it, the one in the body."""
    status = status or info.status
    error_class = _choose_error_class(
        info.means or status or 0,
        f"{info.codes} {strip_quoted_names(info.text[:_READ])}".strip(),
        rules,
    )
    text = info.text or _describe_silence(status, info.codes)
    advice = rules.advice.get(error_class) or _ADVICE[error_class]
    wrote = f" The model wrote: {_short(info.refused)}." if info.refused else ""
    error = error_class(f"{_short(text).rstrip('.')}.{wrote} {advice}", status=status, body=body)
    if isinstance(error, RateLimitError | OverloadedError):
        error.retry_after = _find_wait(info, headers, is_limit=isinstance(error, RateLimitError))
    return error.at(request_id=find_request_id(headers, info.request_id))


def _describe_silence(status: int | None, codes: str) -> str:
    """Returns the text of an error in which the provider says nothing for people."""
    if not status:
        return "the provider failed"
    # A code of digits alone mostly repeats the status.
    if re.search("[a-z]", codes, re.IGNORECASE):
        return f"the provider answered with HTTP {status} and no words but {codes}"
    return f"the provider answered with HTTP {status} and no words"


def _find_wait(info: ErrorInfo, headers: Mapping[str, str], *, is_limit: bool) -> float | None:
    """Returns the seconds to wait before the next try after an error: the surest source that tells
    any."""
    waits = [info.retry_after, parse_retry_after(headers), parse_waiting_text(info.text)]
    # When a limit is reset says nothing about when an overload ends.
    if is_limit:
        waits.append(parse_limit_reset({**headers, **info.headers}))
    return next((wait for wait in waits if wait is not None), None)


class ErrorReader(msgspec.Struct, frozen=True):
    """The errors of one format → exceptions."""

    read: Callable[[Any], ErrorInfo] = read_error_info
    """An error's JSON → what it says."""
    rules: ErrorRules = _USUAL
    """Words that mean something with this format alone."""

    def load_error(self, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
        """Converts an error response to its exception. Never raises: odd bodies (HTML, empty, a
        string) are read as far as they go."""
        return load_error_response(status, headers, body, self.read, self.rules)

    def load_inner_error(self, payload: Any) -> ProviderError:
        """Converts an error inside a stream or an answer to its exception."""
        return build_error(self.read(payload), rules=self.rules)

    def dump_words(
        self, error: DragomanError, class_words: Mapping[type[DragomanError], str]
    ) -> str:
        """Returns the text of an error for a format that has no error codes: `class_words` name the
        class if the message does not."""
        class_word = look_up_class(class_words, error, "")
        if not class_word or type(
            build_error(ErrorInfo(text=error.message), rules=self.rules)
        ) is type(error):
            return error.message
        return f"{class_word}: {error.message}"


def _short(text: str) -> str:
    if len(text) <= _SHOWN:
        return text
    return f"{text[:_SHOWN]}…"


def find_request_id(headers: Mapping[str, str], inside: str | None = None) -> str | None:
    """Returns the provider's id of a request that ended in an error. `headers`: the response's,
    names in lower case; `inside`: the id in its body."""
    named_id = next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)
    return (
        named_id or inside or next((headers[name] for name in _TRACES if headers.get(name)), None)
    )


def _choose_error_class(status: int, text: str, rules: ErrorRules) -> _Kind:
    """Returns the class of an error by the rules. `status`: the HTTP status, 0 if unknown."""
    if (error_class := rules.statuses.get(status) or _STATUSES.get(status)) is not None:
        return _first(_BETTER.get(error_class, ()), text) or error_class
    # A wire's own patterns come first: its words may mean something else with another provider.
    patterns = (*rules.patterns, *_WORDS)
    # Of a server's own fault, "too many requests" speaks of its load, not of the caller's limit.
    if status >= 500:
        patterns = (*rules.patterns, *_FAULTS, *_WORDS)
    if (error_class := _first(patterns, text)) is not None:
        return error_class
    if 400 <= status < 500 and status != _DEPENDENCY:
        return _class_of_refusal(status, text)
    if (error_class := _first(_FAULTS, text)) is not None:
        return error_class
    # An error inside a stream has no status. "Invalid" in words is too weak a sign beside one.
    if not status and _INVALID.search(text):
        return InvalidRequestError
    return ProviderError


def _class_of_refusal(status: int, text: str) -> _Kind:
    """Returns the class of an error whose words say nothing, by its status from 400 to 499."""
    if status == 403:
        return PermissionDeniedError
    # A 404 may also be for a file or a path; then the request is at fault, not the model's name.
    if status == 404 and _MODEL.search(text):
        return ModelNotFoundError
    return InvalidRequestError


def _first(lines: Patterns, text: str) -> _Kind | None:
    return next((error_class for error_class, pattern in lines if re.search(pattern, text)), None)
