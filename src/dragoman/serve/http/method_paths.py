"""Where things stand: each wire's API at the root, where its own clients expect it, and whole under
the wire's name; and what is answered where nothing stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dragoman import json_bytes
from dragoman.codec.serving import Route
from dragoman.wires.wire import Wire

__all__ = ["MethodPath", "answer_missing", "method_paths"]

_FREQUENT = ("chat", "run", "rpc")
"""Purposes of the routes that clients ask most."""
_COMPACT = "/v1/responses/compact"
"""A path of the official API that is not served."""


class MethodPath(NamedTuple):
    """A method and a path of the server, and what may be there."""

    method: str
    """HTTP method."""
    path: str
    """With `{model}` and `{id}`."""
    candidates: tuple[tuple[Wire, Route], ...]
    """What is there: the first whose route names a header that the request has, else the first that
    names none, else the first."""


def method_paths(
    served: Iterable[Wire], is_offered: Callable[[Wire, str], bool]
) -> list[MethodPath]:
    """Returns the places of these wires' routes whose purpose is offered. At the root the first
    wire that has a path has it."""
    entries = [
        (route.method, prefix + route.path, wire, route)
        for wire in served
        for route in wire.routes
        if is_offered(wire, route.purpose)
        # At the root for the API's own clients, and under the wire's name without
        # collisions.
        for prefix in ("", f"/{wire.name}")
    ]
    return list(_group(entries))


def _group(entries: Sequence[tuple[str, str, Wire, Route]]) -> Iterator[MethodPath]:
    asked_most = [path for _, path, _, route in entries if route.purpose in _FREQUENT]
    frequent = {path for path in asked_most if "{" not in path}

    def rank(entry: tuple[str, str, Wire, Route]) -> tuple[bool, int, bool, int, str, str]:
        """Ranks a method's path: fixed paths before patterns, since each is tried in turn those
        first that are asked most, long ones before what may be their beginning, and a name at the
        end, which may hold slashes, last."""
        method, path, _, _ = entry
        ends_in_name = path.rstrip("/").endswith("{model}")
        return ends_in_name, path.count("{"), path not in frequent, -len(path), path, method

    ordered = sorted(entries, key=rank)
    for (path, method), same in groupby(ordered, key=lambda entry: (entry[1], entry[0])):
        yield MethodPath(method, path, tuple([(wire, route) for _, _, wire, route in same]))


async def answer_missing(request: Request, error: Exception) -> Response:
    """Returns an error in the form that most APIs have, for a path or a method that is not
    there."""
    if isinstance(error, HTTPException):
        status = error.status_code
    else:
        status = 404
    headers = (error.headers if isinstance(error, HTTPException) else None) or {}
    path = f"{request.url.path:.200}"
    if request.method == "POST" and path.endswith(_COMPACT):
        # Otherwise it would be told as an answer by the id "compact", which may be deleted.
        status, headers = 404, {}
        message = f"{path} is not there: this server compacts no conversations; send them whole"
    elif allowed := headers.get("Allow"):
        message = f"{path} is not asked with {request.method}, but with {allowed}"
    else:
        message = f"there is nothing at {request.method} {path}; a base URL may be wrong, or its end given twice, such as /v1/v1"
    body = {"error": {"message": message, "type": "not_found_error", "param": None, "code": None}}
    return Response(
        json_bytes.encode(body), status, {**headers, "content-type": "application/json"}
    )
