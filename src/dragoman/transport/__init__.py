"""The HTTP seam and what goes around it: the network, retries, recordings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.runtime import lazy
from dragoman.transport.base import Bounds, Response, Timeouts, Transport

if TYPE_CHECKING:
    from dragoman.transport.address_policy import AddressPolicy
    from dragoman.transport.aiohttp import AiohttpTransport
    from dragoman.transport.exchange import Exchange
    from dragoman.transport.fetching import PostResult, fetch, post
    from dragoman.transport.player import Player
    from dragoman.transport.recorder import Recorder
    from dragoman.transport.retry import Retry

__all__ = [
    "AddressPolicy",
    "AiohttpTransport",
    "Bounds",
    "Exchange",
    "Player",
    "PostResult",
    "Recorder",
    "Response",
    "Retry",
    "Timeouts",
    "Transport",
    "fetch",
    "post",
]

_MODULES = {
    "AddressPolicy": "address_policy",
    "AiohttpTransport": "aiohttp",
    "Exchange": "exchange",
    "Player": "player",
    "PostResult": "fetching",
    "Recorder": "recorder",
    "Retry": "retry",
    "fetch": "fetching",
    "post": "fetching",
}
"""What is loaded when it is first used, and where it stands: a provider's record needs the types
alone."""

__getattr__ = lazy("dragoman.transport", _MODULES)
