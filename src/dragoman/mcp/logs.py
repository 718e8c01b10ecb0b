"""What a server logs, in our log."""

from __future__ import annotations

import logging
from typing import Any

from mcp import types

from dragoman.logs import logger

__all__ = ["least_level", "log_message"]

_LOG = logger("mcp")
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
}
_LONGEST = 2000
"""Characters of a message that are logged."""


def least_level() -> Any:
    """The lowest level that anybody listens to, by the protocol's name; `None`: nobody listens."""
    levels = {
        "debug": logging.DEBUG,
        "info": logging.INFO,
        "warning": logging.WARNING,
        "error": logging.ERROR,
    }
    return next((name for name, level in levels.items() if _LOG.isEnabledFor(level)), None)


def log_message(server: str, params: types.LoggingMessageNotificationParams) -> None:
    """Logs a message of a server's, as data: one line, and not too long."""
    text = params.data if isinstance(params.data, str) else repr(params.data)
    where = f"{server} ({params.logger})" if params.logger else server
    _LOG.log(
        _LEVELS.get(params.level, logging.ERROR), "%s: %s", where[:200], repr(text[:_LONGEST])[1:-1]
    )
