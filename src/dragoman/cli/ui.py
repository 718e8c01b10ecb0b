"""`dragoman ui`: serves agents or a model on this machine, and opens the page in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import Annotated

import typer

from dragoman.cli.serve import READY, serve
from dragoman.cli.terminal import DirectoryOption, echo

__all__ = ["ui"]


def ui(
    context: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE:AGENT]...",
            help="A Python module and the agent in it. Left out: the embedded model.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="A model, such as openai:gpt-4o.",
            show_default=False,
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL",
            envvar="DRAGOMAN_SERVE_STORE",
            help="Where conversations and runs are kept: memory:, sqlite:///FILE, postgresql://….",
        ),
    ] = "memory:",
    opens: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser.")
    ] = True,
    directory: DirectoryOption = None,
) -> int:
    """Talk to your agent in a browser, and see what it did.

    \b
    dragoman ui                       the embedded model: no key, no network
    dragoman ui myagent:agent         your agent with its tools
    dragoman ui -m openai:gpt-4o

    \b
    Only this machine reaches it. For others see dragoman serve. Ctrl-C ends it.
    """
    if opens:
        context.meta[READY] = _open_page
    return serve(context, targets, model, port=port, store=store, directory=directory)


def _open_page(url: str) -> None:
    """Opens the page, where there is a screen."""
    has_screen = sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )
    if not (has_screen and webbrowser.open(url)):
        echo(f"open {url}/ in a browser", err=True)
