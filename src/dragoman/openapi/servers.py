"""Where the requests of an OpenAPI document go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from dragoman.codec.json_values import if_list, if_object, if_text
from dragoman.errors import SettingsError
from dragoman.openapi.document import Document
from dragoman.openapi.operations import Operation

__all__ = ["origin", "server_url", "url_of"]


def server_url(document: Document, base_url: str | None, *, has_keys: bool) -> str:
    """The base URL of all requests, without a slash at its end: the caller's, else that of the document's first server.

    Raises:
        SettingsError: there is none, or the document would decide where keys go.
    """
    if base_url is None and has_keys:
        raise SettingsError(
            "give base_url=: keys and headers are sent where the caller says, and never where a document says"
        )
    url = base_url if base_url is not None else _first(document.root.get("servers"))
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise SettingsError(
            f"the document is served at {url!r}, which is no whole address: give base_url="
        )
    if parts.query or parts.fragment:
        raise SettingsError(f"a base URL has no query and no fragment: {url!r}")
    return url.rstrip("/")


def url_of(operation: Operation, base_url: str, *, is_given: bool) -> str:
    """The base URL of an operation, which may have a server of its own where the caller gave none.

    Raises:
        SettingsError: that is on another host.
    """
    own = if_list(operation.fields.get("servers")) or if_list(operation.path_fields.get("servers"))
    if is_given or not own:
        return base_url
    url = _first(own).rstrip("/")
    if url.startswith("/"):
        scheme, host = origin(base_url)
        return f"{scheme}://{host}{url}"
    if origin(url) != origin(base_url):
        raise SettingsError(
            f"the operation at {operation.place!r} goes to another host, {url!r}: give base_url=, or leave it out with include="
        )
    return url


def origin(url: str) -> tuple[str, str]:
    """Scheme and host with port: requests stay within it."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _first(servers: Any) -> str:
    """The first server's URL, with the defaults of its variables."""
    server: Mapping[str, Any] = next((if_object(one) for one in if_list(servers)), {"url": "/"})
    variables = if_object(server.get("variables"))

    def default(found: re.Match[str]) -> str:
        return if_text(if_object(variables.get(found[1])).get("default"))

    return re.sub(r"{([^{}]*)}", default, if_text(server.get("url")))
