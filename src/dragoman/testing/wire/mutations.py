"""Checks of a wire with malformed input: some hundred mutations of its own output, the same in each
run."""

from __future__ import annotations

from random import Random

from dragoman import wires
from dragoman.testing.check import CheckFailed
from dragoman.testing.hostile import draw_case, run_case
from dragoman.testing.hostile_seeds import group_by_door, make_seeds
from dragoman.testing.wire.bench import WireBench, wire_check

__all__ = ["mutations_of_answers_raise_nothing", "mutations_of_requests_are_read_or_refused"]

_COUNT = 300
_SHOWN = 600


@wire_check(
    "conversation",
    "request",
    look="load_messages, load_request: what they take for granted; then dump_messages",
)
def mutations_of_requests_are_read_or_refused(bench: WireBench) -> None:
    """Requests, conversations and stored messages with wrong types, missing and reserved fields,
    huge numbers, lone surrogates and deep nesting are read or raise a `DragomanError`. What is read
    can be written by this and another wire, and stored."""
    _try_mutations(bench, "messages", "request", "stored_message")


@wire_check(
    "response",
    "stream",
    "error",
    look="decoder, load_response, load_error: what they take for granted; then encoder",
)
def mutations_of_answers_raise_nothing(bench: WireBench) -> None:
    """Answers, streams and refusals with wrong types, lost, repeated and reordered events, huge
    numbers, lone surrogates and deep nesting raise nothing. They are read or end in a `RunError`,
    and what is read can be written by this and another wire."""
    _try_mutations(bench, "response", "stream", "error")


def _try_mutations(bench: WireBench, *doors: str) -> None:
    """Runs `_COUNT` mutations of the seeds with these doors.

    Raises:
        CheckFailed: a case raised anything but a `DragomanError`.
    """
    seeds = {
        door: door_seeds
        for door, door_seeds in group_by_door(make_seeds(bench.wire)).items()
        if door in doors
    }
    other = wires.get("openai_chat")
    for index in range(_COUNT):
        case = draw_case(Random(index), bench.wire, other, seeds)  # noqa: S311 - the same each time
        try:
            run_case(case)
        # Anything but a `DragomanError` is a bug, whatever it is.
        except Exception as error:
            data = case.data[:_SHOWN].decode(errors="backslashreplace")
            raise CheckFailed(
                f"{type(error).__name__} ({str(error)[:_SHOWN]}) is raised for this {case.door}: {data}"
            ) from error
