"""Commands for error messages that install what is missing, as they work on this machine."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec

__all__ = ["command_line", "install_command"]


def command_line(arguments: str) -> str:
    """Returns a dragoman command line: `dragoman …` if the shell finds it, otherwise through this
    Python."""
    return f"{'dragoman' if shutil.which('dragoman') else f'{_python()} -m dragoman'} {arguments}"


def install_command(package: str) -> str:
    """Returns the hint how to install: the command that installs a package into this Python, in the
    required version: by its pip, by uv, or, since a virtual environment may have neither, by the
    pip of the Python that made it."""
    wanted = f"'{_find_requirement(package)}'"
    if find_spec("pip") is not None:
        return f"{_python()} -m pip install {wanted}"
    if shutil.which("uv"):
        return f"uv pip install --python {sys.executable} {wanted}"
    return f"python3 -m pip --python {sys.executable} install {wanted}"


def _find_requirement(package: str) -> str:
    """Returns for a hint the package with the version that one of dragoman's extras requires."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("dragoman") or []
    except PackageNotFoundError:  # run from source
        lines = []
    return next(
        (line.partition(";")[0].strip() for line in lines if line.startswith(package)), package
    )


def _python() -> str:
    """Returns this Python as the shell calls it."""
    return "python" if shutil.which("python") == sys.executable else sys.executable
