"""The loop: model call, tools, model call. What the seeds show as extension points is importable from here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import lazy
from dragoman.orchestration.accumulator import MessageAccumulator
from dragoman.orchestration.choose import choose_orchestrator
from dragoman.orchestration.iteration import StreamingIterationResult
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, StreamingOrchestrator
from dragoman.orchestration.state import StreamingState

if TYPE_CHECKING:
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

_MODULES = {
    "TwoPhaseStreamingOrchestrator": "two_phase",
    "TypedOutputStreamingOrchestrator": "typed",
}
"""What few runs need, and where it stands."""

__getattr__ = lazy("dragoman.orchestration", _MODULES)
