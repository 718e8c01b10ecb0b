"""Metrics of runs, model calls and tools, with the conventions' names, units and buckets."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.metrics import Meter
from opentelemetry.trace import INVALID_SPAN, set_span_in_context

from dragoman.hooks import ModelEnd, RunEnd, ToolEnd
from dragoman.telemetry.attributes import Attributes, error_type, metric_attributes

__all__ = ["MetricRecorder"]

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
RUN_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
CALLS = (1, 2, 4, 8, 16, 32, 64, 128)

_MODEL_CALL_NAMES: Mapping[str, tuple[str, str, str, str]] = {
    "0.1": (
        "gen_ai.client.inference.duration",
        "gen_ai.client.inference.time_to_first_chunk",
        "gen_ai.client.inference.operation.input_tokens",
        "gen_ai.client.inference.operation.output_tokens",
    ),
    "1.41": (
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "gen_ai.client.token.usage",
    ),
}
"""Version of the conventions → duration, time to the first chunk, tokens in and out."""
_SAME_NAME = ({"gen_ai.token.type": "input"}, {"gen_ai.token.type": "output"})
_NO_EXEMPLAR = set_span_in_context(INVALID_SPAN, Context())
"""An empty one would stand for the current context."""
_USAGE = "gen_ai.client.inference.usage."


class MetricRecorder:
    """Takes ends, and records what they say. `all_parts`: of a model call not its duration alone,
    but its first chunk and its tokens too; those that are a part of others (cached, reasoning) are
    counted where there are any."""

    def __init__(self, meter: Meter, conventions: str, *, all_parts: bool) -> None:
        """Creates the OpenTelemetry instruments of dragoman's metrics."""
        self._of_parts = all_parts

        def seconds(name: str, text: str, buckets: tuple[float, ...] = SECONDS):  # noqa: ANN202
            return meter.create_histogram(
                name, "s", text, explicit_bucket_boundaries_advisory=buckets
            )

        def counts(name: str, unit: str, text: str, buckets: tuple[float, ...]):  # noqa: ANN202
            return meter.create_histogram(
                name, unit, text, explicit_bucket_boundaries_advisory=buckets
            )

        duration, first, tokens_in, tokens_out = _MODEL_CALL_NAMES[conventions]
        self._token_types: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {})
        # Version 1.41 has one metric for both, told apart by an attribute.
        if tokens_in == tokens_out:
            self._token_types = _SAME_NAME
        self._duration = seconds(duration, "Duration of a request to a model.")
        self._first = seconds(first, "Time until the first chunk of a streamed answer.")
        self._input = counts(tokens_in, "{token}", "Tokens of a request to a model.", TOKENS)
        self._output = self._input
        if tokens_in != tokens_out:
            self._output = counts(tokens_out, "{token}", "Tokens of an answer.", TOKENS)
        self._parts = [
            (field, meter.create_counter(_USAGE + name, "{token}", text))
            for field, name, text in (
                (
                    "cache_read_tokens",
                    "cache_read.input_tokens",
                    "Tokens that were read from the provider's cache.",
                ),
                (
                    "cache_write_tokens",
                    "cache_write.input_tokens",
                    "Tokens that were written to the provider's cache.",
                ),
                (
                    "reasoning_tokens",
                    "reasoning.output_tokens",
                    "Tokens that were spent on thinking.",
                ),
            )
        ]
        self._run = seconds("gen_ai.invoke_agent.duration", "Duration of a run.", RUN_SECONDS)
        self._model_calls = counts(
            "gen_ai.invoke_agent.inference_calls", "{inference_call}", "Requests of a run.", CALLS
        )
        self._tool_calls = counts(
            "gen_ai.invoke_agent.tool_calls", "{tool_call}", "Calls of tools in a run.", CALLS
        )
        self._tool = seconds("gen_ai.execute_tool.duration", "Duration of a call of a tool.")

    def record_model_call(self, end: ModelEnd, context: Context) -> None:
        """Records a request to a model; an exemplar, which leads from a metric to its trace, has
        its duration alone, and only where all is recorded: it takes the SDK as long as half a
        record."""
        origin = end.origin
        attributes = metric_attributes(
            end.start.target, None if origin is None else origin.served_model
        )
        if self._of_parts:
            self._record_parts(end, attributes)
        if end.error is not None:
            attributes = {**attributes, "error.type": error_type(end.error)}
        self._duration.record(end.seconds, attributes, context if self._of_parts else _NO_EXEMPLAR)

    def _record_parts(self, end: ModelEnd, attributes: Attributes) -> None:
        """Records the time to the first chunk, and the tokens of a model call."""
        if end.first_seconds is not None and end.start.request.stream:
            self._first.record(end.first_seconds, attributes, _NO_EXEMPLAR)
        if (usage := end.usage) is None:
            return
        input_type, output_type = self._token_types
        if usage.input_tokens is not None:
            self._input.record(usage.input_tokens, {**attributes, **input_type}, _NO_EXEMPLAR)
        if usage.output_tokens is not None:
            self._output.record(usage.output_tokens, {**attributes, **output_type}, _NO_EXEMPLAR)
        for field, counter in self._parts:
            if count := getattr(usage, field):
                counter.add(count, {**attributes, "gen_ai.token.modality": "unknown"}, _NO_EXEMPLAR)

    def record_run(
        self, end: RunEnd, name: Attributes, context: Context, model_calls: int, tool_calls: int
    ) -> None:
        """Records the metrics of a run. `name`: of its agent."""
        self._model_calls.record(model_calls, name, context)
        self._tool_calls.record(tool_calls, name, context)
        attributes = name if end.error is None else {**name, "error.type": error_type(end.error)}
        self._run.record(end.seconds, attributes, context)

    def record_tool_call(
        self, end: ToolEnd, name: Attributes, error: str | None, context: Context
    ) -> None:
        """Records the metrics of a tool call."""
        attributes: Attributes = {
            "gen_ai.tool.name": end.start.call.name,
            "gen_ai.tool.type": "function",
            **name,
        }
        if error is not None:
            attributes["error.type"] = error
        self._tool.record(end.seconds, attributes, context)
