"""The keys of `dragoman serve`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import SettingsError

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

    keys = [Key(each) for each in given]
    if file is not None:
        keys += _read(file)
    return keys or None


def _read(file: Path) -> list[Key]:
    from dragoman.serve.callers import Key

    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise SettingsError(f"the keys in {file} cannot be read: {reason}") from None
    keys: list[Key] = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            keys.append(Key(words[0], "".join(words[1:2]), words[2:] or None))
        except SettingsError as error:
            raise SettingsError(f"{file}, line {number}: {error}") from None
    if not keys:
        raise SettingsError(f"{file} has no key; write one on a line")
    return keys
