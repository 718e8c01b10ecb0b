"""Agents and models as servers: behind every wire's endpoints, for the clients that speak them.
Needs the extra `serve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runtime import lazy

# Not when first asked for: its module has its name.
from dragoman.serve.app import app

if TYPE_CHECKING:
    from dragoman.serve.accounts.accounts import Accounts
    from dragoman.serve.apis.a2a_grpc import serve_grpc
    from dragoman.serve.apis.cards import AgentCard, Skill
    from dragoman.serve.core.policy import AgentPolicy
    from dragoman.serve.gateway.gateway import Gateway
    from dragoman.serve.http.callers import Caller, Key, read_keys
    from dragoman.serve.http.limits import ServerLimits
    from dragoman.serve.server import run_server, serve_http

__all__ = [
    "Accounts",
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
    "Accounts": "accounts.accounts",
    "AgentCard": "apis.cards",
    "AgentPolicy": "core.policy",
    "Caller": "http.callers",
    "Gateway": "gateway.gateway",
    "Key": "http.callers",
    "ServerLimits": "http.limits",
    "Skill": "apis.cards",
    "read_keys": "http.callers",
    "run_server": "server",
    "serve_grpc": "apis.a2a_grpc",
    "serve_http": "server",
}

__getattr__ = lazy("dragoman.serve", _MODULES)
