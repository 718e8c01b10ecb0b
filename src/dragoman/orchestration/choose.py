"""Which orchestrator a request needs: read off the provider's capabilities."""

from __future__ import annotations

from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, StreamingOrchestrator
from dragoman.providers.provider import Provider

__all__ = ["choose_orchestrator"]


def choose_orchestrator(provider: Provider, *, typed: bool, tools: bool) -> StreamingOrchestrator:
    """The orchestrator for a run.

    A provider that answers by a schema gets the schema, also together with tools where it takes both or where tools go
    through constrained decoding anyway, else after the tools; any other that calls tools gets `return_result`.

    Raises:
        SettingsError: the provider can give no typed output at all.
    """
    can = provider.capabilities
    native = Capability.typed_output in can and (
        not tools or Capability.typed_output_with_tools in can or Capability.tools not in can
    )
    if not typed or native:
        return DefaultStreamingOrchestrator()
    if Capability.typed_output in can:
        from dragoman.orchestration.two_phase import TwoPhaseStreamingOrchestrator

        return TwoPhaseStreamingOrchestrator()
    if Capability.tools in can:
        from dragoman.orchestration.typed import TypedOutputStreamingOrchestrator

        return TypedOutputStreamingOrchestrator(force=Capability.forced_tools in can)
    raise SettingsError(
        f"{provider.display_name} can give no typed output; use a provider that can (see `dragoman providers`)",
        provider=provider.name,
    )
