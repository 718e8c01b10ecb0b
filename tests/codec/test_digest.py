"""Digests of a conversation: the signed chain, the neutral one, and what counts in each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec import digest
from dragoman.codec.digest import (
    chain_neutral_digests,
    chain_signature_digests,
    neutral_digest,
    parse_prefix_wire,
)
from dragoman.codec.signature_check import find_unreadable
from dragoman.message import (
    NOTES,
    DataPart,
    FinishReason,
    MarkPart,
    Message,
    Origin,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
)
from support import strategies as some


def signed(message: Message, wire: str = "w") -> str:
    return chain_signature_digests([message], wire)[-1]


@given(some.histories)
def test_both_chains_survive_json(history: list[Message]):
    again = [Message.from_json(message.to_json()) for message in history]
    assert chain_signature_digests(again, "openai_chat") == chain_signature_digests(
        history, "openai_chat"
    )
    assert chain_neutral_digests(again) == chain_neutral_digests(history)


@given(some.histories)
def test_a_chain_grows_by_one_digest_a_message(history: list[Message]):
    for chain in (lambda messages: chain_signature_digests(messages, "w"), chain_neutral_digests):
        digests = chain(iter(history))
        assert len(digests) == len(history) + 1
        for position in range(len(history)):
            assert chain(history[:position]) == digests[: position + 1]


@given(
    some.messages,
    st.none() | some.text,
    st.none() | some.origins,
    st.none() | some.usages,
    some.metadata,
)
def test_ids_times_usage_turns_and_notes_do_not_count(
    message: Message, id_, origin, usage, metadata
):
    other = message.replace(
        id=id_,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        origin=origin,
        usage=usage,
        metadata=metadata,
        finish_reason=FinishReason.stop,
        turn="t",
    )
    assert signed(other) == signed(message)
    assert neutral_digest(other) == neutral_digest(message)


@given(some.messages, st.integers(0, 5))
def test_marks_count_in_no_digest(message: Message, place: int):
    mark = MarkPart("step", {"ai_sdk": {"type": "step-start"}})
    content = [*message.content[:place], mark, *message.content[place:]]
    marked = message.replace(content=tuple(content))
    assert signed(marked) == signed(message)
    assert neutral_digest(marked) == neutral_digest(message)
    assert digest.extend_digest("", marked) == digest.extend_digest("", message)


def test_all_that_was_said_counts_and_so_does_what_stood_before():
    texts = [TextPart("a"), TextPart("b"), ThinkingPart("a")]
    calls = [ToolCallPart("1", "f"), ToolCallPart("1", "g"), ToolCallPart("1", "f", {"a": 1})]
    results = [
        ToolResultPart("1", "f", 1),
        ToolResultPart("1", "f", 2),
        ToolResultPart("1", "f", 1, is_error=True),
    ]
    results.append(ToolResultPart("1", "f", (TextPart("a"),)))
    messages = [Message.model(piece) for piece in (*texts, *calls, *results)]
    messages += [Message.user("a"), Message.model(), Message.model("a", "b"), Message.model("ab")]
    for chain in (lambda history: chain_signature_digests(history, "w"), chain_neutral_digests):
        found = {
            chain([*before, message])[-1]
            for before in ([], [Message.user("x")])
            for message in messages
        }
        assert len(found) == 2 * len(messages)


def test_of_native_the_signed_chain_counts_the_fields_of_its_wire_alone():
    def of(native: dict[str, Any] | None) -> Message:
        shown = DataPart(b"x", "image/png", native=native)
        result = ToolResultPart("c", "f", (shown,), native=native)
        return Message.user(TextPart("t", native), result).replace(native=native)

    bare = signed(of(None))
    assert signed(of({"other": {"a": 1}})) == bare
    assert signed(of({f"w{NOTES}": {"spelling": {"a": 1}}})) == bare
    assert signed(of({"w": {"a": 1}, "other": {"a": 2}})) == signed(of({"w": {"a": 1}})) != bare
    assert signed(of({"w": {"a": 1}}), "v") == signed(of(None), "v")
    assert neutral_digest(of({"w": {"a": 1}})) == neutral_digest(of(None))


def test_system_text_at_the_head_is_signed_by_nobody():
    first, second = Message.system("Be brief."), Message.system("Be long.")
    user, later = Message.user("Hi."), Message.system("Now French.")
    assert (
        chain_signature_digests([first, user], "w")[-1]
        == chain_signature_digests([second, user], "w")[-1]
        == signed(user)
    )
    assert (
        chain_signature_digests([first, second, user], "w")[:3]
        == chain_signature_digests([], "w") * 3
    )
    assert chain_signature_digests([user, later], "w")[-1] != signed(user)
    assert chain_neutral_digests([first, user]) != chain_neutral_digests([second, user])


def test_ids_count_in_what_was_signed_and_not_in_what_a_reader_sees():
    one, two = Message.model(ToolCallPart("1", "f")), Message.model(ToolCallPart("2", "f"))
    assert neutral_digest(one) == neutral_digest(two)
    assert signed(one) != signed(two)


@pytest.mark.parametrize(
    ("result", "text"), [({"b": 1, "a": [None]}, '{"a": [null], "b": 1}'), ("no JSON", "no JSON")]
)
def test_results_compare_as_json(result: Any, text: str):
    assert neutral_digest(Message.user(ToolResultPart("1", "f", result))) == neutral_digest(
        Message.user(ToolResultPart("1", "f", text))
    )


def test_the_order_of_keys_does_not_count_and_the_digests_are_for_ever():
    one, two = (
        {"w": {"a": 1, "b": [1, {"c": 1, "d": 2}]}},
        {"w": {"b": [1, {"d": 2, "c": 1}], "a": 1}},
    )
    assert signed(Message.user(TextPart("t", one))) == signed(Message.user(TextPart("t", two)))
    assert signed(Message.model("hi")) == "2:w:58b98ae5bc7d03b4a948bd2e5966c473", (
        "a change breaks the prefix of every stored origin"
    )
    assert neutral_digest(Message.model("hi")) == "85f1ef115b186c7e7cc5bf8f2ad6f45f"


def test_half_a_pair_of_surrogates_has_digests():
    assert signed(Message.user("\ud800")) != signed(Message.user("\ud801"))
    assert neutral_digest(Message.user("\ud800")) != neutral_digest(Message.user("\ud801"))


def test_a_prefix_says_how_it_was_made():
    assert parse_prefix_wire(signed(Message.user("a"), "my:wire")) == "my:wire"
    assert parse_prefix_wire(digest.chain_digests([Message.user("a")])[-1]) == ""


def test_what_an_earlier_release_signed_still_holds():
    asked = Message.user("a")
    old, new = digest.chain_digests([asked])[-1], chain_signature_digests([asked], "anthropic")[-1]
    for prefix, also in ((old, new), (new, old)):
        answers = [
            Message.model("b").replace(origin=Origin("p", prefix=each)) for each in (prefix, also)
        ]
        history = [asked, answers[0], Message.user("c")]
        assert find_unreadable(history, Origin("p")) == [None, None, None]
        assert find_unreadable([Message.user("other"), *history[1:]], Origin("p")) == [
            None,
            "what stood before it has changed",
            None,
        ]


def test_a_call_that_the_client_runs_counts_as_what_formats_tell_of_it():
    for part in (ToolCallPart("c", "f", {"a": 1}), ToolResultPart("c", "f", 1)):
        mine, clients, providers = (
            Message.model(msgspec.structs.replace(part, run_by=by))
            for by in ("agent", "client", "provider")
        )
        for of in (signed, neutral_digest):
            assert of(mine) == of(clients) != of(providers)
