"""`docs/endpoints.md`: what a server has where, made of the wires' routes."""

from __future__ import annotations

from dragoman import wires
from dragoman.codec.serving import PURPOSES
from dragoman.serve.endpoint import is_offered
from dragoman.serve.http.method_paths import method_paths

__all__ = ["markdown"]

_HEAD = """\
# Server endpoints

`make pages` generates this page. Each path is at the root, where the API's own clients expect it, and below the wire's name: `/v1/messages` is also `/anthropic/v1/messages`. If several wires share a path at the root, the first
one gets it, and another one if the request has that wire's header. [Connect clients](guides/clients.md) shows how to use them.

| path | wire | purpose |
|---|---|---|
"""


def markdown() -> str:
    """The page."""
    found = method_paths([wires.get(name) for name in wires.names()], is_offered)
    roots = [
        place
        for place in found
        if not any(place.path.startswith(f"/{name}/") for name in wires.names())
    ]
    rows: list[str] = []
    for place in sorted(roots, key=lambda place: place.candidates[0][0].name):
        also = "; ".join(
            f"`{wire.name}` with `{route.header}`"
            for wire, route in place.candidates[1:]
            if route.header
        )
        first = f"`{place.candidates[0][0].name}`" + (f"; {also}" if also else "")
        rows.append(
            f"| `{place.method} {place.path}` | {first} | {PURPOSES[place.candidates[0][1].purpose]} |"
        )
    return _HEAD + "\n".join(rows) + "\n"
