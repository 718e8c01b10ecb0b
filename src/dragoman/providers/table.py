"""What each provider can do, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from dragoman.capability import Capability
from dragoman.providers.provider import Provider

__all__ = ["CALLS", "Calls", "Row", "capability_table"]


class Calls(msgspec.Struct, frozen=True):
    """How a provider tells of the calls of tools."""

    ids: Literal["given", "given or minted"]
    """Whether it gives each call an id. `given or minted`: not all of its models or versions do; dragoman mints the rest."""
    arguments: Literal["in pieces", "whole"]
    """How they come in a stream."""


_PIECES, _WHOLE = Calls("given", "in pieces"), Calls("given", "whole")
CALLS: Mapping[str, Calls] = MappingProxyType(
    {
        **dict.fromkeys(
            ("openai", "openai-responses", "azure", "azure-responses", "anthropic", "cohere"),
            _PIECES,
        ),
        **dict.fromkeys(("openrouter", "together", "deepseek", "llamacpp"), _PIECES),
        **dict.fromkeys(("mistral", "groq", "xai"), _WHOLE),
        **dict.fromkeys(("google", "vertex", "ollama"), Calls("given or minted", "whole")),
    }
)
"""Name of a provider → how it tells of calls, as recorded traffic shows it. The others call no tools themselves, or it
depends on the server."""


class Row(msgspec.Struct, frozen=True):
    """A provider, in words and flags."""

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
    """`None`: it calls no tools by itself, or that depends on the server."""
    links: bool
    """Stores responses, and goes on from one by its id instead of the whole conversation."""


def capability_table(providers: Iterable[Provider]) -> list[Row]:
    """A row for each provider."""
    return [
        Row(
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
            calls=CALLS.get(provider.name),
            links=provider.wire == "openai_responses" and getattr(provider.quirks, "links", True),
        )
        for provider in providers
    ]
