"""What other distributions bring: found by the group of its entry point, loaded when its name is
first wanted."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dragoman.errors import SettingsError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["load_plug_in", "plug_ins"]


def plug_ins(group: str) -> Iterable[EntryPoint]:
    """Returns the entry points of a group that installed distributions have."""
    return _list_entry_points(group, tuple(sys.path))


@lru_cache(maxsize=8)
def _list_entry_points(group: str, path: tuple[str, ...]) -> Iterable[EntryPoint]:  # noqa: ARG001 where they are looked for, which takes some 20 ms
    """Returns the installed entry points of a group of plug-ins."""
    # Slow to import, and needed for names that are not built in only.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def load_plug_in(group: str, name: str, noun: str) -> Any:
    """Loads a plug-in: the object of an entry point: usually a module whose attribute `name` is
    that name. Returns None if no entry point has the name. `noun`: what the object is, for the
    error.

    Raises:
        SettingsError: it cannot be imported, or has another name; the message names the distribution.
    """
    entry = next((entry for entry in plug_ins(group) if entry.name == name), None)
    if entry is None:
        return None
    where = f'{noun} "{name}" of the distribution {entry.dist.name if entry.dist else "?"} ({entry.value})'
    try:
        plug_in = entry.load()
    except (Exception, SystemExit) as error:
        raise SettingsError(
            f"{where} cannot be loaded: {type(error).__name__}: {error}; update or uninstall that distribution"
        ) from error
    if getattr(plug_in, "name", None) != name:
        raise SettingsError(f"{where} must have this name as its attribute `name`")
    return plug_in
