"""`python -m dragoman.testing acme`: checks a provider or a wire and prints a report.

Exit codes: 0 if all checks passed, were skipped or were inconclusive, 1 if one failed, 2 if the
command line or the recordings are wrong, 3 if no provider or wire has that name.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import msgspec

from dragoman import providers, testing, wires
from dragoman.errors import DecodeError, SettingsError
from dragoman.json_bytes import Json
from dragoman.providers.provider import Provider
from dragoman.testing.check import BoundCheck
from dragoman.testing.provider.bench import load_player
from dragoman.testing.report import Finding, format_lines, format_table, run_checks

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    try:
        code = _run_command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough. Nothing must be written at the end of the process either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def _run_command(arguments: Sequence[str] | None) -> int:
    """Runs the checks that the arguments name, prints their findings, and returns the exit code."""
    parser = _make_parser()
    options = parser.parse_args(arguments)
    if options.list:
        kinds = (
            testing.PROVIDER_CHECKS,
            testing.WIRE_CHECKS,
            testing.STORE_CHECKS,
            testing.ENGINE_CHECKS,
        )
        print("\n\n".join(map(format_table, kinds)))  # noqa: T201
        return 0
    if options.subject is None:
        parser.error("name a provider or a wire, or ask for --list")
    if options.live and options.recordings is not None:
        parser.error("--recordings is for runs without --live")
    if options.record and not options.live:
        parser.error("--record is for runs with --live")
    try:
        # Missing recordings are wrong usage (2), an unknown provider is not (3).
        if options.recordings is not None:
            load_player(options.recordings)
    except (SettingsError, DecodeError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    try:
        wanted = _select_checks(_make_checks(options), options.only)
    except SettingsError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 3
    seen: list[Finding] = []
    for line in _format_findings(run_checks(wanted, whole=not options.only), seen, options):
        print(line, flush=True)  # noqa: T201
    return int(any(finding.outcome == "failed" for finding in seen))


def _make_parser() -> ArgumentParser:
    """Returns the parser of the command line."""
    parser = ArgumentParser(
        "python -m dragoman.testing",
        description="Checks that a provider, or a wire, does all that dragoman asks of one. Without --live a scripted server\n"
        "stands in for the real one: no key and no network.",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "subject",
        nargs="?",
        help="a provider's name or alias, a wire's name, or MODULE:NAME of a record or a wire",
    )
    parser.add_argument(
        "--live", action="store_true", help="ask the real server, with the key from the environment"
    )
    parser.add_argument("--model", help="in place of the provider's default model")
    parser.add_argument("--base-url", help="in place of the record's")
    parser.add_argument(
        "--record",
        metavar="FOLDER",
        help="with --live: write the exchanges into files that Player plays",
    )
    parser.add_argument(
        "--recordings",
        metavar="FOLDER",
        help="check over such files, in place of the scripted server",
    )
    parser.add_argument(
        "--only",
        metavar="NAME",
        action="append",
        default=[],
        help="this check alone; may be repeated",
    )
    parser.add_argument("--list", action="store_true", help="print what is checked, in Markdown")
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each check")
    return parser


def _make_checks(options: Namespace) -> list[BoundCheck]:
    """Returns the checks that the command line asks for."""
    subject = _load_subject(options.subject)
    if not isinstance(subject, Provider):
        return testing.wire_checks(subject, recordings=options.recordings)
    arguments: Json = {
        "model": options.model,
        "base_url": options.base_url,
        "live": options.live,
    }
    if options.live:
        if options.record:
            # Imported here: only recording needs it.
            from dragoman.transport import AiohttpTransport, Recorder, Retry

            arguments["transport"] = Recorder(
                Retry(AiohttpTransport()), options.record, {"provider": subject.name}
            )
        return testing.provider_checks(subject, **arguments)
    return testing.checks(subject, recordings=options.recordings, **arguments)


def _load_subject(name: str) -> Any:
    """Returns a record or a wire by its name, or by `MODULE:NAME`.

    Raises:
        SettingsError: there is none.
    """
    module, colon, attribute = name.partition(":")
    if colon:
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"{name} cannot be loaded: {error}") from error
    try:
        return providers.get(name)
    except SettingsError as error:
        if name in wires.names("model"):
            return wires.get(name)
        raise SettingsError(
            f"{error}. No wire has this name either; there are {', '.join(wires.names('model'))}"
        ) from error


def _select_checks(checks: list[BoundCheck], only: Sequence[str]) -> list[BoundCheck]:
    """Returns the checks with these names, or all if no name is given.

    Raises:
        SettingsError: a name is unknown.
    """
    names = {check.name for check in checks}
    if unknown := [name for name in only if name not in names]:
        raise SettingsError(
            f"no check is named {', '.join(unknown)}; there are {', '.join(sorted(names))}"
        )
    return [check for check in checks if not only or check.name in only]


def _format_findings(
    findings: Iterator[Finding], seen: list[Finding], options: Namespace
) -> Iterator[str]:
    """Yields findings as lines for a terminal or as JSON, and appends them to `seen`."""

    def noted() -> Iterator[Finding]:
        for finding in findings:
            seen.append(finding)
            yield finding

    if options.json:
        return (msgspec.json.encode(finding).decode() for finding in noted())
    return format_lines(noted())


if __name__ == "__main__":
    sys.exit(main())
