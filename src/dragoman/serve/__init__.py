"""Agents and models as servers: behind every wire's endpoints, for the clients that speak them. Needs the extra `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import lazy
from dragoman.serve.app import app  # not when first asked for: its module has its name

if TYPE_CHECKING:
    from dragoman.serve.agent_policy import AgentPolicy
    from dragoman.serve.gateway import Gateway
    from dragoman.serve.sealer import Sealer

__all__ = ["AgentPolicy", "Gateway", "Sealer", "app"]

_MODULES = {"AgentPolicy": "agent_policy", "Gateway": "gateway", "Sealer": "sealer"}

__getattr__ = lazy("dragoman.serve", _MODULES)
