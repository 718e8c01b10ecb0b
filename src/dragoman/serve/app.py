"""`app`: agents and a gateway as an ASGI application."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dragoman import wires

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from dragoman.agent import Agent
    from dragoman.serve.gateway import Gateway

__all__ = ["app"]


def app(
    agents: Agent[Any] | Mapping[str, Agent[Any]] | None = None,
    *,
    gateway: Gateway | None = None,
) -> Starlette:
    """An ASGI application that speaks every wire: each at the paths that its own clients expect, and whole under `/WIRE`.

    `agents`: one, which answers whatever model a client names, or several by the names that clients ask for. `gateway`: models of
    providers by the names that clients ask for. Without both the embedded model is served.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    from dragoman.agent import Agent
    from dragoman.serve.agents import AgentBackend
    from dragoman.serve.call import Backend
    from dragoman.serve.endpoint import Endpoint
    from dragoman.serve.endpoints import HANDLERS
    from dragoman.serve.places import places
    from dragoman.serve.service import Service

    backends: list[Backend] = []
    if gateway is not None:
        backends.append(gateway)
    if agents is not None or gateway is None:
        backends.append(AgentBackend(Agent[None]("local") if agents is None else agents))
    service = Service(backends)
    served = [wires.get(name) for name in wires.names()]
    routes = [
        Route(place.path.replace("{model}", "{model:path}"), Endpoint(place, service), methods=[place.method])
        for place in places(served, HANDLERS)
    ]
    return Starlette(routes=routes)
