"""Finds the wire of a request by its path and host."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

from dragoman import providers, wires

__all__ = ["WireRoute", "find_wire"]

_VERSION = re.compile(r"/v\d\w*(?=/)")
_PARAMETER = re.compile(r"\\{\w+\\}")


class WireRoute(NamedTuple):
    """A place of an API."""

    wire: str
    """The wire's name."""
    purpose: str
    """One of `dragoman.codec.serving.PURPOSES`."""


def find_wire(method: str, url: str) -> WireRoute | None:
    """Returns the wire of a request and what is asked there, or None if no wire knows the path.

    Of wires that share a path it is the one of the provider at that host, else the first. An API
    may stand below another path than at its own provider, and without its version.
    """
    parts = urlsplit(url)
    if method != "POST":
        return None
    matches = [
        (len(match[0]), _is_at(route.wire, parts.hostname), route)
        for pattern, route in _patterns()
        if (match := pattern.search(parts.path))
    ]
    return max(matches, key=lambda match: match[:2])[2] if matches else None


@cache
def _patterns() -> list[tuple[re.Pattern[str], WireRoute]]:
    """Returns a pattern for the end of the paths of each route that is asked with a body."""
    return [
        (_compile(route.path), WireRoute(name, route.purpose))
        for name in wires.names("model")
        for route in wires.get(name).routes
        if route.method == "POST"
    ]


def _compile(path: str) -> re.Pattern[str]:
    """Returns the pattern of a route's path, with or without the version that it begins with, but
    not with another one."""
    version = _VERSION.match(path)
    end = path[version.end() :] if version else path
    # Cohere's version 1 is another API, and Google's v1alpha the same one as v1beta.
    before = rf"(?:{version[0][:3]}\w*|(?<!/v\d))" if version else ""
    return re.compile(f"{before}{_PARAMETER.sub('[^/]+', re.escape(end))}$")


@cache
def _is_at(wire: str, host: str | None) -> bool:
    """True if a provider at this host speaks this wire."""
    return any(
        record.wire == wire
        and isinstance(record.base_url, str)
        and urlsplit(record.base_url).hostname == host
        for record in providers.REGISTRY.providers()
    )
