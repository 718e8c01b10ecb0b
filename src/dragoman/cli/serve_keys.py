"""The keys of `dragoman serve`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.serve.callers import Key

__all__ = ["keys_of"]


def keys_of(given: Iterable[str], file: Path | None) -> list[Key] | None:
    """The keys of a command line and of a file; `None`: there are none.

    A line of the file is a key, a name for logs where it has one, and the models that its clients may ask for; without such, all. What
    begins with `#` is skipped.

    Raises:
        SettingsError: a key can be guessed, or the file cannot be read or has none.
    """
    from dragoman.serve.callers import Key
    from dragoman.serve.key_files import read_keys

    keys = [Key(each) for each in given] + ([] if file is None else read_keys(file))
    return keys or None
