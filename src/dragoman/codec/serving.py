"""What a server must know of a wire beside its formats: where its API stands, how it refuses, how a
stream is kept open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from dragoman import errors
from dragoman.codec.body_schema import JsonType
from dragoman.errors import (
    BudgetError,
    DragomanError,
    HistoryError,
    OverloadedError,
    RateLimitError,
)
from dragoman.event import Event
from dragoman.json_bytes import Json, JsonMap
from dragoman.loss import Loss
from dragoman.message import Content, ToolCallPart
from dragoman.request import HttpRequest, ModelRequest, ServerTool, ToolSpec

__all__ = [
    "BEARER",
    "METHODS",
    "PURPOSES",
    "SSE_PING",
    "ErrorResponse",
    "Forward",
    "KeyPlace",
    "Problem",
    "RequestFields",
    "Route",
    "SealForm",
    "ToolGroups",
    "add_token_limit",
    "error_response",
    "format_seconds",
    "forward_to",
    "note_problem",
    "look_up_class",
    "error_status",
]

T = TypeVar("T")

SSE_PING = b": ping\n\n"
"""A comment in Server-Sent Events, which keeps a stream open and tells nothing."""
_LONGEST_RETRY = 60.0
"""Seconds that clients wait before they try again."""
_STATUSES: Mapping[type[DragomanError], int] = {
    errors.InvalidRequestError: 400,
    errors.HistoryError: 400,
    errors.RequestTooLargeError: 413,
    errors.UnsupportedTypeError: 415,
    errors.ContentRefusedError: 400,
    errors.AuthenticationError: 401,
    errors.PermissionDeniedError: 403,
    errors.ModelNotFoundError: 404,
    errors.RateLimitError: 429,
    errors.ProviderConnectionError: 502,
    errors.OverloadedError: 503,
    errors.ProviderTimeoutError: 504,
}


METHODS = ("GET", "POST", "DELETE", "HEAD")
"""HTTP methods of routes."""
PURPOSES: Mapping[str, str] = {
    "chat": "asks a model; the answer is whole or streamed",
    "embeddings": "turns texts into vectors",
    "images": "makes or edits images",
    "speech": "speaks a text",
    "transcription": "writes down what is said in a recording",
    "count_tokens": "counts the tokens of messages",
    "models": "lists the models",
    "running": "lists the models that are loaded",
    "model": "describes one model",
    "response": "returns a stored answer",
    "input_items": "lists the messages that a stored answer replies to",
    "delete_response": "deletes a stored answer",
    "cancel_response": "cancels an answer that is made in the background",
    "run": "runs an agent on a conversation and streams its events",
    "object": "runs an agent with a typed answer and streams the answer's JSON text",
    "attach": "streams the events of a run that was started before",
    "cancel_run": "cancels a run",
    "rpc": "calls a JSON-RPC method by its name",
    "send_message": "sends a message to an agent; returns its task when it is over or waits",
    "stream_message": "sends a message to an agent and streams its task",
    "task": "returns a task",
    "tasks": "lists the caller's tasks",
    "cancel_task": "cancels a task",
    "subscribe_task": "streams the events of a task that was started before",
    "create_push": "adds an address for push notifications of a task",
    "get_push": "returns an address for push notifications",
    "list_push": "lists a task's addresses for push notifications",
    "delete_push": "removes an address for push notifications",
    "card": "describes the agent and its addresses",
    "extended_card": "describes the agent to callers with a key",
    "capabilities": "describes the agent",
    "version": "returns the server's version",
    "alive": "shows that the server is running",
}
"""Purpose of a route → what a request there does."""


class Route(msgspec.Struct, frozen=True):
    """A place of a wire's API."""

    method: str
    """One of `METHODS`."""
    path: str
    """From the root of the official API's host, such as `/v1/messages`; `{model}` stands for a
    model's name, `{id}` for an id."""
    purpose: str
    """What is there: one of `PURPOSES`."""
    header: str = ""
    """Name of a header, in lower case, that this API's clients send, where another wire has the
    same place; empty: any client's."""
    public: bool = False
    """True if it may be asked for without a key, where its handler allows that."""


class KeyPlace(msgspec.Struct, frozen=True):
    """Where a client of a wire puts its key."""

    kind: Literal["bearer", "header", "query"]
    """`bearer`: `Authorization: Bearer …`; else a header, or a field of the query."""
    name: str = "authorization"
    """Of the header, in lower case, or of the field."""


class SealForm(NamedTuple):
    """Where clients of an API keep a token of the server, and bring it back with their history."""

    dump: Callable[[str], Content] | None = None
    """A token → the piece that holds it; `None`: clients keep no such piece."""
    load: Callable[[Content], str | None] | None = None
    """A piece → the token that it may hold."""
    dump_call: Callable[[str, ToolCallPart], ToolCallPart] | None = None
    """A token and a call → the call that holds it; `None`: clients keep no fields of a call."""
    load_call: Callable[[ToolCallPart], tuple[str, ToolCallPart] | None] | None = None
    """A call → the token that it may hold, and the call without it."""


class ToolGroups(NamedTuple):
    """What becomes of tools that an API alone has where other APIs have functions."""

    ungroup: Callable[[ModelRequest], ModelRequest]
    """A request → the same with functions in their place, also in its conversation."""
    regroup: Callable[[Sequence[ToolSpec | ServerTool]], Callable[[Event], Event] | None]
    """The request's tools → what makes the calls of those functions in an answer calls of the
    client's tools; `None`: there are no such functions."""


BEARER = (KeyPlace("bearer"),)
"""Where most clients put their key."""


class ErrorResponse(NamedTuple):
    """An error as the wire's API answers with it."""

    status: int
    """HTTP status."""
    headers: Mapping[str, str]
    """Names in lower case; `retry-after` in seconds, where the error has a wait."""
    body: Json
    """JSON."""


class Problem(msgspec.Struct, frozen=True):
    """What of a conversation could not be read, where the rest of it could."""

    index: int
    """Position of the element in the list that holds the conversation; -1: beside it, such as a
    system text."""
    field: str | None
    """The field at fault, where one is known."""
    error: str
    """What was wrong, in words for people."""


def look_up_class(table: Mapping[type[DragomanError], T], error: DragomanError, default: T) -> T:
    """Returns a server's table entry for the class of an error, or for the nearest class above
    it."""
    return next(
        (table[error_class] for error_class in type(error).__mro__ if error_class in table), default
    )


def error_status(error: DragomanError, own_statuses: Mapping[type[DragomanError], int] = {}) -> int:
    """Returns the HTTP status with which most APIs answer an error. `own_statuses`: where an API
    has another."""
    return look_up_class({**_STATUSES, **own_statuses}, error, 500)


class RequestFields(msgspec.Struct, frozen=True, dict=True):
    """What is known of a wire's further request fields, by path, such as
    `generationConfig.candidateCount`. Of all others it is known that nobody else has them."""

    idle: Mapping[str, tuple[Any, ...]] = {}
    """Field → values that ask for nothing; `null` never does."""
    minor: frozenset[str] = frozenset()
    """Fields that no answer depends on: accounting, caching, names of things. Left out they are a
    minor loss."""
    candidates: str = ""
    """The field that asks for several answers; a gateway gives one."""
    references: frozenset[str] = frozenset()
    """Fields that name what the provider keeps in its account, which all clients of a gateway
    share, or that name other models."""
    lengths: frozenset[str] = frozenset()
    """Fields that say how long an answer may be, in each form that providers read. A gateway that
    bounds it passes on none of them."""
    types: Mapping[str, tuple[JsonType, ...]] = {}
    """Field → what it may be; `null` it may always be. Of the conversation itself the loader knows
    it."""
    unstored: JsonMap = {}
    """Options by which a provider keeps nothing of a request in its account."""
    adapt: Callable[[ModelRequest, JsonMap, list[Loss]], JsonMap] | None = None
    """A request and its verbatim body → the body for a model that the client did not name, by what
    the API's documentation says; what that changes is added to the losses."""
    newer: Mapping[str, str] = {}
    """Field → the one that took its place. A model that is known to refuse the first gets the
    second, also where its client named the model."""
    groups: ToolGroups | None = None
    """What becomes of tools that other APIs have not as such, but as functions."""
    restores: Callable[[Any], bool] | None = None
    """By a vendor's quirks, whether it demands back what the API's libraries have no field for;
    `None`: none does."""

    @cached_property
    def known_fields(self) -> frozenset[str]:
        """Returns the body fields that a server knows at all, except those that only name objects
        of an account."""
        paths = (
            *self.idle,
            *self.minor,
            *self.lengths,
            *self.types,
            *([self.candidates] if self.candidates else ()),
        )
        return frozenset(path for path in paths if "." not in path) - self.references


def error_response(error: DragomanError, status: int, body: Json) -> ErrorResponse:
    """Returns the server's response to an error, with the wait that the error asks for."""
    headers = {"content-type": "application/json"}
    if isinstance(error, RateLimitError | OverloadedError) and error.retry_after is not None:
        headers["retry-after"] = format_seconds(error.retry_after)
        if isinstance(error, BudgetError) and error.retry_after > _LONGEST_RETRY:
            # Clients of OpenAI and Anthropic would try again at once if the wait is a long one.
            headers["x-should-retry"] = "false"
    return ErrorResponse(status, headers, body)


def format_seconds(seconds: float) -> str:
    """Returns seconds as errors tell them, such as `1.5`."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


def add_token_limit(
    response: ErrorResponse, error: DragomanError, pattern: str, reset: str | None
) -> ErrorResponse:
    """Returns the response to an error with the limit of tokens that the error tells, if it does.

    Args:
        response: without it.
        error: what is answered.
        pattern: of the names of the headers, `{}` for `limit`, `remaining` and `reset`.
        reset: when the limit is reset, as the API writes it.
    """
    if not (isinstance(error, BudgetError) and error.tokens is not None and reset is not None):
        return response
    limit, remaining = error.tokens
    values = {"limit": str(limit), "remaining": str(remaining), "reset": reset}
    headers = {pattern.format(name): value for name, value in values.items()}
    return response._replace(headers={**response.headers, **headers})


def note_problem(
    error: HistoryError,
    problems: list[Problem] | None,
    index: int,
    field: str | None,
    listed: str = "messages",
) -> None:
    """Records in `problems` an element of a client's request that the server could not read.
    `listed`: the field that holds the conversation's list.

    Raises:
        HistoryError: they are not.
    """
    if problems is None:
        # -1 stands for a field beside the list, such as `system`.
        where = "" if index < 0 else f"{listed}[{index}]"
        raise error.at(field=".".join(filter(None, (where, field))) or None)
    problems.append(Problem(index, field, error.message))


Forward: TypeAlias = Callable[[ModelRequest, JsonMap, Any], HttpRequest]
"""(request, its verbatim body, quirks) → path, headers and body. The request says the model,
whether to stream, and what headers held."""


def forward_to(path: str) -> Forward:
    """Forwards a client's request to an API that has the model in the body."""

    def forward(request: ModelRequest, body: JsonMap, quirks: Any) -> HttpRequest:  # noqa: ARG001 as of `Forward`
        return HttpRequest(path, body={**body, "model": request.model})

    return forward
