"""`dragoman convert`: options, progress and summary of a conversion.

`convert_input` reads chunks of conversations, `convert_chunks` converts them in several processes,
and `convert_output` writes them with a note of the progress, from which `--resume` continues.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dragoman.cli.progress import show_progress
from dragoman.cli.terminal import echo
from dragoman.json_bytes import Json

if TYPE_CHECKING:
    from dragoman.cli.convert_chunks import Job, Summary
    from dragoman.message import Origin

__all__ = ["convert"]

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def convert(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE", help="Files to read; - or none is standard input.", show_default=False
        ),
    ] = None,
    source: Annotated[
        str, typer.Option("-f", "--from", metavar="FORMAT", help="The format of the input.")
    ] = "auto",
    to: Annotated[
        str,
        typer.Option(
            "-t",
            "--to",
            metavar="FORMAT",
            help="The format of the output.  [default: that of --model]",
            show_default=False,
        ),
    ] = "",
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="OUT", help="The output; .gz is compressed."),
    ] = "-",
    version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="The version of the output's format, such as v5."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="The model that will read it; other models' signatures are left out.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="The model that wrote it, if the format does not say.",
            show_default=False,
        ),
    ] = None,
    shape: Annotated[
        Literal["auto", "list", "body", "training"],
        typer.Option(
            help="Write lists of messages, bodies with one, or for fine-tuning bodies with messages "
            "and tools alone, without model and settings; auto keeps the shape."
        ),
    ] = "auto",
    answered: Annotated[
        bool,
        typer.Option(
            "--answered", help="Leave out conversations whose last message is not an answer."
        ),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Copy this field of each body, such as id; may be repeated.",
            show_default=False,
        ),
    ] = None,
    errors: Annotated[
        Literal["raise", "skip", "collect"],
        typer.Option(
            help="If a message is unreadable: stop, skip the conversation, or write the rest of it."
        ),
    ] = "raise",
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write losses and problems to a file, as JSON lines."),
    ] = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", min=0, help="Processes; 0 is one for each core.")
    ] = 0,
    max_line: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Most bytes of a conversation, such as 500K or 2G; a larger one is an error.",
        ),
    ] = "64M",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run; needs -o.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", help="Show neither progress nor a summary.")
    ] = False,
) -> int:
    """Convert conversations to another format.

    Files have one conversation per line, or are one JSON document: a conversation or a list of
    conversations. A conversation is a list of messages, or a request body with one. The output has one
    conversation per line, in order. Memory use does not grow with their number.

    \b
    dragoman convert train.jsonl --to anthropic -o claude.jsonl
    dragoman convert chat.json --from langchain --to openai_chat --shape body
    zcat logs.gz | dragoman convert --to google --errors skip --report lost.jsonl > gemini.jsonl
    dragoman convert chats.jsonl -m openai:gpt-4o --shape training --answered -o train.jsonl
    dragoman convert big.jsonl.gz -t sharegpt -o big.sharegpt.jsonl.gz --keep id
    dragoman convert big.jsonl.gz -t sharegpt -o big.sharegpt.jsonl.gz --keep id --resume

    \b
    Formats: openai_chat, openai_responses, anthropic, google, google_interactions,
    mistral, ollama, cohere, bedrock_converse; ag_ui, a2a, ai_sdk; langchain, pydantic_ai, openai_agents,
    ai_sdk_ui, ai_sdk_model, mastra_v1, mastra_v2, sharegpt; dragoman (its own); those of plug-ins.
    Exit codes: 0 all is written, 1 something could not be read, 2 usage, 3 settings,
    130 after Ctrl-C.
    """
    from dragoman.cli.convert_chunks import Job
    from dragoman.cli.convert_input import sum_sizes

    # Without this the command would wait for input without a word.
    if not files and sys.stdin.isatty():
        raise typer.BadParameter("give files, or pipe conversations in", param_hint="FILE")
    paths = files or ["-"]
    target = None
    if model is not None:
        target, wire = _resolve_model(model)
        to = to or wire
    if not to:
        raise typer.BadParameter(
            "give a format, or the model that will read it with -m", param_hint="--to"
        )
    job = Job(
        to=_check_format(to, "--to"),
        source=_check_format(source, "--from") if source != "auto" else None,
        version=version,
        origin=_resolve_model(by)[0] if by is not None else None,
        target=target,
        errors=errors,
        place="body" if keep and shape == "auto" else shape,
        keep=tuple(keep or ()),
        answered=answered,
        reports=report is not None,
        packs=output.endswith(".gz"),
    )
    _check_options(job, paths, output, report, resume=resume)
    try:
        total = sum_sizes(paths)
    except OSError as error:
        raise typer.BadParameter(
            f"cannot read {error.filename}: {error.strerror}", param_hint="FILE"
        ) from error
    return _convert_all(
        job,
        paths,
        output,
        report,
        jobs or _count_cores(),
        total,
        most=_parse_size(max_line),
        resume=resume,
        quiet=quiet,
    )


def _parse_size(size: str) -> int:
    """Returns the bytes of a size in an option of `dragoman convert`, such as `500`, `500K`, `64M`
    or `2G`.

    Raises:
        BadParameter: it is not a size.
    """
    digits, unit = size, ""
    if size[-1:].isalpha():
        digits, unit = size[:-1], size[-1].upper()
    if not (digits.isdecimal() and unit in _UNITS and int(digits)):
        raise typer.BadParameter(
            f"{size!r} is no size; write bytes, or 500K, 64M, 2G", param_hint="--max-line"
        )
    return int(digits) * _UNITS[unit]


def _convert_all(
    job: Job,
    paths: list[str],
    output: str,
    report: str | None,
    jobs: int,
    total: int | None,
    *,
    most: int,
    resume: bool,
    quiet: bool,
) -> int:
    """Converts all conversations and returns the exit code."""
    from contextlib import closing

    import msgspec

    from dragoman.cli.convert_chunks import convert_chunks
    from dragoman.cli.convert_input import read_chunks
    from dragoman.cli.convert_output import ConvertOutput
    from dragoman.errors import HistoryError

    settings: Json = msgspec.json.decode(
        msgspec.json.encode({"job": job, "files": paths, "report": report})
    )
    settings |= settings.pop("job")
    out = ConvertOutput(output, report, settings, resume=resume)
    if resume and out.is_whole:
        _print_note(
            f"nothing to resume: no unfinished run of {output} is noted beside it, so it is whole",
            quiet=quiet,
        )
        return 0
    # Starts after the conversations that the note counts as done.
    read = read_chunks(paths, out.note.behind, most=most)
    try:
        with (
            out,
            show_progress("converting", total, quiet=quiet) as show,
            closing(convert_chunks(job, read, jobs)) as done,
        ):
            for chunk, outcome in done:
                out.add(chunk, outcome)
                show(chunk.size, f"{out.note.summary.conversations:,} conversations")
                if outcome.error is not None:
                    # After `add`: the conversations before it are written.
                    raise HistoryError(f"{outcome.error}; --errors skip or collect goes on")
            out.finish()
    except KeyboardInterrupt:
        go_on = "; the same command with --resume continues" if output != "-" else ""
        _print_note(
            f"interrupted after {out.note.summary.conversations:,} conversations{go_on}",
            quiet=quiet,
        )
        raise
    _print_note(_format_summary(out.note.summary), quiet=quiet)
    return 1 if out.note.summary.unreadable else 0


def _check_options(
    job: Job, paths: list[str], output: str, report: str | None, *, resume: bool
) -> None:
    """Raises `BadParameter` for options of `dragoman convert` that exclude each other."""
    from dragoman.formats.conversion import check_version
    from dragoman.formats.registry import layout

    check_version(job.to, job.version)
    if job.keep and (job.place == "list" or not layout(job.to).fields):
        raise typer.BadParameter(
            f"a list of messages of {job.to} has no such fields", param_hint="--keep"
        )
    if resume and output == "-":
        raise typer.BadParameter("needs an output to go on with; give -o", param_hint="--resume")
    written = [Path(path).resolve() for path in (output, report) if path not in (None, "-")]
    if len(set(written)) < len(written) or {
        Path(path).resolve() for path in paths if path != "-"
    } & set(written):
        raise typer.BadParameter(
            "input, output and report must be different files", param_hint="--output"
        )
    if paths.count("-") > 1:
        raise typer.BadParameter("standard input can be read once", param_hint="FILE")


def _check_format(name: str, option: str) -> str:
    """Returns the format name that an option of `dragoman convert` gives. Raises for an unknown
    one.

    Raises:
        BadParameter: there is no such format.
    """
    from dragoman import formats

    if name not in formats.names():
        raise typer.BadParameter(
            f"no format is named {name!r}; there are {', '.join(formats.names())}",
            param_hint=option,
        )
    return name


def _resolve_model(model: str) -> tuple[Origin, str]:
    """Returns the model that `dragoman convert` is given as an origin, and its wire."""
    from dragoman.message import Origin
    from dragoman.model.resolve_model import parse_model_string
    from dragoman.providers.registry import REGISTRY
    from dragoman.transport.redaction import public_url

    string = parse_model_string(model)
    provider = REGISTRY.get(string.provider)
    base_url = public_url(provider.base_url) if isinstance(provider.base_url, str) else None
    return Origin(provider.name, base_url, string.chat or provider.chat_model), provider.wire


def _count_cores() -> int:
    """Returns the number of cores that this process may use, the default of `dragoman convert
    --jobs`."""
    # A container may allow fewer cores than the machine has. macOS and Windows cannot tell.
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _print_note(text: str, *, quiet: bool) -> None:
    """Prints a line on standard error unless `quiet`."""
    if not quiet:
        echo(text, err=True)


def _format_summary(summary: Summary) -> str:
    """Returns the summary of `dragoman convert`: a line with the numbers of conversations, and a
    table of what was lost."""
    written = summary.conversations - summary.left_out
    parts = [f"{written:,} of {summary.conversations:,} conversations written"]
    if summary.unanswered:
        parts.append(f"{summary.unanswered:,} left out without an answer at the end")
    if summary.unreadable:
        parts.append(f"{summary.unreadable:,} could not be read completely")
    if summary.lossy:
        parts.append(f"{summary.lossy:,} lost something")
    line = "; ".join(parts)
    if not summary.lost:
        return line
    rows = [("lost", "times", "conversations")]
    ranked = sorted(summary.lost.items(), key=lambda entry: (-entry[1][0], entry[0]))
    for what, (pieces, conversations) in ranked:
        rows.append((what, f"{pieces:,}", f"{conversations:,}"))
    width = max(len(row[0]) for row in rows)
    return "\n".join([line, *(f"  {row[0]:<{width}}  {row[1]:>10}  {row[2]:>13}" for row in rows)])
