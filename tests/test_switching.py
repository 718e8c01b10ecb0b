"""A conversation that began with one provider goes on with any other: valid there, whole, and back again."""

from __future__ import annotations

import json
from itertools import permutations, product
from typing import Any

import msgspec
import pytest

from dragoman import wires
from dragoman.digest import chain
from dragoman.ids import STANDARD
from dragoman.message import Message, Role, ToolCallPart, ToolResultPart
from dragoman.repair import repair
from dragoman.replay import Loss
from histories import NEUTRAL, native
from rules import problems
from support_facts import facts, unexplained
from support_switching import FOLDERS, PROVIDERS, TARGETS, answered, recorded, sealed, sent, source

PAIRS = list(permutations(TARGETS, 2))


def hop(messages: list[Message], wire: str) -> tuple[list[Message], list[Message], list[Loss]]:
    """A conversation as it is sent to a wire's provider, as it is read from that, and what was told to be lost."""
    losses: list[Loss] = []
    before = repair(messages)
    dump = wires.get(wire).dump_messages
    payload = dump(before, target=TARGETS[wire], quirks=PROVIDERS[wire].quirks, losses=losses)
    payload = json.loads(msgspec.json.encode(payload))
    return before, wires.get(wire).load_messages(payload, origin=TARGETS[wire]), losses


def conversations(wire: str) -> dict[str, list[Message]]:
    """Conversations as a wire holds them: the neutral ones sent there and read again, and its own."""
    told = {name: answered(hop(messages, wire)[1]) for name, messages in NEUTRAL.items()}
    own = {f"its own {n}": messages for n, messages in enumerate(native(wire, source(wire)))}
    return told | own


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NEUTRAL)
def test_every_conversation_is_valid_for_every_target(name: str, target: str) -> None:
    assert problems(target, sent(target, NEUTRAL[name])) == []


@pytest.mark.parametrize(("first", "then"), list(product(TARGETS, TARGETS)))
def test_what_one_provider_held_is_valid_for_every_other(first: str, then: str) -> None:
    for name, messages in conversations(first).items():
        body = sent(then, messages)
        assert problems(then, body) == [], name
        if first != then:
            assert "Secret" not in json.dumps(body), f"thinking, {name}"


@pytest.mark.parametrize("target", TARGETS)
def test_what_was_recorded_is_valid_for_every_other(target: str) -> None:
    """Of the target's own wire only what its own provider was sent: other vendors' fields are theirs."""
    seen = 0
    for wire in FOLDERS:
        for name, messages in recorded(wire):
            if wire == target and not name.startswith(FOLDERS[wire][0] + "/"):
                continue
            body = sent(target, messages)
            assert problems(target, body) == [], name
            text = json.dumps(body, ensure_ascii=False)
            assert [seal for seal in sealed(messages) if seal in text] == [], name
            seen += 1
    assert seen > 2000


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_what_is_lost_is_told_and_what_is_told_is_lost(first: str, then: str) -> None:
    """There and back, through the wires alone: each step tells exactly what the next format does not hold."""
    for name, messages in conversations(first).items():
        before, there, losses = hop(messages, then)
        assert unexplained(before, there, losses) == [], name
        again, back, more = hop(there, first)
        assert unexplained(again, back, more) == [], name
        if not losses and not more:
            assert [fact for *_, fact in facts(back)] == [fact for *_, fact in facts(before)], name


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_text_calls_and_results_are_never_lost(first: str, then: str) -> None:
    before, there, _ = hop(NEUTRAL["parallel calls"] + NEUTRAL["call after text"], then)
    _, back, _ = hop(there, first)
    said = ("text", "call", "result")
    bridge = ("text", "model", "OK")
    assert [f for *_, f in facts(back) if f[0] in said and f != bridge] == [f for *_, f in facts(before) if f[0] in said]


@pytest.mark.parametrize("wire", TARGETS)
def test_ids_of_calls_stay_where_the_target_takes_them(wire: str) -> None:
    """Only Mistral wants other ids than the rest; ids that a wire does not tell belong to the same calls still."""
    _, there, _ = hop(NEUTRAL["parallel calls"], wire)
    ids = [piece.id for message in there for piece in message.content if isinstance(piece, ToolCallPart)]
    answers = [piece.id for message in there for piece in message.content if isinstance(piece, ToolResultPart)]
    assert ids == answers
    assert ids == ["c1", "c2", "c3"] or (wire == "mistral" and all(len(id_) == 9 for id_ in ids))


def signed(wire: str) -> list[Message]:
    """A wire's own conversation, each of the model's messages bound to what stands before it, as a run binds it."""
    messages: list[Message] = []
    for message in native(wire, TARGETS[wire])[0]:
        if message.role is Role.MODEL and message.origin is not None:
            origin = msgspec.structs.replace(message.origin, prefix=chain(messages)[-1])
            message = message.replace(origin=origin)
        messages.append(message)
    return messages


def inner(payload: Any) -> list[Any]:
    """The messages of a payload."""
    return payload if isinstance(payload, list) else payload.get("messages", payload.get("input", payload.get("contents")))


def dumped(wire: str, messages: list[Message], losses: list[Loss] | None = None) -> Any:
    dump = wires.get(wire).dump_messages
    return dump(repair(messages), target=TARGETS[wire], quirks=PROVIDERS[wire].quirks, losses=losses)


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_going_on_with_another_and_back_keeps_what_was_signed_byte_exact_and_in_place(first: str, then: str) -> None:
    own = signed(first)
    alone = inner(dumped(first, own))
    answer = Message.model("Sure.").replace(origin=msgspec.structs.replace(TARGETS[then], prefix=chain(own)[-1]))
    longer = [*own, *([] if own[-1].role is Role.USER else [Message.user("Well?")]), answer, Message.user("Back.")]
    assert [seal for seal in sealed(own) if seal in json.dumps(sent(then, longer))] == []
    back = inner(dumped(first, longer))
    assert back[: len(alone)] == alone
    kept = [seal for seal in sealed(own) if seal in json.dumps(alone)]
    assert kept == [seal for seal in kept if seal in json.dumps(back)]
    assert bool(kept) == (first in SIGNING), "otherwise the test proves nothing"


SIGNING = ("anthropic", "cohere", "google", "openai_responses", "mistral", "openai_chat")
"""The wires whose own conversation holds something signed that goes back."""
