"""The HTTP seam and what goes around it: the network, retries, recordings."""

from __future__ import annotations

from dragoman.transport.aiohttp import AiohttpTransport
from dragoman.transport.base import Bounds, Response, Timeouts, Transport
from dragoman.transport.exchange import Exchange
from dragoman.transport.player import Player
from dragoman.transport.recorder import Recorder
from dragoman.transport.retry import Retry

__all__ = ["AiohttpTransport", "Bounds", "Exchange", "Player", "Recorder", "Response", "Retry", "Timeouts", "Transport"]
