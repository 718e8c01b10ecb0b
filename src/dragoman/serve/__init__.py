"""Agents and models as servers: behind every wire's endpoints, for the clients that speak them. Needs the extra `serve`."""

from __future__ import annotations

__all__: list[str] = []
