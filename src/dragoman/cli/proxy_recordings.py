"""`dragoman proxy list`, `show` and `report`: what is in the recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.proxy import FolderOption
from dragoman.cli.terminal import echo, echo_json

__all__ = ["list_recordings", "report_drift", "show_recording"]

_FOLDER = Path("recordings")
FolderArgument = Annotated[Path, typer.Argument(metavar="[FOLDER]", help="Where they are.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, a line for each.")]


def list_recordings(folder: FolderArgument = _FOLDER, json: JsonOption = False) -> int:
    """List the recordings in a folder."""
    from dragoman.proxy.summary import load_all, summarize

    for recording, exchange in load_all(_check_folder(folder), _tell):
        fields = summarize(recording, exchange)
        if json:
            echo_json(fields, indent=0)
        else:
            line = "{id:<6} {status} {method:<5} {url}  {model}".format_map(fields)
            echo(line.rstrip() + ("  cut" if fields["cut"] else ""))
    return 0


def show_recording(
    id: Annotated[str, typer.Argument(metavar="ID", help="The number of a recording, as listed.")],  # noqa: A002
    folder: FolderOption = _FOLDER,
) -> int:
    """Show one recording as JSON: request, answer, and the messages that the answer decodes to."""
    from dragoman.proxy.recordings import load_recording
    from dragoman.proxy.summary import describe, find_file

    file = find_file(_check_folder(folder), id)
    echo_json(describe(*load_recording(file)))
    return 0


def report_drift(
    folder: FolderArgument = _FOLDER,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            exists=True,
            file_okay=False,
            help="Older recordings: what they have is not reported.",
        ),
    ] = None,
    json: JsonOption = False,
) -> int:
    """Report what providers answered that dragoman does not know.

    Each answer is decoded. Reported are answers that cannot be decoded, types of events and parts, and
    fields that no code of dragoman names: they are kept for the same provider alone (kept), or
    nowhere (dropped). The exit code is 1 if an answer cannot be decoded.
    """
    from dragoman.proxy.drift import DriftReport
    from dragoman.proxy.summary import load_all

    older = DriftReport()
    if baseline is not None:
        older.add_all(load_all(baseline, _tell))
    report = DriftReport()
    report.add_all(load_all(_check_folder(folder), _tell))
    findings = report.list_findings(without=older)
    for finding in findings:
        if json:
            echo_json(finding._asdict(), indent=0)
        else:
            echo(finding)
    if not json:
        echo(report.format_totals(), err=True)
    return 1 if any(finding.kind == "fails" for finding in findings) else 0


def _check_folder(folder: Path) -> Path:
    """Returns a folder of recordings. Raises `BadParameter` if there is none."""
    if not folder.is_dir():
        raise typer.BadParameter(f"there is no folder {folder}", param_hint="FOLDER")
    return folder


def _tell(problem: str) -> None:
    echo(f"left out: {problem}", err=True)
