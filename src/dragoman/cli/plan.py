"""`dragoman plan`: what a conversation would lose at a model or a format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dragoman.cli.files import read_file
from dragoman.cli.terminal import echo, echo_json

if TYPE_CHECKING:
    from dragoman.history import Plan

__all__ = ["plan"]


def plan(
    target: Annotated[str, typer.Argument(metavar="MODEL_OR_FORMAT", help="Where it would go.")],
    file: Annotated[
        str, typer.Argument(help="The conversation, or several as JSONL; - is standard input.")
    ] = "-",
    source: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="The format that it is in.")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON, a line for each conversation.")
    ] = False,
) -> int:
    """Say what a conversation would lose or change at a model or a format. Nothing is sent.

    A file holds a list of messages, the body of a request, or one of those on each line, in any format that dragoman reads.

    \b
    dragoman plan anthropic:claude-sonnet-4-6 chat.json
    dragoman plan langchain --json < chats.jsonl
    """
    from dragoman.errors import HistoryError
    from dragoman.formats import get
    from dragoman.formats.conversion import read_jsonl
    from dragoman.history import plan
    from dragoman.history.target import find_target

    find_target(target)  # what is wrong with the command line is said before anything is read
    if source is not None:
        get(source)
    lines = _lines(read_file(file))
    if not lines:
        raise HistoryError("there is no conversation in it")
    for line in read_jsonl(lines, format=source):
        found = plan(line.messages, target)
        if json:
            echo_json(
                {**_fields(found), **({"line": line.number} if len(lines) > 1 else {})}, indent=0
            )
        else:
            echo(f"line {line.number}: {found}" if len(lines) > 1 else str(found))
    return 0


def _lines(data: bytes) -> list[bytes]:
    """The conversations of a file: itself where it is one JSON value, else its lines."""
    from dragoman import json_bytes

    try:
        json_bytes.decode(data)
    except ValueError:
        return [line for line in data.splitlines() if line.strip()]
    return [data]


def _fields(found: Plan) -> dict[str, Any]:
    return {
        "target": found.target,
        "ok": found.ok,
        "tokens": found.tokens,
        "losses": [{**msgspec.to_builtins(loss), "minor": loss.is_minor} for loss in found.losses],
        "repairs": msgspec.to_builtins(found.repairs),
    }
