"""Which orchestrator a run needs: read off the capabilities of its providers."""

from __future__ import annotations

from dragoman.capability import Capability
from dragoman.errors import SettingsError
from dragoman.orchestration.orchestrator import DefaultStreamingOrchestrator, StreamingOrchestrator
from dragoman.providers.provider import Provider

__all__ = ["choose_orchestrator"]


def choose_orchestrator(*providers: Provider, typed: bool, tools: bool) -> StreamingOrchestrator:
    """The orchestrator for a run with any of these providers.

    Those that answer by a schema get the schema, also together with tools where they take both or where tools go
    through constrained decoding anyway, else after the tools; any others that call tools get `return_result`.

    Raises:
        SettingsError: a provider can give no typed output at all, or they can give it by no means that all have.
    """
    if not typed:
        return DefaultStreamingOrchestrator()
    means = [_means(provider, tools=tools) for provider in providers]
    if "schema" in (shared := means[0].intersection(*means[1:])):
        return DefaultStreamingOrchestrator()
    if "schema after tools" in shared:
        from dragoman.orchestration.two_phase import TwoPhaseStreamingOrchestrator

        return TwoPhaseStreamingOrchestrator()
    if "tool" in shared:
        from dragoman.orchestration.typed import TypedOutputStreamingOrchestrator

        force = all(Capability.forced_tools in provider.capabilities for provider in providers)
        return TypedOutputStreamingOrchestrator(force=force)
    for provider, own in zip(providers, means, strict=True):
        if not own:
            raise SettingsError(
                f"{provider.display_name} can give no typed output; use a provider that can (see `dragoman providers`)",
                provider=provider.name,
            )
    names = ", ".join(provider.display_name for provider in providers)
    raise SettingsError(
        f"these providers give typed output by different means, and no means is common to all: {names}; "
        "leave one of them out of the fallback (see `dragoman providers`)"
    )


def _means(provider: Provider, *, tools: bool) -> set[str]:
    """How a provider can give typed output."""
    can = provider.capabilities
    means = {"tool"} if Capability.tools in can else set[str]()
    if Capability.typed_output in can:
        means.add("schema after tools")
        if not tools or Capability.typed_output_with_tools in can or Capability.tools not in can:
            means.add("schema")
    return means
