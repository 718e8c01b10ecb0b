"""What a server answers where it has nothing."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dragoman import json_bytes

__all__ = ["absent"]


async def absent(request: Request, error: Exception) -> Response:
    """An error of the form that most APIs have, for a path or a method that is not there."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    given = (error.headers if isinstance(error, HTTPException) else None) or {}
    place = f"{request.url.path:.200}"
    if allowed := given.get("Allow"):
        words = f"{place} is not asked with {request.method}, but with {allowed}"
    else:
        words = f"there is nothing at {request.method} {place}; a base URL may be wrong, or its end given twice, such as /v1/v1"
    body = {"error": {"message": words, "type": "not_found_error", "param": None, "code": None}}
    return Response(json_bytes.encode(body), status, {**given, "content-type": "application/json"})
