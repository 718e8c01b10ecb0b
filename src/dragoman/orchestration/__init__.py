"""The loop: model call, tools, model call. What the seeds show as extension points is importable
from here."""

from __future__ import annotations

from dragoman.orchestration.accumulator import MessageAccumulator
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, StreamingOrchestrator
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.typed import (
    TwoPhaseStreamingOrchestrator,
    TypedOutputStreamingOrchestrator,
    choose_orchestrator,
)

__all__ = [
    "DefaultStreamingOrchestrator",
    "MessageAccumulator",
    "StreamingIterationResult",
    "StreamingOrchestrator",
    "StreamingState",
    "TwoPhaseStreamingOrchestrator",
    "TypedOutputStreamingOrchestrator",
    "choose_orchestrator",
]
