"""All errors, one tree. Each says what was wrong, where, and what to do about it.

DragomanError
├── SettingsError              something on our side is not set up: a key, a library, a model string
├── HistoryError               a conversation that cannot be read
│   ├── ConflictError              another version was written meanwhile: read it again
│   └── ThreadNotFoundError        there is no such thread, or it is not the caller's: a 404 for a web handler
├── DecodeError                data that is not what its format says
├── ToolError                  a tool cannot be built or answered
├── TypedOutputError           the answer is not of the type that was asked for
├── ModelRetry                 raised by an output check: the model is to answer again
├── LimitReachedError          a limit of `Limits` ended the run
├── StoreError                 a store of conversations failed, or is closed
├── RunInterruptedError        the process that drove the run ended before the run did
├── RunLogError                a run's log cannot take or give what it was asked for
│   ├── LeaseLostError             somebody else may drive the run now
│   └── LogFullError               the log holds as much as it may
└── ProviderError              the provider answered with an error (its fault, where no line below fits)
    ├── AuthenticationError        401: the key is missing or wrong
    ├── PermissionDeniedError      403: the key may not do this
    ├── ModelNotFoundError         404: no such model
    ├── InvalidRequestError        400, 422: the request is not acceptable
    │   ├── ContextLengthError         the conversation is too long for the model
    │   ├── RequestTooLargeError       413: the request has more bytes than are taken
    │   ├── UnsupportedTypeError       415: the request is of a media type that is not taken
    │   └── ResumeError                an answer does not fit what the conversation waits for; nothing was run
    ├── ContentRefusedError        the provider's policy refuses the content
    ├── RateLimitError             429: too many requests; `retry_after` seconds
    │   └── BudgetError                a caller's budget at a server of ours is spent; `resets_at`
    ├── OverloadedError            503, 529: the provider has no capacity now; `retry_after` too
    │   └── CircuitOpenError           it failed too often and is not asked for a while; nothing was sent
    ├── ProviderTimeoutError       no answer in time
    └── ProviderConnectionError    no connection
        └── StreamCutError             the stream ended before the answer did; `partial` is what there was
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

__all__ = [
    "AuthenticationError",
    "BudgetError",
    "CircuitOpenError",
    "ConflictError",
    "ContentRefusedError",
    "ContextLengthError",
    "DecodeError",
    "DragomanError",
    "HistoryError",
    "InvalidRequestError",
    "LeaseLostError",
    "LimitReachedError",
    "LogFullError",
    "ModelNotFoundError",
    "ModelRetry",
    "OverloadedError",
    "PermissionDeniedError",
    "ProviderConnectionError",
    "ProviderError",
    "ProviderTimeoutError",
    "RateLimitError",
    "RequestTooLargeError",
    "ResumeError",
    "RunInterruptedError",
    "RunLogError",
    "SettingsError",
    "StoreError",
    "StreamCutError",
    "ThreadNotFoundError",
    "ToolError",
    "TypedOutputError",
    "UnsupportedTypeError",
    "public",
]


class DragomanError(Exception):
    """Root of all errors that dragoman raises on purpose.

    Attributes:
        message: what was wrong, where, and what to do about it.
        provider: name of the provider, where one was involved.
        status: HTTP status of its answer.
        request_id: the provider's id of the request, for its support.
        body: the raw answer, as bytes.
        partial: the `Message` as far as it had come, or None.
        result: where a run failed, its `ChatResult` until then, the partial message included; else None.
        earlier: the errors of the models that a fallback asked before.
        field: the path of the field at fault in a request that was read, such as `messages[2].role`, where it is one.
    """

    earlier: tuple[DragomanError, ...] = ()
    field: str | None = None

    def __init__(
        self,
        message: str,
        *,
        provider: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        body: bytes | None = None,
        partial: Any = None,
        result: Any = None,
    ) -> None:
        """Creates an error with what the provider told. `partial`: the messages before it."""
        super().__init__(message)
        self.message = message
        self.provider = provider
        self.status = status
        self.request_id = request_id
        self.body = body
        # Messages and results raise errors themselves: naming their types here would close a
        # circle.
        self.partial = partial
        self.result = result

    def __str__(self) -> str:
        """Returns the error's message with provider, status and request id."""
        status = f"HTTP {self.status}" if self.status else None
        if self.request_id:
            request = f"request {self.request_id}"
        else:
            request = None
        where = ", ".join(filter(None, (self.provider, status, request)))
        if where:
            return f"{self.message} ({where})"
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns how to pickle the error with all of its fields."""
        # Keyword arguments defeat the usual way.
        return (
            _unpickle,
            (type(self), self.message),
            self.__dict__,
        )

    def at(self, **attributes: Any) -> Self:
        """Fills in attributes that are not known yet, and returns the error itself."""
        for name, value in attributes.items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self


class SettingsError(DragomanError):
    """Something on our side is not set up: a key, a library, a provider's name, a model string."""


class HistoryError(DragomanError):
    """A conversation that cannot be read."""


class ThreadNotFoundError(HistoryError):
    """There is no such thread for this resource. A thread of another resource is as if it were not
    there."""


class ConflictError(HistoryError):
    """Another version was written since it was read. Read it again, and repeat the change."""


class DecodeError(DragomanError):
    """Data that is not what its format says. `body` is the offending piece."""


class ToolError(DragomanError):
    """A tool that cannot be built, or whose call cannot be answered. `content`: what the model is
    told in place of the message, as a tool returns it: parts, or any JSON value."""

    def __init__(self, message: str, *, content: Any = None, **where: Any) -> None:
        super().__init__(message, **where)
        self.content = content


class TypedOutputError(DragomanError):
    """The answer is not of the type that was asked for. `partial` is the message, `output` its
    text."""

    def __init__(self, message: str, *, output: str = "", **where: Any) -> None:
        super().__init__(message, **where)
        self.output = output

    @classmethod
    def because(cls, problem: str, **what: Any) -> Self:
        """Returns the error for an answer that is wrong so, with what to do about it."""
        advice = "Ask again, ask for a simpler type, or take a more able model; `output` holds the answer's text"
        return cls(
            f"the answer is not of the type that was asked for: {problem.rstrip('.')}. {advice}.",
            **what,
        )

    @classmethod
    def refused(cls, words: str, **what: Any) -> Self:
        """Returns the error for an answer that an output check sends back once too often."""
        advice = (
            "Allow more corrections with Limits(output_retries=…); `output` holds the answer's text"
        )
        return cls(f"an output check refused the answer: {words.rstrip('.')}. {advice}.", **what)


class ModelRetry(DragomanError):
    """Raise it in an output check to send the answer back: the model gets the message, and answers
    again. A run whose model may not be asked again ends with a `TypedOutputError`."""


class LimitReachedError(DragomanError):
    """A limit of `Limits` ended the run. `result` is what there was until then."""


class StoreError(DragomanError):
    """A store of conversations failed, or is closed. What it had acknowledged is there."""


class RunInterruptedError(DragomanError):
    """The process that drove the run ended before the run did. The log holds what there was; a new
    send goes on from it."""


class RunLogError(DragomanError):
    """A run's log cannot take or give what it was asked for: no such run, an offset that is not its
    end, a run that is over."""


class LogFullError(RunLogError):
    """The log holds as many bytes as it may, and takes no more of runs that go on."""


class LeaseLostError(RunLogError):
    """The lease under which a run was driven is over, or is another's: nothing more may be written
    under it."""


class ProviderError(DragomanError):
    """The provider answered with an error; where no subclass fits, a fault of its own."""


class AuthenticationError(ProviderError):
    """The key is missing or wrong (401)."""


class PermissionDeniedError(ProviderError):
    """The key may not do this (403)."""


class ModelNotFoundError(ProviderError):
    """The provider does not know the model (404)."""


class InvalidRequestError(ProviderError):
    """The request is not acceptable (400, 422)."""


class ContextLengthError(InvalidRequestError):
    """The conversation is too long for the model."""


class RequestTooLargeError(InvalidRequestError):
    """The request has more bytes than are taken (413)."""


class UnsupportedTypeError(InvalidRequestError):
    """The request is of a media type that is not taken (415)."""


class ResumeError(InvalidRequestError):
    """An answer does not fit what the conversation waits for. Nothing was run, and no other answer
    of the same send was taken."""


class ContentRefusedError(ProviderError):
    """The provider's policy refuses the content."""


class RateLimitError(ProviderError):
    """Too many requests (429). `retry_after`: seconds to wait, where the provider told."""

    def __init__(self, message: str, *, retry_after: float | None = None, **where: Any) -> None:
        super().__init__(message, **where)
        self.retry_after = retry_after


class BudgetError(RateLimitError):
    """A caller's budget at a server has no room for a call, which was not made. `resets_at`: when it
    has again (ISO 8601, UTC); `tokens`: the limit and what is left of it, if it is one of tokens."""

    tokens: tuple[int, int] | None = None

    def __init__(self, message: str, *, resets_at: str | None = None, **where: Any) -> None:
        super().__init__(message, **where)
        self.resets_at = resets_at


class OverloadedError(ProviderError):
    """The provider has no capacity now (503, 529). `retry_after`: seconds to wait, where the
    provider told."""

    def __init__(self, message: str, *, retry_after: float | None = None, **where: Any) -> None:
        super().__init__(message, **where)
        self.retry_after = retry_after


class CircuitOpenError(OverloadedError):
    """The endpoint failed too often: a `Breaker` lets nothing through for a while. `retry_after`:
    seconds until then."""


class ProviderTimeoutError(ProviderError):
    """No answer in time."""


class ProviderConnectionError(ProviderError):
    """No connection, or a broken one."""


class StreamCutError(ProviderConnectionError):
    """The stream ended before the answer did. `partial` is the message as far as it had come."""


_CARRIED = ("retry_after", "resets_at", "tokens")
"""When to try again, for a client."""
_REQUEST = (InvalidRequestError, HistoryError, ContentRefusedError)
"""What is wrong with a request is for whoever sent it."""
_NEUTRAL: Mapping[type[DragomanError], str] = {
    RateLimitError: "too many requests; wait, and send the request again",
    OverloadedError: "the model has no capacity now; send the request again later",
    ProviderTimeoutError: "the model gave no answer in time; send the request again",
    StreamCutError: "the answer broke off; send the request again",
    ProviderConnectionError: "the model cannot be reached now; send the request again later",
    RunInterruptedError: "the process that made the answer ended before it did; send the request again",
    LimitReachedError: "the answer took more than this server allows",
    TypedOutputError: "the model gave no answer of the form that was asked for; send the request again",
}
"""Kind of error → what its client reads, where it is not the server's own; the first kind that fits
counts."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{0,20}://[^\s\"'<>]+")
KEYS = (
    r"\bBearer\s+\S+"
    r"|\b(?:sk|pk|rk|gsk|xai|hf|dgm)[-_][\w*-]{4,}|\bAIza[\w-]{8,}"  # masked or not
)
"""Pattern of keys of providers in a text."""
_SECRET = re.compile(
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)\b"  # a variable
    rf"|{KEYS}"
    r"|(?<![\w/])(?:/[\w.-]+){2,}\.\w+"  # a file
)
"""What the words of an upstream, or of a tool, may hold that is ours."""
_UPSTREAM = ("provider", "status", "body", "request_id")
"""Any of these is known only of an error that somebody else answered with."""
_FAULT = "the server cannot answer this; if it happens again, ask who runs it"


def public(error: BaseException) -> DragomanError:
    """Returns the public part of an error that a client of a server may read: what is wrong with
    its own request, and when to try again.

    Keys, settings and what an upstream says of them belong to the server: they become a
    `ProviderError` (5xx) in neutral words. Bodies, partial messages and results are left out.
    """
    if not isinstance(error, DragomanError):
        return ProviderError(_FAULT)
    message = _public_text(error)
    if message is None:
        return ProviderError(_FAULT)
    text, field = message
    if field is not None and field not in text:
        text = f"{field}: {text}"
    # A subclass of a user's may take other arguments, so the nearest class of this module is made.
    error_type = next(base for base in type(error).__mro__ if base.__module__ == __name__)
    public_error: DragomanError = error_type(text).at(field=field)
    for name in _CARRIED:
        if (value := getattr(error, name, None)) is not None and hasattr(public_error, name):
            setattr(public_error, name, value)
    return public_error


def _is_local(error: DragomanError) -> bool:
    """True if an error is a provider's by its class, but no provider answered with it."""
    if isinstance(error, BudgetError):
        return True
    return isinstance(error, ProviderError) and not any(getattr(error, name) for name in _UPSTREAM)


def _public_text(error: DragomanError) -> tuple[str, str | None] | None:
    """Returns the words of an error for a client, and the field at fault; `None` if they are for
    the server alone."""
    neutral = next((words for base, words in _NEUTRAL.items() if isinstance(error, base)), None)
    is_request = isinstance(error, _REQUEST)
    is_local = _is_local(error)
    if not (is_local or is_request or neutral):
        return None
    if neutral and not is_local:
        text, field = neutral, None
    else:
        text, field = _SECRET.sub("…", error.message), error.field
    # A client may read the addresses of its own request.
    if not (is_local and is_request):
        text = _ADDRESS.sub("…", text)
    return text, field


def _unpickle(error_type: type[DragomanError], message: str) -> DragomanError:
    return error_type.__new__(error_type, message)
