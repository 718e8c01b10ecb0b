"""Agents and models as servers: behind every wire's endpoints, for the clients that speak them. Needs the extra `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import lazy
from dragoman.serve.app import app  # not when first asked for: its module has its name

if TYPE_CHECKING:
    from dragoman.serve.agent_card import AgentCard, Skill
    from dragoman.serve.agent_policy import AgentPolicy
    from dragoman.serve.callers import Caller, Key
    from dragoman.serve.gateway import Gateway
    from dragoman.serve.grpc_server import serve_grpc
    from dragoman.serve.key_files import read_keys
    from dragoman.serve.limits import ServerLimits
    from dragoman.serve.server import run_server, serve_http

__all__ = [
    "AgentCard",
    "AgentPolicy",
    "Caller",
    "Gateway",
    "Key",
    "ServerLimits",
    "Skill",
    "app",
    "read_keys",
    "run_server",
    "serve_grpc",
    "serve_http",
]

_MODULES = {
    "AgentCard": "agent_card",
    "AgentPolicy": "agent_policy",
    "Caller": "callers",
    "Gateway": "gateway",
    "Key": "callers",
    "ServerLimits": "limits",
    "Skill": "agent_card",
    "read_keys": "key_files",
    "run_server": "server",
    "serve_grpc": "grpc_server",
    "serve_http": "server",
}

__getattr__ = lazy("dragoman.serve", _MODULES)
