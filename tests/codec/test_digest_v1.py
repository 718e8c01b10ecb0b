"""The digest chain of earlier releases: what it gave is stored, and must come out the same for
ever."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from dragoman.codec.digest import chain_digests, extend_digest
from dragoman.message import (
    NOTES,
    DataPart,
    FinishReason,
    Message,
    Origin,
    Role,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolResultPart,
    Usage,
)
from support import strategies as some


@given(some.histories)
def test_the_chain_survives_json(history: list[Message]):
    assert chain_digests(
        [Message.from_json(message.to_json()) for message in history]
    ) == chain_digests(history)


@given(some.histories)
def test_the_chain_is_one_digest_after_the_other(history: list[Message]):
    digests = chain_digests(iter(history))
    assert len(digests) == len(history) + 1
    assert digests[0] == ""
    for position, message in enumerate(history):
        assert digests[position + 1] == extend_digest(digests[position], message)
        assert chain_digests(history[:position]) == digests[: position + 1]
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in digests[1:])


@given(
    some.messages,
    st.none() | some.text,
    st.none() | some.origins,
    st.none() | some.usages,
    some.metadata,
)
def test_ids_times_usage_and_notes_do_not_count(message: Message, id_, origin, usage, metadata):
    other = message.replace(
        id=id_,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        origin=origin,
        usage=usage,
        metadata=metadata,
        finish_reason=FinishReason.stop,
    )
    assert extend_digest("", other) == extend_digest("", message)


def test_all_that_was_said_counts_and_so_does_what_stood_before():
    texts = [TextPart("a"), TextPart("b"), TextPart("a", {"x": {}}), ThinkingPart("a")]
    calls = [
        ToolCallPart("1", "f"),
        ToolCallPart("2", "f"),
        ToolCallPart("1", "f", raw="{ }"),
        ToolCallPart("1", "f", {"a": 1}),
    ]
    results = [
        ToolResultPart("1", "f", 1),
        ToolResultPart("1", "f", 1.0),
        ToolResultPart("1", "f", 1, is_error=True),
    ]
    messages = [Message.model(piece) for piece in (*texts, *calls, *results)]
    messages += [
        Message.user("a"),
        Message.system("a"),
        Message.model(),
        Message.model("a", "b"),
        Message.model("ab"),
    ]
    messages += [Message.model("a").replace(native={"x": {"name": "n"}})]
    digests = {extend_digest(parent, message) for parent in ("", "0" * 32) for message in messages}
    assert len(digests) == 2 * len(messages)


def test_the_order_of_keys_does_not_count_and_the_digest_is_for_ever():
    one, two = (
        {"x": {"a": 1, "b": [1, {"c": 1, "d": 2}]}},
        {"x": {"b": [1, {"d": 2, "c": 1}], "a": 1}},
    )
    assert extend_digest("", Message.user(TextPart("t", one))) == extend_digest(
        "", Message.user(TextPart("t", two))
    )
    stored = Message(Role.MODEL, "hi", origin=Origin("p"), usage=Usage(input_tokens=1))
    assert extend_digest("", stored) == "4bcaf977e6c12275d4e8624364c6a342", (
        "a change breaks the prefix of every stored origin"
    )


def test_a_digest_of_the_older_stored_form_still_holds():
    old = b'{"v":1,"role":"model","content":[{"type":"text","text":"a","native":{"mistral":{"spelling":{"b":1},"z":2}}}]}'
    # computed by the release that wrote version 1
    assert extend_digest("", Message.from_json(old)) == "f62f9b58c4d2b8ccb7b902212c52afbb"


def test_notes_inside_a_result_count_as_they_did_in_one_room() -> None:
    def shown(native: dict[str, Any]) -> Message:
        return Message.user(ToolResultPart("c", "f", (DataPart(b"x", "image/png", native=native),)))

    two = shown({"google": {"a": 1}, f"google{NOTES}": {"spelling": {"snake": ["x"]}}})
    one = msgspec.json.encode(
        (Role.USER, shown({"google": {"a": 1, "spelling": {"snake": ["x"]}}}).content, None)
    )
    assert extend_digest("", two) == blake2b(one, digest_size=16).hexdigest()
