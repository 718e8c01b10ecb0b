"""The command line. What a command needs is imported when it runs, so that `dragoman --help` is
quick."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (default: that of the process) → its exit code. See
    `failure.EXIT_CODES`."""
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        # Before a command began, or after it ended.
        from dragoman.cli.terminal import INTERRUPTED

        return INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    import sys

    from typer import TyperException

    from dragoman.cli.app import app
    from dragoman.cli.terminal import find_exit_code, report
    from dragoman.errors import DragomanError

    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        # A terminal that has no sign for it must not end an answer.
        reconfigure(errors="replace")
    try:
        return app(arguments, prog_name="dragoman", standalone_mode=False) or 0
    except (DragomanError, TyperException) as error:
        report(error)
        return find_exit_code(error)
    except OSError as error:
        # A full disk under what is printed, say; a closed pipe ends the process before.
        report(
            DragomanError(
                f"cannot read or write{f' {error.filename}' if error.filename else ''}: {error.strerror or error}"
            )
        )
        return 1
