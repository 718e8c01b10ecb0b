"""`dragoman plan` and `dragoman decode`: what a conversation or a recorded response in a file
holds. They send nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from dragoman.cli.terminal import echo, echo_json, report
from dragoman.json_bytes import Json

if TYPE_CHECKING:
    from dragoman.event import Event
    from dragoman.history import Plan

__all__ = [
    "decode",
    "plan",
    "read_file",
]


def read_file(file: str) -> bytes:
    """Returns the bytes of a file to plan or decode, or of standard input for `-`.

    Raises:
        typer.BadParameter: the file cannot be read.
    """
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(
            f"cannot read {file}: {error.strerror}", param_hint="FILE"
        ) from error


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
    """Show what a conversation would lose or change with another model or format. Nothing is sent.

    A file has a list of messages, a request body, or one of those per line, in any format that dragoman
    reads.

    \b
    dragoman plan anthropic:claude-sonnet-4-6 chat.json
    dragoman plan langchain --json < chats.jsonl
    """
    from dragoman.errors import HistoryError
    from dragoman.formats import get
    from dragoman.formats.conversion import decode_line, read_jsonl, read_request
    from dragoman.history import plan
    from dragoman.history.target import find_target

    # What is wrong with the command line is said before anything is read.
    find_target(target)
    if source is not None:
        get(source)
    lines = _split_conversations(read_file(file))
    if not lines:
        raise HistoryError("there is no conversation in it")
    for data, line in zip(lines, read_jsonl(lines, format=source), strict=True):
        request = read_request(decode_line(data), line.format, line.messages)
        result = plan(line.messages, target, request=request)
        fields, text = _plan_to_json(result), str(result)
        if len(lines) > 1:
            fields["line"], text = line.number, f"line {line.number}: {text}"
        if json:
            echo_json(fields, indent=0)
        else:
            echo(text)
    return 0


def _split_conversations(data: bytes) -> list[bytes]:
    """Returns the conversations of a file to plan: the whole file if it is one JSON value, else its
    lines."""
    from dragoman import json_bytes

    try:
        json_bytes.decode(data)
    except ValueError:
        return [line for line in data.splitlines() if line.strip()]
    return [data]


def _plan_to_json(result: Plan) -> Json:
    """Returns a plan as JSON for `dragoman plan --json`."""
    return {
        "target": result.target,
        "ok": result.ok,
        "tokens": result.tokens,
        "losses": [{**msgspec.to_builtins(loss), "minor": loss.is_minor} for loss in result.losses],
        "repairs": msgspec.to_builtins(result.repairs),
        "settings": [
            {**msgspec.to_builtins(loss), "minor": loss.is_minor} for loss in result.settings
        ],
    }


def decode(
    wire: Annotated[
        str, typer.Option("-w", "--wire", metavar="WIRE", help="The format that it is in.")
    ],
    file: Annotated[str, typer.Argument(help="The response's body; - is standard input.")] = "-",
) -> int:
    """Decode a recorded response, streamed or whole, and print it as JSON.

    The JSON has messages, usage and finish_reason. A cut or corrupt response is printed as far as it
    can be read, with an error; the exit code is then 1.

    \b
    curl … | tee answer.sse | dragoman decode --wire openai_chat
    dragoman decode --wire anthropic answer.sse

    \b
    Wires: openai_chat (which most servers speak), openai_responses, anthropic, google,
    mistral, ollama, cohere, google_interactions, bedrock_converse; those of plug-ins.
    """
    from dragoman import wires
    from dragoman.event import RunError

    if wire not in wires.names():
        raise typer.BadParameter(f"there are {', '.join(wires.names())}", param_hint="--wire")
    decoder = wires.get(wire).decoder()
    events = [*decoder.feed(read_file(file)), *decoder.close()]
    echo_json(_summarize_events(events))
    errors = [event.error for event in events if isinstance(event, RunError)]
    for error in errors:
        report(error)
    return 1 if errors else 0


def _summarize_events(events: list[Event]) -> Json:
    """Returns messages, usage, finish reason and error of a response's events, as JSON."""
    from dragoman.event import MessageFinished, RunError
    from dragoman.fold import fold

    messages = fold(events)
    ends = [event for event in events if isinstance(event, MessageFinished)]
    summary: Json = {
        # As stored messages, which `Message.from_json` reads.
        "messages": [msgspec.Raw(message.to_json()) for message in messages],
        "usage": next((end.usage for end in reversed(ends) if end.usage is not None), None),
        "finish_reason": messages[-1].finish_reason if messages else None,
    }
    for event in events:
        if isinstance(event, RunError):
            summary["error"] = {"type": type(event.error).__name__, "message": str(event.error)}
    return summary
