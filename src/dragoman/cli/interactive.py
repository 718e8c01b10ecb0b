"""A conversation in a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from dragoman import providers
from dragoman.cli.answer import answer
from dragoman.cli.failure import tell
from dragoman.cli.prompt import prompt_parts
from dragoman.cli.screen import usage_line
from dragoman.errors import DragomanError
from dragoman.message import Message, Role
from dragoman.model.strings import parse_model_string
from dragoman.providers.keys import find_key

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.cli.screen import Screen

__all__ = ["COMMANDS", "converse"]


class _Conversation:
    """What has been said, and the model that goes on with it."""

    def __init__(self, agent: Agent[None], screen: Screen) -> None:
        self.agent = agent
        self.screen = screen
        self.history: list[Message] = []
        self.model = agent.model
        self.warm: set[str] = set()
        self.ended = False

    async def say(self, line: str, *, schema: dict[str, Any] | None, verbose: bool) -> None:
        """Sends a line; a turn that failed, or was stopped before the model spoke, leaves nothing in the history."""
        parts = prompt_parts(line)
        if self.model not in self.warm:
            self.warm.add(self.model)
            self.screen.warm_up(self.model)
        try:
            model = None if self.model == self.agent.model else self.model
            result = await answer(
                self.agent, parts, self.screen.show, history=self.history, model=model, output_schema=schema
            )
        finally:
            self.screen.finish()
        if any(message.role is Role.MODEL for message in result.messages):
            self.history += result.messages
        if verbose:
            typer.echo(usage_line(result.usage), err=True)


def converse(
    agent: Agent[None],
    screen: Screen,
    *,
    schema: dict[str, Any] | None = None,
    verbose: bool = False,
) -> int:
    """Reads lines and answers them until Ctrl-D. Ctrl-C stops an answer, or clears the line."""
    with suppress(ImportError):  # gives `input` a history and keys to edit with; Windows has none
        import_module("readline")
    talk = _Conversation(agent, screen)
    typer.echo(f"{agent.model} · /help lists what else can be typed, Ctrl-D ends")
    with asyncio.Runner() as runner:
        try:
            while not talk.ended:
                try:
                    line = input("> ").strip()
                    if line.startswith("/"):
                        _command(talk, line)
                    elif line:
                        runner.run(talk.say(line, schema=schema, verbose=verbose))
                except EOFError:
                    typer.echo()
                    break
                except KeyboardInterrupt:
                    typer.echo()
                except (DragomanError, typer.BadParameter) as error:
                    tell(error)
        finally:
            runner.run(agent.close())
    return 0


def _command(talk: _Conversation, line: str) -> None:
    name, _, argument = line.partition(" ")
    if name not in COMMANDS:
        raise typer.BadParameter(f"there is no {name}; /help lists what there is", param_hint="command")
    COMMANDS[name][1](talk, argument.strip())


def _help(_talk: _Conversation, _: str) -> None:
    for name, (what, _run) in COMMANDS.items():
        typer.echo(f"{name:<8} {what}")
    typer.echo("@path in a line attaches a file. Ctrl-C stops an answer, Ctrl-D ends.")


def _clear(talk: _Conversation, _: str) -> None:
    talk.history.clear()
    typer.echo("the conversation begins anew")


def _model(talk: _Conversation, name: str) -> None:
    if name:
        find_key(providers.get(parse_model_string(name).provider))
        talk.model = name
    typer.echo(talk.model)


def _quit(talk: _Conversation, _: str) -> None:
    talk.ended = True


COMMANDS: Mapping[str, tuple[str, Callable[[_Conversation, str], None]]] = MappingProxyType(
    {
        "/help": ("this list", _help),
        "/clear": ("forget what was said", _clear),
        "/model": ("NAME: go on with another model; without a name: which one it is", _model),
        "/quit": ("end", _quit),
    }
)
"""What can be typed beside prompts → what it does, in words and in code."""
