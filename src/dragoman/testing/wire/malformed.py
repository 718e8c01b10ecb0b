"""Checks of what a wire does with input that is no conversation: it refuses the whole, reports the
messages that it cannot read, and votes for nothing that is not its own."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

from dragoman.codec.serving import Problem
from dragoman.errors import HistoryError
from dragoman.json_bytes import Json
from dragoman.message import Message
from dragoman.request import ModelRequest
from dragoman.testing.check import attempt, require, require_equal
from dragoman.testing.mutation import JsonValue
from dragoman.testing.samples import ANSWER, CONVERSATION, PARTS, simplify_messages
from dragoman.testing.wire.bench import WireBench, find_lists, round_trip_json, to_text, wire_check

__all__ = [
    "bad_payloads_are_refused",
    "problems_name_unreadable_messages",
    "votes_recognize_the_wires_messages",
]


@wire_check("conversation", look="load_messages")
def bad_payloads_are_refused(bench: WireBench) -> None:
    """A payload that is not a conversation of this format raises `HistoryError`. Nothing else is
    ever raised."""
    payload, _ = bench.dump(CONVERSATION)
    bad_payloads: list[JsonValue] = [
        None,
        5,
        "text",
        [5],
        [None],
        {"messages": 5},
        *_corrupt_payload(payload),
    ]
    loaded = [
        attempt(
            lambda bad=bad: bench.wire.load_messages(bad), to_text(bad)[:300], but=(HistoryError,)
        )
        for bad in bad_payloads
    ]
    require(None in loaded, "nothing is refused, not even a number in place of the payload")


@wire_check("conversation", look="load_messages, load_request: problems=")
def problems_name_unreadable_messages(bench: WireBench) -> None:
    """With `problems=`, an unreadable message is left out and noted with its index, and the rest is
    read as usual. A payload that is no conversation at all still raises."""
    payload, _ = bench.dump(CONVERSATION)
    wanted = simplify_messages(bench.wire.load_messages(payload))
    elements = max(find_lists(payload), key=len)
    readers: list[tuple[Any, Any]] = [(payload, bench.wire.load_messages)]
    if bench.has("request"):
        body = round_trip_json(
            bench.wire.dump_request(ModelRequest("m", CONVERSATION)), "dump_request"
        )
        readers.append((body, partial(_load_body, bench)))
    for whole, read in readers:
        for index in range(len(elements) + 1):
            problems: list[Problem] = []
            spoilt = [*elements[:index], 5, *elements[index:]]
            loaded = read(_replace_elements(whole, elements, spoilt), problems=problems)
            require_equal(
                [problem.index for problem in problems],
                [index],
                f"the places of problems, where element {index} is a number,",
            )
            require(problems[0].error, "a problem has no words")
            require_equal(
                simplify_messages(loaded), wanted, f"what is read where element {index} is a number"
            )
        none: list[Problem] = []
        read(whole, problems=none)
        require_equal(none, [], "the problems of a conversation that can be read")
    refused = attempt(
        lambda: bench.wire.load_messages(5, problems=[]), "a number", but=(HistoryError,)
    )
    require(
        refused is None, f"a number in place of the payload is read, with `problems`, as {refused}"
    )


@wire_check("detection", "conversation", look="votes")
def votes_recognize_the_wires_messages(bench: WireBench) -> None:
    """`votes` returns an integer from 0 to 3 for any JSON and raises nothing: at least 1 for each
    message that `dump_messages` wrote, and 0 for values that are not objects."""
    written = [
        bench.dump(messages)[0] for messages in (CONVERSATION, [Message.user(*PARTS), ANSWER])
    ]
    elements = [element for payload in written for element in max(find_lists(payload), key=len)]
    junk: list[JsonValue] = [None, True, 5, "text", [], [{}]]
    values: list[JsonValue] = [*junk, {}, [[]], [None], [5]]
    odd: list[JsonValue] = [
        {},
        {"role": {}},
        {"type": []},
        {"content": [{"type": []}]},
        {"parts": [5]},
    ]
    # Each field of each message with each wrong value.
    odd += [{**element, key: value} for element in elements for key in element for value in values]
    for element in (*elements, *junk, *odd):
        votes = attempt(
            partial(bench.wire.votes, element), f"the votes of {to_text(element)[:300]}"
        )
        require(
            type(votes) is int and 0 <= votes <= 3,
            f"the votes of {to_text(element)[:300]} are {votes!r}",
        )
    for element in elements:
        require(
            bench.wire.votes(element) >= 1,
            f"what dump_messages wrote gets no vote: {to_text(element)[:300]}",
        )
    for element in junk:
        require_equal(bench.wire.votes(element), 0, f"the votes of {element!r}")


def _load_body(bench: WireBench, body: JsonValue, problems: list[Problem]) -> tuple[Message, ...]:
    """Returns the messages of a request body, and notes problems in `problems`."""
    return bench.wire.load_request(body, problems=problems).messages


def _replace_elements(
    payload: JsonValue, elements: list[JsonValue], replacement: list[JsonValue]
) -> JsonValue:
    """Returns the payload, or a body that holds it, with other messages in place of `elements`."""
    if isinstance(payload, list):
        return replacement
    fields = cast("Json", payload)
    return {key: replacement if value == elements else value for key, value in fields.items()}


def _corrupt_payload(payload: JsonValue) -> list[JsonValue]:
    """Returns copies of a payload, each with one entry replaced by a value that cannot be there."""
    spoilt: list[JsonValue] = []
    wrong: list[JsonValue] = [None, 5, "text", [], [5], {"a": 5}]
    if isinstance(payload, list):
        entries = cast("list[Any]", payload)
        for index, entry in enumerate(entries):
            roleless: list[JsonValue] = []
            if isinstance(entry, dict):
                roleless = [{**cast("Json", entry), "role": 5}]
            spoilt += [
                [*entries[:index], bad, *entries[index + 1 :]] for bad in (*wrong, *roleless)
            ]
    elif isinstance(payload, dict):
        fields = cast("Json", payload)
        for key, value in fields.items():
            spoilt += [{**fields, key: bad} for bad in wrong if bad is not None]
            spoilt += [
                {**fields, key: bad} for bad in _corrupt_payload(value) if isinstance(value, list)
            ]
    return spoilt
