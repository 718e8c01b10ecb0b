"""`dragoman providers`, `dragoman models` and `dragoman local pull`.

Each function is a command: typer reads its signature and its docstring. `providers` prints the
records of the registry and `models` asks a provider for its list. A model string needs no
request: what is known of a model comes from its profile, and `--why` adds the source of each
fact. `pull` leaves the download to `local_pull`. Tables and notes are for people; `--json` prints
the same data for programs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, cast

import msgspec
import typer

from dragoman.cli.progress import show_progress
from dragoman.cli.settings import choose_model
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
    from dragoman.providers.capability_table import capability_table
    from dragoman.providers.registry import REGISTRY

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
        str, typer.Argument(help="Default: that of the default model.", show_default=False)
    ] = "",
    base_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Where the provider is.")
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what is known of each model.")
    ] = False,
    why: Annotated[
        bool, typer.Option("--why", help="Show where each fact comes from; implies -v.")
    ] = False,
    json: _Json = False,
) -> None:
    """List the models that a provider offers, as model strings.

    With a model string, show what is known of that model: what it accepts, its limits, and the day
    on which the provider retires it. Nothing is sent for that.

    \b
    dragoman models openrouter
    dragoman models anthropic -v
    dragoman models anthropic:claude-opus-5-5 --why
    dragoman models openai-compatible --base-url http://localhost:8000/v1
    """
    import asyncio

    from dragoman.agent import Agent
    from dragoman.result import ModelInfo

    model = choose_model(provider or None)
    # Without a provider, all models of the default one's are listed.
    if provider and model is not None and ":" in model and base_url is None:
        _show_profile(model, why=why, json=json)
        return

    async def list_models() -> list[ModelInfo]:
        async with Agent[None](model, base_url=base_url) as agent:
            return await agent.list_models()

    infos = asyncio.run(list_models())
    if json:
        echo_json([{"model": info.model, **msgspec.to_builtins(info)} for info in infos])
        return
    for heading in _KINDS:
        named = [info.model for info in infos if _find_heading(info.kinds) == heading]
        if not named:
            continue
        echo(f"{heading.capitalize()}:")
        for model in named:
            echo(f"  {model}")
            if (verbose or why) and heading == "chat":
                _echo_profile(model, why=why, indent=4)


def _show_profile(model: str, *, why: bool, json: bool) -> None:
    """Prints from the catalogue the profile of one model for `dragoman models`."""
    from dragoman import profiles

    if json:
        echo_json({"model": model, **msgspec.to_builtins(profiles.get(model))})
        return
    echo(model)
    _echo_profile(model, why=why, indent=2)


def _echo_profile(model: str, *, why: bool, indent: int) -> None:
    """Writes for the catalogue of models a line for each known field of a model's profile, with its
    source if asked."""
    from dragoman import profiles

    profile = profiles.get(model)
    sources: Mapping[str, str] = profiles.REGISTRY.find_sources(model) if why else {}
    known = {
        name: value for name, value in profile.known().items() if name not in ("on", "sources")
    }
    if not known:
        echo(" " * indent + "nothing is known of it")
    for name, value in known.items():
        reason = f"   # {sources[name]}" if name in sources else ""
        echo(f"{' ' * indent}{name}: {_format_value(value)}{reason}")


def _format_value(value: object) -> str:
    """Returns a profile's value as the catalogue (`dragoman models`) prints it."""
    if value is True or value is False:
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        return ", ".join(map(_format_value, items)) or "none"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, object]", value)
        return ", ".join(f"{name} {_format_value(item)}" for name, item in pairs.items())
    return str(value)


def _find_heading(kinds: tuple[str, ...]) -> str:
    """Returns the heading of a model in the catalogue: its first kind, with images, audio and
    speech under `media`."""
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
    """Download an embedded model (98 MB; for dragoman embed 84 MB) once, and print its path.

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

    with show_progress("fetching the model") as show:

        def report(line: str) -> None:
            show(0, line)
            echo(line, err=True)

        file = local_pull.pull(report, model or DEFAULT)
    echo(file)
    if find_spec("xllamacpp") is None:
        echo(f"note: what runs it is not installed: `{install_command('xllamacpp')}`", err=True)
