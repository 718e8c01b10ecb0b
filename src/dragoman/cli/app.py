"""The commands and what `dragoman --help` says of them."""

from __future__ import annotations

from typing import Annotated

import typer

from dragoman.cli.catalogue import models, providers, pull
from dragoman.cli.chat import chat
from dragoman.cli.convert import convert
from dragoman.cli.embed import create, search, text
from dragoman.cli.mcp import mcp
from dragoman.cli.reading import decode, plan
from dragoman.cli.serve import serve
from dragoman.cli.terminal import echo
from dragoman.cli.threads import delete, export, list_threads, show
from dragoman.cli.threads import search as search_threads

__all__ = ["app"]

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}

app = typer.Typer(
    name="dragoman",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings=_CONTEXT,
    pretty_exceptions_enable=False,
)
_embed = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Texts as vectors, and search by meaning."
)
_local = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The embedded model, which needs no key."
)

_threads = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The conversations of chat --thread."
)

app.command()(chat)
app.command()(providers)
app.command()(models)
app.command()(decode)
app.command()(convert)
app.command()(plan)
app.command()(serve)
app.command()(mcp)
_embed.command()(create)
_embed.command()(search)
_embed.command()(text)
app.add_typer(_embed, name="embed")
_local.command()(pull)
app.add_typer(_local, name="local")
_threads.command(name="list")(list_threads)
_threads.command()(show)
_threads.command()(export)
_threads.command()(delete)
_threads.command(name="search")(search_threads)
app.add_typer(_threads, name="threads")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            echo(f"dragoman {version('dragoman')}")
        except PackageNotFoundError:
            echo("dragoman (from source, not installed)")
        raise typer.Exit


@app.callback()
def dragoman(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """One conversation, every model provider.

    \b
    dragoman chat "Why is the sky blue?"       the embedded model answers: no key, no network
    dragoman chat -m openai:gpt-4o "Hello"     a hosted one; needs OPENAI_API_KEY
    dragoman chat                              a conversation, when started in a terminal
    dragoman chat --thread trip                one that is kept; dragoman chat -c goes on with the last
    dragoman embed create *.md > notes.json    vectors of texts, to be searched with dragoman embed search
    dragoman convert a.jsonl --to anthropic    conversations of any format in another
    dragoman plan google chat.json             what a conversation would lose with another model
    dragoman serve                             the embedded model for the clients of any model API
    dragoman serve myagent:agent               an agent of yours; --gateway FILE: models of providers
    dragoman mcp myagent:agent                 an agent of yours as a server for MCP clients
    dragoman providers                         who can be asked, and what each can do

    \b
    A model is written provider, or provider:model. DRAGOMAN_MODEL holds the usual one.
    Exit codes: 0 ok, 1 failure, 2 usage, 3 settings, 4 the provider refused, 5 network.
    """
