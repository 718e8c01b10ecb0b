"""Where the requests of an API go: the servers that an OpenAPI document names, or the caller's base URL."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.openapi.document import Document
from dragoman.openapi.operations import Operation

__all__ = ["server_url", "operation_url", "origin"]


def server_url(document: Document, base_url: str | None, *, has_keys: bool) -> str:
    """Returns the base URL (server) of all OpenAPI requests, without a final slash: the caller's,
    otherwise that of the document's first server.

    Raises:
        SettingsError: there is none, or the document would decide where keys go.
    """
    # A document is untrusted: it must not decide where keys are sent.
    if base_url is None and has_keys:
        raise SettingsError(
            "give base_url=: keys and headers are sent where the caller says, and never where a document says"
        )
    if base_url is not None:
        url = base_url
    else:
        url = _first_server(document.root.get("servers"))
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(
            f"the document is served at {url!r}, which is no whole address: give base_url="
        )
    if parts.query or parts.fragment:
        raise SettingsError(f"a base URL has no query and no fragment: {url!r}")
    return url.rstrip("/")


def operation_url(operation: Operation, base_url: str, *, is_given: bool) -> str:
    """Returns the base URL of one OpenAPI operation, which may have its own server if the caller
    gave no URL.

    Raises:
        SettingsError: that is on another host.
    """
    servers = if_list(operation.fields.get("servers")) or if_list(
        operation.path_fields.get("servers")
    )
    if is_given or not servers:
        return base_url
    url = _first_server(servers).rstrip("/")
    if url.startswith("/"):
        scheme, host = origin(base_url)
        return f"{scheme}://{host}{url}"
    if origin(url) != origin(base_url):
        raise SettingsError(
            f"the operation at {operation.location!r} goes to another host, {url!r}: give base_url=, or leave it out with include="
        )
    return url


def origin(url: str) -> tuple[str, str]:
    """Returns the scheme, host and port of a URL, within which requests stay."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _first_server(servers: Any) -> str:
    """Returns the URL of the first of OpenAPI's `servers`, with the defaults of its variables."""
    server: JsonMap = next((if_object(entry) for entry in if_list(servers)), {"url": "/"})
    variables = if_object(server.get("variables"))

    def default(match: re.Match[str]) -> str:
        return if_text(if_object(variables.get(match[1])).get("default"))

    return re.sub(r"{([^{}]*)}", default, if_text(server.get("url")))
