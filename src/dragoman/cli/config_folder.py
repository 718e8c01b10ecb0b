"""Where the command line keeps what the user set: templates, and texts with a name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["find_config_folder", "write_private"]


def find_config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the user's settings: XDG_CONFIG_HOME/dragoman, or
    ~/.config/dragoman."""
    folder = Path.home() / ".config"
    if config := environment.get("XDG_CONFIG_HOME"):
        folder = Path(config).expanduser()
    return folder / "dragoman"


def write_private(path: Path, content: bytes) -> None:
    """Writes a file that only the user can read, whole or not at all.

    Raises:
        OSError: it cannot be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Another process must not read half of it.
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with os.fdopen(
            os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb"
        ) as file:
            file.write(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
