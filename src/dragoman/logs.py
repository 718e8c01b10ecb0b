"""What dragoman tells of its work, by the standard library's loggers below `dragoman`. Silent until
somebody listens.

Listen as with any library (`logging.getLogger("dragoman")`), by `log_to`, or by the environment's
DRAGOMAN_LOG_LEVEL.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

__all__ = ["LEVELS", "LoggingOptions", "log_from_environment", "log_to", "logger"]

LEVELS: Mapping[str, int] = MappingProxyType(
    {
        "FINE": logging.DEBUG,
        "DEBUG": logging.DEBUG,
        "INFO": logging.INFO,
        "WARNING": logging.WARNING,
        "SEVERE": logging.ERROR,
        "ERROR": logging.ERROR,
        "OFF": logging.CRITICAL + 1,
    }
)
"""Names of levels, those of the seeds among them."""

_ROOT = logging.getLogger("dragoman")
# Else WARNING and above would reach standard error by themselves.
_ROOT.addHandler(logging.NullHandler())


def logger(name: str) -> logging.Logger:
    """Returns the logger of one part of dragoman: `dragoman.<name>`."""
    return _ROOT.getChild(name)


class LoggingOptions(logging.Handler):
    """Who listens: from which level on, to which loggers, and what is done with a line.

    `only` is a part of the logger's name; empty takes all.
    """

    def __init__(
        self, level: str = "INFO", only: str = "", write: Callable[[str], object] = print
    ) -> None:
        """Creates the options of dragoman's logging. `only`: part of the names of the loggers to
        show."""
        super().__init__(LEVELS.get(level.upper(), logging.INFO))
        self.only = only
        self.write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Writes `[logger] LEVEL: message`."""
        if self.only in record.name:
            self.write(f"[{record.name}] {record.levelname}: {record.getMessage()}")


def log_to(options: LoggingOptions | None) -> None:
    """Writes dragoman's log by these options from now on, in place of earlier ones; `None`: nobody
    listens."""
    for handler in [handler for handler in _ROOT.handlers if isinstance(handler, LoggingOptions)]:
        _ROOT.removeHandler(handler)
    if options is not None:
        _ROOT.addHandler(options)
    _ROOT.setLevel(logging.NOTSET if options is None else options.level)


def _write_to_stderr(line: str) -> None:
    print(line, file=sys.stderr)  # noqa: T201


@cache
def log_from_environment() -> None:
    """Writes dragoman's log by DRAGOMAN_LOG_LEVEL, if it names a level. Asked once in a process, by
    its first agent."""
    level = os.environ.get("DRAGOMAN_LOG_LEVEL", "").upper()
    if level in LEVELS:
        # Standard output is the program's.
        log_to(LoggingOptions(level, write=_write_to_stderr))
