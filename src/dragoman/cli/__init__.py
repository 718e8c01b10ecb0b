"""The command line: `main` runs a command and turns errors into a line and an exit code. Commands
import what they need when they run, so that `dragoman --help` is fast."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command line (by default the process's own) and returns its exit code, see
    `terminal.EXIT_CODES`."""
    try:
        return _run_command_line(arguments)
    except KeyboardInterrupt:
        # Before a command began, or after it ended.
        from dragoman.cli.terminal import INTERRUPTED

        return INTERRUPTED


def _run_command_line(arguments: Sequence[str] | None) -> int:
    """Runs a command line and reports errors."""
    import sys

    from typer import TyperException

    from dragoman.cli.app import add_chat, build_command
    from dragoman.cli.completion import prepare_completion
    from dragoman.cli.keys import make_key_reader
    from dragoman.cli.terminal import find_exit_code, report
    from dragoman.errors import DragomanError
    from dragoman.providers.keys import use_stored_keys

    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        # A character that the terminal cannot encode must not end an answer.
        reconfigure(errors="replace")
    prepare_completion()
    try:
        # `serve --processes` needs the arguments for its processes.
        words = add_chat(sys.argv[1:] if arguments is None else arguments)
        with use_stored_keys(make_key_reader()):
            command = build_command(words)
            return command.main(words, prog_name="dragoman", standalone_mode=False, obj=words) or 0
    except (DragomanError, TyperException) as error:
        report(error)
        return find_exit_code(error)
    except OSError as error:
        # For example a full disk. A closed pipe has ended the process before.
        file = f" {error.filename}" if error.filename else ""
        report(DragomanError(f"cannot read or write{file}: {error.strerror or error}"))
        return 1
