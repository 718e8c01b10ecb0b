"""The HTTP seam and what goes around it: the network, retries, recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import lazy
from dragoman.transport.base import Bounds, Response, Timeouts, Transport

if TYPE_CHECKING:
    from dragoman.transport.aiohttp import AiohttpTransport
    from dragoman.transport.exchange import Exchange
    from dragoman.transport.player import Player
    from dragoman.transport.recorder import Recorder
    from dragoman.transport.retry import Retry

__all__ = ["AiohttpTransport", "Bounds", "Exchange", "Player", "Recorder", "Response", "Retry", "Timeouts", "Transport"]

_MODULES = {
    "AiohttpTransport": "aiohttp",
    "Exchange": "exchange",
    "Player": "player",
    "Recorder": "recorder",
    "Retry": "retry",
}
"""What is loaded when it is first used, and where it stands: a provider's record needs the types alone."""

__getattr__ = lazy("dragoman.transport", _MODULES)
