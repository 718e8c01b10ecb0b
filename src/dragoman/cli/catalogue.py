"""`dragoman providers`, `dragoman models` and `dragoman local pull`."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from dragoman.cli.terminal import echo, echo_json, escape

__all__ = [
    "models",
    "providers",
    "pull",
]

_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
_KINDS = ("chat", "embeddings", "media", "other")
_WIDTH = 110
"""Columns of the table without a terminal."""


def providers(json: _Json = False) -> None:
    """List the providers and what each can do.

    The first column has a provider's name and aliases. The key is an environment variable, in brackets
    if the provider also works without it.

    \b
    dragoman providers
    dragoman providers --json
    """
    from dragoman.providers.registry import REGISTRY
    from dragoman.providers.table import capability_table

    rows = capability_table(REGISTRY.providers())
    # A broken plug-in must not hide the other providers.
    for error in REGISTRY.broken():
        echo(f"warning: {error}", err=True)
    if json:
        echo_json(rows)
        return

    import sys

    from rich.console import Console
    from rich.table import Table

    table = Table(
        "provider", "key, default model", "can", box=None, pad_edge=False, header_style="bold"
    )
    for row in rows:
        key = row.key if row.key_required else f"[{row.key}]"
        means = [means for means in (row.key and key, row.chat_model) if means]
        can = ", ".join(name.replace("_", " ") for name in row.capabilities)
        table.add_row(
            escape("\n".join((row.provider, *row.aliases))), escape("\n".join(means)), can
        )
    Console(markup=False, width=None if sys.stdout.isatty() else _WIDTH).print(table)


def models(
    provider: Annotated[
        str, typer.Argument(help="Default: that of DRAGOMAN_MODEL, else local.", show_default=False)
    ] = "",
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the provider is.")
    ] = None,
    json: _Json = False,
) -> None:
    """List the models that a provider offers, as model strings.

    \b
    dragoman models openrouter
    dragoman models openai-compatible --base-url http://localhost:8000/v1
    """
    import asyncio

    from dragoman.agent import Agent
    from dragoman.result import ModelInfo

    async def list_models() -> list[ModelInfo]:
        async with Agent[None](provider or None, base_url=base_url) as agent:
            return await agent.list_models()

    infos = asyncio.run(list_models())
    if json:
        echo_json([{"model": info.model, **msgspec.to_builtins(info)} for info in infos])
        return
    for heading in _KINDS:
        named = [info.model for info in infos if _find_heading(info.kinds) == heading]
        if named:
            echo("\n  ".join([f"{heading.capitalize()}:", *named]))


def _find_heading(kinds: tuple[str, ...]) -> str:
    """Returns the heading of a model in the list: its first kind, with images, audio and speech
    under `media`."""
    first_kind = kinds[0]
    if first_kind in ("image", "audio", "tts"):
        return "media"
    if first_kind in _KINDS:
        return first_kind
    return "other"


def pull(
    model: Annotated[
        str,
        typer.Argument(
            help="all-MiniLM-L6-v2, for dragoman embed; left out, the one that chats.",
            show_default=False,
        ),
    ] = "",
) -> None:
    """Download an embedded model of some 90 MB once, and print its path.

    \b
    dragoman local pull
    dragoman chat "Hello"
    dragoman local pull all-MiniLM-L6-v2
    dragoman embed text "Hello"
    """
    from importlib.util import find_spec

    from dragoman.providers import local_pull
    from dragoman.providers.hints import install_command
    from dragoman.providers.local_models import DEFAULT

    echo(local_pull.pull(lambda line: echo(line, err=True), model or DEFAULT))
    if find_spec("xllamacpp") is None:
        echo(f"note: what runs it is not installed: `{install_command('xllamacpp')}`", err=True)
