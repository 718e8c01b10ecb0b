"""What each provider can do, as a table: the source of `docs/capabilities.md`, written by

python -m dragoman.providers.table > docs/capabilities.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import msgspec

from dragoman.capability import Capability
from dragoman.providers.provider import Provider
from dragoman.providers.registry import Registry

__all__ = ["Row", "capability_table", "markdown"]


class Row(msgspec.Struct, frozen=True):
    """A provider, in words and flags."""

    provider: str
    display_name: str
    aliases: tuple[str, ...]
    key: str | None
    """Environment variable that holds the key; `None`: no key."""
    key_required: bool
    base_url: str | None
    """`None`: the user gives it, or it is known when the model runs."""
    chat_model: str | None
    """Default model."""
    embeddings_model: str | None
    capabilities: tuple[Capability, ...]
    """In the order of `Capability`."""


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
        )
        for provider in providers
    ]


def markdown(rows: Sequence[Row]) -> str:
    """The two tables of `docs/capabilities.md`: where the providers are, and what they can do."""
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
