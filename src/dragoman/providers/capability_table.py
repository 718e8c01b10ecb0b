"""A table of what each provider can do."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.capability import Capability
from dragoman.providers.provider import Calls, Provider

__all__ = ["ProviderRow", "capability_table"]


class ProviderRow(msgspec.Struct, frozen=True):
    """One provider in the table."""

    provider: str
    """Its name."""
    display_name: str
    """Its name for people."""
    aliases: tuple[str, ...]
    """Its other names."""
    key: str | None
    """Environment variable that holds the key; `None`: no key."""
    key_required: bool
    """Whether there is no answer without a key."""
    base_url: str | None
    """`None`: the user gives it, or it is known when the model runs."""
    chat_model: str | None
    """Default model."""
    embeddings_model: str | None
    """Default model for embeddings."""
    capabilities: tuple[Capability, ...]
    """In the order of `Capability`."""
    calls: Calls | None
    """As `Provider.calls`."""
    links: bool
    """Stores responses, and goes on from one by its id instead of the whole conversation."""


def capability_table(providers: Iterable[Provider]) -> list[ProviderRow]:
    """Returns the table with the capabilities of each provider, a row each."""
    return [
        ProviderRow(
            provider=provider.name,
            display_name=provider.display_name,
            aliases=provider.aliases,
            key=provider.key_names[-1] if provider.key_names else None,
            key_required=bool(provider.key_names) and provider.key_required,
            base_url=provider.base_url if isinstance(provider.base_url, str) else None,
            chat_model=provider.chat_model,
            embeddings_model=provider.embeddings_model,
            capabilities=tuple(
                capability for capability in Capability if capability in provider.capabilities
            ),
            calls=provider.calls,
            links=provider.wire == "openai_responses" and getattr(provider.quirks, "links", True),
        )
        for provider in providers
    ]
