"""Keys of clients from a file or a variable of the environment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dragoman.errors import SettingsError
from dragoman.logs import logger
from dragoman.serve.http.callers import Key

__all__ = ["keys_in", "read_keys"]

_LOG = logger("serve")
_MOST_BYTES = 1024 * 1024


def read_keys(path: Path | str) -> list[Key]:
    """The keys of a file, as `keys_in` reads them. Where other users of this machine may read it, a warning says so.

    Raises:
        SettingsError: it cannot be read, or holds no keys.
    """
    try:
        with Path(path).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise SettingsError(
            f"the keys in {path} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path} is no text in UTF-8, as a file of keys must be") from error
    if len(data) > _MOST_BYTES:
        raise SettingsError(
            f"{path} has more than {_MOST_BYTES} bytes; a file of keys has a line for each"
        )
    if os.name == "posix" and stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        _LOG.warning("%s holds keys, and other users of this machine may read it: chmod 600", path)
    return keys_in(text, where=str(path))


def keys_in(text: str, *, where: str) -> list[Key]:
    """A key on each line: the secret; behind it, if wanted, a name for logs, and then the models that it may name, `*` for any
    characters. Empty lines, and those that begin with `#`, are none. `where`: what the text is, for errors, which never show a secret.

    Raises:
        SettingsError: there is none, or one can be guessed.
    """
    keys: list[Key] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        secret, name, *models = (
            [*words, ""] if len(words) == 1 else words
        )  # the name may be left out
        try:
            keys.append(Key(secret, name, models=tuple(models) or None))
        except SettingsError as error:
            raise SettingsError(f"{where}, line {number}: {error.message}") from error
    if not keys:
        raise SettingsError(f"{where} has no key; write one on a line of its own")
    return keys
