"""`dragoman decode`: a recorded response → what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dragoman.cli.files import read_file
from dragoman.cli.terminal import echo_json

if TYPE_CHECKING:
    from dragoman.event import Event

__all__ = ["decode"]


def decode(
    wire: Annotated[
        str, typer.Option("-w", "--wire", metavar="WIRE", help="The format that it is in.")
    ],
    file: Annotated[str, typer.Argument(help="The response's body; - is standard input.")] = "-",
) -> int:
    """Read a recorded response, streamed or whole, and print it as JSON.

    The wires are openai_chat (which most servers speak), openai_responses, anthropic, google, mistral, ollama and cohere,
    and those of plug-ins.

    The JSON holds messages, usage and finish_reason. What is cut or corrupt is printed as far as it can be read, with
    an error beside it; the exit code is 1 then.

    \b
    curl … | tee answer.sse | dragoman decode --wire openai_chat
    dragoman decode --wire anthropic answer.sse
    """
    from dragoman import wires
    from dragoman.cli.failure import report
    from dragoman.event import RunError

    if wire not in wires.names():
        raise typer.BadParameter(f"there are {', '.join(wires.names())}", param_hint="--wire")
    decoder = wires.get(wire).decoder()
    events = [*decoder.feed(read_file(file)), *decoder.close()]
    echo_json(_summary(events))
    errors = [event.error for event in events if isinstance(event, RunError)]
    for error in errors:
        report(error)
    return 1 if errors else 0


def _summary(events: list[Event]) -> dict[str, Any]:
    """A response's events → what there is to say of them, for JSON."""
    from dragoman.event import MessageFinished, RunError
    from dragoman.fold import fold

    messages = fold(events)
    ends = [event for event in events if isinstance(event, MessageFinished)]
    summary: dict[str, Any] = {
        "messages": [msgspec.Raw(message.to_json()) for message in messages],
        "usage": next((end.usage for end in reversed(ends) if end.usage is not None), None),
        "finish_reason": messages[-1].finish_reason if messages else None,
    }
    for event in events:
        if isinstance(event, RunError):
            summary["error"] = {"type": type(event.error).__name__, "message": str(event.error)}
    return summary
