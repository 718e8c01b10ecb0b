"""The commands of `dragoman`, and the text of `dragoman --help`."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from typer.main import get_command
from typer.models import CommandInfo, TyperInfo

from dragoman.cli.caller_keys import create as create_key
from dragoman.cli.caller_keys import revoke
from dragoman.cli.catalogue import models, providers, pull
from dragoman.cli.chat import chat
from dragoman.cli.chat_options import ChatCommand
from dragoman.cli.completion import completion
from dragoman.cli.convert import convert
from dragoman.cli.embed import create, search, text
from dragoman.cli.fragments import FRAGMENTS
from dragoman.cli.generate import generate
from dragoman.cli.help_words import name_values
from dragoman.cli.keys import KEYS
from dragoman.cli.logs import LOGS
from dragoman.cli.mcp import mcp
from dragoman.cli.memory import index
from dragoman.cli.plan_and_decode import decode, plan
from dragoman.cli.plugins import PLUGINS, find_command_group
from dragoman.cli.proxy import ProxyGroup, proxy
from dragoman.cli.proxy_recordings import list_recordings, report_drift, show_recording
from dragoman.cli.run import run
from dragoman.cli.runs import attach, cancel, list_runs, retry
from dragoman.cli.runs import show as show_run
from dragoman.cli.schema_shorthand import dsl
from dragoman.cli.serve import serve
from dragoman.cli.settings import ALIASES, show_default
from dragoman.cli.template_commands import TEMPLATES
from dragoman.cli.terminal import echo
from dragoman.cli.threads import delete, export, list_threads, show
from dragoman.cli.threads import search as search_threads
from dragoman.cli.tool_choices import TOOLS
from dragoman.cli.ui import ui
from dragoman.cli.usage import usage
from dragoman.cli.worker import worker

__all__ = ["add_chat", "app", "build_command"]

_SLIP = 0.7
"""How alike a word and the name of a command must be for a slip of the keys, from 0 to 1."""
_OPTION_SLIP = 0.8
"""How alike an option and one of the program itself must be for that."""
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

_memory = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="A store of conversations as a whole."
)
_models = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The models of a provider, what is known of one, and the default.",
)
_proxy = typer.Typer(
    cls=ProxyGroup,
    invoke_without_command=True,
    rich_markup_mode=None,
    subcommand_metavar="[COMMAND | -- PROGRAM...]",
)
_runs = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The runs in a log: durable and other ones."
)
_schemas = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="JSON Schemas in short, for --schema."
)
_threads = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="The conversations of chat --thread."
)

app.command(cls=ChatCommand)(chat)
app.command()(generate)
app.command()(providers)
app.command()(decode)
app.command()(convert)
app.command()(plan)
app.command()(serve)
app.command()(ui)
# What follows the program is the program's.
app.command(context_settings={"allow_interspersed_args": False})(run)
app.command()(worker)
app.command()(usage)
app.command()(mcp)
app.command()(completion)
_embed.command()(create)
_embed.command()(search)
_embed.command()(text)
app.add_typer(_embed, name="embed")
_local.command()(pull)
app.add_typer(_local, name="local")
_models.command(name="list")(models)
_models.command(name="default")(show_default)
app.add_typer(_models, name="models")
app.add_typer(ALIASES, name="aliases")
_proxy.callback()(proxy)
_proxy.command(name="list")(list_recordings)
_proxy.command(name="show")(show_recording)
_proxy.command(name="report")(report_drift)
app.add_typer(_proxy, name="proxy")
_runs.command(name="list")(list_runs)
_runs.command()(attach)
_runs.command()(cancel)
_runs.command()(retry)
_runs.command(name="show")(show_run)
app.add_typer(_runs, name="runs")
_threads.command(name="list")(list_threads)
_threads.command()(show)
_threads.command()(export)
_threads.command()(delete)
_threads.command(name="search")(search_threads)
app.add_typer(_threads, name="threads")
_memory.command()(index)
app.add_typer(_memory, name="memory")
app.add_typer(TEMPLATES, name="templates")
app.add_typer(FRAGMENTS, name="fragments")
app.add_typer(TOOLS, name="tools")
_schemas.command()(dsl)
app.add_typer(_schemas, name="schemas")
app.add_typer(PLUGINS, name="plugins")
KEYS.command(name="create")(create_key)
KEYS.command()(revoke)
app.add_typer(KEYS, name="keys")
app.add_typer(LOGS, name="logs")


def _name(registered: CommandInfo | TyperInfo) -> str:
    """Returns the name of a command or of a group of them."""
    return registered.name or getattr(registered.callback, "__name__", "")


_NAMES = (
    *("--help", "-h", "--version"),
    *map(_name, app.registered_commands),
    *map(_name, app.registered_groups),
)
"""What may stand first on a command line."""
_USUAL = dict.fromkeys(
    ("aliases", "keys", "logs", "templates", "fragments", "tools", "plugins"), "list"
)
"""Group → the command that it runs if none is named."""
_OF_MODELS = ("default", "list", "--help", "-h")
"""What may follow `models`, besides a provider."""


def add_chat(words: Sequence[str]) -> list[str]:
    """Returns the words of a command line. One that begins with a prompt, or with an option of
    `chat`, is one of `chat`. A word that is nearly a command is not taken for a prompt. A group
    that lists something does so without a command of its own."""
    first = words[0] if words else "--help"
    if first in _USUAL and not _names_command(words[1:]):
        return [first, _USUAL[first], *words[1:]]
    if first == "models" and (len(words) == 1 or words[1] not in _OF_MODELS):
        return [first, "list", *words[1:]]
    # --thread is no slip of "threads", and --conversation none of --version.
    is_option = first.startswith("-")
    names = [name for name in _NAMES if name.startswith("-") == is_option]
    cutoff = _OPTION_SLIP if is_option else _SLIP
    is_slip = " " not in first and get_close_matches(first, names, cutoff=cutoff) != []
    # A plug-in is loaded only if its own name stands first.
    if first not in _NAMES and (group := find_command_group(first)) is not None:
        app.add_typer(group, name=first)
        return [*words]
    if first in _NAMES or is_slip:
        return [*words]
    return ["chat", *words]


def build_command(words: Sequence[str]) -> Any:
    """Returns the parser of a command line: of all commands, or only of the one that it names, which
    takes a tenth of the time."""
    first = words[0] if words else ""
    part = copy(app)
    part.registered_commands = [each for each in app.registered_commands if _name(each) == first]
    part.registered_groups = [each for each in app.registered_groups if _name(each) == first]
    is_named = part.registered_commands or part.registered_groups
    command = get_command(part if is_named else app)
    name_values(command)
    return command


def _names_command(words: Sequence[str]) -> bool:
    """True if the words after a group begin with a command, or ask for help."""
    return bool(words) and (words[0] in ("--help", "-h") or not words[0].startswith("-"))


def _version(wanted: bool) -> None:
    """Prints the version and ends the command."""
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
    dragoman "Why is the sky blue?"            ask the embedded model: no key, no network
    dragoman chat -m openai:gpt-4o "Hello"     ask a hosted model; needs OPENAI_API_KEY
    dragoman chat                              hold a conversation, in a terminal
    dragoman chat -c "And in winter?"          go on; dragoman logs shows what was asked
    dragoman chat --thread trip                store it under a name
    dragoman generate "a cat" -o cat.png       make an image, a PDF or another file; needs a provider
    dragoman embed create *.md > notes.json    make vectors of texts, for dragoman embed search
    dragoman convert a.jsonl --to anthropic    convert conversations between any formats
    dragoman plan google chat.json             show what a conversation would lose with another model
    dragoman serve                             serve the embedded model to clients of any model API
    dragoman serve myagent:agent               serve your agent; --gateway FILE: models of providers
    dragoman ui myagent:agent                  talk to your agent in a browser, and see what it did
    dragoman run -m openai:gpt-5 claude        run Claude Code, Codex, Gemini CLI … with any model
    dragoman worker myagent:agent --log URL    drive durable runs; dragoman runs list shows them
    dragoman keys create --name ci             make a key for callers of a server, with a budget
    dragoman usage                             show what the callers of a server took
    dragoman mcp myagent:agent                 serve your agent to MCP clients
    dragoman -f notes.md -a a.jpg "Sum up"     text and files before a prompt; -t NAME: a template
    dragoman keys set openai                   store a provider's key, used after the environment
    dragoman proxy -- pytest                   record what a program asks its providers, and replay it
    dragoman providers                         list the providers and what each can do
    dragoman completion bash                   complete commands and names; also for zsh and fish

    \b
    A model is written provider, or provider:model. DRAGOMAN_MODEL holds the default.
    Exit codes: 0 ok, 1 failure, 2 usage, 3 settings, 4 the provider refused, 5 network.
    """
