"""The files of the page, as browsers get them: whole or zipped, and only if they changed."""

from __future__ import annotations

import gzip
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman import json_bytes

__all__ = ["PageRoot", "answer_with_file", "file_route"]

_STATIC = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}
_HEADERS = {
    "cache-control": "no-cache",
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; object-src 'none'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; frame-src 'none'; "
        "require-trusted-types-for 'script'; trusted-types dragoman dompurify"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "vary": "accept, accept-encoding",
    "x-content-type-options": "nosniff",
}


class _StaticFile(NamedTuple):
    """A file of the page."""

    data: bytes
    zipped: bytes
    tag: str
    """Its ETag."""
    media_type: str


@cache
def _load_files() -> dict[str, _StaticFile]:
    """Returns the files by their paths. They are read once."""
    files: dict[str, _StaticFile] = {}
    for path in sorted(_STATIC.rglob("*")):
        if path.suffix in _TYPES:
            data = path.read_bytes()
            tag = f'"{blake2b(data, digest_size=16).hexdigest()}"'
            zipped = gzip.compress(data, mtime=0)
            name = path.relative_to(_STATIC).as_posix()
            files[name] = _StaticFile(data, zipped, tag, _TYPES[path.suffix])
    return files


def answer_with_file(request: Request, name: str) -> Response:
    """Returns the answer with a file of the page."""
    file = _load_files().get(name)
    if file is None:
        body = {"error": {"message": f"the page has no file {name!r:.200}", "type": "not_found"}}
        return Response(json_bytes.encode(body), 404, media_type="application/json")
    headers = {**_HEADERS, "etag": file.tag}
    if file.tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    data = file.data
    if "gzip" in request.headers.get("accept-encoding", "") and len(file.zipped) < len(data):
        data, headers["content-encoding"] = file.zipped, "gzip"
    return Response(data, 200, {**headers, "content-type": file.media_type})


def file_route() -> Route:
    """Returns the route of the page's files. They are public."""

    async def show_file(request: Request) -> Response:
        return answer_with_file(request, request.path_params["path"])

    return Route("/page/static/{path:path}", show_file, methods=["GET"])


class PageRoot:
    """Answers `GET /`: browsers get the page, and other clients what they get without it."""

    def __init__(self, others: ASGIApp) -> None:
        self._others = others

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        request = Request(scope)
        if "text/html" in request.headers.get("accept", ""):
            await answer_with_file(request, "index.html")(scope, receive, send)
        else:
            await self._others(scope, receive, send)
