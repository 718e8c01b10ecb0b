"""Checks of a wire by input as nobody means it: some hundred changes of what the wire itself
writes, the same each time."""

from __future__ import annotations

from random import Random

from dragoman import wires
from dragoman.testing.check import CheckFailed
from dragoman.testing.hostile import draw_case, put_through
from dragoman.testing.hostile_seeds import by_door, own_seeds
from dragoman.testing.wire.bench import WireBench, wire_check

__all__ = ["changed_answers_are_never_raised", "changed_requests_are_read_or_refused"]

_COUNT = 300
_SHOWN = 600


@wire_check(
    "conversation",
    "request",
    look="load_messages, load_request: what they take for granted; then dump_messages",
)
def changed_requests_are_read_or_refused(bench: WireBench) -> None:
    """Requests, conversations and stored messages with wrong types, missing and reserved fields,
    huge numbers, halves of characters and deep nesting are read or refused with a `DragomanError`;
    what was read is written, here and on other wires, and stored."""
    _put_through(bench, "messages", "request", "stored_message")


@wire_check(
    "response",
    "stream",
    "error",
    look="decoder, load_response, load_error: what they take for granted; then encoder",
)
def changed_answers_are_never_raised(bench: WireBench) -> None:
    """Answers, streams and refusals with wrong types, events lost, doubled and out of order, huge
    numbers, halves of characters and deep nesting raise nothing: they end in a `RunError`, or are
    read, and what was read is written again, here and on other wires."""
    _put_through(bench, "response", "stream", "error")


def _put_through(bench: WireBench, *doors: str) -> None:
    seeds = {
        door: door_seeds
        for door, door_seeds in by_door(own_seeds(bench.wire)).items()
        if door in doors
    }
    other = wires.get("openai_chat")
    for index in range(_COUNT):
        case = draw_case(Random(index), bench.wire, other, seeds)  # noqa: S311 - the same each time
        try:
            put_through(case)
        except Exception as error:
            data = case.data[:_SHOWN].decode(errors="backslashreplace")
            raise CheckFailed(
                f"{type(error).__name__} ({str(error)[:_SHOWN]}) is raised for this {case.door}: {data}"
            ) from error
