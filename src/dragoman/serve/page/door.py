"""Answers requests of the page at one path (`PageEndpoint`): finds the caller, refuses what another
site asks, reads the body, and answers with JSON."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl, urlsplit

import msgspec
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from dragoman import json_bytes, wires
from dragoman.codec.serving import Route
from dragoman.errors import (
    AuthenticationError,
    ConflictError,
    ContextLengthError,
    DragomanError,
    HistoryError,
    InvalidRequestError,
    ModelNotFoundError,
    OverloadedError,
    PermissionDeniedError,
    RateLimitError,
    RequestTooLargeError,
    ThreadNotFoundError,
    public,
)
from dragoman.json_bytes import Json
from dragoman.serve.core.call import Api, Call
from dragoman.serve.core.service import Service
from dragoman.serve.http.body import json_object, read_body
from dragoman.serve.http.call_metrics import Observed, log_failure
from dragoman.serve.http.callers import ANONYMOUS, STRANGER, Caller, find_keys
from dragoman.serve.http.connection import Connection
from dragoman.serve.page.session import PageSessions

__all__ = ["Handler", "PageEndpoint", "PageRequest", "Reply"]

_SAME_SITE = ("same-origin", "none")
_HEADER = "x-dragoman-page"
"""Header of the page's own requests, which no form of another site can send."""
_MOST_FIELDS = 20
_ROUTE = Route("POST", "/page", "run")
_KINDS: tuple[tuple[type[DragomanError], int, str], ...] = (
    (AuthenticationError, 401, "authentication"),
    (PermissionDeniedError, 403, "permission"),
    (ModelNotFoundError, 404, "not_found"),
    (ThreadNotFoundError, 404, "not_found"),
    (ConflictError, 409, "conflict"),
    (RequestTooLargeError, 413, "too_large"),
    (ContextLengthError, 413, "too_large"),
    (RateLimitError, 429, "rate_limit"),
    (OverloadedError, 503, "overloaded"),
    (InvalidRequestError, 400, "invalid_request"),
    (HistoryError, 400, "invalid_request"),
)
"""Errors, the HTTP status of each, and its name in the answer."""


class Reply(msgspec.Struct, frozen=True):
    """An answer."""

    value: object = None
    """Any JSON value; `None`: no body."""
    status: int = 200
    """HTTP status."""
    headers: dict[str, str] = {}
    """Further headers."""


class PageRequest(msgspec.Struct, frozen=True, eq=False):
    """A request of the page."""

    call: Call
    """Who calls, and where the answer goes. Its body is empty, so that it is the caller's own."""
    body: Json
    """The JSON object that came."""
    is_secure: bool
    """True if it came by HTTPS."""
    address: str
    """Of the client."""

    @property
    def is_stranger(self) -> bool:
        """True if nobody has signed in."""
        return self.call.caller is STRANGER

    @property
    def page(self) -> int:
        """Returns the number of the page of a list that is asked for."""
        return self.read_number("page", 1000)

    def read_number(self, name: str, most: int) -> int:
        """Returns a number of the query; 0 without one.

        Raises:
            InvalidRequestError: it is no number from 0 to `most`.
        """
        text = self.call.query.get(name) or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) <= most):
            raise InvalidRequestError(f"{name}={text!r:.40} is no number from 0 to {most}").at(
                field=name
            )
        return int(text)

    def read_text(self, name: str, longest: int = 200) -> str:
        """Returns a text of the body; empty without one.

        Raises:
            InvalidRequestError: it is no text, or too long.
        """
        value = self.body.get(name) or ""
        if not isinstance(value, str) or len(value) > longest:
            raise InvalidRequestError(
                f'"{name}" must be a text of at most {longest} characters'
            ).at(field=name)
        return value


Handler = Callable[[PageRequest], Awaitable[Reply | None]]
"""Answers a request. `None`: it has answered."""


class PageEndpoint:
    """One path of the page, for its methods."""

    def __init__(
        self,
        service: Service,
        sessions: PageSessions,
        path: str,
        handlers: dict[str, Handler],
        *,
        is_public: bool = False,
    ) -> None:
        """`handlers`: HTTP method → what answers. `is_public`: no key is needed."""
        self._service, self._sessions = service, sessions
        self._path, self._handlers, self._is_public = path, handlers, is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        service, clock = self._service, asyncio.get_running_loop().time
        observed = Observed(
            call_id=service.new_id(),
            wire="page",
            purpose="page",
            method=scope["method"],
            path=self._path,
            started=clock(),
        )
        connection = Connection(receive, send, service.limits, {"x-request-id": observed.id})
        try:
            await self._answer(scope, receive, connection, observed)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, the page gets an answer
            observed.status = await _refuse(connection, error)
            log_failure(observed, error, observed.status)
        finally:
            observed.seconds = clock() - observed.started
            service.observe(observed)

    async def _answer(
        self, scope: Scope, receive: Receive, connection: Connection, observed: Observed
    ) -> None:
        headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        _check_site(scope, headers)
        caller = await self._find_caller(scope, headers)
        observed.caller, observed.owner = caller.name, caller.id
        gate = self._service.gate
        with gate.count_call(caller), gate.hold_bytes() as take:
            body: Json = {}
            if scope["method"] in ("POST", "PATCH"):
                data = await read_body(receive, headers, self._service.limits, take)
                body = json_object(data, self._service.limits)
            request = PageRequest(
                self._make_call(scope, headers, caller, connection, observed),
                body,
                scope.get("scheme") == "https",
                (scope.get("client") or ("",))[0],
            )
            handler = self._handlers[scope["method"].replace("HEAD", "GET")]

            async def work() -> None:
                reply = await handler(request)
                if reply is not None:
                    await _respond(connection, reply)
                    observed.status = reply.status
                else:
                    observed.status = 200

            async with connection:
                with gate.track_connection(connection), self._service.accounts.charge(caller):
                    error = await connection.run(work)
                if error is not None and connection.started:
                    await connection.end_with(public(error))
                elif error is not None:
                    raise error

    async def _find_caller(self, scope: Scope, headers: dict[str, str]) -> Caller:
        """Returns the caller of a request.

        Raises:
            AuthenticationError: there is no cookie and no key, or it is none that is known.
        """
        if not self._sessions.needs_key:
            return ANONYMOUS
        caller = await self._sessions.find_caller(headers)
        if caller is None and (keys := find_keys(scope["headers"], b"")):
            caller = await self._service.authenticate(keys)
        if caller is None and self._is_public:
            return STRANGER
        if caller is None:
            raise AuthenticationError("a key is needed: sign in first")
        return caller

    def _make_call(
        self,
        scope: Scope,
        headers: dict[str, str],
        caller: Caller,
        connection: Connection,
        observed: Observed,
    ) -> Call:
        query = scope["query_string"].decode("latin-1")
        try:
            fields = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS))
        except ValueError as error:
            raise InvalidRequestError("the query has too many fields") from error
        # A header that names a conversation or a user of the caller's has no meaning here.
        kept = {name: headers[name] for name in ("last-event-id",) if name in headers}
        return Call(
            service=self._service,
            api=Api({}),
            wire=wires.get("ag_ui"),
            route=_ROUTE,
            caller=caller,
            path=scope["path"],
            query=fields,
            headers=kept,
            parameters=scope["path_params"],
            body={},
            connection=connection,
            id=observed.id,
            now=self._service.clock(),
            observed=observed,
        )


def _check_site(scope: Scope, headers: dict[str, str]) -> None:
    """Refuses what another site asks. Its pages cannot read the answers, but some changes need no
    answer.

    Raises:
        PermissionDeniedError: another site asks, or not the page.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    is_foreign = site is not None and site not in _SAME_SITE
    # An origin that may use the APIs is no part of the page; older browsers send nothing else.
    if is_foreign or (origin is not None and urlsplit(origin).netloc != headers.get("host")):
        raise PermissionDeniedError("another site asks; open the page of this server itself")
    if scope["method"] not in ("GET", "HEAD") and headers.get(_HEADER) != "1":
        raise PermissionDeniedError(f"only the page asks this: send the header {_HEADER}: 1")


async def _respond(connection: Connection, reply: Reply) -> None:
    headers = {"cache-control": "no-store", **reply.headers}
    data = b""
    if reply.value is not None:
        headers["content-type"] = "application/json"
        data = json_bytes.encode(reply.value)
    await connection.respond(reply.status, headers, data)


async def _refuse(connection: Connection, error: Exception) -> int:
    """Answers with an error. Returns the HTTP status."""
    status, error_name = 500, "error"
    for error_type, error_status, name in _KINDS:
        if isinstance(error, error_type):
            status, error_name = error_status, name
            break
    answer = error
    if not isinstance(error, PermissionDeniedError | AuthenticationError | ModelNotFoundError):
        answer = public(error)
    message = answer.message if isinstance(answer, DragomanError) else str(answer)
    value: Json = {"message": message, "type": error_name}
    headers: dict[str, str] = {}
    if (seconds := getattr(answer, "retry_after", None)) is not None:
        value["retry_after"] = seconds
        headers["retry-after"] = str(max(1, round(seconds)))
    if (field := getattr(error, "field", None)) is not None:
        value["field"] = field
    if not connection.started:
        await _respond(connection, Reply({"error": value}, status, headers))
    return status
