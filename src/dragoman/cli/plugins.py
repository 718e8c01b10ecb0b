"""Plug-ins of the command line: what other distributions add to it, and `dragoman plugins`.

A distribution has an entry point of the group `dragoman.plugins` that leads to a `Plugin`. It is
imported when something of it is wanted: a tool by name, `PREFIX:…` of a template or fragment, or
its commands, which are those of `dragoman NAME`. Providers, wires and formats have groups of their
own and are loaded in the same way.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from dragoman.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from dragoman.message import Content
    from dragoman.tools import Tool

__all__ = [
    "PLUGINS",
    "Plugin",
    "find_command_group",
    "list_plugin_names",
    "load_by_prefix",
    "load_plugins",
]

ENTRY_POINTS = "dragoman.plugins"
"""Group of the entry points by which a distribution adds to the command line."""
_GROUPS = (ENTRY_POINTS, "dragoman.providers", "dragoman.wires", "dragoman.formats")
VARIABLE = "DRAGOMAN_LOAD_PLUGINS"
"""Environment variable with the plug-ins to load, by name or distribution, separated by commas.
Empty: none."""
_Loaders = Literal["template_loaders", "fragment_loaders"]


class Plugin(NamedTuple):
    """What a distribution adds to the command line."""

    tools: Sequence[Tool | Callable[..., Any]] = ()
    """Tools for `-T NAME`: `Tool`s, or functions that become some."""
    template_loaders: Mapping[str, Callable[[str], str]] = {}
    """Prefix → function that returns the TOML of a template by what follows the colon."""
    fragment_loaders: Mapping[str, Callable[[str], Iterable[str | Content]]] = {}
    """Prefix → function that returns texts or files by what follows the colon."""
    commands: typer.Typer | None = None
    """Commands of `dragoman NAME`, where NAME is the entry point's."""


def _list_entry_points(groups: Sequence[str] = (ENTRY_POINTS,)) -> list[EntryPoint]:
    """Returns the entry points of plug-ins that the environment lets in, by group and name."""
    from importlib.metadata import entry_points

    # An empty variable chooses none.
    chosen = os.environ.get(VARIABLE)
    wanted = None if chosen is None else {name.strip() for name in chosen.split(",")}
    return [
        entry
        for group in groups
        for entry in sorted(entry_points(group=group))
        if wanted is None or {entry.name, _find_distribution(entry)} & wanted
    ]


def _find_distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "?"


def list_plugin_names() -> list[str]:
    """Returns the names of all plug-ins. None is loaded."""
    return [entry.name for entry in _list_entry_points()]


def load_plugins(name: str | None = None) -> Iterator[tuple[str, Plugin]]:
    """Yields all plug-ins with their names, or those with one name. A plug-in that cannot be loaded
    is reported on standard error and left out."""
    for entry in _list_entry_points():
        if name in (None, entry.name):
            plugin = _load_entry(entry)
            if isinstance(plugin, Plugin):
                yield entry.name, plugin
            else:
                echo(f"warning: {plugin}", err=True)


def _load_entry(entry: EntryPoint) -> Plugin | str:
    """Returns a plug-in, or the reason why it cannot be loaded."""
    where = f"plug-in {entry.name!r} of {_find_distribution(entry)} ({entry.value})"
    try:
        plugin = entry.load()
    # A module may run anything when it is imported, and even exit.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return f"{where} cannot be loaded: {type(error).__name__}: {error}"
    if isinstance(plugin, Plugin):
        return plugin
    return f"{where} is no dragoman.cli.plugins.Plugin, but {type(plugin).__name__}"


def load_by_prefix(loaders: _Loaders, source: str, option: str) -> Any:
    """Returns what the plug-in that has the prefix of `source` loads for it.

    Args:
        loaders: the plug-in's loaders to look in.
        source: `PREFIX:` and what follows.
        option: the option that named it, for errors.

    Raises:
        BadParameter: no plug-in has the prefix, or the plug-in fails.
    """
    # Of two plug-ins with one prefix the first counts.
    prefix, _, argument = source.partition(":")
    by_prefix: dict[str, Callable[[str], Any]] = {}
    for _, plugin in load_plugins():
        by_prefix = {**getattr(plugin, loaders), **by_prefix}
    if prefix not in by_prefix:
        names = ", ".join(sorted(by_prefix)) or "none"
        raise typer.BadParameter(
            f"there is no file {source!r}, and no plug-in loads {prefix!r} (they load {names})",
            param_hint=option,
        )
    try:
        return by_prefix[prefix](argument)
    # Somebody else's code may raise anything.
    except Exception as error:
        raise typer.BadParameter(
            f"{source}: {type(error).__name__}: {error}", param_hint=option
        ) from error


def find_command_group(name: str) -> typer.Typer | None:
    """Returns the commands of the plug-in that has a name, or None."""
    if not name.replace("-", "_").isidentifier() or name not in list_plugin_names():
        return None
    return next((plugin.commands for _, plugin in load_plugins(name)), None)


PLUGINS = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What other packages add to dragoman."
)


@PLUGINS.command(name="list")
def list_plugins(
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the installed plug-ins and what each adds.

    \b
    DRAGOMAN_LOAD_PLUGINS=                      load none
    DRAGOMAN_LOAD_PLUGINS=name,other-package    load these

    \b
    A plug-in that cannot be loaded is reported, and the others are used.
    """
    rows = [
        {
            "name": entry.name,
            "package": _find_distribution(entry),
            "version": entry.dist.version if entry.dist else "?",
            "adds": _describe(entry),
        }
        for entry in _list_entry_points(_GROUPS)
    ]
    if json:
        echo_json(rows)
        return
    for row in rows:
        echo(f"{row['name']} ({row['package']} {row['version']}): {', '.join(row['adds'])}")


def _describe(entry: EntryPoint) -> list[str]:
    """Returns what an entry point adds, or why it cannot be loaded."""
    if entry.group != ENTRY_POINTS:
        return [entry.group.removeprefix("dragoman.").removesuffix("s")]
    plugin = _load_entry(entry)
    if isinstance(plugin, str):
        echo(f"warning: {plugin}", err=True)
        return ["cannot be loaded"]
    adds = [f"tool {getattr(tool, 'name', None) or tool.__name__}" for tool in plugin.tools]
    adds += [f"templates {prefix}:" for prefix in plugin.template_loaders]
    adds += [f"fragments {prefix}:" for prefix in plugin.fragment_loaders]
    return adds + [f"commands dragoman {entry.name}"] * (plugin.commands is not None)
