"""Attributes of spans and metrics, by the names of OpenTelemetry's conventions for generative
AI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.trace import Span, StatusCode

from dragoman.hooks import ModelEnd, ModelStart, ToolStart
from dragoman.message import FinishReason, Origin, Usage
from dragoman.providers.registry import REGISTRY
from dragoman.request import RunInfo, Settings
from dragoman.tools.tool_result import describe_error

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = [
    "Attributes",
    "RecordFailure",
    "conversation_attributes",
    "error_type",
    "dump_finish_reason",
    "metric_attributes",
    "provider_name",
    "make_recorder",
    "request_attributes",
    "response_attributes",
    "target_attributes",
    "tool_attributes",
    "usage_attributes",
]

Attributes = dict[str, "str | bool | int | float | tuple[str, ...]"]

_FINISH_REASONS: Mapping[FinishReason, str] = {
    FinishReason.tool_calls: "tool_call",
    FinishReason.recitation: "content_filter",
    FinishReason.cancelled: "error",
}
_PORTS = {"https": 443, "http": 80}
_SETTINGS: Mapping[str, str] = {
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "stop": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
}
_CACHE_WRITE = {
    "0.1": "gen_ai.usage.cache_write.input_tokens",
    "1.41": "gen_ai.usage.cache_creation.input_tokens",
}
_FLOATS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
_DEFAULT_SETTINGS = Settings()

RecordFailure = Callable[[str, Span, Context, BaseException], None]
"""Takes what failed (`client.operation`, `execute_tool`; `""`: a run, for which there is no event),
its span and context, and why."""


def provider_name(name: str) -> str:
    """Returns the conventions' name of a provider; its own name if they have none."""
    record = REGISTRY.find(name)
    if record is None:
        return name
    return record.otel_name or name


@lru_cache(maxsize=256)
def target_attributes(origin: Origin) -> Attributes:
    """Returns the attributes that say whom a request goes to; not to be changed."""
    url = urlsplit(origin.endpoint or "")
    attributes = _call_attributes(origin)
    if url.hostname:
        attributes["server.address"] = url.hostname
        attributes["server.port"] = url.port or _PORTS.get(url.scheme, 443)
    return attributes


@lru_cache(maxsize=256)
def metric_attributes(origin: Origin, served_model: str | None) -> Attributes:
    """Returns the attributes that metrics of a request have; not to be changed."""
    attributes = _call_attributes(origin)
    if served_model:
        attributes["gen_ai.response.model"] = served_model
    return attributes


def _call_attributes(origin: Origin) -> Attributes:
    """Returns the attributes of a model call: operation, provider and model."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider_name(origin.provider),
        "gen_ai.request.model": origin.model or "",
    }


def request_attributes(start: ModelStart) -> Attributes:
    """Returns the attributes of what is asked, without its content."""
    request, attributes = start.request, target_attributes(start.target).copy()
    if request.stream:
        attributes["gen_ai.request.stream"] = True
    if request.output_schema is not None:
        attributes["gen_ai.output.type"] = "json"
    settings = request.settings
    if settings != _DEFAULT_SETTINGS:
        for name, attribute in _SETTINGS.items():
            if (value := getattr(settings, name)) is not None:
                attributes[attribute] = float(value) if name in _FLOATS else value
        if isinstance(settings.reasoning, str):
            attributes["gen_ai.request.reasoning.level"] = settings.reasoning
    if start.run is not None:
        attributes |= conversation_attributes(start.run)
    return attributes


def response_attributes(end: ModelEnd, conventions: str) -> Attributes:
    """Returns the attributes of a response, without its content, named as in a version of the
    conventions."""
    attributes: Attributes = {}
    if (origin := end.origin) is not None:
        if origin.response_id:
            attributes["gen_ai.response.id"] = origin.response_id
        if origin.served_model:
            attributes["gen_ai.response.model"] = origin.served_model
    if (reason := dump_finish_reason(end.finish_reason)) is not None:
        attributes["gen_ai.response.finish_reasons"] = (reason,)
    if end.first_seconds is not None and end.start.request.stream:
        attributes["gen_ai.response.time_to_first_chunk"] = end.first_seconds
    if (used := end.usage) is not None:
        attributes |= usage_attributes(used)
        if used.cache_read_tokens is not None:
            attributes["gen_ai.usage.cache_read.input_tokens"] = used.cache_read_tokens
        if used.cache_write_tokens is not None:
            attributes[_CACHE_WRITE[conventions]] = used.cache_write_tokens
        if used.reasoning_tokens is not None:
            attributes["gen_ai.usage.reasoning.output_tokens"] = used.reasoning_tokens
    return attributes


def usage_attributes(usage: Usage) -> Attributes:
    """Returns the attributes for the tokens of a call, or of a run."""
    attributes: Attributes = {}
    if usage.input_tokens is not None:
        attributes["gen_ai.usage.input_tokens"] = usage.input_tokens
    if usage.output_tokens is not None:
        attributes["gen_ai.usage.output_tokens"] = usage.output_tokens
    return attributes


def tool_attributes(start: ToolStart) -> Attributes:
    """Returns the telemetry attributes of a tool's call, without the arguments."""
    attributes: Attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": start.call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": start.call.id,
    }
    if start.description:
        attributes["gen_ai.tool.description"] = start.description
    return attributes | conversation_attributes(start.run)


def conversation_attributes(run: RunInfo | None) -> Attributes:
    """Returns the conversation's id as a telemetry attribute, unless it is only the id of a run."""
    if run is None or run.thread_id is None or run.thread_id in (run.run_id, run.parent_run_id):
        return {}
    return {"gen_ai.conversation.id": run.thread_id}


def dump_finish_reason(reason: FinishReason) -> str | None:
    """Returns the telemetry attribute (the conventions' word) for why a model stopped, or None if
    it is not known."""
    if reason is FinishReason.unspecified:
        return None
    return _FINISH_REASONS.get(reason, reason.value)


def error_type(error: BaseException) -> str:
    """Returns the class of an error: one of `dragoman.errors`, or of the user's code."""
    return type(error).__qualname__


def make_recorder(
    scope: str, release: str, logger_provider: LoggerProvider | None
) -> RecordFailure:
    """Returns a function that notes an exception on a span, and as an event of the conventions,
    with the severity of a warning."""
    # OpenTelemetry keeps the logs API in a private module until it is final.
    from opentelemetry._logs import SeverityNumber, get_logger

    logger = get_logger(scope, release, logger_provider)

    def record_failure(operation: str, span: Span, context: Context, error: BaseException) -> None:
        """Records a failed operation in its OpenTelemetry span, and as a log record if the
        operation has a name."""
        error_name, text = (
            error_type(error),
            describe_error(error) if isinstance(error, Exception) else "",
        )
        span.set_attribute("error.type", error_name)
        span.set_status(StatusCode.ERROR, text)
        span.record_exception(error)
        if not operation:
            return
        module = type(error).__module__
        name = error_name if module == "builtins" else f"{module}.{error_name}"
        logger.emit(
            context=context,
            severity_number=SeverityNumber.WARN,
            event_name=f"gen_ai.{operation}.exception",
            attributes={"exception.type": name, "exception.message": text},
        )

    return record_failure
