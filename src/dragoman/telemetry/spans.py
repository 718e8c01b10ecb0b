"""Spans of runs, model calls and tools: what begins with a start, and ends with its end.

`Spans.hooks` returns one function for each hook. A start makes a span and remembers it: runs by
the identity of their record, model calls and tools by their start. The end removes it, sets
what is known by then, records the metrics, and ends the span even if that fails.

Model calls and tools are children of their run's span. Spans become current only around the
sending of a request, so that the HTTP library's spans join them, and in the task of a tool.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import msgspec
from opentelemetry import metrics, trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Span, SpanKind, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dragoman import providers
from dragoman.errors import DragomanError
from dragoman.hooks import (
    Hooks,
    ModelEnd,
    ModelStart,
    RequestLoss,
    RequestRetry,
    RunEnd,
    RunStart,
    ToolEnd,
    ToolStart,
)
from dragoman.message import Role
from dragoman.request import RunInfo
from dragoman.telemetry import content
from dragoman.telemetry.attributes import (
    Attributes,
    conversation_attributes,
    dump_finish_reason,
    error_type,
    make_recorder,
    request_attributes,
    response_attributes,
    tool_attributes,
    usage_attributes,
)
from dragoman.telemetry.metrics import MetricRecorder
from dragoman.tools.call_record import AskUser

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

__all__ = ["Spans"]

_SCOPE = "dragoman"
_PROPAGATOR = TraceContextTextMapPropagator()


class _RunSpan:
    """A run that goes on."""

    def __init__(self, span: Span, name: Attributes) -> None:
        """Keeps the OpenTelemetry span of a run, with the agent's name."""
        self.span = span
        self.context = set_span_in_context(span)
        self.name = name
        self.model_calls = self.tool_calls = 0


class _CallSpan(msgspec.Struct, frozen=True, eq=False):
    """A request to a model, or a call of a tool, that goes on."""

    span: Span
    context: Context
    run: _RunSpan | None
    token: Token[Context] | None = None


class _CurrentContext:
    """A context that is the current one for a while."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: Context) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token = attach(self._context)

    def __exit__(self, error_type: type[BaseException] | None, *details: object) -> None:
        # GeneratorExit: the task is destroyed, and with it the context that the token is of.
        if error_type is not GeneratorExit:
            detach(self._token)


class Spans:
    """Keeps the span of whatever has begun, by its start. No span is current outside of the sending
    of a request and of the task of a tool."""

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None,
        meter_provider: metrics.MeterProvider | None,
        logger_provider: LoggerProvider | None,
        *,
        content: bool,
        conventions: str,
        all_metrics: bool,
    ) -> None:
        """Creates the hooks that write OpenTelemetry spans. `content`: whether spans hold
        messages."""
        release = _find_version()
        self._tracer = trace.get_tracer(_SCOPE, release, tracer_provider)
        meter = metrics.get_meter(_SCOPE, release, meter_provider)
        self._metrics = MetricRecorder(meter, conventions, all_parts=all_metrics)
        self._failed = make_recorder(_SCOPE, release, logger_provider)
        self._content, self._conventions = content, conventions
        # By identity of the run's record, which is alive until the run ends.
        self._runs: dict[int, _RunSpan] = {}
        self._calls: dict[ModelStart | ToolStart, _CallSpan] = {}

    def hooks(self, *, propagate: bool) -> Hooks:
        """Returns the functions that make the spans."""
        return Hooks(
            run_start=self._run_start,
            run_end=self._run_end,
            model_start=self._model_start,
            model_end=self._model_end,
            tool_start=self._tool_start,
            tool_end=self._tool_end,
            retry=self._retry,
            loss=self._loss,
            model_context=self._model_context,
            propagate=_make_headers if propagate else None,
        )

    def _find_run(self, run: RunInfo | None) -> _RunSpan | None:
        return None if run is None else self._runs.get(id(run))

    # runs

    def _run_start(self, start: RunStart) -> None:
        """Starts the span of a run, with its agent's name and, if wanted, its messages."""
        name = _agent_name(start)
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            **name,
            **conversation_attributes(start.run),
        }
        title = " ".join(["invoke_agent", *[str(value) for value in name.values()]])
        span = self._tracer.start_span(title, kind=SpanKind.INTERNAL, attributes=attributes)
        self._runs[id(start.run)] = _RunSpan(span, name)
        if self._content and span.is_recording():
            span.set_attributes(content.dump_input(start.messages))

    def _run_end(self, end: RunEnd) -> None:
        """Ends the span of a run, with its usage and outcome."""
        run = self._runs.pop(id(end.start.run))
        span, result = run.span, end.result
        try:
            attributes: Attributes = {}
            if result.usage is not None:
                attributes = usage_attributes(result.usage)
            reason = dump_finish_reason(result.finish_reason)
            if end.outcome in ("cancelled", "error"):
                reason = "error"
            if reason is not None:
                attributes["gen_ai.response.finish_reasons"] = (reason,)
            if self._content and span.is_recording():
                answers = [message for message in result.messages if message.role is Role.MODEL][
                    -1:
                ]
                if answers:
                    attributes["gen_ai.output.messages"] = content.dump_answer(answers[0], reason)
            span.set_attributes(attributes)
            if end.error is not None:
                self._failed("", span, run.context, end.error)
            self._metrics.record_run(end, run.name, run.context, run.model_calls, run.tool_calls)
        finally:
            span.end()

    # model calls

    def _model_start(self, start: ModelStart) -> None:
        """Starts the span of a model call, within its run's or the caller's."""
        run = self._find_run(start.run)
        # Without a run the span belongs to whatever span the caller has open.
        context = run.context if run is not None else get_current()
        span = self._tracer.start_span(
            f"chat {start.target.model}",
            context,
            SpanKind.CLIENT,
            attributes=request_attributes(start),
        )
        self._calls[start] = _CallSpan(span, set_span_in_context(span, context), run)
        if run is not None:
            run.model_calls += 1
        if self._content and span.is_recording():
            attributes = content.dump_input(start.request.messages)
            if start.request.tools:
                attributes["gen_ai.tool.definitions"] = content.dump_json(
                    content.dump_tools(start.request.tools)
                )
            span.set_attributes(attributes)

    def _model_end(self, end: ModelEnd) -> None:
        """Ends the span of a model call, with its response or its error."""
        call = self._calls.pop(end.start)
        span, context = call.span, call.context
        try:
            attributes = response_attributes(end, self._conventions)
            if self._content and span.is_recording() and (message := end.message) is not None:
                attributes["gen_ai.output.messages"] = content.dump_answer(
                    message, dump_finish_reason(end.finish_reason)
                )
            span.set_attributes(attributes)
            if end.error is not None:
                self._failed("client.operation", span, context, end.error)
            self._metrics.record_model_call(end, context)
        finally:
            span.end()

    def _model_context(self, start: ModelStart) -> _CurrentContext:
        return _CurrentContext(self._calls[start].context)

    # tools

    def _tool_start(self, start: ToolStart) -> None:
        """Starts the span of a tool call, and makes it the current one."""
        run = self._find_run(start.run)
        context = get_current() if run is None else run.context
        attributes = tool_attributes(start)
        if run is not None:
            run.tool_calls += 1
            attributes |= run.name
        span = self._tracer.start_span(
            f"execute_tool {start.call.name}", context, SpanKind.INTERNAL, attributes=attributes
        )
        context = set_span_in_context(span, context)
        self._calls[start] = _CallSpan(span, context, run, attach(context))
        if self._content and span.is_recording():
            span.set_attribute(
                "gen_ai.tool.call.arguments", content.dump_json(start.call.arguments)
            )

    def _tool_end(self, end: ToolEnd) -> None:
        """Ends the span of a tool call, with its result or its error."""
        call = self._calls.pop(end.start)
        span, context, run = call.span, call.context, call.run
        if call.token is not None and not isinstance(end.error, GeneratorExit):
            detach(call.token)
        error = None
        # A tool that asks a person something has not failed.
        if isinstance(end.error, Exception) and not isinstance(end.error, AskUser):
            error = end.error
        try:
            if self._content and end.result is not None and span.is_recording():
                span.set_attribute(
                    "gen_ai.tool.call.result", content.dump_json(content.dump_result(end.result))
                )
            if error is not None:
                self._failed("execute_tool", span, context, error)
            name = run.name if run is not None else {}
            failure = error_type(error) if error is not None else None
            self._metrics.record_tool_call(end, name, failure, context)
        finally:
            span.end()

    # what happens between

    def _retry(self, retry: RequestRetry) -> None:
        """Adds an event for a retry or a fallback to the span of its model call or run."""
        attributes: Attributes = {
            "dragoman.retry.attempt": retry.attempt,
            "dragoman.retry.wait": retry.wait,
        }
        if retry.status is not None:
            attributes["http.response.status_code"] = retry.status
        if retry.error is not None:
            attributes["error.type"] = error_type(retry.error)
        if retry.fallback is not None:
            attributes["dragoman.retry.fallback"] = retry.fallback
        run = None if retry.fallback is None else self._find_run(retry.run)
        _add_event(
            trace.get_current_span() if run is None else run.span, "dragoman.retry", attributes
        )

    def _loss(self, loss: RequestLoss) -> None:
        """Adds an event for a loss to the span of its run."""
        run = self._find_run(loss.run)
        attributes: Attributes = {
            "dragoman.loss.what": loss.loss.what.value,
            "dragoman.loss.why": loss.loss.why,
        }
        _add_event(
            trace.get_current_span() if run is None else run.span, "dragoman.loss", attributes
        )


def _find_version() -> str:
    """Returns for spans the version of this package, or an empty text if it is not installed."""
    try:
        return version("dragoman")
    except PackageNotFoundError:
        return ""


def _agent_name(start: RunStart) -> Attributes:
    """Returns for a span the agent's name, if it was given one; otherwise it is called by its
    provider's."""
    try:
        provider = providers.get(start.model.partition(":")[0]).display_name
    except DragomanError:
        provider = ""
    name = start.run.agent
    if name in ("", provider):
        return {}
    return {"gen_ai.agent.name": name}


def _add_event(span: Span, name: str, attributes: Attributes) -> None:
    if span.is_recording():
        span.add_event(name, attributes)


def _make_headers() -> Mapping[str, str]:
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    return carrier
