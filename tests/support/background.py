"""A server in a process of its own, whose model says a word and never the rest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from multiprocessing.connection import Connection
from typing import Any

from dragoman import Agent, serve
from dragoman.runs import Runs
from dragoman.testing import ScriptedModel

__all__ = ["KEY", "app_of", "serve_at"]

KEY = "one-secret"
LEASE = 1.0
"""Seconds after which a process that is gone has lost its runs."""


async def half(request: Any) -> AsyncGenerator[str]:
    """Says half."""
    yield "Half "
    await asyncio.Event().wait()
    yield "and half."


def app_of(url: str) -> Any:
    """An application over a database."""
    app = serve.app(
        Agent(ScriptedModel(half, wire="openai_chat"), api_key="k"), store=url, auth=[KEY]
    )
    service = app.state.service
    service.runs = Runs(service.log, lease_seconds=LEASE, poll_seconds=0.05)
    return app


def serve_at(url: str, place: Connection) -> None:
    """Serves it, and says where."""
    serve.run_server(app_of(url), port=0, ready=place.send)
