"""What a span and an event say of an exception."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode

from dragoman.telemetry.attributes import error_type
from dragoman.tools.outcome import words

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["Failed", "recorder"]

Failed = Callable[[str, Span, Context, BaseException], None]
"""Takes what failed (`client.operation`, `execute_tool`; `""`: a run, for which there is no event), its span and context, and why."""


def recorder(scope: str, release: str, logger_provider: LoggerProvider | None) -> Failed:
    """A function that notes an exception on a span, and as an event of the conventions, with the severity of a warning."""
    from opentelemetry._logs import (
        SeverityNumber,
        get_logger,
    )  # where OpenTelemetry keeps it until it is final

    logger = get_logger(scope, release, logger_provider)

    def failed(what: str, span: Span, context: Context, error: BaseException) -> None:
        kind, text = error_type(error), words(error) if isinstance(error, Exception) else ""
        span.set_attribute("error.type", kind)
        span.set_status(StatusCode.ERROR, text)
        span.record_exception(error)
        if not what:
            return
        module = type(error).__module__
        name = kind if module == "builtins" else f"{module}.{kind}"
        logger.emit(
            context=context,
            severity_number=SeverityNumber.WARN,
            event_name=f"gen_ai.{what}.exception",
            attributes={"exception.type": name, "exception.message": text},
        )

    return failed
