"""The proxy's page: a list of the recordings, and one with what its answer decodes to.

Its files stand with those of the server's page, whose parts it uses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dragoman import json_bytes
from dragoman.errors import DecodeError, SettingsError
from dragoman.json_bytes import Json
from dragoman.proxy.recordings import load_recording
from dragoman.proxy.summary import describe, find_file, summarize
from dragoman.serve.page.files import answer_with_file, file_route
from dragoman.transport.exchange_file import ExchangeFolder

__all__ = ["page_routes"]

_PAGE_LENGTH = 50
_NO_STORE: Mapping[str, str] = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


def page_routes(folder: ExchangeFolder) -> list[BaseRoute]:
    """Returns the routes of the page for the recordings in a folder."""

    async def show_list(request: Request) -> Response:
        return await _answer(lambda: _list_newest(folder, request.query_params.get("page", "0")))

    async def show_one(request: Request) -> Response:
        return await _answer(
            lambda: describe(*load_recording(find_file(folder.path, request.path_params["id"])))
        )

    async def show_page(request: Request) -> Response:
        return answer_with_file(request, "exchanges.html")

    return [
        Route("/", show_page),
        file_route(),
        Route("/page/exchanges", show_list),
        Route("/page/exchanges/{id}", show_one),
    ]


async def _answer(make: Callable[[], Json]) -> Response:
    """Returns an answer of JSON that is made beside the event loop."""
    try:
        status, body = 200, await anyio.to_thread.run_sync(make)
    except (DecodeError, SettingsError) as error:
        status, body = 404, {"error": {"message": str(error), "type": "not_found"}}
    return Response(json_bytes.encode(body), status, _NO_STORE, "application/json")


def _list_newest(folder: ExchangeFolder, page: str) -> Json:
    """Returns a page of the list, the latest first."""
    number = int(page) if page.isascii() and page.isdigit() and len(page) < 6 else 0
    files = folder.files()[::-1]
    summaries: list[Json] = []
    for file in files[number * _PAGE_LENGTH : (number + 1) * _PAGE_LENGTH]:
        try:
            summaries.append(summarize(*load_recording(file)))
        except DecodeError as error:
            summaries.append({"id": file.stem, "error": str(error)})
    return {
        "items": summaries,
        "page": number,
        "has_more": len(files) > (number + 1) * _PAGE_LENGTH,
    }
