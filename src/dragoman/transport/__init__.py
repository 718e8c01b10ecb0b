"""The HTTP seam and what goes around it: the network, retries, recordings."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dragoman.transport.aiohttp import AiohttpTransport
from dragoman.transport.base import Bounds, Response, Timeouts, Transport
from dragoman.transport.retry import Retry

if TYPE_CHECKING:
    from dragoman.transport.exchange import Exchange
    from dragoman.transport.player import Player
    from dragoman.transport.recorder import Recorder

__all__ = ["AiohttpTransport", "Bounds", "Exchange", "Player", "Recorder", "Response", "Retry", "Timeouts", "Transport"]

_MODULES = {"Exchange": "exchange", "Player": "player", "Recorder": "recorder"}
"""What recordings alone need, and where it stands."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'dragoman.transport' has no attribute {name!r}")
    return getattr(import_module(f"dragoman.transport.{_MODULES[name]}"), name)
