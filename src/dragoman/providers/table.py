"""What each provider can do, as a table: the source of `docs/capabilities.md`, written by

python -m dragoman.providers.table > docs/capabilities.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

import msgspec

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
from dragoman.providers.registry import Registry

__all__ = ["CALLS", "Calls", "Row", "capability_table", "markdown"]


class Calls(msgspec.Struct, frozen=True):
    """How a provider tells of the calls of tools."""

    ids: Literal["given", "given or minted"]
    """Whether it gives each call an id. `given or minted`: not all of its models or versions do; dragoman mints the rest."""
    arguments: Literal["in pieces", "whole"]
    """How they come in a stream."""


_PIECES, _WHOLE = Calls("given", "in pieces"), Calls("given", "whole")
CALLS: Mapping[str, Calls] = MappingProxyType(
    {
        **dict.fromkeys(("openai", "openai-responses", "azure", "azure-responses", "anthropic", "cohere"), _PIECES),
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
            capabilities=tuple(capability for capability in Capability if capability in provider.capabilities),
            calls=CALLS.get(provider.name),
            links=provider.wire == "openai_responses" and getattr(provider.quirks, "links", True),
        )
        for provider in providers
    ]


def markdown(rows: Sequence[Row]) -> str:
    """The tables of `docs/capabilities.md`: where the providers are, what they can do, and how they tell of calls."""
    where = [
        (
            f"`{row.provider}`" + "".join(f", `{alias}`" for alias in row.aliases),
            _code(row.key) + ("" if row.key_required or not row.key else " (optional)"),
            _code(row.base_url),
            _code(row.chat_model),
            _code(row.embeddings_model),
        )
        for row in rows
    ]
    used = [capability for capability in Capability if any(capability in row.capabilities for row in rows)]
    able = [(f"`{row.provider}`", *("✓" if c in row.capabilities else "–" for c in used)) for row in rows]
    calls = [
        (
            f"`{row.provider}`",
            row.calls.ids if row.calls else "–",
            row.calls.arguments if row.calls else "–",
            "`previous_response_id`" if row.links else "the whole conversation",
        )
        for row in rows
    ]
    return "\n".join(
        [
            "# Providers and what they can do",
            "",
            "Generated from the providers' records by `python -m dragoman.providers.table`; a test holds it to them, and",
            "the records to recorded traffic. A provider can do what its usual models can, streamed; a single model may not.",
            "",
            *_table(("provider, aliases", "key", "base URL", "default model", "for embeddings"), where),
            "",
            *_table(("provider", *(capability.replace("_", " ") for capability in used)), able),
            "",
            "How calls of tools come, and what a conversation goes on from. An id that a provider does not give is minted once, when the",
            "call is first seen. Whatever the form, a call is run when it is whole. `–`: it calls no tools by itself (its calls",
            "go through constrained decoding), or it depends on the server.",
            "",
            *_table(("provider", "ids of calls", "arguments in a stream", "goes on from"), calls),
            "",
        ]
    )


def _code(value: str | None) -> str:
    return f"`{value}`" if value else "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.stdout.write(markdown(capability_table(Registry(plug_ins=lambda: ()).providers())))
