"""`converse`: a conversation in a terminal.

Each line is a command (`/model …`) or a prompt. Errors are shown, and the conversation continues.
Ctrl-C has one meaning at a time, set with `Interrupts.to`: it stops the answer, or clears the input
line.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

import typer

from dragoman import providers
from dragoman.cli.ctrl_c import Interrupts
from dragoman.cli.editor import Editor, LineGivenUp
from dragoman.cli.prompt import parse_prompt
from dragoman.cli.screen import find_cost, format_usage, show_notes, show_pending
from dragoman.cli.send_prompt import RunChoices, make_asker, send_and_ask
from dragoman.cli.settings import expand_alias
from dragoman.cli.terminal import echo, report, to_one_line
from dragoman.cli.threads import OpenThread, describe_last_message, open_thread
from dragoman.errors import DragomanError, SettingsError
from dragoman.json_bytes import JsonMap
from dragoman.message import Message
from dragoman.model.resolve_model import ModelString, parse_model_string
from dragoman.providers.keys import find_key
from dragoman.runtime import new_id

if TYPE_CHECKING:
    from dragoman.agent import Agent
    from dragoman.cli.prompt_log import PromptLog
    from dragoman.cli.screen import Screen
    from dragoman.loss import Loss

__all__ = ["COMMANDS", "converse"]

_COMMAND = re.compile(r"(/[a-z]+)(?: +(.*))?")
"""A command: a word after a slash, on one line. `/etc/hosts` and `/ is what?` are prompts."""


class _Conversation:
    """The messages of a conversation, and the model that continues it."""

    def __init__(
        self,
        agent: Agent[None],
        screen: Screen,
        log: PromptLog,
        interrupts: Interrupts,
        begun: OpenThread,
    ) -> None:
        """Creates the terminal's conversation with an agent, before its first prompt."""
        self.agent = agent
        self.screen = screen
        self.log = log
        self.interrupts = interrupts
        self.history: list[Message] = begun.messages
        self.thread_id = begun.id
        self.model = _keep_chat_model(agent.model)
        self.losses: set[Loss] = set()
        self.warm: set[str] = set()
        self.ended = False

    async def send(self, line: str, *, schema: JsonMap | None, verbose: bool) -> None:
        """Sends a prompt of the conversation at the terminal, and asks for what the answer waits
        for. An answer that was stopped or failed stays in the history as far as it was shown. If
        the model said nothing, neither it nor the prompt stays."""
        parts = parse_prompt(line)
        # Only the first answer of a local model waits for its load.
        if self.model not in self.warm:
            self.warm.add(self.model)
            self.screen.warm_up(self.model)
        # The agent's own model string also names the models for embeddings and media.
        model = self.model if self.model != _keep_chat_model(self.agent.model) else None
        asks = make_asker(self.screen, self.interrupts)
        options: RunChoices = {"model": model, "output_schema": schema, "thread_id": self.thread_id}
        try:
            results = await send_and_ask(
                self.agent, parts, self.screen.show, self.interrupts, self.history, asks, **options
            )
        finally:
            self.screen.finish()
            await self.log.write(self.thread_id, self.history)
        show_pending(
            results[-1].pending, "it is left; your next prompt tells the model that it was not run"
        )
        for result in results:
            show_notes(result, self.losses)
            self.losses.update(result.losses)
            if verbose:
                echo(format_usage(result.usage, find_cost([result])), err=True)


def converse(
    agent: Agent[None],
    screen: Screen,
    log: PromptLog,
    *,
    thread: str | None = None,
    schema: JsonMap | None = None,
    verbose: bool = False,
) -> int:
    """Reads prompts and answers them until Ctrl-D. Ctrl-C stops an answer, or clears the line.

    `thread`: which stored conversation to continue; `None` is the last one.
    """
    asyncio.run(
        _run_conversation(agent, screen, log, thread=thread, schema=schema, verbose=verbose)
    )
    return 0


async def _run_conversation(
    agent: Agent[None],
    screen: Screen,
    log: PromptLog,
    *,
    thread: str | None,
    schema: JsonMap | None,
    verbose: bool,
) -> None:
    """Runs the conversation in an event loop."""
    task = asyncio.current_task()
    assert task is not None
    async with agent, open_thread(agent, thread) as begun:
        with Interrupts() as interrupts:
            talk, editor = _Conversation(agent, screen, log, interrupts, begun), Editor(interrupts)
            if begun.messages:
                echo(f"{to_one_line(begun.id)} goes on; {describe_last_message(begun.messages)}")
                show_pending(
                    agent.pending(begun.messages),
                    "it waits; your next prompt tells the model that it was not run",
                )
            echo(
                f"{talk.model} · Alt+Enter begins another line, /help lists what else there is, Ctrl-D ends"
            )
            while not talk.ended:
                try:
                    line = (await editor.read()).strip()
                    if command := _COMMAND.fullmatch(line):
                        _run_command(talk, command[1], command[2] or "")
                    elif line:
                        if line.startswith("//"):
                            line = line.removeprefix("/")
                        with interrupts.to(task.cancel):
                            await talk.send(line, schema=schema, verbose=verbose)
                except EOFError:
                    break
                except LineGivenUp:
                    continue
                except asyncio.CancelledError:
                    # Ctrl-C cancelled only this prompt, not the conversation.
                    task.uncancel()
                except (DragomanError, typer.BadParameter) as error:
                    report(error)


def _keep_chat_model(model: str) -> str:
    """Returns a model string without its models for embeddings and media."""
    string = parse_model_string(model)
    return str(ModelString(string.provider, string.chat))


def _run_command(talk: _Conversation, name: str, argument: str) -> None:
    """Runs a slash command of the terminal conversation, such as `/model`.

    Raises:
        BadParameter: there is no such command.
    """
    if name not in COMMANDS:
        raise typer.BadParameter(
            f"there is no {name}; there are {', '.join(COMMANDS)}, and //… sends a prompt that begins with a slash",
            param_hint="command",
        )
    COMMANDS[name][1](talk, argument.strip())


def _print_help(_talk: _Conversation, _: str) -> None:
    """Prints the commands and keys of the terminal conversation."""
    for name, (what, _run) in COMMANDS.items():
        echo(f"{name:<8} {what}")
    echo(
        "@path in a prompt attaches a file; // at its beginning is a slash.\n"
        "Enter sends. Alt+Enter, or Enter behind a \\, begins another line; what is pasted is one prompt.\n"
        "The arrow keys bring back earlier prompts, Ctrl-R finds them, Ctrl-X Ctrl-E opens your editor.\n"
        "Ctrl-C stops an answer and keeps what came of it, Ctrl-D ends."
    )


def _start_anew(talk: _Conversation, _: str) -> None:
    """Starts a new conversation, under a new name if it is stored."""
    talk.history.clear()
    talk.thread_id = new_id()
    note = "" if talk.agent.memory is None else f", and is kept as {talk.thread_id}"
    echo(f"the conversation begins anew{note}")


def _switch_model(talk: _Conversation, name: str) -> None:
    """Switches the model of the conversation at the terminal, and prints the current one."""
    if name:
        talk.model = _resolve_model(name, parse_model_string(talk.model).provider)
    echo(talk.model)


def _resolve_model(name: str, current: str) -> str:
    """Returns the model string that `/model NAME` means in a conversation at the terminal: a full
    model string, or a model of the current provider.

    Raises:
        AuthenticationError: the provider needs a key, and there is none.
    """
    name = expand_alias(name) or name
    try:
        string = parse_model_string(name)
        provider = providers.get(string.provider)
    except SettingsError:
        # Not a model string: a name of the current provider, which may have colons and slashes.
        return str(ModelString(current, name))
    find_key(provider)
    return str(ModelString(string.provider, string.chat or provider.chat_model))


def _end_conversation(talk: _Conversation, _: str) -> None:
    talk.ended = True


COMMANDS: Mapping[str, tuple[str, Callable[[_Conversation, str], None]]] = MappingProxyType(
    {
        "/help": ("this list", _print_help),
        "/clear": ("forget what was said", _start_anew),
        "/model": (
            "NAME or PROVIDER:NAME: go on with another model; alone: which one it is",
            _switch_model,
        ),
        "/quit": ("end", _end_conversation),
    }
)
"""Each command with its description and function."""
