"""Spans, metrics and events of runs, model calls and tools, by OpenTelemetry's conventions for
generative AI: hooks, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dragoman.arguments import wrong_type_error
from dragoman.errors import SettingsError
from dragoman.hooks import Hooks
from dragoman.runtime import extra_hint

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

__all__ = ["telemetry"]


def telemetry(
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    logger_provider: LoggerProvider | None = None,
    *,
    content: bool = False,
    propagate: bool = True,
    conventions: Literal["0.1", "1.41"] = "0.1",
    metrics: Literal["duration", "all"] = "duration",
) -> Hooks:
    """Makes hooks that produce spans, metrics and events: for `Agent(hooks=…)`, or for all agents
    with `dragoman.hooks.everywhere`.

    A run is a span `invoke_agent NAME`, each request to a model within it `chat MODEL`, each call
    of a tool `execute_tool NAME`; what a tool does stands under its span, agents within it too. The
    providers are OpenTelemetry's global ones where none are given.

    Args:
        tracer_provider: makes the spans.
        meter_provider: makes the metrics.
        logger_provider: takes the events that tell of exceptions; spans have these too.
        content: whether spans hold what is said: messages, system instructions, descriptions and schemas of tools, arguments and results.
        propagate: whether requests to models carry the header `traceparent`, by which a gateway of yours joins their trace. Baggage is
            never sent.
        conventions: of which version names are: of the conventions for generative AI, or of the semantic conventions of which these were a
            part until 1.41, as many dashboards have them. They differ in the metrics of a model call and in the tokens that were written
            to a cache.
        metrics: what is recorded of each model call: its duration, which is all that the conventions ever required, or the time to the
            first chunk, the tokens and exemplars too. Spans have the numbers in any case; to record them all takes OpenTelemetry's SDK
            longer than to make the span. Metrics of runs and tools are the same with both.

    Raises:
        SettingsError: `opentelemetry-api` is not installed.
    """
    if conventions not in ("0.1", "1.41"):
        raise SettingsError(
            f'telemetry(conventions={conventions!r}) is unknown; it is "0.1" or "1.41"'
        )
    if metrics not in ("duration", "all"):
        raise SettingsError(f'telemetry(metrics={metrics!r}) is unknown; it is "duration" or "all"')
    for name, provider, method in (
        ("tracer_provider", tracer_provider, "get_tracer"),
        ("meter_provider", meter_provider, "get_meter"),
        ("logger_provider", logger_provider, "get_logger"),
    ):
        if provider is not None and (isinstance(provider, type) or not hasattr(provider, method)):
            raise wrong_type_error(name, provider, "a provider of OpenTelemetry's")
    try:
        from dragoman.telemetry.spans import Spans
    except ImportError as error:
        raise SettingsError(f"telemetry needs opentelemetry-api: {extra_hint('otel')}") from error

    providers = (tracer_provider, meter_provider, logger_provider)
    spans = Spans(
        *providers, content=content, conventions=conventions, all_metrics=metrics == "all"
    )
    return spans.hooks(propagate=propagate)
