"""Completion for shells: `dragoman completion bash`, and what may follow an option."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, MutableMapping
from typing import Annotated, Literal

import typer

from dragoman.cli.terminal import echo

__all__ = [
    "complete_fragment",
    "complete_model",
    "complete_option",
    "complete_template",
    "complete_thread",
    "complete_tool",
    "completion",
    "prepare_completion",
]

VARIABLE = "_DRAGOMAN_COMPLETE"
"""Environment variable by which the scripts ask for completions."""
_MAX_THREADS = 50


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Your shell.")],
) -> None:
    """Print the script by which a shell completes commands, options, models and names.

    \b
    eval "$(dragoman completion bash)"                                        in ~/.bashrc
    eval "$(dragoman completion zsh)"                                         in ~/.zshrc
    dragoman completion fish > ~/.config/fish/completions/dragoman.fish
    """
    from typer._completion_shared import get_completion_script

    # Else bash takes openai:gpt-4o for three words.
    before = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}\n" if shell == "bash" else ""
    echo(before + get_completion_script(prog_name="dragoman", complete_var=VARIABLE, shell=shell))


def prepare_completion(environment: MutableMapping[str, str] = os.environ) -> None:
    """Lets a command line that a script asks about be completed, if one asks. Options without a
    command are those of `chat`."""
    if VARIABLE not in environment:
        return
    from typer._completion_classes import completion_init

    completion_init()
    for name in ("COMP_WORDS", "_TYPER_COMPLETE_ARGS"):
        program, space, following = _split_program(environment.get(name, ""))
        if following.startswith("-"):
            environment[name] = f"{program}{space}chat{space}{following}"
            environment["COMP_CWORD"] = str(int(environment.get("COMP_CWORD", "1")) + 1)


def _split_program(line: str) -> tuple[str, str, str]:
    """Returns the first word of a command line, what follows it, and the rest."""
    match = re.match(r"(\S*)(\s*)(.*)", line, re.DOTALL)
    assert match is not None
    return match[1], match[2], match[3]


def complete_thread(incomplete: str) -> list[str]:
    """Returns the names of stored conversations that begin so, the latest first."""
    import asyncio

    from dragoman.cli.threads import find_store_file, open_memory

    async def list_names() -> list[str]:
        async with open_memory(os.environ.get("DRAGOMAN_STORE")) as memory:
            return [thread.id for thread in (await memory.threads(per_page=_MAX_THREADS)).items]

    if not find_store_file().exists():
        return []
    return _keep(incomplete, asyncio.run(list_names()))


def complete_template(incomplete: str) -> list[str]:
    """Returns the names of stored templates that begin so."""
    from dragoman.cli.templates import list_template_files

    return _keep(incomplete, [path.stem for path in list_template_files()])


def complete_fragment(incomplete: str) -> list[str]:
    """Returns the names of stored texts that begin so."""
    from dragoman.cli.fragments import list_fragments

    return _keep(incomplete, [path.name for path in list_fragments()])


def complete_tool(incomplete: str) -> list[str]:
    """Returns the names of the plug-ins' tools that begin so."""
    from dragoman.cli.plugins import load_plugins

    tools = [tool for _, plugin in load_plugins() for tool in plugin.tools]
    return _keep(incomplete, [getattr(tool, "name", None) or tool.__name__ for tool in tools])


def complete_option(incomplete: str) -> list[str]:
    """Returns the names of settings that begin so."""
    from dragoman.request import Settings

    return _keep(incomplete, Settings.__struct_fields__)


def complete_model(incomplete: str) -> list[str]:
    """Returns the model strings that begin so: aliases, and providers with their default models.
    Nobody is asked."""
    from dragoman.cli.settings import load_settings
    from dragoman.providers.registry import BUILT_IN, REGISTRY

    # Records are loaded one by one, since all of them take long.
    if ":" not in incomplete:
        return _keep(incomplete, [*load_settings().aliases, *BUILT_IN])
    provider = REGISTRY.find(incomplete.partition(":")[0])
    if provider is None or not provider.chat_model:
        return []
    return _keep(incomplete, [f"{provider.name}:{provider.chat_model}"])


def _keep(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
