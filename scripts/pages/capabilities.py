"""`docs/capabilities.md`: where the providers are, what they can do, and how calls of tools
come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman.capability import Capability
from dragoman.providers.capability_table import capability_table
from dragoman.providers.media_plan import list_ways
from dragoman.providers.media_way import MediaWay
from dragoman.providers.provider import Provider
from dragoman.providers.registry import Registry

__all__ = ["RECORDED_MEDIA", "TYPED", "UNSPECIFIC", "markdown"]

RECORDED_MEDIA = {
    ("openai-responses", "image_generation"),
    ("openai-responses", "code_interpreter"),
    ("azure-responses", "image_generation"),
}
"""Provider and way of making media that recorded traffic shows with a file. A test compares them
with it."""
TYPED = {
    "vertex-anthropic",
    "bedrock-anthropic",
    "azure-anthropic",
    "bedrock",
    "fireworks",
    "bedrock-openai",
    "lmstudio",
    "sglang",
}
"""Providers of which there are no recordings: their records follow the vendors' typed clients, servers
and references. A test compares them with the traffic."""
UNSPECIFIC = {"local", "openai-compatible", "a2a", "ag-ui"}
"""Providers that are no vendor's API: nothing of theirs can be recorded."""


def markdown() -> str:
    """The page, of the providers that come with dragoman."""
    providers = Registry(plug_ins=lambda: ()).providers()
    rows = capability_table(providers)
    where = [
        (
            f"`{row.provider}`" + "".join(f", `{alias}`" for alias in row.aliases),
            _code(row.key) + ("" if row.key_required or not row.key else " (optional)"),
            _code(row.base_url),
            _code(row.chat_model),
            _code(row.embeddings_model),
            _source(row.provider),
        )
        for row in rows
    ]
    used = [
        capability
        for capability in Capability
        if any(capability in row.capabilities for row in rows)
    ]
    able = [
        (f"`{row.provider}`", *("✓" if c in row.capabilities else "–" for c in used))
        for row in rows
    ]
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
            "# Provider capabilities",
            "",
            "`make pages` generates this page from the providers' records; tests compare it with them, and",
            "the records with recorded traffic. The table describes a provider's usual models, streamed; a single model may do less.",
            "",
            *_table(
                (
                    "provider, aliases",
                    "key",
                    "base URL",
                    "default model",
                    "for embeddings",
                    "source",
                ),
                where,
            ),
            "",
            "Source: `recorded` is run against recorded traffic of the provider. `typed, not recorded` follows the types of the vendor's client or",
            "server, and has never met a real answer. A base URL that is missing comes from a variable: see [providers](providers.md).",
            "",
            *_table(("provider", *(capability.replace("_", " ") for capability in used)), able),
            "",
            "`images`, `speech` and `transcription` are requests for nothing else, by an endpoint or a chat. There are no recordings of them: they are",
            "written from the vendors' libraries and API references, and have not been run against recorded traffic.",
            "",
            "How tool calls arrive, and what a conversation continues from. An id that a provider does not give is made once, when the",
            "call is first seen. In every form, a call runs when it is complete. `–`: the provider calls no tools by itself (its calls",
            "go through constrained decoding), or it depends on the server.",
            "",
            *_table(("provider", "ids of calls", "arguments in a stream", "goes on from"), calls),
            "",
            "How a provider makes media: see [media](guides/media.md). The first way that makes a type is taken. Where no recording has a",
            "file that was made so, dragoman follows the types of the vendor's SDK, and nothing has been run against the vendor.",
            "",
            *_table(
                ("provider", "way", "model", "makes", "run against a recording"),
                [
                    _media_row(provider, way)
                    for provider in providers
                    for way in list_ways(provider)
                ],
            ),
            "",
        ]
    )


def _media_row(provider: Provider, way: MediaWay) -> tuple[str, ...]:
    model = provider.media_model if way.needs_media_model else provider.chat_model
    if way.endpoint:
        model = provider.image_model
    return (
        f"`{provider.name}`",
        way.mode.replace("_", " "),
        _code(model),
        "any type" if "*/*" in way.makes else ", ".join([f"`{made}`" for made in way.makes]),
        "✓" if (provider.name, way.mode) in RECORDED_MEDIA else "–",
    )


def _source(provider: str) -> str:
    if provider in UNSPECIFIC:
        return "–"
    return "typed, not recorded" if provider in TYPED else "recorded"


def _code(value: str | None) -> str:
    return f"`{value}`" if value else "–"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_line(head), _line(["---"] * len(head)), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
