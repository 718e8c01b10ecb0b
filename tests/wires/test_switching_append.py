"""Append-only (rule 6): what was sent of a conversation is the beginning of what is sent of it when
it goes on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman import wires
from dragoman.codec.digest import compute_prefix
from dragoman.message import (
    DataPart,
    LinkPart,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from dragoman.repair import find_missing_results, repair
from support.switching import PROVIDERS, TARGETS

SIGNED: dict[str, dict[str, Any]] = {
    "anthropic": {"signature": "c2lnbmVk"},
    "openai_responses": {"id": "rs_1", "encrypted_content": "sealed"},
    "google": {"thoughtSignature": "c2lnbmVk"},
    "mistral": {"signature": "signed"},
}
text = st.sampled_from(["a", " b ", "ü\n", "\N{GRINNING FACE}"])
said = st.builds(TextPart, text)
media = st.sampled_from(
    [
        DataPart(b"\x89PNG\r\n", "image/png", "a.png"),
        DataPart(b"%PDF", "application/pdf"),
        LinkPart("https://host.test/a.pdf", "application/pdf"),
        DataPart(b"RIFF", "audio/wav"),
        DataPart(b"x", "video/mp4"),
    ]
)
results = st.sampled_from(["done", None, 1, {"a": [1]}, {"error": "dark"}]) | st.lists(
    said | media, min_size=1, max_size=3
).map(tuple)
names = st.sampled_from(["look", "1st", "a b", "x" * 70])
ids = st.sampled_from(["c1", "c2", "", "x|y", "y" * 70])


@st.composite
def turns(draw: Any) -> list[tuple[str | None, list[Message]]]:
    """Turns of a conversation: who answered (`None`: nobody that is known), and the messages up to
    the next request."""
    out: list[tuple[str | None, list[Message]]] = []
    for _ in range(draw(st.integers(2, 5))):
        wire = draw(st.none() | st.sampled_from(list(TARGETS)))
        thinking = st.builds(
            ThinkingPart, text, st.just({wire: SIGNED[wire]} if wire in SIGNED else None)
        )
        pieces = draw(st.lists(said | thinking | said | media, max_size=3))
        calls = [
            ToolCallPart(draw(ids), draw(names), {"n": n}) for n in range(draw(st.integers(0, 3)))
        ]
        content = [*pieces, *calls, *draw(st.lists(said, max_size=1))]
        answers = [
            ToolResultPart(call.id, call.name, draw(results), draw(st.booleans()))
            for call in draw(st.permutations(calls))
        ]
        asked = (
            draw(st.lists(said | media, max_size=2))
            if answers
            else [draw(said), *draw(st.lists(media, max_size=1))]
        )
        between = [Message.system("Now.")] if draw(st.integers(0, 5)) == 0 else []
        out.append((wire, [Message.model(*content), Message.user(*answers, *asked), *between]))
    return out


def conversation(drawn: list[tuple[str | None, list[Message]]]) -> tuple[list[Message], list[int]]:
    """The messages, those of the model bound to what stands before them, and the lengths at which
    requests were made."""
    messages = [Message.system("Be brief."), Message.user("Begin.")]
    lengths = [len(messages)]
    for wire, turn in drawn:
        if wire is not None:
            origin = msgspec.structs.replace(
                TARGETS[wire], prefix=compute_prefix(repair(messages), "w")
            )
            turn = [turn[0].replace(origin=origin), *turn[1:]]
        messages += turn
        lengths.append(len(messages))
    return messages, lengths


def dumped(wire: str, messages: list[Message], target: Origin | None) -> dict[str, Any]:
    """The payload, its list of messages under one name for all wires."""
    payload = wires.get(wire).dump_messages(
        repair(messages), target=target, quirks=PROVIDERS[wire].quirks
    )
    payload = json.loads(msgspec.json.encode(payload))
    if isinstance(payload, list):
        return {"list": payload}
    (name,) = payload.keys() & {"messages", "contents", "input"}
    if wire == "bedrock_converse":  # messages of one side are joined; the blocks stand in order
        messages = payload.pop(name)
        blocks = [[message["role"], block] for message in messages for block in message["content"]]
        return {"list": blocks, **payload}
    return {"list": payload.pop(name), **payload}


@pytest.mark.parametrize("wire", TARGETS)
@settings(max_examples=60)
@given(drawn=turns())
@pytest.mark.slow
def test_rule_6_the_longer_begins_with_the_shorter(wire: str, drawn: Any) -> None:
    """On every wire, with turns of every provider in between, and without exception: no wire drops
    thinking of earlier turns, and cache marks are the caller's."""
    messages, lengths = conversation(drawn)
    last: dict[str, Any] | None = None
    for length in lengths:
        payload = dumped(wire, messages[:length], TARGETS[wire])
        if last is not None:
            beginning = payload["list"][: len(last["list"])]
            assert {**payload, "list": beginning} == last
        last = payload


@pytest.mark.parametrize("wire", TARGETS)
@settings(max_examples=40)
@given(drawn=turns(), data=st.data())
@pytest.mark.slow
def test_rule_6_decision_15_what_was_made_up_stays_when_real_results_come_late(
    wire: str, drawn: Any, data: Any
) -> None:
    """Results are lost or come late, in any later message; what stands in for them is stored with
    the request that sends it."""
    messages: list[Message] = [Message.user("Begin.")]
    late: list[ToolResultPart] = []
    last: dict[str, Any] | None = None
    for _, (answer, *others) in drawn:
        results = [part for message in others for part in message.tool_results]
        kept = [part for part in results if data.draw(st.booleans())]
        came, late = late, [part for part in results if part not in kept]
        messages += [Message.user("So.", *came)] if came else []
        messages += [answer, *([Message.user(*kept)] if kept else [])]
        made_up, _ = find_missing_results(messages)
        messages += [Message.user(*made_up)] if made_up else []
        messages.append(Message.user("Go on."))
        payload = dumped(wire, messages, TARGETS[wire])
        if last is not None:
            assert payload["list"][: len(last["list"])] == last["list"]
        last = payload


@pytest.mark.parametrize("wire", SIGNED)
@settings(max_examples=40)
@given(drawn=turns())
@pytest.mark.slow
def test_what_was_signed_stays_while_others_answer(wire: str, drawn: Any) -> None:
    """What a provider signed stands in each later request to it as in the first."""
    messages, lengths = conversation(drawn)
    kept = [
        json.dumps(dumped(wire, messages[:length], TARGETS[wire])).count(
            next(iter(reversed(SIGNED[wire].values())))
        )
        for length in lengths
    ]
    told = [
        sum(signed_by(wire, message) for message in repair(messages[:length])) for length in lengths
    ]
    assert kept == told


def signed_by(wire: str, message: Message) -> int:
    if (
        message.role is not Role.MODEL
        or message.origin is None
        or message.origin.provider != TARGETS[wire].provider
    ):
        return 0
    return sum(isinstance(piece, ThinkingPart) and bool(piece.native) for piece in message.content)
