"""Commands that mend what is missing, as they work on this machine and for this installation."""

from __future__ import annotations

import shutil
import sys
from importlib.util import find_spec

__all__ = ["command_line", "install_command"]


def command_line(arguments: str) -> str:
    """A command line of ours: `dragoman …` where the shell finds that, else by this Python."""
    return f"{'dragoman' if shutil.which('dragoman') else f'{_python()} -m dragoman'} {arguments}"


def install_command(package: str) -> str:
    """The command that installs a package, in the version that we need, into this Python: by its
    pip, by uv, or, since a virtual environment may hold neither, by the pip of the Python that it
    was made from."""
    wanted = f"'{_requirement(package)}'"
    if find_spec("pip") is not None:
        return f"{_python()} -m pip install {wanted}"
    if shutil.which("uv"):
        return f"uv pip install --python {sys.executable} {wanted}"
    return f"python3 -m pip --python {sys.executable} install {wanted}"


def _requirement(package: str) -> str:
    """The package with its version, as our distribution requires it in one of its extras."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("dragoman") or []
    except PackageNotFoundError:  # run from source
        lines = []
    return next(
        (line.partition(";")[0].strip() for line in lines if line.startswith(package)), package
    )


def _python() -> str:
    """How the shell calls this Python."""
    return "python" if shutil.which("python") == sys.executable else sys.executable
