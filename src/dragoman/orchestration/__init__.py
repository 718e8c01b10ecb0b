"""The loop: model call, tools, model call. What the seeds show as extension points is importable from here."""

from dragoman.orchestration.accumulator import MessageAccumulator
from dragoman.orchestration.choose import choose_orchestrator
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, StreamingOrchestrator
from dragoman.orchestration.state import StreamingState
from dragoman.orchestration.two_phase import TwoPhaseStreamingOrchestrator
from dragoman.orchestration.typed import TypedOutputStreamingOrchestrator

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
