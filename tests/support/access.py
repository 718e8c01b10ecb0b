"""Who may reach what of a server: a table made of its routes, so that a new route is in it
unasked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from dragoman.codec.serving import BEARER, KeyPlace
from support.asgi import Exchange, exchange

__all__ = ["Cell", "cells", "reached"]

UNKNOWN = "nothing-has-this-id"


class Cell(NamedTuple):
    """A method and a path of a server."""

    method: str
    path: str
    """With `{model}` and `{id}`."""
    wire: str
    """Whose clients it is for first."""
    keys: tuple[KeyPlace, ...]
    """Where these put their keys."""

    @property
    def has_id(self) -> bool:
        """Whether it is about something that somebody owns."""
        return "{id}" in self.path

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def cells(app: Any, public: Mapping[str, str] = {}) -> Iterator[Cell]:
    """All that a server has. `public`: path → why nobody needs a key there; one that is not there
    any more is an error."""
    routes = [
        (method, re.sub(r":path\b", "", route.path), route)
        for route in app.routes
        for method in sorted(route.methods)
    ]
    gone = public.keys() - {path for _, path, _ in routes}
    assert not gone, f"these paths are not there: {gone}"
    for method, path, route in routes:
        if path not in public:
            place = getattr(route.endpoint, "method_path", None)
            wire = place.candidates[0][0] if place else None
            yield Cell(
                method, path, wire.name if wire else "", tuple(getattr(wire, "keys", BEARER))
            )


async def reached(
    app: Any, cell: Cell, key: str | None, *, model: str = "m", id: str = UNKNOWN, place: int = 0, body: object = b"", **behaviour: Any
) -> Exchange:  # fmt: skip
    """A request of somebody with that key, in that of the wire's places for it."""
    path = cell.path.replace("{model}", model).replace("{id}", id)
    headers: dict[str, str] = {"content-type": "application/json"}
    if key is not None:
        kind, name = cell.keys[place].kind, cell.keys[place].name
        if kind == "query":
            path += f"?{name}={key}"
        else:
            headers[name] = f"Bearer {key}" if kind == "bearer" else key
    return await exchange(app, cell.method, path, body, headers=headers, **behaviour)
