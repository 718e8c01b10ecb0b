"""A conversation that began with one provider goes on with any other: valid there, whole, and back
again."""

from __future__ import annotations

import json
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pages.switching import markdown

from dragoman import wires
from dragoman.codec.digest import compute_prefix
from dragoman.loss import Loss
from dragoman.message import Message, Role, ThinkingPart, ToolCallPart, ToolResultPart
from dragoman.providers.provider import Provider
from dragoman.repair import repair
from support.facts import facts, unexplained
from support.histories import NEUTRAL, native
from support.rules import problems
from support.switching import (
    FOLDERS,
    PROVIDERS,
    TARGETS,
    VENDORS,
    answered,
    recorded,
    sealed,
    sent,
    sent_to,
    source,
)

PAIRS = list(permutations(TARGETS, 2))


def hop(messages: list[Message], wire: str) -> tuple[list[Message], list[Message], list[Loss]]:
    """A conversation as it is sent to a wire's provider, as it is read from that, and what was told
    to be lost."""
    losses: list[Loss] = []
    before = repair(messages)
    dump = wires.get(wire).dump_messages
    payload = dump(before, target=TARGETS[wire], quirks=PROVIDERS[wire].quirks, losses=losses)
    payload = json.loads(msgspec.json.encode(payload))
    return before, wires.get(wire).load_messages(payload, origin=TARGETS[wire]), losses


@cache
def conversations(wire: str) -> dict[str, list[Message]]:
    """Conversations as a wire holds them: the neutral ones sent there and read again, and its
    own."""
    told = {name: answered(hop(messages, wire)[1]) for name, messages in NEUTRAL.items()}
    own = {f"its own {n}": messages for n, messages in enumerate(native(wire, source(wire)))}
    return told | own


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", NEUTRAL)
def test_every_conversation_is_valid_for_every_target(name: str, target: str) -> None:
    assert problems(target, sent(target, NEUTRAL[name])) == []


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_calls_ids_and_names_are_valid_for_every_vendor(vendor: Provider) -> None:
    """What vendors take beyond the wire's own provider is theirs to say; these rules are the same
    for all."""
    own = {
        f"{wire} {n}": talk for wire in TARGETS for n, talk in enumerate(native(wire, source(wire)))
    }
    # Vertex AI names a model of Anthropic's in the path.
    beside = {"model": "m"} if getattr(vendor.quirks, "in_path", False) else {}
    for name, messages in (NEUTRAL | own).items():
        found = problems(vendor.wire, beside | sent_to(vendor, messages))
        assert [
            problem for problem in found if " field" not in problem and ".content" not in problem
        ] == [] or (name == "data of no kind" and vendor.name == "openrouter"), name


@pytest.mark.parametrize(("first", "then"), list(product(TARGETS, TARGETS)))
def test_what_one_provider_held_is_valid_for_every_other(first: str, then: str) -> None:
    for name, messages in conversations(first).items():
        body = sent(then, messages)
        assert problems(then, body) == [], name
        if first != then:
            assert "Secret" not in json.dumps(body), f"thinking, {name}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.slow
def test_what_was_recorded_is_valid_for_every_other(target: str) -> None:
    """Of the target's own wire only what its own provider was sent: other vendors' fields are
    theirs."""
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


def said(messages: list[Message]) -> list[Any]:
    """What messages say, but for the name that OpenAI demands of a file without one."""
    return [fact for *_, fact in facts(messages) if fact[-1] != "file.pdf"]


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_what_is_lost_is_told_and_what_is_told_is_lost(first: str, then: str) -> None:
    """There and back, through the wires alone: each step tells exactly what the next format does
    not hold."""
    for name, messages in conversations(first).items():
        before, there, losses = hop(messages, then)
        assert unexplained(before, there, losses) == [], name
        again, back, more = hop(there, first)
        assert unexplained(again, back, more) == [], name
        if not losses and not more:
            assert said(back) == said(before), name


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_text_calls_and_results_are_never_lost(first: str, then: str) -> None:
    before, there, _ = hop(NEUTRAL["parallel calls"] + NEUTRAL["call after text"], then)
    _, back, _ = hop(there, first)
    said = ("text", "call", "result")
    bridge = ("text", "model", "OK")
    assert in_turns([f for *_, f in facts(back) if f[0] in said and f != bridge]) == in_turns(
        [f for *_, f in facts(before) if f[0] in said]
    )


def in_turns(said: list[Any]) -> list[Any]:
    """What is said, with texts that follow each other joined: some APIs want the sides to take turns,
    others have one text a message."""
    joined: list[Any] = []
    for fact in said:
        if joined and fact[:2] == joined[-1][:2] and fact[0] == "text":
            joined[-1] = (*fact[:2], joined[-1][2] + fact[2])
        else:
            joined.append(fact)
    return joined


@pytest.mark.parametrize("wire", TARGETS)
def test_ids_of_calls_stay_where_the_target_takes_them(wire: str) -> None:
    """Only Mistral wants other ids than the rest; ids that a wire does not tell belong to the same
    calls still."""
    _, there, _ = hop(NEUTRAL["parallel calls"], wire)
    ids = [
        piece.id
        for message in there
        for piece in message.content
        if isinstance(piece, ToolCallPart)
    ]
    answers = [
        piece.id
        for message in there
        for piece in message.content
        if isinstance(piece, ToolResultPart)
    ]
    assert ids == answers
    assert ids == ["c1", "c2", "c3"] or (wire == "mistral" and all(len(id_) == 9 for id_ in ids))


def signed(wire: str) -> list[Message]:
    """A wire's own conversation, each of the model's messages bound to what stands before it, as a
    run binds it."""
    messages: list[Message] = []
    for message in native(wire, TARGETS[wire])[0]:
        if message.role is Role.MODEL and message.origin is not None:
            origin = msgspec.structs.replace(message.origin, prefix=compute_prefix(messages, "w"))
            message = message.replace(origin=origin)
        messages.append(message)
    return messages


def inner(payload: Any) -> list[Any]:
    """The messages of a payload."""
    return (
        payload
        if isinstance(payload, list)
        else payload.get("messages", payload.get("input", payload.get("contents")))
    )


def dumped(wire: str, messages: list[Message], losses: list[Loss] | None = None) -> Any:
    dump = wires.get(wire).dump_messages
    return dump(
        repair(messages), target=TARGETS[wire], quirks=PROVIDERS[wire].quirks, losses=losses
    )


@pytest.mark.parametrize(("first", "then"), PAIRS)
def test_going_on_with_another_and_back_keeps_what_was_signed_byte_exact_and_in_place(
    first: str, then: str
) -> None:
    own = signed(first)
    alone = inner(dumped(first, own))
    answer = Message.model("Sure.").replace(
        origin=msgspec.structs.replace(TARGETS[then], prefix=compute_prefix(own, "w"))
    )
    longer = [
        *own,
        *([] if own[-1].role is Role.USER else [Message.user("Well?")]),
        answer,
        Message.user("Back."),
    ]
    assert [seal for seal in sealed(own) if seal in json.dumps(sent(then, longer))] == []
    back = inner(dumped(first, longer))
    assert back[: len(alone)] == alone
    kept = [seal for seal in sealed(own) if seal in json.dumps(alone)]
    assert kept == [seal for seal in kept if seal in json.dumps(back)]
    assert bool(kept) == (first in SIGNING), "otherwise the test proves nothing"


SIGNING = (
    "anthropic",
    "cohere",
    "google",
    "openai_responses",
    "mistral",
    "openai_chat",
    "google_interactions",
    "bedrock_converse",
)
"""The wires whose own conversation holds something signed that goes back."""


CHANGED = "what stood before it has changed"
SEALS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anthropic": ({"signature": "first-seal"}, {"signature": "second-seal"}),
    "openai_responses": (
        {"id": "rs_1", "encrypted_content": "first-seal"},
        {"id": "rs_2", "encrypted_content": "second-seal"},
    ),
    "google": ({"thoughtSignature": "first-seal"}, {"thoughtSignature": "second-seal"}),
    "bedrock_converse": ({"signature": "first-seal"}, {"signature": "second-seal"}),
}


def bound(wire: str) -> list[Message]:
    """A run of two answers, each with a seal and bound to all before it."""
    target = TARGETS[wire]
    messages = [Message.system("Be brief."), Message.user("Look."), Message.user("Well?")]
    answers = (
        [
            [ToolCallPart("c1", "look", {"at": "home"})],
            [Message.user(ToolResultPart("c1", "look", "a cat"))],
        ],
        [["A cat."], [Message.user("And now?")]],
    )
    for seal, (said, after) in zip(SEALS[wire], answers, strict=True):
        origin = msgspec.structs.replace(target, prefix=compute_prefix(messages, "w"))
        messages += [
            Message.model(ThinkingPart("Hm.", {wire: seal}), *said).replace(origin=origin),
            *after,
        ]
    return messages


def with_(place: int, message: Message) -> Any:
    return lambda talk: [*talk[:place], message, *talk[place + 1 :]]


EDITS: dict[str, tuple[Any, tuple[bool, bool]]] = {
    "nothing": (lambda talk: talk, (True, True)),
    "ids, times and notes": (
        lambda talk: [m.replace(id=f"m{n}", metadata={"n": n}) for n, m in enumerate(talk)],
        (True, True),
    ),
    "stored and read": (lambda talk: [Message.from_json(m.to_json()) for m in talk], (True, True)),
    "more words at the end": (lambda talk: [*talk, Message.model("."), Message.user("?")], (True, True)),
    "the system prompt": (with_(0, Message.system("Be long.")), (True, True)),
    "no system prompt": (lambda talk: talk[1:], (True, True)),
    "the first question": (with_(1, Message.user("Hear.")), (False, False)),
    "a message removed before both": (lambda talk: [*talk[:2], *talk[3:]], (False, False)),
    "a message put in between": (lambda talk: [*talk[:5], Message.user("?"), *talk[5:]], (True, False)),
    "a tool's result": (with_(4, Message.user(ToolResultPart("c1", "look", "a dog"))), (True, False)),
    "a tool's result, now failed": (with_(4, Message.user(ToolResultPart("c1", "look", "a cat", True))), (True, False)),
    "what was asked after both": (with_(6, Message.user("Really?")), (True, True)),
    "the first round removed": (lambda talk: [*talk[:3], *talk[5:]], (False, False)),
    "the first answer's call": (
        lambda talk: with_(3, talk[3].replace(content=(talk[3].content[0], ToolCallPart("c1", "look", {}))))(talk),
        (True, False),
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("wire", SEALS)
def test_a_seal_holds_while_what_stood_before_it_is_as_it_was(wire: str, edit: str) -> None:
    """Decision 29: the system prompt is of each request, and no provider signs it."""
    change, (first, second) = EDITS[edit]
    talk = change(bound(wire))
    losses: list[Loss] = []
    text = json.dumps(dumped(wire, talk, losses))
    assert ("first-seal" in text, "second-seal" in text) == (
        first and "the first round" not in edit,
        second,
    )
    told = [loss.message for loss in losses if loss.what == "thinking"]
    assert told == [n for n, m in enumerate(talk) if m.thinking and seal_of(m) not in text]
    assert all(loss.why == CHANGED for loss in losses if loss.what == "thinking")
    assert [
        problem for problem in problems(wire, sent(wire, talk)) if "base64" not in problem
    ] == []


def seal_of(message: Message) -> str:
    return next(
        str(seal)
        for piece in message.content
        if piece.native
        for seal in sealed([message])
        if "seal" in seal
    )


@pytest.mark.parametrize("wire", SEALS)
def test_a_seal_is_for_its_own_endpoint(wire: str) -> None:
    elsewhere = msgspec.structs.replace(TARGETS[wire], endpoint="https://proxy.test")
    text = json.dumps(wires.get(wire).dump_messages(bound(wire), target=elsewhere))
    assert "seal" not in text


def test_the_documented_table_is_what_the_wires_tell() -> None:
    written = Path(__file__).resolve().parents[2] / "docs" / "switching.md"
    assert written.read_text() == markdown(), "make pages"
