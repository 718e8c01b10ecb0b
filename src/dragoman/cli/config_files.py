"""The files in the user's folder of settings: JSON that people may edit, and that commands change.

A file is replaced whole, under a lock, so that a command that is killed leaves the old content and
two commands at once lose nothing. Only the owner can read it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from dragoman.errors import SettingsError
from dragoman.json_bytes import Json

__all__ = ["change_file", "find_config_folder", "read_file", "write_file"]


def find_config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the command line's settings: XDG_CONFIG_HOME/dragoman, or
    ~/.config/dragoman."""
    folder = Path.home() / ".config"
    if config := environment.get("XDG_CONFIG_HOME"):
        folder = Path(config).expanduser()
    return folder / "dragoman"


def read_file(path: Path) -> Json:
    """Returns the JSON object in a file of settings; empty if there is no file.

    Raises:
        SettingsError: it cannot be read, or is no JSON object.
    """
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read {path}: {_reason(error)}") from error
    try:
        content: object = json.loads(text)
    # A deeply nested file exhausts the parser.
    except RecursionError as error:
        raise SettingsError(f"{path} is nested too deeply") from error
    except json.JSONDecodeError as error:
        raise SettingsError(f"{path}, line {error.lineno}: {error.msg}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path}, line 1: it must be an object, in braces")
    return cast("Json", content)


def change_file(
    path: Path, change: Callable[[Json], object], check: Callable[[Path], Json]
) -> None:
    """Changes a file of settings, which is created if there is none.

    Args:
        path: the file.
        change: changes its content in place.
        check: reads the file, and raises for what it must not hold.

    Raises:
        SettingsError: as `check`, or it cannot be written. It is left as it was.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _lock(path.parent):
            content = check(path)
            change(content)
            # A link to a file elsewhere stays a link.
            _replace(path.resolve(), json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {_reason(error)}") from error


def write_file(path: Path, text: str) -> None:
    """Writes a text that the user stores under a name. Only the owner can read the file.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(path.resolve(), text)
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {_reason(error)}") from error


def _replace(path: Path, text: str) -> None:
    """Replaces a settings file by one that only its owner can read, from its first byte on."""
    new_path = path.with_name(f".{path.name}.{os.getpid()}")
    new_path.unlink(missing_ok=True)
    try:
        descriptor = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        new_path.replace(path)
    finally:
        new_path.unlink(missing_ok=True)


@contextmanager
def _lock(folder: Path) -> Generator[None]:
    """Lets one command at a time change the files of a folder. The lock ends with its process."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    return error.strerror or str(error)
