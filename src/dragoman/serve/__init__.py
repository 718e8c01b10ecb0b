"""Agents and models as servers: behind every wire's endpoints, for the clients that speak them. Needs the extra `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import lazy
from dragoman.serve.app import app  # not when first asked for: its module has its name

if TYPE_CHECKING:
    from dragoman.serve.gateway import Gateway
    from dragoman.serve.sealer import Sealer
    from dragoman.serve.server import run_server, serve_http

__all__ = ["Gateway", "Sealer", "app", "run_server", "serve_http"]

_MODULES = {"Gateway": "gateway", "Sealer": "sealer", "run_server": "server", "serve_http": "server"}

__getattr__ = lazy("dragoman.serve", _MODULES)
